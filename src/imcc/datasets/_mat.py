"""MATLAB's .mat files (version 7 and older)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from imcc.datasets._dataset import Dataset, concatenate
from imcc.datasets._errors import DataFormatError, listed
from imcc.datasets._files import MAX_BYTES, Content, Source, joined_name, open_all
from imcc.datasets._matlab import MatlabError, numeric_variables
from imcc.datasets._pairs import Pairs, check_pairs, find_pairs, make_part


def read_mat(
    path: Source | Sequence[Source],
    *,
    variables: Pairs | None = None,
    member: str | None = None,
    max_bytes: int = MAX_BYTES,
    name: str | None = None,
) -> Dataset:
    """Read features and labels from the variables of a MATLAB file.

    Parameters
    ----------
    path : path or list of paths
        The file; the rows of several are joined.
    variables : pair of str or list of pairs, optional
        The names of the feature and label variables, ``("data", "target")``; the rows of several
        pairs are stacked.  Unless given, ``train_data``/``train_target`` and
        ``test_data``/``test_target`` are looked for (and stacked), then pairs such as
        ``data``/``target`` and ``X``/``Y``.
    member : str, optional
        Which file of a zip archive.
    max_bytes : int
        The most bytes that a compressed file may unpack to.
    name : str, optional
        The data set's name; the file's unless given.

    Notes
    -----
    Labels are rows x labels, or labels x rows, as some authors have them: the side that is as
    long as the features have rows is taken for the rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, scipy.io
    >>> folder = tempfile.TemporaryDirectory()
    >>> mat = pathlib.Path(folder.name, "toy.mat")
    >>> scipy.io.savemat(mat, {"bags": np.ones((4, 3)), "tags": -np.ones((4, 2))})
    >>> read_mat(mat, variables=("bags", "tags"))
    Dataset 'toy': 4 rows, 3 features (dense), 2 labels, 0.000 labels a row
    >>> folder.cleanup()
    """
    wanted = None if variables is None else check_pairs(variables)
    contents = open_all(path, max_bytes=max_bytes, member=member)
    parts = [part for content in contents for part in _parts(content, wanted)]
    return concatenate(parts, name or joined_name(contents))


def _parts(content: Content, wanted: list[tuple[str, str]] | None) -> list[Dataset]:
    if not content.data:
        raise DataFormatError("the file is empty", content.path)
    if content.data[:8] == b"\x89HDF\r\n\x1a\n" or content.data[:19] == b"MATLAB 7.3 MAT-file":
        raise DataFormatError(
            "this is a MATLAB 7.3 file (HDF5), which is not read; save it again in MATLAB with "
            "save('file.mat', '-v7')",
            content.path,
        )
    try:
        found = numeric_variables(content.data, content.max_bytes)
    except MatlabError as error:
        raise DataFormatError(
            f"this is no MATLAB file, or it is damaged: {error}", content.path
        ) from error
    return [_part(found, pair, content) for pair in find_pairs(found, wanted, content.path)]


def _part(found: dict[str, Any], pair: tuple[str, str], content: Content) -> Dataset:
    try:
        return make_part(found[pair[0]], found[pair[1]], source=content.path)
    except (ValueError, TypeError) as error:
        raise DataFormatError(f"the variables {listed(pair)}: {error}", content.path) from error
