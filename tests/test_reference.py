"""The reference documents the public names, all of them and no others."""

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import imcc

DOCS = Path(__file__).parent.parent / "docs"
PACKAGES = [name for name in imcc.__all__ if isinstance(getattr(imcc, name), ModuleType)]


def documented():
    """Return the modules of docs/api.md and the (module, name) pairs that it lists."""
    modules, names, module, listing = set(), set(), None, False
    for line in (DOCS / "api.md").read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. (?:currentmodule|automodule):: (\S+)", line):
            module = found[1]
            modules.add(module)
        elif found := re.match(r"\.\. autodata:: (\S+)", line):
            names.add((module, found[1]))
        elif line.startswith(".. autosummary::"):
            listing = True
            continue
        elif listing and (found := re.match(r"   ([A-Za-z_]\w*)$", line)):
            names.add((module, found[1]))
        if line and not line.startswith("   "):
            listing = False
    return modules, names


def test_every_public_name_is_in_the_reference():
    _, names = documented()
    objects = [getattr(importlib.import_module(module), name) for module, name in names]
    for package in ["imcc", *(f"imcc.{name}" for name in PACKAGES)]:
        module = importlib.import_module(package)
        for name in module.__all__:
            found = getattr(module, name)
            # What several packages export is documented in one of them; equal numbers are not that.
            shared = not isinstance(found, (str, int, float))
            assert (
                (package, name) in names
                or isinstance(found, ModuleType)
                or (shared and any(found is other for other in objects))
            ), f"{package}.{name} is not in docs/api.md"


def test_the_reference_has_public_names_only():
    modules, names = documented()
    assert modules <= {"imcc", *(f"imcc.{name}" for name in PACKAGES)}
    for module, name in names:
        assert name in importlib.import_module(module).__all__, f"{module}.{name} is private"


@pytest.mark.parametrize("package", ["imcc", *(f"imcc.{name}" for name in PACKAGES)])
def test_public_names_have_no_underscore_and_exist(package):
    module = importlib.import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert not name.startswith("_")
        assert hasattr(module, name)


def test_every_page_is_in_a_menu():
    """Each page is in exactly one table of contents, so that it has a place in the menu."""
    listed = []
    for path in DOCS.glob("*.md"):
        for contents in re.findall(r"```{toctree}\n(.*?)```", path.read_text("utf-8"), re.S):
            listed += [line for line in contents.splitlines() if re.fullmatch(r"[\w/]+", line)]
    pages = {path.stem for path in DOCS.glob("*.md")} - {"index"}
    assert len(listed) == len(set(listed))
    assert set(listed) == pages | {"auto_examples/index"}
