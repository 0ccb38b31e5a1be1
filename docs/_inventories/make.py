"""Write the inventories of other projects' names that the documentation links to.

    python docs/_inventories/make.py

An inventory says on which page of a project's documentation a name is described.  These are made
from the installed packages and from the address pattern of each site, so that neither this script
nor the build needs a network.
"""

from __future__ import annotations

import inspect
import zlib
from importlib import import_module
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
# The public modules, and where their site describes a name.
PROJECTS = {
    "numpy": (["numpy", "numpy.linalg"], "reference/generated/{name}.html"),
    "scipy": (
        ["scipy.linalg", "scipy.sparse", "scipy.special", "scipy.stats"],
        "reference/generated/{name}.html",
    ),
    "sklearn": (
        [
            f"sklearn.{part}"
            for part in (
                *("base", "calibration", "cluster", "compose", "datasets", "ensemble"),
                *("feature_extraction.text", "kernel_ridge", "linear_model", "metrics"),
                *("metrics.pairwise", "model_selection", "multiclass", "multioutput"),
                *("neighbors", "pipeline", "preprocessing", "svm"),
            )
        ],
        "modules/generated/{name}.html",
    ),
    "pandas": (["pandas"], "reference/api/{name}.html"),
}
PYTHON = {
    "library/functions.html": ("bool", "float", "int", "object"),
    "library/stdtypes.html": ("bytes", "dict", "frozenset", "list", "range", "set", "str",
                              "tuple"),
    "library/exceptions.html": ("ImportError", "OSError", "RuntimeError", "UserWarning",
                                "ValueError"),
    "library/pathlib.html": ("pathlib.Path",),
    "library/os.html": ("os.PathLike",),
}  # fmt: skip


def entries(modules: list[str], pattern: str) -> list[str]:
    found = {}
    for module in modules:
        loaded = import_module(module)
        for name in getattr(loaded, "__all__", dir(loaded)):
            try:
                value = getattr(loaded, name, None)
            except ImportError:  # experimental names have to be enabled first
                continue
            if name.startswith("_") or inspect.ismodule(value) or not callable(value):
                continue
            if not hasattr(loaded, "__all__") and getattr(value, "__module__", module) != module:
                continue  # imported from elsewhere
            full = f"{module}.{name}"
            page = pattern.format(name=full)
            if inspect.isclass(value) and issubclass(value, np.generic):
                page = "reference/arrays.scalars.html"
            role = "class" if inspect.isclass(value) else "function"
            found[full] = f"{full} py:{role} 1 {page}#$ -"
    if "numpy" in modules:
        for name, role in (("Generator", "class"), ("default_rng", "function")):
            full = f"numpy.random.{name}"
            found[full] = f"{full} py:{role} 1 reference/random/generator.html#$ -"
    return [found[name] for name in sorted(found)]


def write(name: str, lines: list[str]) -> None:
    head = f"# Sphinx inventory version 2\n# Project: {name}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    body = zlib.compress("".join(f"{line}\n" for line in lines).encode(), 9)
    (HERE / f"{name}.inv").write_bytes(head.encode() + body)


def main() -> None:
    for project, (modules, pattern) in PROJECTS.items():
        write(project, entries(modules, pattern))
    lines = [
        f"{name} py:{'exception' if 'exceptions' in page else 'class'} 1 {page}#$ -"
        for page, names in PYTHON.items()
        for name in names
    ]
    write("python", sorted(lines))


if __name__ == "__main__":
    main()
