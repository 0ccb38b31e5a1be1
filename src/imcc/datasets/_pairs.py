"""Selection of the variables of a file that are features and labels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.errors import given, message_of
from imcc.datasets._dataset import Dataset
from imcc.datasets._errors import DataFormatError, listed
from imcc.datasets._files import Content, check_cells, check_columns

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
    """Return one or several pairs of names as a list.

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
    names: Collection[str], wanted: list[tuple[str, str]] | None, path: str, labelled: bool = True
) -> list[tuple[str, str]]:
    """Return the pairs to read: those requested, or those with well-known names.

    Unless ``labelled``, the file need not have the second of a pair.
    """
    needed = slice(2 if labelled else 1)
    if wanted is not None:
        if absent := [name for pair in wanted for name in pair[needed] if name not in names]:
            raise DataFormatError(
                f"there is no numeric variable {listed(absent)}; there are {listed(names, 10)}",
                path,
            )
        return wanted
    for pairs in [*_SPLITS, *([pair] for pair in _WHOLE)]:
        if all(name in names for pair in pairs for name in pair[needed]):
            return pairs
    raise DataFormatError(
        f"the variables of the features {'and labels ' * labelled}are unknown; specify them with "
        + given("variables", ("data", "target"))
        + f"; the file has {listed(names, 10) or 'no numeric variables'}",
        path,
    )


@dataclass(frozen=True)
class Part:
    """A matrix of features, a matrix of labels, and their source.

    Labels that are not read are None, and become a column of 0.
    """

    data: Any
    target: Any
    names: tuple[str, str]
    content: Content

    def error(self, reason: str) -> DataFormatError:
        return DataFormatError(f"the variables {listed(self.names)}: " + reason, self.content.path)


def join_parts(parts: Sequence[Part], transpose_labels: bool | None) -> list[Dataset]:
    """Return the data set of each part; the labels of all parts have the same orientation.

    Parameters
    ----------
    parts : sequence of Part
    transpose_labels : bool or None
        Whether the shape of the labels is (n_labels, n_samples); None detects it from the shapes of
        all parts.

    Raises
    ------
    DataFormatError
        If the shapes do not match, or both orientations are possible.
    """
    for part in parts:
        try:
            shape = _check_features(part.data, part.content)
            if part.target is None:
                continue
            if part.target.ndim != 2:
                raise ValueError(f"the labels must be a matrix, not of shape {part.target.shape}")
            if 0 in part.target.shape:
                raise ValueError(f"there are no rows: the labels are of shape {part.target.shape}")
            if shape[0] not in part.target.shape:
                raise ValueError(
                    "they must have the same number of rows: the shapes are "
                    f"{shape} and {part.target.shape}"
                )
        except ValueError as error:
            raise part.error(message_of(error)) from error
    if parts[0].target is None:
        zeros = [np.zeros((part.data.shape[0], 1), np.int8) for part in parts]
        parts = [replace(part, target=zero) for part, zero in zip(parts, zeros, strict=True)]
        transpose_labels = False
    turned = _is_turned(parts) if transpose_labels is None else transpose_labels
    found = []
    for part in parts:
        target = part.target.T if turned else part.target
        try:
            if target.shape[0] != part.data.shape[0]:
                raise ValueError(
                    f"they must have the same number of rows: the shapes are {part.data.shape} and "
                    f"{part.target.shape}, and the labels are read as "
                    f"{'labels x rows' if turned else 'rows x labels'}; change this with "
                    + given("transpose_labels", not turned)
                )
            n_rows, n_labels = target.shape
            check_cells(n_rows, n_labels, part.content.max_cells, "labels")
            found.append(Dataset(part.data, target, source=part.content.path))
        except (ValueError, TypeError) as error:
            raise part.error(message_of(error)) from error
    return found


def _is_turned(parts: Sequence[Part]) -> bool:
    """Return whether the labels are labels x rows, from the shapes of all parts."""
    possible = []
    for turned in (False, True):
        shapes = [part.target.shape[::-1] if turned else part.target.shape for part in parts]
        fits = all(
            shape[0] == part.data.shape[0] for shape, part in zip(shapes, parts, strict=True)
        )
        if fits and len({shape[1] for shape in shapes}) == 1:
            possible.append(turned)
    if len(possible) == 1 or (possible and all(part.target.shape == (1, 1) for part in parts)):
        return possible[0]
    shapes_shown = ", ".join(f"{part.data.shape} and {part.target.shape}" for part in parts)
    if not possible:
        raise parts[0].error(
            "the labels of the parts do not match, neither as rows x labels nor as labels x "
            f"rows: the shapes are {shapes_shown}"
        )
    raise parts[0].error(
        f"there are as many rows as labels (the shapes are {shapes_shown}), so the orientation of "
        "the labels is unknown; specify it with "
        + given("transpose_labels", False)
        + " (rows x labels) or "
        + given("transpose_labels", True)
        + " (labels x rows)"
    )


def _check_features(data: Any, content: Content) -> tuple[int, int]:
    """Return the shape of a matrix of features; raise a ValueError if it is invalid."""
    if not sp.issparse(data) and data.dtype.kind not in "biuf":
        raise ValueError(f"the features must be real numbers, not {data.dtype}")
    if data.ndim != 2:
        raise ValueError(f"the features must be a matrix, not of shape {data.shape}")
    if 0 in data.shape:
        raise ValueError(f"there are no rows: the features are of shape {data.shape}")
    check_columns(data.shape[1], content.max_columns, "features")
    check_cells(data.shape[0], 1, content.max_cells, "column")
    return data.shape
