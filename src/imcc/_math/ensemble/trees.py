r"""Boosted trees that correct log-odds: gradient boosting that starts where other models end.

Kernel models are smooth: a label that changes at a threshold of a number, or only if two conditions
hold, takes them many rows to learn.  Trees find thresholds, but do not use the words of a text
well.  So the trees of a label look at some columns and at the held-out log-odds of all labels, and
add to its log-odds as much as lowers the log loss of rows that they were not fitted on.

For one label with log-odds z, trees :math:`t_1, t_2, \ldots` are added to

    f(x) = z(x) + r (t_1(x, z) + t_2(x, z) + ...)

each fitted to the gradient y - p of the log-likelihood at f so far, p = 1 / (1 + exp(-f)); the
value of a leaf is a Newton step, sum (y - p) / (sum p (1 - p) + 1) over its rows.  (J. H. Friedman,
"Greedy function approximation: a gradient boosting machine", Annals of Statistics 29, 2001; the 1
is the usual penalty on leaf values.)

Trees are kept as plain arrays, complete to their depth, so that a model file needs no other
library's objects.  A node that was not divided sends all rows to the left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.model_selection import GroupKFold, KFold
from sklearn.tree import DecisionTreeRegressor

from imcc._utils.progress import report_progress

DEPTH = 3
#: Trees per label, the factor of each, the least number of rows in a leaf, and how many features of
#: a node and rows of a tree are drawn if there are more.
N_TREES, RATE, MIN_LEAF, MOST_FEATURES, MOST_ROWS = 60, 0.05, 5, 64, 2000
# Labels that fewer rows have, or lack, are left as they are.
_MIN_SUPPORT = 10
_N_FOLDS = 5
_WEIGHTS = np.linspace(0.0, 1.0, 11)
# Where a node was not divided: no row, in single precision, has a greater value.
_EVERYTHING = float(np.finfo(np.float32).max)
# Rows that are sent through all trees at a time.
_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Trees:
    """Regression trees of equal depth, whose values are added.

    Attributes
    ----------
    feature : ndarray of int32, shape (n_trees, 2**depth - 1)
        What each inner node looks at; the children of node i are 2 i + 1 and 2 i + 2.
    threshold : ndarray of float64, shape (n_trees, 2**depth - 1)
        Rows with a greater value, in single precision, go to the right.
    value : ndarray of float64, shape (n_trees, 2**depth)
        What is added in each leaf, from left to right.
    """

    feature: np.ndarray
    threshold: np.ndarray
    value: np.ndarray

    def sums(self, X: np.ndarray) -> np.ndarray:
        """Return the sum of the trees' values for every row.

        Parameters
        ----------
        X : ndarray of float32, shape (n_samples, n_features)
        """
        n_trees, n_inner = self.feature.shape
        out = np.zeros(len(X))
        first = np.arange(n_trees) * n_inner
        for start in range(0, len(X), _BLOCK_ROWS):
            block = X[start : start + _BLOCK_ROWS]
            rows = np.arange(len(block))[:, None]
            node = np.zeros((len(block), n_trees), dtype=np.int64)
            while n_trees and node[0, 0] < n_inner:
                at = node + first
                right = block[rows, self.feature.ravel()[at]] > self.threshold.ravel()[at]
                node = 2 * node + 1 + right
            leaves = node - n_inner + np.arange(n_trees) * (n_inner + 1)
            out[start : start + _BLOCK_ROWS] = self.value.ravel()[leaves].sum(axis=1)
        return out


@dataclass(frozen=True)
class Boosting:
    """Trees of all labels, on folds and on all rows.

    Attributes
    ----------
    seen : ndarray of float32, shape (n_samples, n_seen)
        What trees look at.
    start : ndarray of shape (n_samples, n_labels)
        Held-out log-odds.
    on : ndarray of bool, shape (n_samples, n_labels)
    known : ndarray of bool, shape (n_samples, n_labels), or None
    weight : ndarray of shape (n_samples,) or None
    groups : ndarray of shape (n_samples,) or None
    seed : int
    """

    seen: np.ndarray
    start: np.ndarray
    on: np.ndarray
    known: np.ndarray | None
    weight: np.ndarray | None
    groups: np.ndarray | None
    seed: int

    def held_out(self) -> tuple[np.ndarray, float]:
        """Return what trees of the other folds add, and the weight with the lowest log loss.

        If trees do not help in the first fold, the other folds are skipped and the weight is 0.
        """
        part = np.zeros(self.start.shape)
        n_groups = len(self.seen) if self.groups is None else len(np.unique(self.groups))
        if not self._labels() or n_groups < 2 * _N_FOLDS:
            return part, 0.0
        splitter: Any = KFold(_N_FOLDS, shuffle=True, random_state=self.seed)
        if self.groups is not None:
            splitter = GroupKFold(_N_FOLDS)
        for number, (train, test) in enumerate(splitter.split(self.seen, groups=self.groups)):
            for j, trees in self.fit(train).items():
                part[test, j] = trees.sums(self.seen[test])
            if number == 0 and self._best_weight(part, test) == 0:
                return np.zeros(self.start.shape), 0.0
            report_progress(number + 1, _N_FOLDS)
        return part, self._best_weight(part, np.arange(len(self.seen)))

    def fit(self, rows: np.ndarray) -> dict[int, Trees]:
        """Return the trees of some rows, by label."""
        found = {}
        for j in self._labels():
            own = rows if self.known is None else rows[self.known[rows, j]]
            if len(own):
                found[j] = self._boost(own, j)
        return found

    def _labels(self) -> list[int]:
        there = np.ones_like(self.on) if self.known is None else self.known
        counts = np.minimum((self.on & there).sum(axis=0), (~self.on & there).sum(axis=0))
        return np.flatnonzero(counts >= _MIN_SUPPORT).tolist()

    def _best_weight(self, part: np.ndarray, rows: np.ndarray) -> float:
        """Return the weight with the lowest log loss of some rows, the smallest if several have."""
        v = None if self.weight is None else self.weight[rows]
        means = []
        for weight in _WEIGHTS:
            f = self.start[rows] + weight * part[rows]
            losses = np.logaddexp(0.0, np.where(self.on[rows], -f, f))
            losses = losses if self.known is None else losses * self.known[rows]
            means.append(np.average(losses.sum(axis=1), weights=v))
        return float(_WEIGHTS[int(np.argmin(means))])

    def _boost(self, rows: np.ndarray, j: int) -> Trees:
        """Fit the trees of a label."""
        X, on = self.seen[rows], self.on[rows, j]
        weight = None if self.weight is None else self.weight[rows]
        v = np.ones(len(X)) if weight is None else weight
        n_inner = 2**DEPTH - 1
        feature = np.zeros((N_TREES, n_inner), dtype=np.int32)
        threshold = np.full((N_TREES, n_inner), _EVERYTHING)
        value = np.zeros((N_TREES, n_inner + 1))
        rng = np.random.RandomState(self.seed)
        f = np.array(self.start[rows, j], dtype=np.float64)
        for t in range(N_TREES):
            p = expit(f)
            gradient = on - p
            tree = DecisionTreeRegressor(
                max_depth=DEPTH,
                min_samples_leaf=MIN_LEAF,
                max_features=min(MOST_FEATURES, X.shape[1]),
                random_state=rng.randint(2**31 - 1),
            )
            some: Any = slice(None)
            if len(X) > MOST_ROWS:
                some = np.sort(rng.permutation(len(X))[:MOST_ROWS])
            own = None if weight is None else weight[some]
            tree.fit(X[some], gradient[some], sample_weight=own, check_input=False)
            leaf = _complete(tree.tree_, feature[t], threshold[t])[tree.apply(X, check_input=False)]
            up = np.bincount(leaf, v * gradient, n_inner + 1)
            down = np.bincount(leaf, v * p * (1 - p), n_inner + 1)
            value[t] = RATE * up / (down + 1.0)
            f += value[t][leaf]
        return Trees(feature, threshold, value)


def _complete(tree: Any, feature: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """Write a tree's nodes to their places in a complete one; return the places of its leaves."""
    left, right = tree.children_left, tree.children_right
    place = np.zeros(len(left), dtype=np.int64)
    waiting = [(0, 0)]
    while waiting:
        node, at = waiting.pop()
        if left[node] < 0:
            while at < len(feature):
                at = 2 * at + 1
            place[node] = at - len(feature)
            continue
        feature[at] = tree.feature[node]
        threshold[at] = tree.threshold[node]
        waiting += [(left[node], 2 * at + 1), (right[node], 2 * at + 2)]
    return place
