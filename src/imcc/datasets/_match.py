"""Reading rows for a model, with columns matched to its features by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.cells import truth
from imcc._utils.errors import InvalidTypeError, given
from imcc.datasets._arff import parse_arff
from imcc.datasets._coding import Coding
from imcc.datasets._dataset import Dataset, default_names
from imcc.datasets._encode import find_columns, label_columns
from imcc.datasets._errors import DataFormatError, listed, repeated, warn_user
from imcc.datasets._files import MAX_CELLS, Source, open_all, refuses_by_memory
from imcc.datasets._formats import checked_reader, format_to_read
from imcc.datasets._table import Table, join_tables


@refuses_by_memory
def read_matching(
    path: Source | Sequence[Source],
    feature_names: Sequence[str],
    label_names: Sequence[str] = (),
    *,
    coding: Coding | None = None,
    with_labels: bool = False,
    ignore_extra: bool = False,
    format: str | None = None,  # noqa: A002
    member: str | None = None,
    max_bytes: int | None = None,
    **options: Any,
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
    format, member, max_bytes, **options
        As for :func:`read`.

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
    contents = open_all(path, max_bytes=max_bytes, member=member)
    chosen = format_to_read(contents[0], format, options)
    coding = coding or Coding()
    wanted: dict[str, Any] = {"with_labels": with_labels, "ignore_extra": ignore_extra}
    if chosen.name in ("mulan", "meka") or chosen.reader is None:
        known = ("encoding",) if chosen.reader else ("delimiter", "header", "encoding")
        # These are ignored: labels are selected by name, and words are encoded as in training.
        meant = ("labels", "label_prefix", "nominal")
        if unknown := sorted(set(options) - {*known, *meant}):
            raise InvalidTypeError(unknown[0], f"is not an option of the format {chosen.name!r}")
        options = {name: value for name, value in options.items() if name in known}
    if chosen.reader is None:
        # Not at the top: that package imports this one.
        from imcc.tables._dataset import match_rows
        from imcc.tables._load import open_tables

        rows = open_tables(contents, **options)
        return match_rows(rows, feature_names, label_names, coding, **wanted)
    if chosen.name in ("mulan", "meka"):
        table = join_tables([parse_arff(content, **options) for content in contents])
        places = match_columns(
            table.names, feature_names, label_names, coding, ignore_extra, table.path
        )
        X = encode_as_before(table, places, feature_names, coding)
        if not with_labels:
            return X, None
        labels = find_columns(table.names, label_names, "the model", table.path)
        return X, label_columns(table, labels)
    reader = checked_reader(chosen, options)
    if chosen.name == "svmlight":
        options = {"n_features": len(feature_names), "known_base": coding.index_base, **options}
    dataset = reader(contents, labelled=with_labels, **options)
    if chosen.name == "svmlight":
        dataset = _with_names(dataset, feature_names, label_names if with_labels else ())
    return match_dataset(dataset, feature_names, label_names, **wanted)


def _with_names(
    dataset: Dataset, feature_names: Sequence[str], label_names: Sequence[str]
) -> Dataset:
    """Return the data of svmlight files with the names of a model where they have numbers only.

    Features are matched by position, and labels by number: ``3`` or ``label3``.  Labels that do not
    occur in the file are 0.
    """
    names, width, known = dataset.feature_names, len(feature_names), set(label_names)
    if dataset.n_features == width and names == default_names("x", width):
        names = tuple(feature_names)
    if not known:
        return Dataset(dataset.X, dataset.Y, names, source=dataset.source)
    labels = []
    for name in dataset.label_names:
        number = name.removeprefix("label")
        alike = [n for n in (name, number, f"label{number}") if n in known]
        labels.append(alike[0] if alike else name)
    if known.isdisjoint(labels):
        raise DataFormatError(
            f"the labels of the file are {listed(labels)}, but the labels of the model are "
            f"{listed(label_names)}: they cannot be matched",
            dataset.source,
        )
    absent = [name for name in label_names if name not in labels]
    Y = np.hstack([dataset.Y, np.zeros((dataset.n_rows, len(absent)), dataset.Y.dtype)])
    return Dataset(dataset.X, Y, names, (*labels, *absent), source=dataset.source)


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
    there = {name: j for j, name in enumerate(dataset.label_names)}
    if absent := [name for name in label_names if name not in there]:
        raise DataFormatError(
            f"{len(absent)} label(s) of the model are not in the data: {listed(absent)}; the "
            f"labels of the data are {listed(dataset.label_names)}",
            path,
        )
    wanted = set(label_names)
    check_extra([name for name in dataset.label_names if name not in wanted], ignore_extra, path)
    return X, dataset.Y[:, [there[name] for name in label_names]]


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
    if twice := [name for name in repeated(names) if name in needed]:
        raise DataFormatError(
            f"several columns have the same name, so they cannot be matched: {listed(twice)}", path
        )
    if twice := repeated(distinct):
        raise DataFormatError(
            f"the model has several features of the same name ({listed(twice)}): the columns must "
            "be those of its training data, in the same order",
            path,
        )
    by_name = {name: i for i, name in enumerate(names)}
    return [by_name[name] for name in columns]


def encode_as_before(
    table: Table, places: Sequence[int], feature_names: Sequence[str], coding: Coding
) -> Any:
    """Return the columns of features, with words encoded as in the training data."""
    if table.values.shape[0] * len(places) > MAX_CELLS and not sp.issparse(table.values):
        raise table.error(
            f"{table.values.shape[0]:,} rows of the {len(places):,} features of the model do not "
            "fit into memory; split the file"
        )
    _warn_of_new_words(table, coding)
    changed = {
        j: values
        for j, (name, place) in enumerate(zip(feature_names, places, strict=True))
        if (values := _recoded(table, place, name, coding)) is not None
    }
    X = table.values[:, places]
    if not changed:
        return X
    if not sp.issparse(X):
        for j, values in changed.items():
            X[:, j] = values
        return X
    columns_of = X.tocsc()
    parts = [
        sp.csc_array(changed[j][:, np.newaxis]) if j in changed else columns_of[:, [j]]
        for j in range(len(places))
    ]
    return sp.hstack(parts, format="csr")


def _recoded(table: Table, place: int, feature: str, coding: Coding) -> np.ndarray | None:
    """Return the values of a feature; None if they are those of the table."""
    attribute = table.attributes[place]
    code = coding.codes.get(feature)
    if attribute.kind == "numeric":
        if code is None and feature not in coding.indicators:
            return None
        raise table.error(
            f"the column {attribute.name!r} contains numbers, but in the training data of the "
            "model it contained words"
        )
    positions = table.column(place)
    there = ~np.isnan(positions)
    values = np.full(len(positions), np.nan)
    if feature in coding.indicators:
        word = coding.indicators[feature][1]
        meanings: list[float | None] = [float(known == word) for known in attribute.categories]
    else:
        meanings = [_meaning(word, code) for word in attribute.categories]
        if meanings == list(range(len(meanings))):
            return None
    numbers = np.array([np.nan if m is None else m for m in meanings] or [np.nan])
    values[there] = numbers[positions[there].astype(int)]
    wrong = there & np.isnan(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        word = attribute.categories[int(positions[row])]
        wants = "numbers" if code is None else f"one of {listed(code)}"
        raise table.error(
            f"the column {attribute.name!r} is {word!r} here, but the model expects {wants}", row
        )
    return values


def _meaning(word: str, code: Mapping[str, float] | None) -> float | None:
    """Return the code of a word in the training data, or None."""
    if code is None:
        try:
            return float(word)
        except ValueError:
            return truth(word)
    if word in code:
        return code[word]
    by_truth = {truth(known): value for known, value in code.items()}
    return None if None in by_truth else by_truth.get(truth(word))


def _warn_of_new_words(table: Table, coding: Coding) -> None:
    """Warn about words that the training data did not have, for which all indicators are 0."""
    known: dict[str, set[str]] = {}
    for column, word in coding.indicators.values():
        known.setdefault(column, set()).add(word)
    for attribute in table.attributes:
        words = known.get(attribute.name)
        if words and (new := [word for word in attribute.categories if word not in words]):
            warn_user(
                f"{table.path}: the column {attribute.name!r} has words that did not occur in the "
                f"training data: {listed(new)}; all features of the column are 0 there"
            )
