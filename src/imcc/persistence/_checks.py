"""Checks of a loaded model, before it is used.

A file with a correct checksum can still be invalid: the checksum protects against accidents, not
against manipulation.  Compiled code of scikit-learn does not check indices, so they are checked
here, wherever they occur in the model; those of sparse matrices are checked before
(:mod:`imcc.persistence._archive`).  Only attributes and containers are inspected; no method of a
loaded object is called (except ``__getstate__`` of scikit-learn's trees and ``get_state`` of random
generators).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.tree._tree import Tree

from imcc._math.ensemble.model import EnsembleModel
from imcc.persistence._card import ModelCard, count_of, kept_names
from imcc.persistence._errors import require


def check_model(model: Any, card: ModelCard) -> None:
    """Check the indices in a loaded model, and that the card matches it.

    Parameters
    ----------
    model : object
        The loaded model.
    card : ModelCard
        The card of the file.

    Raises
    ------
    ModelFileError
        If an index is out of bounds, or the features or labels of the card are not those of the
        model.
    """
    for part in _objects(model):
        require(_has_valid_indices(part), f"it contains an invalid {type(part).__name__}")
        # No model starts more processes than there are processors.
        n_jobs = getattr(part, "__dict__", {}).get("n_jobs")
        if n_jobs is not None and n_jobs not in range(-64, joblib.cpu_count() + 1):
            part.n_jobs = -1
    for what, names in (("feature", card.feature_names), ("label", card.label_names)):
        count, kept = count_of(model, what), kept_names(model, what)
        are_same = count in (None, len(names)) and kept in (None, names)
        require(are_same, f"the {what}s of its model and of its card differ")


def _objects(model: Any) -> Iterator[Any]:
    """Yield every object that a model contains, each once, without calling their methods."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        found = waiting.pop()
        if found is None or isinstance(found, (str, bytes, int, float, np.generic, type)):
            continue
        if id(found) in seen or sp.issparse(found):
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
        if isinstance(found, (list, tuple, set, frozenset)):
            waiting += list(found)
        waiting += list(getattr(found, "__dict__", {}).values())


def _has_valid_indices(part: Any) -> bool:
    """Return whether the numbers that become indices of compiled code are in their bounds."""
    held: dict[str, Any] = getattr(part, "__dict__", {})
    if isinstance(part, Tree):
        return _ends(part)
    tree = held.get("tree_")
    if isinstance(tree, Tree) and held.get("n_features_in_") != tree.n_features:
        return False
    if isinstance(part, CountVectorizer) and "vocabulary_" in held:
        # The column of each term, in a sparse matrix with as many columns as terms.
        columns = sorted(part.vocabulary_.values())
        return columns == list(range(len(columns)))
    if isinstance(part, EnsembleModel):
        return _has_valid_trees(held)
    if isinstance(part, np.random.RandomState):
        # The place in its 624 numbers; the next draw after the last makes new ones.
        return bool(0 <= part.get_state(legacy=False)["state"]["pos"] <= 624)
    return True


def _has_valid_trees(held: dict[str, Any]) -> bool:
    """Return whether an ensemble's trees look at columns that rows have, and add to labels."""
    member: Any = held.get("trees")
    varying: Any = held.get("varying")
    if member is None:
        return True
    shape: tuple[int, ...] = getattr(held.get("anchors"), "shape", ())
    trees = getattr(member, "trees", None)
    names = ("used", "feature", "threshold", "removed", "output")
    arrays: list[Any] = [getattr(trees, name, None) for name in names]
    if len(shape) != 2 or not all(isinstance(array, np.ndarray) for array in (*arrays, varying)):
        return False
    used, feature, threshold, removed, output = arrays
    inside = ((used, shape[1]), (feature, len(used)), (output, len(varying)))
    return bool(
        feature.shape == threshold.shape == removed.shape
        and feature.shape[1:] == output.shape
        and all(own.dtype.kind == "i" for own, _ in inside)
        and all(((own >= 0) & (own < count)).all() for own, count in inside)
    )


def _ends(tree: Any) -> bool:
    """Return whether every path through a tree ends: children come after their parents."""
    # The number of nodes is checked first, because reading the nodes relies on it.
    if not 1 <= tree.node_count <= tree.capacity:
        return False
    nodes = tree.__getstate__()["nodes"]
    left, right = nodes["left_child"], nodes["right_child"]
    leaf = left == -1
    split = ~leaf
    here = np.arange(tree.node_count)
    return bool(
        (right[leaf] == -1).all()
        and (left[split] > here[split]).all()
        and (right[split] > here[split]).all()
        and (left < tree.node_count).all()
        and (right < tree.node_count).all()
        and (nodes["feature"][split] >= 0).all()
        and (nodes["feature"][split] < tree.n_features).all()
    )
