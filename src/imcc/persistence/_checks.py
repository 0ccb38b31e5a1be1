"""Checks of a loaded model, before it is used.

A file with a correct checksum can still be invalid: the checksum protects against accidents, not
against manipulation.  Compiled code of SciPy and scikit-learn does not check indices, so they are
checked here, wherever they occur in the model.  Only attributes and containers are inspected; no
method of a loaded object is called (except ``__getstate__`` of scikit-learn's trees and
``get_state`` of random generators).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.tree._tree import Tree

from imcc._math.ensemble.trees import N_LEAVES
from imcc._utils.names import name_of
from imcc.persistence._archive import check_compressed
from imcc.persistence._card import ModelCard, count_of, kept_names
from imcc.persistence._errors import ModelFileError

# Attributes that may be NaN or infinite: scores of searches, and of rows that were not used.
_MAY_BE_ANYTHING = frozenset({"best_score_", "default_score_", "held_out_proba_"})
# Attributes of other estimators that must be finite.
_COEFFICIENTS = frozenset({"coef_", "dual_coef_", "_dual_coef_", "intercept_", "_intercept_"})


def check_model(model: Any, card: ModelCard | None, path: str) -> None:
    """Check a loaded model: its structure, its numbers, and that the card matches it.

    Parameters
    ----------
    model : object
        The loaded model.
    card : ModelCard or None
        The card of the file.
    path : str
        Name of the file, for error messages.

    Raises
    ------
    ModelFileError
        If an index is out of bounds, a coefficient is not finite, or the features or labels of the
        card are not those of the model.
    """
    for found in _objects(model):
        if sp.issparse(found):
            _check_sparse(found, path)
        elif isinstance(found, Tree):
            _check_tree(found, path)
        else:
            _check_numbers(found, path)
            _check_width(found, path)
            _check_boosted(found, path)
            _check_indices(found, path)
            _limit_jobs(found)
    if card is not None:
        _check_card(model, card, path)


def _objects(model: Any) -> Iterator[Any]:
    """Yield every object that a model contains, each once, without calling their methods."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        found = waiting.pop()
        if found is None or isinstance(found, (str, bytes, int, float, np.generic, type)):
            continue
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, np.ndarray):
            if found.dtype.hasobject:
                waiting += list(found.flat)
            continue
        if isinstance(found, dict):
            waiting += [*dict.keys(found), *dict.values(found)]
            continue
        yield found
        if sp.issparse(found) or isinstance(found, Tree):
            continue
        if isinstance(found, (list, tuple, set, frozenset)):
            waiting += list(found)
        waiting += list(getattr(found, "__dict__", {}).values())


def _check_sparse(matrix: Any, path: str) -> None:
    def require(holds: bool) -> None:
        if not holds:
            raise ModelFileError(
                f"the file is damaged: a sparse matrix of shape {matrix.shape} is invalid", path
            )

    require(matrix.format in ("csr", "csc"))
    parts = matrix.data, matrix.indices, matrix.indptr
    check_compressed(matrix.format, matrix.shape, *parts, require)


def _check_tree(tree: Any, path: str) -> None:
    """Check that every path through a tree ends: children come after their parents."""
    # The number of nodes is checked first, because reading the nodes relies on it.
    holds = 1 <= tree.node_count <= tree.capacity
    if holds:
        state = tree.__getstate__()
        nodes, values = state["nodes"], state["values"]
        left, right = nodes["left_child"], nodes["right_child"]
        leaf = left == -1
        here = np.arange(tree.node_count)
        split = ~leaf
        holds = bool(
            (right[leaf] == -1).all()
            and (left[split] > here[split]).all()
            and (right[split] > here[split]).all()
            and (left < tree.node_count).all()
            and (right < tree.node_count).all()
            and (nodes["feature"][split] >= 0).all()
            and (nodes["feature"][split] < tree.n_features).all()
            and np.isfinite(values).all()
        )
    if not holds:
        raise ModelFileError("the file is damaged: it contains an invalid tree", path)


def _check_width(found: Any, path: str) -> None:
    """Check that a tree has the number of features of its estimator."""
    held = getattr(found, "__dict__", {})
    tree, width = held.get("tree_"), held.get("n_features_in_")
    if isinstance(tree, Tree) and width != tree.n_features:
        raise ModelFileError(
            f"the file is damaged: it contains a tree with {tree.n_features} features in a model "
            f"with {width}",
            path,
        )


def _check_indices(found: Any, path: str) -> None:
    """Check numbers that become indices of compiled code when a model is used."""
    holds = True
    if isinstance(found, CountVectorizer) and hasattr(found, "vocabulary_"):
        # The column of each term, in a sparse matrix with as many columns as terms.
        columns = sorted(found.vocabulary_.values())
        holds = columns == list(range(len(columns)))
    elif isinstance(found, np.random.RandomState):
        # The place in its 624 numbers; the next draw after the last makes new ones.
        holds = 0 <= found.get_state(legacy=False)["state"]["pos"] <= 624
    if not holds:
        kind = type(found).__name__
        raise ModelFileError(f"the file is damaged: it contains an invalid {kind}", path)


def _limit_jobs(found: Any) -> None:
    """Let no model start more processes than there are processors."""
    n_jobs = getattr(found, "__dict__", {}).get("n_jobs")
    if n_jobs is not None and n_jobs not in range(-64, joblib.cpu_count() + 1):
        found.n_jobs = -1


def _check_boosted(found: Any, path: str) -> None:
    """Check the arrays of boosted trees, and the labels they belong to.

    NumPy refuses indices that are too large when a row is scored, but reads negative ones from the
    end: such a tree would use another column, or correct another label, without an error.
    """
    held: dict[str, Any] = getattr(found, "__dict__", {})
    short, holds = name_of(type(found)), True
    if short == "BoostedTrees":
        names = ("feature", "threshold", "removed", "value", "output", "used")
        arrays: list[Any] = [held.get(name) for name in names]
        holds = all(isinstance(array, np.ndarray) for array in arrays)
        if holds:
            feature, threshold, removed, value, output, used = arrays
            n_trees = output.size
            holds = bool(
                all(array.dtype.kind == "i" for array in (feature, output, used))
                and threshold.dtype == np.float32
                and removed.dtype == np.uint8
                and value.dtype.kind == "f"
                and all(a.shape == (N_LEAVES - 1, n_trees) for a in (feature, threshold, removed))
                and value.shape == (N_LEAVES, n_trees)
                and output.ndim == used.ndim == 1
                and all((array >= 0).all() for array in (feature, output, used))
                and (feature < len(used)).all()
                and (np.diff(used) > 0).all()  # columns come before log-odds
            )
    elif short == "EnsembleModel":
        for name in ("tree_columns", "varying"):
            chosen = np.asarray(held.get(name, ()))
            holds = holds and (
                chosen.size == 0 or (chosen.dtype.kind in "iu" and bool((chosen >= 0).all()))
            )
    if not holds:
        raise ModelFileError("the file is damaged: it contains invalid boosted trees", path)


def _check_numbers(found: Any, path: str) -> None:
    short = name_of(type(found))
    for name, value in _attributes(found):
        if (short is None and name not in _COEFFICIENTS) or name in _MAY_BE_ANYTHING:
            continue
        if not _is_finite(value):
            kind = type(found).__name__
            raise ModelFileError(
                f"the model is invalid: {kind}.{name} contains values that are not finite (NaN or "
                "infinity)",
                path,
            )


def _attributes(found: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(found, tuple):
        yield from zip(getattr(found, "_fields", ()), found, strict=False)
    # Constructor parameters can have any value and are not checked.
    given = type(found)._get_param_names() if isinstance(found, BaseEstimator) else ()
    for name, value in getattr(found, "__dict__", {}).items():
        if name not in given:
            yield name, value


def _is_finite(value: Any) -> bool:
    if sp.issparse(value):
        value = value.data
    if isinstance(value, (float, np.floating)) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "f"
    ):
        return bool(np.isfinite(value).all())
    return True


def _check_card(model: Any, card: ModelCard, path: str) -> None:
    for what, named in (("feature", card.feature_names), ("label", card.label_names)):
        count = count_of(model, what)
        if count is not None and count != len(named):
            raise ModelFileError(
                f"the file is damaged: its model has {count} {what}s, its card {len(named)}",
                path,
            )
        kept = kept_names(model, what)
        if kept is not None and kept != named:
            raise ModelFileError(
                f"the file is damaged: its card and its model have different {what} names", path
            )
