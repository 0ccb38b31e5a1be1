"""The types that are loaded without confirmation: an explicit list, not a pattern.

skops creates objects of the types that a file names.  It trusts types of NumPy, SciPy and
scikit-learn by default.  Of imcc, only the classes in :mod:`imcc._utils.names` are added.  Trusting
everything in imcc would allow a file to name functions that write to disk.  Types of other packages
are only loaded if the user names them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from imcc._utils.names import CLASSES, PARTS
from imcc._utils.optional import require
from imcc.persistence._errors import ModelFileError

# Splitters of scikit-learn, which skops does not trust by default.
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


# Sparse matrices, which kernel models store their rows in; their structure is checked completely
# before and after loading.
SPARSE = (
    "scipy.sparse._csc.csc_array",
    "scipy.sparse._csc.csc_matrix",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
)

#: Names of the types that imcc trusts in addition to those that skops trusts.
TRUSTED = frozenset(
    {
        *(where.replace(":", ".") for where in (CLASSES | PARTS).values()),
        *(f"sklearn.model_selection._split.{name}" for name in SPLITTERS),
        *SPARSE,
        "numpy.dtype",  # stored by imputers
        "sklearn.metrics._scorer._PassthroughScorer",  # stored by GridSearchCV; calls score
    }
)


def require_skops() -> Any:
    """Return the module skops.io.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If skops is not installed; the message says how to install it.
    """
    return require("skops.io", "Saving and loading models")


def unknown_types(data: bytes, path: str) -> list[str]:
    """Return the types in a skops archive that are not trusted, without loading anything."""
    try:
        named = require_skops().get_untrusted_types(data=data)
    except ImportError:
        raise
    # skops reads the schema of the file; an invalid one can raise any exception.
    except Exception as error:
        raise ModelFileError(_damaged(error), path) from error
    return sorted(set(named) - TRUSTED)


def loads(data: bytes, trusted: Collection[str], path: str) -> Any:
    """Load a skops archive whose types are all trusted."""
    try:
        return require_skops().loads(data, trusted=sorted({*trusted, *TRUSTED}))
    except ImportError:
        raise
    except Exception as error:  # as above
        raise ModelFileError(_damaged(error), path) from error


def _damaged(error: Exception) -> str:
    reason = str(error).splitlines()[0] if str(error) else ""
    return (
        "the model cannot be loaded: the file is damaged or was written by an incompatible "
        f"version ({type(error).__name__}: {reason})"
    )
