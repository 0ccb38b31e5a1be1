"""Which types may be loaded without asking: a list, not a pattern.

skops rebuilds objects of the types that a file names.  It trusts NumPy's, SciPy's and
scikit-learn's estimators by itself.  Of imcc, only the classes of fitted models are added: not
"everything in imcc", which would let a file name functions that write to the disk.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Collection
from functools import cache
from typing import Any

from imcc._utils.optional import require
from imcc.persistence._errors import ModelFileError

# Modules whose classes are models or parts of models; a new one is added here.
MODULES = (
    "imcc._core.maps",
    "imcc.estimators.imcc",
    "imcc.estimators.imcc_cv",
    "imcc._core.kernels",
    "imcc._core.models",
    "imcc.calibration._tuned",
    "imcc.baselines._platt",
    "imcc.baselines._svm",
    "imcc.baselines.brsvm",
    "imcc.baselines.ecc",
    "imcc.baselines.jfsc",
    "imcc.baselines.kernel_ridge",
    "imcc.baselines.lift",
    "imcc.baselines.llsf",
    "imcc.baselines.mahr",
    "imcc.baselines.search_cv",
    "imcc.baselines.trees",
)
# Plain settings of searches, which skops leaves out.
SPLITTERS = (
    "GroupKFold",
    "GroupShuffleSplit",
    "KFold",
    "RepeatedKFold",
    "RepeatedStratifiedKFold",
    "ShuffleSplit",
    "StratifiedGroupKFold",
    "StratifiedKFold",
    "StratifiedShuffleSplit",
)


@cache
def trusted_types() -> frozenset[str]:
    """Return the names of the types that imcc trusts besides those that skops does."""
    names = {f"sklearn.model_selection._split.{name}" for name in SPLITTERS}
    names.add("numpy.dtype")  # which imputers keep
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name, found in vars(module).items():
            if inspect.isclass(found) and found.__module__ == module_name:
                names.add(f"{module_name}.{name}")
    return frozenset(names)


def skops_io() -> Any:
    """Return the module skops.io, or say how to install it."""
    return require("skops.io", "skops", "Saving and loading models")


def unknown_types(data: bytes, path: str) -> list[str]:
    """Return the types in a skops file that nobody trusts, without loading anything."""
    try:
        named = skops_io().get_untrusted_types(data=data)
    except ImportError:
        raise
    # skops reads the file's own description of the model; one that makes no sense fails anywhere.
    except Exception as error:
        raise ModelFileError(_damaged(error), path) from error
    return sorted(set(named) - trusted_types())


def loads(data: bytes, trusted: Collection[str], path: str) -> Any:
    """Load a skops file whose types are all trusted."""
    try:
        return skops_io().loads(data, trusted=sorted({*trusted, *trusted_types()}))
    except ImportError:
        raise
    except Exception as error:  # as above
        raise ModelFileError(_damaged(error), path) from error


def _damaged(error: Exception) -> str:
    said = str(error).splitlines()[0] if str(error) else ""
    return (
        "the model cannot be put together: the file is damaged, or was made with versions that do "
        f"not go with these ({type(error).__name__}: {said})"
    )
