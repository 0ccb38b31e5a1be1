"""Repeated random splits into training and test rows, as in the paper."""

from __future__ import annotations

import hashlib
import math

import numpy as np

from imcc._utils.optional import require
from imcc._utils.validation import check_count, check_number
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
        Whether to balance the frequency of the labels in both parts by iterative stratification,
        which needs the package ``iterative-stratification``.  The number of test rows can then
        differ slightly.  The splits of the paper are not stratified.

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
    stratifiers = require("iterstrat.ml_stratifiers", "Stratified splitting")
    splitter = stratifiers.MultilabelStratifiedShuffleSplit(
        n_splits=1, test_size=n_test, random_state=seed
    )
    train, test = next(splitter.split(np.zeros((dataset.n_rows, 1)), dataset.Y))
    return np.sort(train), np.sort(test)
