"""Files of named matrices (MATLAB, NumPy): which are features and labels, and their orientation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.errors import given, message_of
from imcc.datasets._dataset import Dataset, concatenate
from imcc.datasets._errors import DataFormatError, listed
from imcc.datasets._files import Content, joined_name

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


def read_pairs(
    contents: Sequence[Content],
    load: Callable[[Content], tuple[Mapping[str, Any], dict[str, Any]]],
    variables: Pairs | None,
    transpose_labels: bool | None,
    name: str | None,
    labelled: bool,
) -> Dataset:
    """Read features and labels from files of named matrices, whose rows are concatenated.

    Parameters
    ----------
    load : callable
        Returns the matrices of a file by their names, and arguments of :class:`Dataset` that the
        file contains: the names of its columns and of the data set.

    The other parameters are those of :func:`imcc.datasets._mat.read_mat`.
    """
    wanted = None if variables is None else _check_pairs(variables)
    parts = []
    for content in contents:
        matrices, facts = load(content)
        for pair in _find_pairs(matrices, wanted, content.path, labelled):
            data = matrices[pair[0]]
            if labelled:
                target = matrices[pair[1]]
            else:
                target = np.broadcast_to(np.int8(0), (*data.shape[:1], 1))
                facts = {**facts, "label_names": ()}
            parts.append(_Part(data, target, pair, content, facts))
            parts[-1].check()
    if not labelled or (
        transpose_labels is None and all(p.facts.get("label_names") for p in parts)
    ):
        transpose_labels = False  # files with names have been written by ``write``
    turned = _is_turned(parts) if transpose_labels is None else transpose_labels
    datasets = [part.dataset(turned) for part in parts]
    kept = datasets[0].name if len(contents) == 1 and datasets[0].name != "unnamed" else None
    return concatenate(datasets, name or kept or joined_name(contents))


def _check_pairs(variables: Pairs) -> list[tuple[str, str]]:
    """Return one or several pairs of names as a list.

    >>> _check_pairs(("X", "Y"))
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


def _find_pairs(
    names: Collection[str], wanted: list[tuple[str, str]] | None, path: str, labelled: bool
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
class _Part:
    """A matrix of features, a matrix of labels, and their source."""

    data: Any
    target: Any
    names: tuple[str, str]
    content: Content
    facts: dict[str, Any]

    def error(self, reason: str) -> DataFormatError:
        return DataFormatError(f"the variables {listed(self.names)}: " + reason, self.content.path)

    def check(self) -> None:
        """Raise an error if the shapes or types are invalid."""
        if not sp.issparse(self.data) and self.data.dtype.kind not in "biuf":
            raise self.error(f"the features must be real numbers, not {self.data.dtype}")
        for what, matrix in (("features", self.data), ("labels", self.target)):
            if matrix.ndim != 2 or 0 in matrix.shape:
                raise self.error(
                    f"the {what} must be a matrix with rows and columns, not of shape "
                    f"{matrix.shape}"
                )
        n_rows, n_features = self.data.shape
        self.content.check_columns(n_features, "features")
        self.content.check_cells(n_rows, 1, "column")
        if n_rows not in self.target.shape:
            raise self.error(
                "they must have the same number of rows: the shapes are "
                f"{self.data.shape} and {self.target.shape}"
            )

    def dataset(self, turned: bool) -> Dataset:
        """Return the data; the labels are labels x rows if ``turned``."""
        target = self.target.T if turned else self.target
        if target.shape[0] != self.data.shape[0]:
            raise self.error(
                f"they must have the same number of rows: the shapes are {self.data.shape} and "
                f"{self.target.shape}, and the labels are read as "
                f"{'labels x rows' if turned else 'rows x labels'}; change this with "
                + given("transpose_labels", not turned)
            )
        self.content.check_cells(target.shape[0], target.shape[1], "labels")
        try:
            return Dataset(self.data, target, source=self.content.path, **self.facts)
        except (ValueError, TypeError) as error:
            raise self.error(message_of(error)) from error


def _is_turned(parts: Sequence[_Part]) -> bool:
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
