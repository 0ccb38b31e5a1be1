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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.model_selection import GroupKFold, KFold

from imcc._utils.validation import Features

#: Leaves of a tree, and how many trees a label may have.
N_LEAVES, MOST_TREES = 8, 400
#: Labels that trees are fitted to, the most frequent ones, and threads that fit them.
MOST_LABELS, MOST_THREADS = 100, 16
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
# Trees that are converted at a time.
_CONVERTED = 500
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
        # One label each: so its training ends when its own loss does not fall any more.
        found = self._boosters(train, [labels[i : i + 1] for i in range(len(labels))], test=test)
        if not found:
            return 0, np.tile(self._start(train, labels), (len(test), 1))
        longest = max(len(losses) for _, losses in found)
        # After its last tree, the loss of a label counts as what it was then.
        whole = [losses + losses[-1:] * (longest - len(losses)) for _, losses in found]
        n_trees, new = int(np.argmin(np.sum(whole, axis=0))) + 1, self.seen[test]
        added = [
            booster.predict(new, raw_score=True, num_iteration=n_trees) for booster, _ in found
        ]
        return n_trees, self._start(train, labels) + np.column_stack(added)

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
        varying = np.flatnonzero(self._n_counted(rows, labels).all(axis=0))
        n_parts = min(self.threads, MOST_THREADS, len(varying))
        parts = [varying[i::n_parts] for i in range(n_parts)]
        boosters = self._boosters(rows, [labels[part] for part in parts], n_trees)
        found = []
        for part, (booster, _) in zip(parts if boosters else [], boosters, strict=True):
            # Texts of trees take much memory, so only some are there at a time.
            step = max(1, _CONVERTED // len(part))
            for begin in range(0, n_trees, step):
                text = booster.model_to_string(num_iteration=step, start_iteration=begin)
                for number, tree in enumerate(text.split("\nTree=")[1:]):
                    splits, values = _splits_and_values(tree)
                    # One that adds nothing is there where another label's tree has splits.
                    if splits or any(values):
                        found.append((int(part[number % len(part)]), splits, values))
        # Label by label, however these were shared between threads.
        found.sort(key=lambda tree: tree[0])
        return _as_arrays(found), self._start(rows, labels)

    def _boosters(
        self,
        rows: np.ndarray,
        parts: Sequence[np.ndarray],
        n_trees: int = MOST_TREES,
        test: np.ndarray | None = None,
    ) -> list[tuple[Any, list[float]]]:
        """Return a booster of some rows for each part of the labels, and its losses of test rows.

        With test rows, training ends when the loss does not fall any more.  To make a booster takes
        as long as dozens of trees, and to sort the values of the columns, too: the labels of a part
        have one booster, and all parts the same sorted values.  There are none if no column has
        two values that enough rows have.
        """
        lightgbm, options = _lightgbm(), self._options()
        nothing = np.zeros(len(rows))  # in place of labels, which only the gradients know
        first = lightgbm.Dataset(self.seen[rows], nothing, params=options).construct()
        if not any(first.feature_num_bin(i) > 1 for i in range(first.num_feature())):
            return []

        def fit(labels: np.ndarray) -> tuple[Any, list[float]]:
            start, losses = self._start(rows, labels), list[float]()
            data = first.subset(np.arange(len(rows)), params=options).construct()
            data.set_init_score(np.repeat(start, len(rows)))
            own = {**options, "num_class": len(labels), "objective": self._gradients(rows, labels)}
            if test is None:
                # Otherwise it would be written to a text and read again.
                return lightgbm.train(own, data, n_trees, keep_training_booster=True), losses
            held = data.create_valid(self.seen[test], np.zeros(len(test)), params=options)
            held.construct().set_init_score(np.repeat(start, len(test)))
            booster = lightgbm.train(
                own,
                data,
                n_trees,
                valid_sets=[held],
                feval=self._loss(test, labels, losses),
                callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False)],
                keep_training_booster=True,  # also with the trees after the best number
            )
            return booster, losses

        with ThreadPoolExecutor(max(1, min(self.threads, MOST_THREADS))) as pool:
            return list(pool.map(fit, parts))

    def _gradients(self, rows: np.ndarray, labels: np.ndarray) -> Callable[..., Any]:
        """Return a function that gives both derivatives of the log loss for log-odds of rows."""
        on, weight = self._cells(rows, labels)

        def gradients(log_odds: np.ndarray, _data: Any) -> tuple[np.ndarray, np.ndarray]:
            p = expit(log_odds.reshape(on.shape, order="F"))
            slope, curvature = weight * (p - on), weight * p * (1 - p)
            return slope.reshape(log_odds.shape), curvature.reshape(log_odds.shape)

        return gradients

    def _loss(
        self, rows: np.ndarray, labels: np.ndarray, losses: list[float]
    ) -> Callable[..., tuple[str, float, bool]]:
        """Return a function that gives the log loss of rows, and adds it to a list."""
        on, weight = self._cells(rows, labels)

        def loss(log_odds: np.ndarray, _data: Any) -> tuple[str, float, bool]:
            z = log_odds.reshape(on.shape, order="F")
            losses.append(float((weight * np.logaddexp(0.0, np.where(on, -z, z))).sum()))
            return "loss", losses[-1], False  # less is better

        return loss

    def _options(self) -> dict[str, Any]:
        return {
            "metric": "None",
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

    def _cells(self, rows: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows have labels, and the weights: 0 where a label is unknown."""
        on = self.on[np.ix_(rows, labels)]
        weight = np.ones(len(rows)) if self.weight is None else self.weight[rows]
        known = np.ones(on.shape) if self.known is None else self.known[np.ix_(rows, labels)]
        return on, weight[:, None] * known

    def _n_counted(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the sums of weights of the rows with, and without, each label."""
        on, weight = self._cells(rows, labels)
        return np.array([(weight * on).sum(axis=0), (weight * ~on).sum(axis=0)])

    def _start(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the log-odds of the smoothed frequencies of labels in some rows."""
        positives, negatives = self._n_counted(rows, labels)
        return np.log(positives + 0.5) - np.log(negatives + 0.5)


def _as_arrays(found: list[tuple[int, list[tuple[Any, ...]], list[float]]]) -> Trees:
    """Return trees of outputs, splits and values as arrays."""
    feature = np.zeros((N_LEAVES - 1, len(found)), dtype=np.int32)
    threshold = np.full(feature.shape, np.finfo(np.float32).max, dtype=np.float32)
    removed = np.zeros(feature.shape, dtype=np.uint8)
    value = np.zeros((N_LEAVES, len(found)))
    for t, (_, splits, values) in enumerate(found):
        value[: len(values), t] = values
        for i, (name, limit, leaves) in enumerate(splits):
            feature[i, t], threshold[i, t], removed[i, t] = name, _rounded(limit), leaves
    used, places = np.unique(feature, return_inverse=True)
    feature = places.reshape(feature.shape).astype(np.int32)
    output = np.array([output for output, *_ in found], dtype=np.int32)
    return Trees(used, feature, threshold, removed, value, output)


def _lightgbm() -> Any:
    """Import LightGBM, which needs a library of the system for threads."""
    try:
        return importlib.import_module("lightgbm")
    except OSError as error:
        raise ImportError(
            "boosted trees need LightGBM, which cannot load the OpenMP library of this system: "
            "install it (libgomp1 on Debian and Ubuntu, libomp on macOS), or set trees=False"
        ) from error


def _splits_and_values(text: str) -> tuple[list[tuple[Any, ...]], list[float]]:
    """Return the splits of a tree (feature, threshold, leaves on the left), and its leaves.

    Parameters
    ----------
    text : str
        What LightGBM writes to a file: lines of a name, "=" and numbers.  Children are numbers of
        splits; if negative, of leaves, from -1 downwards.
    """
    numbers = dict(line.split("=", 1) for line in text.split("\n") if "=" in line)
    leaves = [float(value) for value in numbers["leaf_value"].split()]
    if len(leaves) == 1:
        return [], leaves
    feature, left, right = (
        [int(number) for number in numbers[name].split()]
        for name in ("split_feature", "left_child", "right_child")
    )
    threshold = [float(number) for number in numbers["threshold"].split()]
    splits: list[tuple[Any, ...]] = []
    values: list[float] = []

    def collect(node: int) -> None:
        if node < 0:
            values.append(leaves[-node - 1])
            return
        first = len(values)
        collect(left[node])
        on_the_left = 2 ** len(values) - 2**first
        collect(right[node])
        splits.append((feature[node], threshold[node], on_the_left))

    collect(0)
    return splits, values


def _rounded(threshold: float) -> np.float32:
    """Return the largest number in single precision that is not greater.

    Values in single precision are greater than it if they are greater than the threshold.
    """
    near = np.float32(threshold)
    return near if float(near) <= threshold else np.nextafter(near, np.float32(-np.inf))
