"""Tests that need what is not here are skipped; under CI=true they fail.

Optional packages are imported where they are used, so a test does not know beforehand what it
needs: an import of a package that cannot be found ends it as skipped, while it is collected, set
up or run.  `make oldest` relies on this: it installs the core dependencies only.

The paper's data files are seen by the tests with the marker `data` only, and only in the folder
IMCC_DATA_MIRROR.  A test that needs them and has no marker fails for everybody, not only for those
who do not have them.

Coverage is measured on the quick tests only, not on slow ones and examples, unless
`--cover-all` is given.
"""

import contextlib
import importlib
import importlib.util
import os
import pkgutil
from pathlib import Path

import pytest

# What `make docs` writes, and the programs that it runs.
collect_ignore_glob = ["docs/_build/*", "docs/api/*", "docs/auto_examples/*", "docs/conf.py"]


def pytest_addoption(parser):
    """Add the options that `make coverage` and .ci/run use."""
    parser.addoption(
        "--cover-all", action="store_true", help="with --cov, measure the slow tests too"
    )
    parser.addoption(
        "--without-data",
        action="store_true",
        help="skip the tests with the marker data, also under CI=true",
    )


def pytest_configure():
    """Hide the cache of downloaded files from the tests and the processes that they start."""
    # Below a file there is nothing, and nothing can be downloaded to it.
    os.environ["IMCC_DATA_HOME"] = str(Path(__file__, "hidden-from-tests"))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Hide the data files from the modules of the tests."""
    with _hidden_data():
        return (yield)


@contextlib.contextmanager
def _hidden_data():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("IMCC_DATA_MIRROR", raising=False)
        yield


def pytest_collection_finish(session):
    """Import the package while coverage is measured, whichever test would be the first to do it."""
    if session.config.pluginmanager.hasplugin("_cov") and not session.config.option.collectonly:
        import imcc

        for module in pkgutil.walk_packages(imcc.__path__, "imcc."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Hide the data files from tests without the marker, and measure the quick tests only."""
    with contextlib.ExitStack() as stack:
        if not _needs_data(item):
            stack.enter_context(_hidden_data())
        cover = item.config.pluginmanager.getplugin("_cov")
        if cover and not item.config.getoption("cover_all") and not _is_measured(item):
            cover.cov_controller.pause()
            stack.callback(cover.cov_controller.resume)
        return (yield)


def _needs_data(item):
    return item.get_closest_marker("data") is not None


def _is_measured(item):
    # Slow tests and examples would take twice as long.  What only they reach counts as not covered,
    # so what is shown is a lower bound.
    slow = item.get_closest_marker("slow") or _needs_data(item)
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
def pytest_runtest_setup(item):
    """Skip a test that needs data files which are not here, or a package that is not installed."""
    without = item.config.getoption("without_data")
    if _needs_data(item) and (without or not _has_data()):
        reason = "needs the paper's data files: IMCC_DATA_MIRROR names no folder"
        if without or _skips():
            pytest.skip(reason)
        pytest.fail(reason, pytrace=False)
    return (yield from _skipping())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """Skip a test that imports what is not installed."""
    return (yield from _skipping())


def _has_data():
    folder = os.environ.get("IMCC_DATA_MIRROR")
    return bool(folder) and Path(folder).is_dir()


def _skipping():
    try:
        return (yield)
    except Exception as error:
        package = missing_package(error) if _skips() else None
        if package is None:
            raise
        pytest.skip(f"needs {package}")
