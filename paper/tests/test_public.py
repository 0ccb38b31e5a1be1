"""This project uses the public interface of imcc only."""

import ast
import importlib
from pathlib import Path

import pytest

PAPER = Path(__file__).parents[1]
FILES = sorted([*(PAPER / "imcc_paper").rglob("*.py"), *(PAPER / "tests").glob("*.py")])


def imported(path):
    """Yield module and name of every import of imcc in a file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_only_public_names_are_imported(path):
    for module, name in imported(path):
        package, _, rest = module.partition(".")
        assert package != "tests", f"{module}: a part of another project"
        if package == "imcc" and name is not None:
            public = importlib.import_module(module)
            assert not any(part.startswith("_") for part in rest.split(".")), module
            assert name in public.__all__, f"{module}.{name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_private_attribute_of_the_library_is_used(path):
    """Of modules and classes by their name; objects of imcc are not known here."""
    tree = ast.parse(path.read_text("utf-8"))
    ours = {name for module, name in imported(path) if module.partition(".")[0] == "imcc" and name}
    private = {
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ours | {"imcc"}
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
    }
    assert not private
