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
from collections.abc import Callable
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
# The first of the leaves whose bits are set.
_FIRST = np.array([max(0, (left & -left).bit_length() - 1) for left in range(256)], dtype=np.int32)


@dataclass(frozen=True)
class Trees:
    """Regression trees, whose values are added to outputs.

    The leaves of a tree are numbered from left to right.  A split whose feature is greater than the
    threshold removes the leaves on its left; a row ends in the first leaf that no split removes.
    So all splits are looked at, but without going from node to node, which takes many times as
    long.  (C. Lucchese et al., "QuickScorer: a fast algorithm to rank documents with additive
    ensembles of regression trees", SIGIR 2015.)

    Attributes
    ----------
    used : ndarray of int32, shape (n_used,)
        The features that splits look at, ascending.
    feature : ndarray of int32, shape (N_LEAVES - 1, n_trees)
        What the splits of each tree look at: a place in ``used``.
    threshold : ndarray of float32, shape (N_LEAVES - 1, n_trees)
        No value is greater than that of a split which the tree does not have.
    removed : ndarray of uint8, shape (N_LEAVES - 1, n_trees)
        A bit for each leaf on the left.
    value : ndarray of float64, shape (N_LEAVES, n_trees)
        What the leaves add.
    output : ndarray of int32, shape (n_trees,)
        The output that each tree adds to.
    """

    used: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    removed: np.ndarray
    value: np.ndarray
    output: np.ndarray

    def sums(self, seen: np.ndarray, n_outputs: int) -> np.ndarray:
        """Return the sums of the trees' values, (n_samples, n_outputs).

        Parameters
        ----------
        seen : ndarray of float32, shape (n_samples, n_used)
            The used features of some rows.
        n_outputs : int
        """
        out, n_trees = np.zeros((len(seen), n_outputs)), len(self.output)
        if not n_trees:
            return out
        belongs = (np.arange(n_outputs)[:, None] == self.output).astype(np.float64)
        values = self.value.T.ravel()
        before = N_LEAVES * np.arange(n_trees, dtype=np.int32)[:, None]
        step = max(1, _ENTRIES // max(len(self.used), n_trees))
        for start in range(0, len(seen), step):
            columns = np.ascontiguousarray(seen[start : start + step].T)
            left = np.full((n_trees, columns.shape[1]), 255, dtype=np.uint8)
            for at, threshold, removed in zip(
                self.feature, self.threshold, self.removed, strict=True
            ):
                right = np.take(columns, at, axis=0) > threshold[:, None]
                left &= ~(right * removed[:, None])
            leaf = np.take(_FIRST, left) + before
            out[start : start + step] = (belongs @ np.take(values, leaf)).T
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
        found: list[tuple[list[tuple[Any, ...]], list[float]]] = []
        outputs = []
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
                splits: list[tuple[Any, ...]] = []
                values: list[float] = []
                _collect(tree["tree_structure"], splits, values)
                found.append((splits, values))
                outputs.append(j)
        feature = np.zeros((N_LEAVES - 1, len(found)), dtype=np.int32)
        threshold = np.full(feature.shape, np.finfo(np.float32).max, dtype=np.float32)
        removed = np.zeros(feature.shape, dtype=np.uint8)
        value = np.zeros((N_LEAVES, len(found)))
        for t, (splits, values) in enumerate(found):
            value[: len(values), t] = values
            for i, (name, limit, leaves) in enumerate(splits):
                feature[i, t], threshold[i, t], removed[i, t] = name, _rounded(limit), leaves
        used, places = np.unique(feature, return_inverse=True)
        feature = places.reshape(feature.shape).astype(np.int32)
        return Trees(used, feature, threshold, removed, value, np.array(outputs, dtype=np.int32))

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


def _collect(node: dict[str, Any], splits: list[tuple[Any, ...]], values: list[float]) -> None:
    """Append the splits below a node (feature, threshold, leaves on the left), and its leaves."""
    if "left_child" not in node:
        values.append(node["leaf_value"])
        return
    first = len(values)
    _collect(node["left_child"], splits, values)
    on_the_left = 2 ** len(values) - 2**first
    _collect(node["right_child"], splits, values)
    splits.append((node["split_feature"], node["threshold"], on_the_left))


def _rounded(threshold: float) -> np.float32:
    """Return the largest number in single precision that is not greater.

    Values in single precision are greater than it if they are greater than the threshold.
    """
    near = np.float32(threshold)
    return near if float(near) <= threshold else np.nextafter(near, np.float32(-np.inf))
