"""The types that are loaded without confirmation: those that the models of imcc contain.

skops creates objects of the types that a file names, and trusts all estimators of scikit-learn.
Some of them use numbers of the file as indices, in compiled code that does not check them.  So only
the types below are trusted, each with the loader of skops that it is written for, and
:mod:`imcc.persistence._checks` checks their indices.  Of imcc, these are the classes in
:mod:`imcc._utils.names`: trusting everything would allow a file to name functions that write to
disk.  Types of other packages are only loaded if the user names them.
"""

from __future__ import annotations

import contextlib
import pkgutil
import sys
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.names import CLASSES, PARTS
from imcc._utils.optional import require

_OURS = frozenset(where.replace(":", ".") for where in {**CLASSES, **PARTS}.values())

# Around and inside of our models, and the forest that experiments name `extra_trees`; its trees,
# which compiled code follows, are not among them.
_SKLEARN = frozenset(
    f"sklearn.{name}"
    for name in (
        "compose._column_transformer.ColumnTransformer",
        "ensemble._forest.ExtraTreesClassifier",
        "feature_extraction.text.TfidfTransformer",
        "feature_extraction.text.TfidfVectorizer",
        "impute._base.MissingIndicator",
        "impute._base.SimpleImputer",
        "metrics._scorer._PassthroughScorer",
        "model_selection._search.GridSearchCV",
        "model_selection._split.GroupKFold",
        "model_selection._split.GroupShuffleSplit",
        "model_selection._split.KFold",
        "model_selection._split.RepeatedKFold",
        "model_selection._split.RepeatedStratifiedKFold",
        "model_selection._split.ShuffleSplit",
        "model_selection._split.StratifiedGroupKFold",
        "model_selection._split.StratifiedKFold",
        "model_selection._split.StratifiedShuffleSplit",
        "pipeline.FeatureUnion",
        "pipeline.Pipeline",
        "preprocessing._data.RobustScaler",
        "preprocessing._data.StandardScaler",
        "tree._classes.ExtraTreeClassifier",
    )
)


def _named(*types: type) -> frozenset[str]:
    return frozenset(f"{kind.__module__}.{kind.__name__}" for kind in types)


_SCALARS = _named(
    *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float16, np.float32, np.float64, np.str_),
)

#: The names of types that are trusted, for each loader of skops.
TRUSTED = {
    "DTypeNode": frozenset({"numpy.dtype"}),
    "DictNode": _named(dict),
    "JsonNode": _named(str),
    "ListNode": _named(list),
    "MaskedArrayNode": _named(np.ma.MaskedArray),
    "NdArrayNode": _named(np.ndarray) | _SCALARS,
    "ObjectNode": _OURS | _SKLEARN,
    "RandomStateNode": _named(np.random.RandomState),
    "SliceNode": _named(slice),
    "SparseMatrixNode": _named(sp.csr_array, sp.csr_matrix),
    "TupleNode": _named(tuple) | _OURS,
    "TypeNode": _named(bool, float, int, str) | _SCALARS,
}
_ALL = frozenset().union(*TRUSTED.values())


@contextlib.contextmanager
def _unseen_libraries() -> Iterator[None]:
    """Let imports of scikit-learn's wrappers of array libraries fail, if none was needed so far.

    skops imports every package inside of scikit-learn to learn its names.  These import the
    libraries, where they are installed, which takes longer than everything else.
    """
    wrappers = sys.modules.get("sklearn.externals.array_api_compat")
    names = [] if wrappers is None else [m.name for m in pkgutil.iter_modules(wrappers.__path__)]
    hidden = {f"sklearn.externals.array_api_compat.{name}" for name in names} - {*sys.modules}
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


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
    # Only for the first import, so that other threads are not disturbed later.
    with contextlib.nullcontext() if "skops.io" in sys.modules else _unseen_libraries():
        return require("skops.io", "Saving and loading models")


def unknown_types(archive: bytes, types: Collection[tuple[str, str]]) -> list[str]:
    """Return the types in a skops archive that are not trusted, without loading anything.

    Parameters
    ----------
    archive : bytes
        The archive.
    types : collection of (str, str)
        The loader and the name of every type in it.
    """
    asked = {name for loader, name in types if name not in TRUSTED.get(loader, ())}
    # skops also knows what a loader calls that is not the type of an entry, such as a method.
    return sorted(asked | {*require_skops().get_untrusted_types(data=archive)} - _ALL)


def loads(archive: bytes, trusted: Collection[str]) -> Any:
    """Load a skops archive whose types are all trusted."""
    return require_skops().loads(archive, trusted=sorted({*trusted, *_ALL}))
