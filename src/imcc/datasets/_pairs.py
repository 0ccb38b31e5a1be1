"""Files of named matrices (MATLAB, NumPy): which are features and labels, and their orientation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.errors import InvalidArgumentError, given, message_of
from imcc.datasets._dataset import Dataset, concatenate
from imcc.datasets._errors import DataFormatError, listed
from imcc.datasets._files import Content, check_size, joined_name

Pairs = tuple[str, str] | Sequence[tuple[str, str]]

_SPLITS = [
    [("train_data", "train_target"), ("test_data", "test_target")],
    [("train_data", "train_label"), ("test_data", "test_label")],
    [("train_data", "train_labels"), ("test_data", "test_labels")],
    [("X_train", "Y_train"), ("X_test", "Y_test")],
    [("X_train", "y_train"), ("X_test", "y_test")],
]
_WHOLE = [
    [(data, target)]
    for data in ("data", "X", "x", "features", "bags")
    for target in ("target", "targets", "Y", "y", "labels", "label")
]


def read_pairs(
    load: Callable[[Content], tuple[Mapping[str, Any], dict[str, Any]]],
    contents: Sequence[Content],
    *,
    variables: Pairs | None = None,
    transpose_labels: bool | None = None,
    name: str | None = None,
    labelled: bool = True,
) -> Dataset:
    """Read features and labels from files of named matrices, whose rows are concatenated.

    Parameters
    ----------
    load : callable
        Returns the matrices of a file by their names, and arguments of :class:`Dataset` that the
        file contains: the names of its columns and of the data set.
    contents : sequence of Content
        The files.
    variables : pair of str or list of pairs, default=None
        Names of the feature and label variables, such as ``("data", "target")``; the rows of
        several pairs are concatenated.  None searches for ``train_data``/``train_target`` and
        ``test_data``/``test_target`` (which are concatenated), then for pairs such as
        ``data``/``target`` and ``X``/``Y``.
    transpose_labels : bool, default=None
        Whether the shape of the label variables is (n_labels, n_samples) (True) or
        (n_samples, n_labels) (False).  None detects it from the shapes of all parts, and raises an
        error if both are possible, because there are as many rows as labels.  For files with the
        names of the labels, which :func:`write` wrote, it means False.
    name : str, default=None
        Name of the data set; None uses that stored in the file, or else that of the file.
    labelled : bool, default=True
        Whether to read the labels; otherwise, there is one label that is always 0.
    """
    wanted = None if variables is None else _check_pairs(variables)
    parts = []
    for content in contents:
        matrices, facts = load(content)
        for pair in _find_pairs(matrices, wanted, content.path, labelled):
            X = _checked(matrices[pair[0]], pair[0], content)
            if labelled:
                Y = _checked(matrices[pair[1]], pair[1], content)
                content.check_cells(Y.shape[0], Y.shape[1], "labels")
            else:
                Y, facts = np.zeros((X.shape[0], 1), np.int8), {**facts, "label_names": ()}
            parts.append((X, Y, facts, listed(pair), content.path))
    if not labelled or all(facts.get("label_names") for _, _, facts, *_ in parts):
        transpose_labels = bool(transpose_labels)
    shapes = [(X.shape, Y.shape) for X, Y, *_ in parts]
    turned = _is_turned(shapes, transpose_labels, shown=parts[0][3], path=parts[0][4])
    datasets = []
    for X, Y, facts, shown, path in parts:
        try:
            datasets.append(Dataset(X, Y.T if turned else Y, source=path, **facts))
        except (ValueError, TypeError) as error:
            raise DataFormatError(f"{shown}: " + message_of(error), path) from error
    kept = datasets[0].name if len(contents) == 1 and datasets[0].name != "unnamed" else None
    return concatenate(datasets, name or kept or joined_name(contents))


def _check_pairs(variables: Pairs) -> list[tuple[str, str]]:
    """Return one or several pairs of names as a list.

    >>> _check_pairs(("X", "Y"))
    [('X', 'Y')]
    """
    pairs: Any = [variables] if all(isinstance(name, str) for name in variables) else variables
    if not pairs or not all(
        isinstance(pair, (tuple, list)) and [type(name) for name in pair] == [str, str]
        for pair in pairs
    ):
        raise InvalidArgumentError(
            "variables",
            "must be a pair of names, ('data', 'target'), or a list of such pairs, got "
            f"{variables!r}",
        )
    return [(data, target) for data, target in pairs]


def _find_pairs(
    names: Collection[str], wanted: list[tuple[str, str]] | None, path: str, labelled: bool
) -> list[tuple[str, str]]:
    """Return the pairs to read: those requested, or those with well-known names.

    Unless ``labelled``, the file need not have the second of a pair.
    """
    needed = slice(2 if labelled else 1)
    for pairs in [*_SPLITS, *_WHOLE] if wanted is None else [wanted]:
        if all(name in names for pair in pairs for name in pair[needed]):
            return pairs
    sought = listed(name for pair in wanted or _WHOLE[0] for name in pair[needed])
    raise DataFormatError(
        f"the file has no numeric variables {sought}{'' if wanted else ' or similar'}; specify "
        "them with "
        + given("variables", ("data", "target"))
        + f"; it has {listed(names, 10) or 'none'}",
        path,
    )


def _checked(matrix: Any, name: str, content: Content) -> Any:
    """Return a matrix; raise an error if it has no numbers, or would become too large."""
    problem = None
    if matrix.ndim != 2 or 0 in matrix.shape:
        problem = f"must have rows and columns, and has the shape {matrix.shape}"
    elif matrix.dtype.kind not in "biuf":
        problem = f"must have real numbers, not {matrix.dtype}"
    if problem:
        raise DataFormatError(f"the variable {name!r} {problem}", content.path)
    rows, columns = matrix.shape
    content.check_columns(columns, "columns")
    content.check_cells(rows, 1, "rows")
    if not sp.issparse(matrix):
        # One byte of the file can become a number of 8 bytes.
        limit = max(content.max_arrays // 8, content.size)
        check_size(rows, columns, f"numbers of {name!r}", limit, content.path)
    return matrix


def _is_turned(
    shapes: list[tuple[Any, Any]], transpose_labels: bool | None, shown: str, path: str
) -> bool:
    """Return whether the labels are labels x rows, from the shapes of features and labels."""
    possible = []
    for turned in (False, True) if transpose_labels is None else (transpose_labels,):
        fits = all(labels[turned] == features[0] for features, labels in shapes)
        if fits and len({labels[not turned] for _, labels in shapes}) == 1:
            possible.append(turned)
    if len(possible) == 1 or (possible and all(labels == (1, 1) for _, labels in shapes)):
        return possible[0]
    both = ", ".join(f"{features} and {labels}" for features, labels in shapes)
    problem = "there are as many rows as labels" if possible else "the numbers of rows differ"
    raise DataFormatError(
        f"{shown}: the shapes of features and labels are {both}: {problem}, so the labels cannot "
        "be matched; say how they are stored with "
        + given("transpose_labels", False)
        + " (rows x labels) or "
        + given("transpose_labels", True)
        + " (labels x rows)",
        path,
    )
