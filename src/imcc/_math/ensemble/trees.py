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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GroupKFold, KFold

from imcc._utils.progress import report_progress
from imcc._utils.validation import Features

#: Rows from which on trees are tried by default.
MANY_ROWS = 8000
#: Trees per label, and leaves and depth of a tree.  Chosen on parts of training rows: larger trees,
#: and more of them, are worse when they start at good log-odds.
N_TREES, N_LEAVES, MAX_DEPTH = 100, 8, 5
# Least number of rows in a leaf, what each tree is multiplied by, and what is added to the sum of
# second derivatives of a leaf.
_MIN_LEAF, _RATE, _PENALTY = 10, 0.05, 1.0
# Labels that fewer rows have, or lack, are left as they are.
_MIN_SUPPORT = 10
# Folds of the held-out trees, and their number for many rows.
_N_FOLDS, _FEW_FOLDS = 5, 3
_WEIGHTS = np.linspace(0.0, 1.0, 11)
# Entries of rows, or of rows and trees, that are worked on at a time.
_ENTRIES = 2**22


@dataclass(frozen=True)
class Trees:
    """Regression trees, whose values are added to outputs.

    Attributes
    ----------
    feature : ndarray of int32, shape (n_nodes,)
        What each node looks at; 0 for leaves.
    threshold : ndarray of float64, shape (n_nodes,)
        Rows with a greater value go to the right.
    left, right : ndarray of int32, shape (n_nodes,)
        The children; a leaf is its own child.
    value : ndarray of float64, shape (n_nodes,)
        What a leaf adds.
    root, output : ndarray of int32, shape (n_trees,)
        The first node of each tree, and the output that it adds to.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    root: np.ndarray
    output: np.ndarray

    def sums(self, X: Features, n_outputs: int) -> np.ndarray:
        """Return the sums of the trees' values, (n_samples, n_outputs).

        Parameters
        ----------
        X : ndarray or CSR matrix, shape (n_samples, n_features)
        n_outputs : int
        """
        out = np.zeros((X.shape[0], n_outputs))
        if not len(self.root):
            return out
        used, feature = np.unique(self.feature, return_inverse=True)
        belongs = self.output[:, None] == np.arange(n_outputs)
        step = max(1, _ENTRIES // max(len(used), len(self.root)))
        for start in range(0, X.shape[0], step):
            block = X[start : start + step][:, used]
            seen = block.toarray() if sp.issparse(block) else block
            rows = np.arange(seen.shape[0])[:, None]
            node = np.tile(self.root, (seen.shape[0], 1))
            for _ in range(MAX_DEPTH):
                right = seen[rows, feature[node]] > self.threshold[node]
                node = np.where(right, self.right[node], self.left[node])
            out[start : start + step] = self.value[node] @ belongs
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

    def held_out(self) -> tuple[np.ndarray, float]:
        """Return what trees of the other folds add, and the weight with the lowest log loss.

        If trees do not help in the first fold, the other folds are skipped and the weight is 0.
        """
        n, part = len(self.on), np.zeros_like(self.start)
        n_folds = _N_FOLDS if n < MANY_ROWS else _FEW_FOLDS
        n_groups = n if self.groups is None else len(np.unique(self.groups))
        if not self._labels() or n_groups < 2 * n_folds:
            return part, 0.0
        splitter: Any = KFold(n_folds, shuffle=True, random_state=self.seed)
        if self.groups is not None:
            splitter = GroupKFold(n_folds)
        for number, (train, test) in enumerate(splitter.split(part, groups=self.groups)):
            part[test] = self.fit(train).sums(self.seen[test], part.shape[1])
            if number == 0 and self._best_weight(part, test) == 0:
                return np.zeros(self.start.shape), 0.0
            report_progress(number + 1, n_folds)
        return part, self._best_weight(part, np.arange(n))

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
        columns = list(zip(*nodes, strict=True)) if nodes else [()] * 5
        kinds = (np.int32, np.float64, np.int32, np.int32, np.float64)
        arrays = [np.array(x, dtype=kind) for x, kind in zip(columns, kinds, strict=True)]
        arrays += [np.array(x, dtype=np.int32) for x in (roots, outputs)]
        return Trees(*arrays)

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
    """Yield feature, threshold, children and value of each node, parents before their children."""
    waiting, after = [tree], first + 1
    for place, node in enumerate(waiting, start=first):
        if "leaf_value" in node and "left_child" not in node:
            yield 0, 0.0, place, place, node["leaf_value"]
            continue
        waiting += [node["left_child"], node["right_child"]]
        yield node["split_feature"], node["threshold"], after, after + 1, 0.0
        after += 2
