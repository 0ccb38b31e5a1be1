"""Repeated random splits into training and test rows, as the paper made them."""

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
    """Divide the rows into training and test rows, several times.

    A split depends on the data set's name and number of rows, on the seed and on the number of
    the repetition, and on nothing else: not on the machine, not on other data sets, not on how
    many splits are requested.

    Parameters
    ----------
    dataset : Dataset
        The data.
    n_splits : int
        How many times.
    test_size : float
        The part of the rows that is for testing, between 0 and 1; rounded down to whole rows, as
        in the authors' own files.
    seed : int
        Other seeds give other splits.
    stratified : bool
        Whether every label should be as frequent in both parts, as far as that is possible
        (iterative stratification; needs the package ``iterative-stratification``); the test part
        may then be a few rows smaller or larger.  The paper's splits are plain random ones.

    Returns
    -------
    list of (train, test)
        Row numbers, ascending.

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
        raise ValueError(f"seed must be a whole number, got {seed!r}")
    # A little more, so that 0.29 * 100 = 28.999999999999996 counts as 29.
    n_test = math.floor(test_size * dataset.n_rows + 1e-9)
    if not 1 <= n_test < dataset.n_rows:
        raise ValueError(
            f"test_size={test_size} leaves {n_test} of {dataset.n_rows} rows for testing; at least "
            "one row must be on each side"
        )
    split = _stratified if stratified else _random
    return [
        split(dataset, n_test, split_seed(seed, dataset.name, dataset.n_rows, repetition))
        for repetition in range(n_splits)
    ]


def split_seed(seed: int, name: str, n_rows: int, repetition: int) -> int:
    """Return the seed of one split: a hash of all that it depends on.

    >>> split_seed(0, "yeast", 2417, 0)
    50290507
    """
    text = repr((int(seed), name, int(n_rows), int(repetition)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def _random(dataset: Dataset, n_test: int, seed: int) -> Split:
    # RandomState's stream is frozen for good, which that of newer generators is not.
    keys = np.random.RandomState(seed).random_sample(dataset.n_rows)
    order = np.argsort(keys, kind="stable")
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def _stratified(dataset: Dataset, n_test: int, seed: int) -> Split:
    stratifiers = require("iterstrat.ml_stratifiers", "data", "Stratified splitting")
    splitter = stratifiers.MultilabelStratifiedShuffleSplit(
        n_splits=1, test_size=n_test, random_state=seed
    )
    train, test = next(splitter.split(np.zeros((dataset.n_rows, 1)), dataset.Y))
    return np.sort(train), np.sort(test)
