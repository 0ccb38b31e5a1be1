"""Rules of the layout: which package imports which, and with what installed."""

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

import imcc

ROOT = Path(imcc.__file__).parent
# Of the tests: the package may be installed elsewhere.
REPOSITORY = Path(__file__).parents[1]
# A package may import the packages before it, never one after it.
PACKAGES = [
    "_array",
    "_utils",
    "metrics",
    "datasets",
    "_math",
    "estimators",
    "baselines",
    "inspection",
    "persistence",
    "tables",
    "comparison",
    "experiment",
    "report",
    "serve",
    "cli",
    "__main__",
]
# The order of the modules inside of a package.
INSIDE = {
    "_array": ["array", "device", "linalg"],
    "_utils": [
        *("config", "errors", "names", "text", "cells", "optional", "plain", "progress"),
        *("html", "wrappers", "files", "validation"),
    ],
    "_math": [
        *("kernels", "clustering", "sampling", "landmarks", "maps"),
        *("solver", "fitting", "logistic", "score_maps", "thresholds", "guarantees"),
        *("search", "ensemble", "stream"),
    ],
    "_math.search": [
        *("scorers", "grid", "folds", "fold", "search", "results"),
    ],
    "_math.ensemble": [
        *("views", "ridge", "members", "trees", "model"),
        *("linear", "costs", "plan", "selection", "search"),
    ],
    "_math.stream": ["sources", "fitting"],
    "estimators": [
        *("base", "base_search", "imcc", "imcc_cv", "kernel_ensemble"),
        *("cross_fit", "calibrator", "thresholds"),
    ],
}
# These modules import nothing of imcc, and every package may use them.
EVERYWHERE = {"imcc._utils.config", "imcc._utils.optional"}
# Arrays in, arrays or small records out: no disk, no terminal, no tables, no estimators.
PURE = ["_math", "metrics", "comparison"]
# The only package that may name torch or CuPy.
LIBRARIES = ["_array"]
CORE = ["imcc", "numpy", "scipy", "sklearn", "joblib", "threadpoolctl"]
# What these bring along themselves.
BROUGHT = ["narwhals", "loky", "cloudpickle"]


def modules():
    return sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))


@functools.cache
def parsed(path):
    return ast.parse((ROOT / path).read_text())


def imported(path, anywhere=False):
    """Every module a file imports at its top level, or anywhere, in its functions too."""
    found = set()
    tree = parsed(path)
    for node in ast.walk(tree) if anywhere else tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: use absolute imports"
            found.add(node.module)
    return found


def package(path):
    return path.parts[0].removesuffix(".py")


def test_every_module_has_its_place():
    assert {package(path) for path in modules()} == {*PACKAGES, "__init__"}


def test_the_map_for_contributors_is_this_order():
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawn = text.split("```text\n")[1].split("```")[0]
    assert re.findall(r"^.{17}(\w+) ", drawn, re.M) == PACKAGES[:-1]


# Files that a contributor would write.
TO_WRITE = {"cli/_name.py", "datasets/_name.py"}


def test_what_the_text_for_contributors_names_is_there():
    """Files, "file: function" and "module.function", in the code that they are said to be in."""
    text = " ".join((REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    files = {path.as_posix(): (ROOT / path).read_text() for path in modules()}
    named = set(re.findall(r"`([\w/]+\.py)(?:: (\w+))?`", text))
    dotted = re.findall(r"`([a-z_]+)\.(?!py`)(\w+)`", text)
    named |= {(f"{module}.py", name) for module, name in dotted if module != "model"}
    assert len(named) > 50
    for file, name in named:
        package = file.removesuffix(".py") + "/"
        found = [
            code
            for path, code in files.items()
            if f"/{path}".endswith(f"/{file}") or path.startswith(package)
        ]
        if name and found and f"{package}{name}.py" not in files:
            pattern = rf"^\s*(def|class) {name}\b|^{name}\b.* ="
            assert any(re.search(pattern, code, re.M) for code in found), f"{file}: {name}"
        elif not found and file not in TO_WRITE:
            assert (REPOSITORY / file).is_file(), file


INNER = [p for p in modules() if package(p) != "__init__"]


@pytest.mark.parametrize("path", INNER, ids=str)
def test_imports_only_point_back(path):
    allowed = PACKAGES[: PACKAGES.index(package(path)) + 1]
    names = imported(path) - EVERYWHERE
    used = {name.split(".")[1] for name in names if name.startswith("imcc.")}
    assert used <= set(allowed)


def test_what_may_be_imported_everywhere_imports_nothing():
    for name in EVERYWHERE:
        path = Path(*name.split(".")[1:]).with_suffix(".py")
        assert not any(used.startswith("imcc") for used in imported(path))


@pytest.mark.parametrize("name", INSIDE)
def test_imports_point_back_inside_a_package(name):
    """A folder in a package counts as one module of it."""
    order, prefix = INSIDE[name], f"imcc.{name}."
    folder = Path(*name.split("."))
    inside = [path for path in modules() if folder in path.parents and path.parent != folder]
    inside += [p for p in modules() if p.parent == folder and p.name != "__init__.py"]
    places = {path: path.relative_to(folder).parts[0].removesuffix(".py") for path in inside}
    assert set(places.values()) == set(order)
    for path, place in places.items():
        names = {used for used in imported(path) if used.startswith(prefix)}
        used = {used.removeprefix(prefix).split(".")[0] for used in names} - {place}
        assert used <= set(order[: order.index(place)]), path


@pytest.mark.parametrize("path", [p for p in modules() if package(p) in PURE], ids=str)
def test_pure_packages_stay_pure(path):
    tree = parsed(path)
    calls = {
        n.func.id
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }
    assert not calls & {"print", "open", "input"}
    assert not {i.split(".")[0] for i in imported(path)} & {"pandas", "os", "pathlib"}
    bases = {
        b.id
        for n in ast.walk(tree)
        if isinstance(n, ast.ClassDef)
        for b in n.bases
        if isinstance(b, ast.Name)
    }
    # A callable as in scikit-learn is given an estimator that repeats scores: search/scorers.py.
    assert "BaseEstimator" not in bases or path == Path("_math/search/scorers.py")


@pytest.mark.parametrize("path", [p for p in modules() if package(p) not in LIBRARIES], ids=str)
def test_no_other_package_knows_an_array_library(path):
    names = {
        n.id if isinstance(n, ast.Name) else n.value
        for n in ast.walk(parsed(path))
        if isinstance(n, ast.Name)
        or (isinstance(n, ast.Constant) and isinstance(n.value, str) and " " not in n.value)
    }
    assert not names & {"torch", "cupy", "array_api_strict", "array_api_compat"}


def test_every_module_imports_with_the_core_dependencies_only():
    """In a process where only the core dependencies and the standard library can be found.

    The commands themselves stand behind ``imcc.cli.main``, which says what to install.
    """
    names = [".".join(("imcc", *p.with_suffix("").parts)) for p in modules()]
    names = [name.removesuffix(".__init__") for name in names]
    names = [name for name in names if not name.startswith("imcc.cli._")]
    program = f"""
import importlib, sys

class OnlyCore:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        known = top in {CORE + BROUGHT!r} or top in sys.stdlib_module_names or top[0] == "_"
        if not known:
            raise ModuleNotFoundError(f"not a core dependency: {{name}}", name=name)

sys.meta_path.insert(0, OnlyCore())
try:
    import rich
except ModuleNotFoundError:
    pass
else:
    sys.exit("the guard does not work")
for name in {names!r}:
    importlib.import_module(name)
print("imported", len({names!r}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"imported {len(names)}"
