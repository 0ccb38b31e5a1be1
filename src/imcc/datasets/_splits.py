"""Splits into training and test rows: those of the paper, and one that keeps rare labels."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.validation import _num_samples

from imcc._utils.validation import check_count, check_number, check_share, encode_target
from imcc.datasets._dataset import Dataset

Split = tuple[np.ndarray, np.ndarray]


def paper_splits(
    dataset: Dataset,
    n_splits: int = 10,
    test_size: float = 0.2,
    seed: int = 0,
    *,
    stratified: bool = False,
) -> list[Split]:
    """Split the rows into training and test rows, several times.

    A split depends only on the name and number of rows of the data set, the seed and the number of
    the repetition (and, if stratified, on the labels): not on the machine, other data sets or
    ``n_splits``.

    Parameters
    ----------
    dataset : Dataset
        The data.
    n_splits : int, default=10
        Number of splits.
    test_size : float, default=0.2
        Share of test rows, between 0 and 1; the number of rows is rounded down, as in the files of
        the authors.
    seed : int, default=0
        Seed of the splits.
    stratified : bool, default=False
        Whether to balance the frequency of the labels in both parts by iterative stratification.
        The number of test rows can then differ slightly.  The splits of the paper are not
        stratified.

    Returns
    -------
    list of (train, test)
        Arrays of row numbers in ascending order.

    Examples
    --------
    >>> from imcc.datasets import load_dataset, paper_splits
    >>> yeast = load_dataset("yeast")
    >>> train, test = paper_splits(yeast)[0]
    >>> len(train), len(test)
    (1934, 483)
    >>> yeast[train]
    Dataset 'yeast': 1934 rows, 103 features (dense), 14 labels, 4.2... labels per row
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"dataset must be a Dataset, got {type(dataset).__name__}")
    n_splits = check_count("n_splits", n_splits)
    test_size = check_number("test_size", test_size, above=0)
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
        raise ValueError(f"seed must be an integer, got {seed!r}")
    # Add a small number, so that 0.29 * 100 = 28.999999999999996 counts as 29.
    n_test = math.floor(test_size * dataset.n_rows + 1e-9)
    if not 1 <= n_test < dataset.n_rows:
        raise ValueError(
            f"test_size={test_size} gives {n_test} test rows of {dataset.n_rows} rows; training "
            "and test part need at least one row each"
        )
    split = _stratified if stratified else _random
    return [
        split(dataset, n_test, split_seed(seed, dataset.name, dataset.n_rows, repetition))
        for repetition in range(n_splits)
    ]


def split_seed(seed: int, name: str, n_rows: int, repetition: int) -> int:
    """Return the seed of a split, which is a hash of the arguments.

    Parameters
    ----------
    seed : int
        Seed of the splits.
    name : str
        Name of the data set.
    n_rows : int
        Number of its rows.
    repetition : int
        Number of the split, counted from 0.

    Returns
    -------
    int
        Between 0 and 2**32 - 1.

    Examples
    --------
    >>> split_seed(0, "yeast", 2417, 0)
    50290507
    """
    text = repr((int(seed), name, int(n_rows), int(repetition)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def _random(dataset: Dataset, n_test: int, seed: int) -> Split:
    # The stream of RandomState is guaranteed not to change, unlike that of newer generators.
    keys = np.random.RandomState(seed).random_sample(dataset.n_rows)
    order = np.argsort(keys, kind="stable")
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def _stratified(dataset: Dataset, n_test: int, seed: int) -> Split:
    on = np.asarray(dataset.Y) > 0
    is_test = stratify(on, n_test / len(on), np.random.RandomState(seed))
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def train_test_split(
    X: Any, y: Any, *more: Any, test_size: float = 0.25, random_state: Any = None
) -> list[Any]:
    """Split rows into training and test rows, with all labels on both sides where possible.

    Like scikit-learn's function, but stratified for several labels per row: a label that at least
    two rows have occurs in both parts, and the frequencies of all labels are close in both.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        Rows.
    y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
        Labels in one of the forms that classifiers accept.  Unknown labels (NaN) count as absent.
    *more : array-like of length n_samples
        Others to split in the same way, such as groups or weights.
    test_size : float, default=0.25
        Share of test rows, between 0 and 1; the number of rows can differ slightly.
    random_state : int, RandomState instance or None, default=None
        Seed; the same integer gives the same split.

    Returns
    -------
    list
        ``X_train, X_test, y_train, y_test``, and the two parts of each of the others.  Rows are in
        their original order.

    References
    ----------
    K. Sechidis, G. Tsoumakas and I. Vlahavas. "On the stratification of multi-label data." ECML
    PKDD 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from imcc.datasets import train_test_split
    >>> Y = np.zeros((100, 2), dtype=int)
    >>> Y[:2, 0] = Y[:40, 1] = 1
    >>> X_train, X_test, Y_train, Y_test = train_test_split(np.eye(100), Y, random_state=0)
    >>> Y_train.sum(axis=0).tolist(), Y_test.sum(axis=0).tolist()
    ([1, 30], [1, 10])
    """
    share = check_share("test_size", test_size)
    arrays = indexable(X, y, *more)
    target = encode_target(y, _num_samples(X), "train_test_split", unknown=True)
    is_test = stratify(target.signs > 0, share, check_random_state(random_state))
    if is_test.all() or not is_test.any():
        raise ValueError(f"test_size={share} leaves no rows on one side of {len(is_test)} rows")
    sides = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    return [_safe_indexing(array, rows) for array in arrays for rows in sides]


def stratify(on: np.ndarray, test_size: float, rng: np.random.RandomState) -> np.ndarray:
    """Return which rows are test rows, by iterative stratification.

    The rows of the rarest label are divided first, each to the side that lacks it most.

    Parameters
    ----------
    on : ndarray of bool of shape (n_samples, n_labels)
    test_size : float
    rng : RandomState
    """
    n = len(on)
    shares = np.array([1 - test_size, test_size])
    lacking_rows = shares * n
    lacking = shares[:, np.newaxis] * on.sum(axis=0)
    # At least one row of each label on both sides, if it has two.
    often = on.sum(axis=0) >= 2
    small = lacking.min(axis=0)
    lacking[:, often] = np.where(lacking == small, np.maximum(small, 1.0), lacking)[:, often]
    left = np.ones(n, dtype=bool)
    side = np.zeros(n, dtype=np.int64)
    counts = on.sum(axis=0)
    while counts.any():
        rarest = int(np.argmin(np.where(counts > 0, counts, n + 1)))
        for row in rng.permutation(np.flatnonzero(left & on[:, rarest])):
            # The side that lacks the label most; of equal ones, that which lacks rows most.
            best = max((0, 1), key=lambda s: (lacking[s, rarest], lacking_rows[s]))
            side[row], left[row] = best, False
            lacking[best, on[row]] -= 1
            lacking_rows[best] -= 1
            counts -= on[row]
    rest = rng.permutation(np.flatnonzero(left))
    side[rest[: int(np.clip(round(lacking_rows[1]), 0, len(rest)))]] = 1
    return side == 1
