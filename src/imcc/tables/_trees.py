r"""Boosted trees that correct log-odds: gradient boosting that starts where a classifier ends.

For one label with log-odds z of a classifier, trees :math:`t_1, t_2, \ldots` are added to

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
from sklearn.tree import DecisionTreeRegressor

DEPTH = 3
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


def boost(
    X: np.ndarray,
    on: np.ndarray,
    start: np.ndarray,
    *,
    n_trees: int,
    rate: float,
    min_leaf: int,
    most_features: int,
    most_rows: int,
    seed: int,
    weight: np.ndarray | None = None,
) -> Trees:
    """Fit trees that correct log-odds.

    Parameters
    ----------
    X : ndarray of float32, shape (n_samples, n_features)
        Contiguous.
    on : ndarray of bool, shape (n_samples,)
    start : ndarray of shape (n_samples,)
        The log-odds to start from.
    n_trees, rate, min_leaf
        Of the boosting.
    most_features : int
        Each node looks at so many features at most, drawn at random if there are more.
    most_rows : int
        Each tree is grown on so many rows at most, drawn at random if there are more; the values of
        its leaves are those of all rows.
    seed : int
    weight : ndarray of shape (n_samples,), optional
    """
    v = np.ones(len(X)) if weight is None else weight
    n_inner = 2**DEPTH - 1
    feature = np.zeros((n_trees, n_inner), dtype=np.int32)
    threshold = np.full((n_trees, n_inner), _EVERYTHING)
    value = np.zeros((n_trees, n_inner + 1))
    rng = np.random.RandomState(seed)
    few = min(most_features, X.shape[1])
    f = np.array(start, dtype=np.float64)
    for t in range(n_trees):
        p = expit(f)
        gradient = on - p
        tree = DecisionTreeRegressor(
            max_depth=DEPTH,
            min_samples_leaf=min_leaf,
            max_features=few,
            random_state=rng.randint(2**31 - 1),
        )
        some: Any = slice(None)
        if len(X) > most_rows:
            some = np.sort(rng.permutation(len(X))[:most_rows])
        own = None if weight is None else weight[some]
        tree.fit(X[some], gradient[some], sample_weight=own, check_input=False)
        leaf = _complete(tree.tree_, feature[t], threshold[t])[tree.apply(X, check_input=False)]
        up = np.bincount(leaf, v * gradient, n_inner + 1)
        down = np.bincount(leaf, v * p * (1 - p), n_inner + 1)
        value[t] = rate * up / (down + 1.0)
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
