r"""Boosted trees that correct log-odds: gradient boosting that starts where other models end.

Kernel models are smooth: a label that changes at a threshold of a number, or only if two conditions
hold, takes them many rows to learn.  Trees find thresholds.  So the trees of a label look at the
columns and at the held-out log-odds of all labels, and add to its log-odds as much as lowers the
log loss of rows that they were not fitted on.

For one label with log-odds z, trees :math:`t_1, t_2, \ldots` are added to

    f(x) = z(x) + t_1(x, z) + t_2(x, z) + ...

each fitted to the gradient of the log-likelihood at f so far.  (J. H. Friedman, "Greedy function
approximation: a gradient boosting machine", Annals of Statistics 29, 2001; LightGBM finds the
trees.)

Trees are kept as plain arrays, so that a model file needs no other library's objects and rows are
scored without LightGBM.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GroupKFold, KFold

from imcc._utils.validation import Features

#: Rows from which on trees are tried by default.
MANY_ROWS = 8000
#: Trees per label, and leaves and depth of a tree.  Chosen on parts of training rows: larger trees,
#: and more of them, are worse when they start at good log-odds.
N_TREES, N_LEAVES, MAX_DEPTH = 60, 8, 5
# Least number of rows in a leaf, what each tree is multiplied by, and what is added to the sum of
# second derivatives of a leaf.
_MIN_LEAF, _RATE, _PENALTY = 10, 0.08, 1.0
# Labels that fewer rows have, or lack, are left as they are.
_MIN_SUPPORT = 10
# Folds of the held-out trees, and their number for many rows.
_N_FOLDS, _FEW_FOLDS = 5, 2
_WEIGHTS = np.linspace(0.0, 1.0, 11)
#: Rows whose features are dense at a time.
BLOCK_ROWS = 4096
# Entries of rows, or of rows and trees, that are worked on at a time; they stay in the cache.
_ENTRIES = 2**18
# Where a leaf is: no value in single precision is greater.
_EVERYTHING = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Trees:
    """Regression trees, whose values are added to outputs.

    Attributes
    ----------
    used : ndarray of int32, shape (n_used,)
        The features that nodes look at, ascending.
    feature : ndarray of int32, shape (n_nodes,)
        What each node looks at: a place in ``used``; 0 for leaves.
    threshold : ndarray of float64, shape (n_nodes,)
        Rows with a greater value go to the right; no row does in a leaf.
    left : ndarray of int32, shape (n_nodes,)
        The left child; the right one comes after it.  A leaf is its own child.
    value : ndarray of float64, shape (n_nodes,)
        What a leaf adds.
    root, output : ndarray of int32, shape (n_trees,)
        The first node of each tree, and the output that it adds to.
    """

    used: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    value: np.ndarray
    root: np.ndarray
    output: np.ndarray

    def sums(self, seen: np.ndarray, n_outputs: int) -> np.ndarray:
        """Return the sums of the trees' values, (n_samples, n_outputs).

        Parameters
        ----------
        seen : ndarray of float32, shape (n_samples, n_used)
            The used features of some rows.
        n_outputs : int
        """
        out = np.zeros((len(seen), n_outputs))
        if not len(self.root):
            return out
        belongs = self.output[:, None] == np.arange(n_outputs)
        step = max(1, _ENTRIES // max(len(self.used), len(self.root)))
        for start in range(0, len(seen), step):
            values = np.ravel(seen[start : start + step])
            n = len(values) // len(self.used)
            before = np.arange(n, dtype=np.int32)[:, None] * np.int32(len(self.used))
            node = np.tile(self.root, (n, 1))
            for _ in range(MAX_DEPTH):
                # np.take is several times faster than an index.
                at = np.take(self.feature, node) + before
                right = np.take(values, at) > np.take(self.threshold, node)
                node = np.take(self.left, node) + right
            out[start : start + step] = np.take(self.value, node) @ belongs
        return out


@dataclass(frozen=True)
class Boosting:
    """Trees of all labels, on folds and on all rows.

    Attributes
    ----------
    seen : ndarray or CSR matrix of float32, shape (n_samples, n_seen)
        What trees look at.
    start : ndarray of shape (n_samples, n_labels)
        Held-out log-odds.
    on : ndarray of bool, shape (n_samples, n_labels)
    known : ndarray of bool, shape (n_samples, n_labels), or None
    weight : ndarray of shape (n_samples,) or None
    groups : ndarray of shape (n_samples,) or None
    seed : int
    """

    seen: Features
    start: np.ndarray
    on: np.ndarray
    known: np.ndarray | None
    weight: np.ndarray | None
    groups: np.ndarray | None
    seed: int

    @property
    def n_folds(self) -> int:
        """Number of folds of the held-out trees."""
        return _N_FOLDS if len(self.on) < MANY_ROWS else _FEW_FOLDS

    def held_out(self, after_fold: Callable[[], None]) -> tuple[np.ndarray, float]:
        """Return what trees of the other folds add, and the weight with the lowest log loss.

        If trees do not help in the first fold, the other folds are skipped and the weight is 0.
        """
        n, part = len(self.on), np.zeros_like(self.start)
        n_folds = self.n_folds
        n_groups = n if self.groups is None else len(np.unique(self.groups))
        if not self._labels() or n_groups < 2 * n_folds:
            return part, 0.0
        splitter: Any = KFold(n_folds, shuffle=True, random_state=self.seed)
        if self.groups is not None:
            splitter = GroupKFold(n_folds)
        for number, (train, test) in enumerate(splitter.split(part, groups=self.groups)):
            part[test] = self.added(self.fit(train), test)
            if number == 0 and self._best_weight(part, test) == 0:
                return np.zeros(self.start.shape), 0.0
            after_fold()
        return part, self._best_weight(part, np.arange(n))

    def added(self, trees: Trees, rows: np.ndarray) -> np.ndarray:
        """Return what trees add to the log-odds of some rows."""
        parts = []
        for start in range(0, len(rows), BLOCK_ROWS):
            seen = self.seen[rows[start : start + BLOCK_ROWS]][:, trees.used]
            seen = seen.toarray() if sp.issparse(seen) else seen
            parts.append(trees.sums(seen, self.on.shape[1]))
        return np.concatenate(parts)

    def fit(self, rows: np.ndarray) -> Trees:
        """Return the trees of some rows."""
        lightgbm = _lightgbm()
        options = {
            "objective": "binary",
            "num_leaves": N_LEAVES,
            "max_depth": MAX_DEPTH,
            "min_data_in_leaf": _MIN_LEAF,
            "learning_rate": _RATE,
            "lambda_l2": _PENALTY,
            "use_missing": False,
            "deterministic": True,
            "force_col_wise": True,
            "seed": self.seed % 2**31,
            # A few hundred rows are faster without waiting for threads.
            "num_threads": 1 if len(rows) < MANY_ROWS else 0,
            "verbosity": -1,
        }
        data = lightgbm.Dataset(self.seen[rows], params=options, free_raw_data=False)
        nodes: list[tuple[Any, ...]] = []
        roots, outputs = [], []
        for j in self._labels():
            weight = self._weights(rows, j)
            counted = self.on[rows, j][weight > 0]
            if counted.all() or not counted.any():
                continue
            data.set_label(self.on[rows, j].astype(np.float64))
            data.set_weight(weight)
            data.set_init_score(self.start[rows, j])
            booster = lightgbm.train(options, data, N_TREES)
            for tree in booster.dump_model()["tree_info"]:
                roots.append(len(nodes))
                outputs.append(j)
                nodes.extend(_flat(tree["tree_structure"], len(nodes)))
        columns = list(zip(*nodes, strict=True)) if nodes else [()] * 4
        kinds = (np.int32, np.float64, np.int32, np.float64)
        arrays = [np.array(x, dtype=kind) for x, kind in zip(columns, kinds, strict=True)]
        arrays += [np.array(x, dtype=np.int32) for x in (roots, outputs)]
        used, arrays[0] = np.unique(arrays[0], return_inverse=True)
        return Trees(used, arrays[0].astype(np.int32), *arrays[1:])

    def _weights(self, rows: np.ndarray, j: int) -> np.ndarray:
        """Return the weights of rows for a label: 0 where it is unknown."""
        weight = np.ones(len(rows)) if self.weight is None else self.weight[rows]
        return weight if self.known is None else weight * self.known[rows, j]

    def _labels(self) -> list[int]:
        """Return the labels that enough rows have, and lack."""
        known = np.ones(self.on.shape, dtype=bool) if self.known is None else self.known
        fewest = np.minimum((self.on & known).sum(axis=0), (~self.on & known).sum(axis=0))
        return np.flatnonzero(fewest >= _MIN_SUPPORT).tolist()

    def _best_weight(self, part: np.ndarray, rows: np.ndarray) -> float:
        """Return the weight with the lowest log loss of some rows."""
        means = []
        v = None if self.weight is None else self.weight[rows]
        for weight in _WEIGHTS:
            f = self.start[rows] + weight * part[rows]
            losses = np.logaddexp(0.0, np.where(self.on[rows], -f, f))
            losses = losses if self.known is None else losses * self.known[rows]
            means.append(np.average(losses.sum(axis=1), weights=v))
        return float(_WEIGHTS[int(np.argmin(means))])


def _lightgbm() -> Any:
    """Import LightGBM, which needs a library of the system for threads."""
    try:
        return importlib.import_module("lightgbm")
    except OSError as error:
        raise ImportError(
            "boosted trees need LightGBM, which cannot load the OpenMP library of this system: "
            "install it (libgomp1 on Debian and Ubuntu, libomp on macOS), or set trees=None"
        ) from error


def _flat(tree: dict[str, Any], first: int) -> Iterator[tuple[Any, ...]]:
    """Yield feature, threshold, left child and value of each node, children beside each other."""
    waiting, after = [tree], first + 1
    for place, node in enumerate(waiting, start=first):
        if "leaf_value" in node and "left_child" not in node:
            yield 0, _EVERYTHING, place, node["leaf_value"]
            continue
        waiting += [node["left_child"], node["right_child"]]
        yield node["split_feature"], node["threshold"], after, 0.0
        after += 2
