"""Which types may be loaded without asking: a list, not a pattern.

skops rebuilds objects of the types that a file names.  It trusts NumPy's, SciPy's and
scikit-learn's estimators by itself.  Of imcc, only the classes in the table of names are added: not
"everything in imcc", which would let a file name functions that write to the disk.  Classes whose
models another library reads are not added: its parser is not made for hostile text.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from imcc._utils.names import CLASSES, PARTS
from imcc._utils.optional import require
from imcc.persistence._errors import ModelFileError

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


# What kernel models on sparse data keep their rows in; their structure is checked in full before
# and after loading.
SPARSE = (
    "scipy.sparse._csc.csc_array",
    "scipy.sparse._csc.csc_matrix",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
)

# LightGBM's and XGBoost's parsers read what these keep, when rows are scored.
READ_ELSEWHERE = ("LightGBMBaseline", "XGBoostBaseline")

#: The names of the types that imcc trusts besides those that skops does.
TRUSTED = frozenset(
    {
        *(
            where.replace(":", ".")
            for name, where in (CLASSES | PARTS).items()
            if name not in READ_ELSEWHERE
        ),
        *(f"sklearn.model_selection._split.{name}" for name in SPLITTERS),
        *SPARSE,
        "numpy.dtype",  # which imputers keep
        "sklearn.metrics._scorer._PassthroughScorer",  # which GridSearchCV keeps: calls score
    }
)


def require_skops() -> Any:
    """Return the module skops.io, or say how to install it.

    Raises
    ------
    ImportError
        If models can be neither saved nor loaded here, with what to install.
    """
    return require("skops.io", "skops", "Saving and loading models")


def unknown_types(data: bytes, path: str) -> list[str]:
    """Return the types in a skops archive that are not trusted, without loading anything."""
    try:
        named = require_skops().get_untrusted_types(data=data)
    except ImportError:
        raise
    # skops reads the file's own description of the model; one that makes no sense fails anywhere.
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
        "the model cannot be put together: the file is damaged, or was made with incompatible "
        f"versions ({type(error).__name__}: {reason})"
    )
