"""Reading rows for a model, with columns matched to its features by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from imcc._utils.errors import InvalidTypeError, given
from imcc.datasets._arff import parse_arff
from imcc.datasets._coding import Coding
from imcc.datasets._dataset import Dataset
from imcc.datasets._encode import encode_as_before, find_columns, label_columns
from imcc.datasets._errors import DataFormatError, listed, repeated
from imcc.datasets._files import Source, open_all
from imcc.datasets._formats import READERS, format_of
from imcc.datasets._svmlight import read_svmlight
from imcc.datasets._table import join_tables


def read_matching(
    path: Source | Sequence[Source],
    feature_names: Sequence[str],
    label_names: Sequence[str] = (),
    *,
    coding: Coding | None = None,
    with_labels: bool = False,
    ignore_extra: bool = False,
    **reading: Any,
) -> tuple[Any, np.ndarray | None]:
    r"""Read rows for a model, with columns matched to its features by name.

    Parameters
    ----------
    path : path or list of paths
        The file; the rows of several files are concatenated.
    feature_names : sequence of str
        Names of the features of the model.
    label_names : sequence of str, default=()
        Names of the labels of the model.
    coding : Coding or None, default=None
        Encoding of words, and index base of svmlight files, of the training data.
    with_labels : bool, default=False
        Whether to read the labels.  If False, columns with their names are ignored, and the file
        need not contain them.  Labels of the model that do not occur in an svmlight file are 0.
    ignore_extra : bool, default=False
        Whether to ignore columns that are neither features nor labels, instead of raising an error.
    **reading
        For tables: how to read them, as for :func:`imcc.tables.read_table`.

    Returns
    -------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features in the order of ``feature_names``.
    Y : ndarray of shape (n_samples, n_labels) or None
        Labels in the order of ``label_names``; None unless ``with_labels``.

    Raises
    ------
    DataFormatError
        If columns are missing or superfluous; the message names them.

    Warns
    -----
    DataWarning
        If a column contains words that the training data did not contain.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> table = pathlib.Path(folder.name, "new.csv")
    >>> _ = table.write_text("loud,wet,sings\n0.5,yes,1\n0.1,no,0\n")
    >>> coding = Coding({"wet": {"no": 0.0, "yes": 1.0}})
    >>> X, Y = read_matching(table, ["wet", "loud"], ["sings"], coding=coding, with_labels=True)
    >>> X.tolist(), Y.tolist()
    ([[1.0, 0.5], [0.0, 0.1]], [[1], [0]])
    >>> folder.cleanup()
    """
    contents = open_all(path, max_bytes=reading.get("max_bytes"), member=reading.get("member"))
    chosen = format_of(contents[0].name, contents[0].path)
    coding = coding or Coding()
    wanted: dict[str, Any] = {"with_labels": with_labels, "ignore_extra": ignore_extra}
    if chosen not in READERS:
        # Not at the top: that package imports this one.
        from imcc.tables._dataset import match_rows
        from imcc.tables._load import open_tables

        rows = open_tables(contents, **reading)
        return match_rows(rows, feature_names, label_names, coding, **wanted)
    if unknown := sorted(set(reading) - {"max_bytes", "member"}):
        raise InvalidTypeError(unknown[0], f"is not an option of the format {chosen!r}")
    if chosen == "arff":
        table = join_tables([parse_arff(content) for content in contents])
        places = match_columns(
            table.names, feature_names, label_names, coding, ignore_extra, table.path
        )
        X = encode_as_before(table, places, feature_names, coding)
        if not with_labels:
            return X, None
        labels = find_columns(table.names, label_names, "the model", table.path)
        return X, label_columns(table, labels)
    if chosen == "svmlight":
        dataset = read_svmlight(
            contents,
            n_features=len(feature_names),
            known_base=coding.index_base,
            labelled=with_labels,
        )
        # Features are matched by their position.
        dataset = replace(dataset, feature_names=tuple(feature_names))
        dataset = _with_absent_labels(dataset, label_names) if with_labels else dataset
    else:
        dataset = READERS[chosen](contents, labelled=with_labels)
    return match_dataset(dataset, feature_names, label_names, **wanted)


def _with_absent_labels(dataset: Dataset, label_names: Sequence[str]) -> Dataset:
    """Add the labels of a model that do not occur in svmlight files, where they are 0."""
    known = set(dataset.label_names)
    absent = [name for name in label_names if name not in known]
    if len(absent) == len(label_names):
        return dataset  # which cannot be matched
    Y = np.hstack([dataset.Y, np.zeros((dataset.n_rows, len(absent)), dataset.Y.dtype)])
    return replace(dataset, Y=Y, label_names=(*dataset.label_names, *absent))


def match_dataset(
    dataset: Dataset,
    feature_names: Sequence[str],
    label_names: Sequence[str] = (),
    *,
    with_labels: bool = False,
    ignore_extra: bool = False,
) -> tuple[Any, np.ndarray | None]:
    """Return the columns of a data set that a model needs; see :func:`read_matching`.

    >>> match_dataset(Dataset([[1.0, 2.0]], [[1]], ("a", "b")), ["b", "a"])[0].tolist()
    [[2.0, 1.0]]
    """
    path = dataset.source or dataset.name
    names = dataset.feature_names
    X = dataset.X[:, match_columns(names, feature_names, label_names, Coding(), ignore_extra, path)]
    if not with_labels:
        return X, None
    labels = find_columns(dataset.label_names, label_names, "the model", path)
    wanted = set(label_names)
    check_extra([name for name in dataset.label_names if name not in wanted], ignore_extra, path)
    return X, dataset.Y[:, labels]


def check_extra(extra: Sequence[str], ignore_extra: bool, path: str) -> None:
    """Raise an error for columns that a model does not know, unless they are ignored."""
    if extra and not ignore_extra:
        raise DataFormatError(
            f"{len(extra)} column(s) are unknown to the model: {listed(extra, 12)}; leave them "
            "out, or ignore them with " + given("ignore_extra", True),
            path,
        )


def match_columns(
    names: Sequence[str],
    feature_names: Sequence[str],
    label_names: Sequence[str],
    coding: Coding,
    ignore_extra: bool,
    path: str,
) -> list[int]:
    """Return the position of the column of each feature; several can be of the same column."""
    columns = [coding.indicators.get(name, (name, ""))[0] for name in feature_names]
    distinct = list(dict.fromkeys(columns)) if coding.indicators else columns
    known = {*label_names, *coding.left_out}
    rest = [i for i, name in enumerate(names) if name not in known]
    if [names[i] for i in rest] == list(distinct) and len(distinct) == len(columns):
        return rest  # the same columns in the same order, even if several have the same name
    there, needed = set(names), {*distinct, *known}
    if missing := [name for name in distinct if name not in there]:
        raise DataFormatError(
            f"{len(missing)} column(s) that the model needs are missing: {listed(missing)}; the "
            f"file has {listed(names)}",
            path,
        )
    check_extra([name for name in names if name not in needed], ignore_extra, path)
    if twice := [name for name in repeated(names) if name in needed] or repeated(distinct):
        raise DataFormatError(
            f"several columns or features have the same name ({listed(twice)}): the columns must "
            "be those of the training data, in the same order",
            path,
        )
    by_name = {name: i for i, name in enumerate(names)}
    return [by_name[name] for name in columns]
