"""Which of a file's variables are the features and which the labels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc.datasets._dataset import Dataset
from imcc.datasets._errors import DataFormatError, listed
from imcc.datasets._limits import check_size

Pairs = tuple[str, str] | Sequence[tuple[str, str]]

_SPLITS = [
    [("train_data", "train_target"), ("test_data", "test_target")],
    [("train_data", "train_label"), ("test_data", "test_label")],
    [("train_data", "train_labels"), ("test_data", "test_labels")],
    [("X_train", "Y_train"), ("X_test", "Y_test")],
    [("X_train", "y_train"), ("X_test", "y_test")],
]
_WHOLE = [
    (data, target)
    for data in ("data", "X", "x", "features", "bags")
    for target in ("target", "targets", "Y", "y", "labels", "label")
]


def check_pairs(variables: Pairs) -> list[tuple[str, str]]:
    """Return the pairs of names that the user gave, one or several, as a list.

    >>> check_pairs(("X", "Y"))
    [('X', 'Y')]
    """
    pairs: Any = [variables] if _is_pair(variables) else variables
    if isinstance(pairs, str) or not pairs or not all(_is_pair(pair) for pair in pairs):
        raise ValueError(
            "variables must be a pair of names, ('data', 'target'), or a list of such pairs, got "
            f"{variables!r}"
        )
    return [(str(data), str(target)) for data, target in pairs]


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, (tuple, list))
        and len(value) == 2
        and all(isinstance(name, str) for name in value)
    )


def find_pairs(
    names: Collection[str], wanted: list[tuple[str, str]] | None, path: str
) -> list[tuple[str, str]]:
    """Return the pairs to read: those that were asked for, or those with well-known names."""
    if wanted is not None:
        if absent := [name for pair in wanted for name in pair if name not in names]:
            raise DataFormatError(
                f"there is no numeric variable {listed(absent)}; there are {listed(names, 10)}",
                path,
            )
        return wanted
    for split in _SPLITS:
        if all(name in names for pair in split for name in pair):
            return split
    for pair in _WHOLE:
        if all(name in names for name in pair):
            return [pair]
    raise DataFormatError(
        "which variables are features and which labels? Say it with variables=('data', 'target'); "
        f"the file has {listed(names, 10) or 'no numeric variables'}",
        path,
    )


def make_part(data: Any, target: Any, source: str) -> Dataset:
    """Return the data set of two arrays, turning labels x rows around."""
    if not sp.issparse(data):
        data = np.asarray(data)
        if data.dtype.kind not in "biuf":
            raise ValueError(f"the features must be real numbers, not {data.dtype}")
    if data.ndim != 2 or target.ndim != 2:
        raise ValueError(f"both must be matrices, their shapes are {data.shape}, {target.shape}")
    if 0 in data.shape or 0 in target.shape:
        raise ValueError(f"there are no rows: the shapes are {data.shape} and {target.shape}")
    if target.shape[0] != data.shape[0] and target.shape[1] == data.shape[0]:
        target = target.T
    if target.shape[0] != data.shape[0]:
        raise ValueError(
            f"they must have as many rows: the shapes are {data.shape} and {target.shape}"
        )
    check_size(data.shape[1], target.shape)
    return Dataset(data, target, source=source)
