"""Tests that need an extra which is not installed are skipped; under CI=true they fail.

Optional packages are imported where they are used, so a test does not know beforehand what it
needs: an import of a package that cannot be found ends it as skipped, while it is collected, set
up or run.  `make oldest` relies on this: it installs the core dependencies only.

And coverage is measured on the quick tests only, not on slow ones and examples, unless
`--cover-all` is given.
"""

import importlib
import importlib.util
import os
import pkgutil

import pytest

# What `make docs` writes, and the programs that it runs.
collect_ignore_glob = ["docs/_build/*", "docs/api/*", "docs/auto_examples/*", "docs/conf.py"]


def pytest_addoption(parser):
    """Add the option that `make coverage` uses."""
    parser.addoption(
        "--cover-all", action="store_true", help="with --cov, measure the slow tests too"
    )


def pytest_collection_finish(session):
    """Import the package while coverage is measured, whichever test would be the first to do it."""
    if session.config.pluginmanager.hasplugin("_cov") and not session.config.option.collectonly:
        import imcc

        for module in pkgutil.walk_packages(imcc.__path__, "imcc."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Run the slow tests and the examples without measuring coverage, which doubles their time.

    What only they reach counts as not covered, so what is shown is a lower bound.
    """
    cover = item.config.pluginmanager.getplugin("_cov")
    if cover is None or item.config.getoption("cover_all") or _is_measured(item):
        return (yield)
    cover.cov_controller.pause()
    try:
        return (yield)
    finally:
        cover.cov_controller.resume()


def _is_measured(item):
    slow = any(item.get_closest_marker(name) for name in ("slow", "data"))
    return not slow and not isinstance(item, pytest.DoctestItem)


def missing_package(error):
    """Return the package that an error could not import, if it is not installed; else None."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, ImportError) and error.name:
            package = error.name.partition(".")[0]
            if package != "imcc" and not _is_installed(package):
                return package
        error = error.__cause__
    return None


def _is_installed(package):
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):  # None stands in sys.modules in its place
        return True  # a test has hidden it


def _skips():
    return os.environ.get("CI") != "true"


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Skip a module that imports what is not installed."""
    report = yield
    call = getattr(report, "call", None)
    if report.failed and call is not None and call.excinfo is not None and _skips():
        package = missing_package(call.excinfo.value)
        if package is not None:
            report.outcome = "skipped"
            report.longrepr = (str(collector.path), 0, f"needs {package}")
            report.result = []
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup():
    """Skip a test whose fixtures import what is not installed."""
    return (yield from _skipping())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """Skip a test that imports what is not installed."""
    return (yield from _skipping())


def _skipping():
    try:
        return (yield)
    except Exception as error:
        package = missing_package(error) if _skips() else None
        if package is None:
            raise
        pytest.skip(f"needs {package}")
