"""The room's own rules: imports in one direction, examples."""

import ast
from pathlib import Path

import imcc.datasets

ROOM = Path(imcc.datasets.__file__).parent


def imports(path):
    """Return the modules of the room that a module imports, with the depth of the import."""
    tree = ast.parse(path.read_text())
    found = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {
        name.removeprefix("imcc.datasets.") for name in found if name.startswith("imcc.datasets.")
    }


def test_imports_point_one_way():
    graph = {path.stem: imports(path) for path in ROOM.glob("_*.py") if path.stem != "__init__"}
    done: set[str] = set()
    while graph:
        ready = [name for name, needs in graph.items() if needs <= done]
        assert ready, f"these modules import each other in a circle: {sorted(graph)}"
        done.update(ready)
        for name in ready:
            del graph[name]
    assert "_load" in done


def test_everything_public_is_documented_with_an_example():
    without = [
        name
        for name in imcc.datasets.__all__
        if callable(getattr(imcc.datasets, name))
        and not isinstance(getattr(imcc.datasets, name), type)
        and ">>>" not in (getattr(imcc.datasets, name).__doc__ or "")
    ]
    assert without == []
