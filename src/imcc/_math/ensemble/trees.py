r"""Boosted trees: gradient boosting of one label at a time, kept as plain arrays.

Kernel models are smooth, and all columns count alike in their distances: a label that changes at a
threshold, or that depends on two of fifty columns, takes them many rows to learn.  Trees find
thresholds, and the columns that matter.

From the log-odds :math:`z_0` of the label's frequency, trees :math:`t_1, t_2, \ldots` are added to

    z(x) = z_0 + t_1(x) + t_2(x) + ...

each fitted to the gradient of the log-likelihood at z so far.  (J. H. Friedman, "Greedy function
approximation: a gradient boosting machine", Annals of Statistics 29, 2001; LightGBM finds the
trees.)

Trees are kept as plain arrays, so that a model file needs no other library's objects and rows are
scored without LightGBM.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GroupKFold, KFold

from imcc._utils.validation import Features

#: Leaves of a tree, and how many trees a label may have.
N_LEAVES, MOST_TREES = 8, 400
#: Labels that trees are fitted to, the most frequent ones, and threads that fit them.
MOST_LABELS, MOST_THREADS = 100, 8
#: Rows on which trees are tried, at most.
TRIED_ROWS = 20_000
#: Folds of the held-out log-odds.
N_FOLDS = 3
# Least number of rows in a leaf, what each tree is multiplied by, what is added to the sum of
# second derivatives of a leaf, and bins of a column.
_MIN_LEAF, _RATE, _PENALTY, _BINS = 10, 0.1, 1.0, 63
# Trees that do not lower the log loss of held-out rows, until no more are fitted.
_PATIENCE = 20
# Labels that fewer rows have, or lack, have no trees.
_MIN_SUPPORT = 10
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
    """The fits of trees of some rows, to labels that enough of them have and lack.

    Attributes
    ----------
    seen : ndarray or CSR matrix of float32, shape (n_samples, n_seen)
        What trees look at.
    on : ndarray of bool, shape (n_samples, n_labels)
    known : ndarray of bool, shape (n_samples, n_labels), or None
    weight : ndarray of shape (n_samples,) or None
    groups : ndarray of shape (n_samples,) or None
    seed : int
    threads : int
        Threads; each fits other labels, so that their number changes nothing.
    """

    seen: Features
    on: np.ndarray
    known: np.ndarray | None
    weight: np.ndarray | None
    groups: np.ndarray | None
    seed: int
    threads: int = 1

    def labels(self, most: int, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return the most frequent labels that enough rows have, and lack, at most so many."""
        on = self.on[rows]
        known = np.ones(on.shape, dtype=bool) if self.known is None else self.known[rows]
        positives, negatives = (on & known).sum(axis=0), (~on & known).sum(axis=0)
        enough = np.minimum(positives, negatives) >= _MIN_SUPPORT
        order = np.argsort(np.where(enough, -positives, 0), kind="stable")
        return np.sort(order[: min(most, enough.sum())])

    def trial(
        self, train: np.ndarray, test: np.ndarray, labels: np.ndarray
    ) -> tuple[int, np.ndarray]:
        """Return the number of trees with the lowest log loss of other rows, and their log-odds.

        Parameters
        ----------
        train, test : ndarray of int
            Rows that the trees are fitted to, and rows that the log-odds are of.
        labels : ndarray of int

        Returns
        -------
        n_trees : int
            The same for all labels.
        log_odds : ndarray of shape (len(test), len(labels))
        """
        lightgbm = _lightgbm()
        new = self.seen[test]

        def fit(data: Any, j: int) -> tuple[Any, list[float]]:
            weight = self._weights(test, j)
            held = data.create_valid(new, params=self._options()).construct()
            held.set_label(self.on[test, j].astype(np.float64))
            held.set_weight(weight)
            held.set_init_score(np.full(len(test), self._start(train, j)))
            losses: dict[str, Any] = {}
            watch = [
                lightgbm.early_stopping(_PATIENCE, verbose=False),
                lightgbm.record_evaluation(losses),
            ]
            booster = lightgbm.train(
                self._options(),
                data,
                MOST_TREES,
                valid_sets=[held],
                callbacks=watch,
                keep_training_booster=True,  # with the trees after the best number for this label
            )
            return booster, losses["valid_0"]["binary_logloss"]

        found = self._each(train, labels, fit)
        longest = max(len(losses) for _, losses in found)
        # After its last tree, the loss of a label counts as what it was then.
        whole = [losses + losses[-1:] * (longest - len(losses)) for _, losses in found]
        n_trees = int(np.argmin(np.sum(whole, axis=0))) + 1
        scores = [
            self._start(train, j) + booster.predict(new, raw_score=True, num_iteration=n_trees)
            for j, (booster, _) in zip(labels, found, strict=True)
        ]
        return n_trees, np.column_stack(scores)

    def held_out(self, labels: np.ndarray, n_trees: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the rows of each fold, and their log-odds by trees of the other folds."""
        splitter: Any = KFold(N_FOLDS, shuffle=True, random_state=self.seed)
        if self.groups is not None:
            splitter = GroupKFold(N_FOLDS)
        for train, test in splitter.split(self.on, groups=self.groups):
            yield test, self.log_odds(*self.fit(train, labels, n_trees), test)

    def log_odds(self, trees: Trees, start: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the log-odds of rows by trees, of the labels that these were fitted to."""
        parts = []
        for begin in range(0, len(rows), BLOCK_ROWS):
            seen = self.seen[rows[begin : begin + BLOCK_ROWS]][:, trees.used]
            seen = seen.toarray() if sp.issparse(seen) else seen
            parts.append(start + trees.sums(seen, len(start)))
        return np.concatenate(parts)

    def fit(self, rows: np.ndarray, labels: np.ndarray, n_trees: int) -> tuple[Trees, np.ndarray]:
        """Return the trees of some rows, whose outputs are places in labels, and their start."""
        lightgbm = _lightgbm()

        def fit(data: Any, j: int) -> list[tuple[list[tuple[Any, ...]], list[float]]]:
            counted = self.on[rows, j][self._weights(rows, j) > 0]
            if counted.all() or not counted.any():
                return []
            booster, own = lightgbm.train(self._options(), data, n_trees), []
            for tree in booster.dump_model()["tree_info"]:
                splits: list[tuple[Any, ...]] = []
                values: list[float] = []
                _collect(tree["tree_structure"], splits, values)
                own.append((splits, values))
            return own

        found = self._each(rows, labels, fit)
        outputs = np.repeat(np.arange(len(labels)), [len(own) for own in found])
        start = np.array([self._start(rows, j) for j in labels])
        return _as_arrays([tree for own in found for tree in own], outputs), start

    def _each(
        self, rows: np.ndarray, labels: np.ndarray, fit: Callable[[Any, int], Any]
    ) -> list[Any]:
        """Return what a function gives for each label and LightGBM's data of some rows."""
        first = _lightgbm().Dataset(self.seen[rows], params=self._options()).construct()
        every = np.arange(len(rows))
        n_threads = min(self.threads, MOST_THREADS, len(labels))

        def some(number: int) -> list[Any]:
            # The labels are part of the data, so each thread has its own, with the same bins.
            data = first.subset(every, params=self._options()).construct()
            found = []
            for j in labels[number::n_threads]:
                data.set_label(self.on[rows, j].astype(np.float64))
                data.set_weight(self._weights(rows, j))
                data.set_init_score(np.full(len(rows), self._start(rows, j)))
                found.append(fit(data, j))
            return found

        with ThreadPoolExecutor(n_threads) as pool:
            parts = list(pool.map(some, range(n_threads)))
        return [parts[i % n_threads][i // n_threads] for i in range(len(labels))]

    def _options(self) -> dict[str, Any]:
        return {
            "objective": "binary",
            "num_leaves": N_LEAVES,
            "min_data_in_leaf": _MIN_LEAF,
            "learning_rate": _RATE,
            "lambda_l2": _PENALTY,
            "max_bin": _BINS,
            "use_missing": False,
            "deterministic": True,
            "force_col_wise": True,
            "seed": self.seed % 2**31,
            "num_threads": 1,
            "verbosity": -1,
        }

    def _weights(self, rows: np.ndarray, j: int) -> np.ndarray:
        """Return the weights of rows for a label: 0 where it is unknown."""
        weight = np.ones(len(rows)) if self.weight is None else self.weight[rows]
        return weight if self.known is None else weight * self.known[rows, j]

    def _start(self, rows: np.ndarray, j: int) -> float:
        """Return the log-odds of the smoothed frequency of a label in some rows."""
        weight = self._weights(rows, j)
        positives = float(weight @ self.on[rows, j])
        return float(np.log(positives + 0.5) - np.log(weight.sum() - positives + 0.5))


def _as_arrays(found: list[tuple[list[tuple[Any, ...]], list[float]]], output: np.ndarray) -> Trees:
    """Return trees of splits and values, and their outputs, as arrays."""
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
    return Trees(used, feature, threshold, removed, value, output.astype(np.int32))


def _lightgbm() -> Any:
    """Import LightGBM, which needs a library of the system for threads."""
    try:
        return importlib.import_module("lightgbm")
    except OSError as error:
        raise ImportError(
            "boosted trees need LightGBM, which cannot load the OpenMP library of this system: "
            "install it (libgomp1 on Debian and Ubuntu, libomp on macOS), or set trees=False"
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
