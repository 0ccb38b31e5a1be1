"""Rows for a model that is there already: the columns of a file matched to its features by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc.datasets._arff import parse_arff
from imcc.datasets._coding import Coding
from imcc.datasets._csv import parse_csv
from imcc.datasets._dataset import Dataset
from imcc.datasets._encode import label_columns, truth
from imcc.datasets._errors import DataFormatError, listed, repeated, warn_user
from imcc.datasets._files import MAX_BYTES, Content, Source, open_all
from imcc.datasets._formats import FORMATS, format_to_read
from imcc.datasets._parquet import parse_parquet
from imcc.datasets._table import Attribute, Table, find_columns, join_tables


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
    max_bytes: int = MAX_BYTES,
    **options: Any,
) -> tuple[Any, np.ndarray | None]:
    r"""Read rows whose columns have the names of a model's features, in any order.

    Parameters
    ----------
    path : path or list of paths
        The file; the rows of several are joined.
    feature_names, label_names : sequence of str
        What the model calls its features and labels.
    coding : Coding, optional
        How words become numbers; that of the training data.
    with_labels : bool
        Whether the labels are read as well; if not, columns with their names are passed over.
    ignore_extra : bool
        Whether columns that are neither features nor labels are passed over, or are an error.
    format, member, max_bytes, **options
        As for :func:`read`.

    Returns
    -------
    X : ndarray or csr_array of shape (n_rows, n_features)
    Y : ndarray of shape (n_rows, n_labels) or None

    Raises
    ------
    DataFormatError
        If features are missing or there are others; the message names them.

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
    if chosen.name == "svmlight":
        options.setdefault("n_features", len(feature_names))
    table = _table(chosen.name, contents, options)
    if table is None:
        dataset = FORMATS[chosen.name].reader(contents, max_bytes=max_bytes, **options)
        return match_dataset(
            dataset,
            feature_names,
            label_names,
            with_labels=with_labels,
            ignore_extra=ignore_extra,
        )
    if table.values.shape[0] == 0:
        raise table.error("the file has no rows")
    X = _match_table(table, feature_names, label_names, coding or Coding(), ignore_extra)
    if not with_labels:
        return X, None
    return X, label_columns(table, find_columns(table, label_names, "the model"))


def match_dataset(
    dataset: Dataset,
    feature_names: Sequence[str],
    label_names: Sequence[str] = (),
    *,
    with_labels: bool = False,
    ignore_extra: bool = False,
) -> tuple[Any, np.ndarray | None]:
    """Return the columns of a data set that a model wants; see :func:`read_matching`.

    Examples
    --------
    >>> match_dataset(Dataset([[1.0, 2.0]], [[1]], ("a", "b")), ["b", "a"])[0].tolist()
    [[2.0, 1.0]]
    """
    path = dataset.source or dataset.name
    places = _places(dataset.feature_names, feature_names, path)
    extra = [n for n in dataset.feature_names if n not in set(feature_names) | set(label_names)]
    _check_extra(extra, ignore_extra, path)
    X = dataset.X[:, places]
    if not with_labels:
        return X, None
    there = {name: j for j, name in enumerate(dataset.label_names)}
    if absent := [name for name in label_names if name not in there]:
        raise DataFormatError(
            f"{len(absent)} of the model's labels are not in the data: {listed(absent)}; its "
            f"labels are {listed(dataset.label_names)}",
            path,
        )
    return X, dataset.Y[:, [there[name] for name in label_names]]


def _table(name: str, contents: list[Content], options: dict[str, Any]) -> Table | None:
    """Return the columns of a file that has named ones; None for other formats."""
    if name in ("csv", "mulan", "meka", "parquet"):
        known = {"csv": ("delimiter", "header", "encoding"), "parquet": ()}.get(name, ("encoding",))
        # Which columns are labels is known by their names, and words have the coding of training.
        meant = ("labels", "label_prefix", "nominal")
        if unknown := sorted(set(options) - {*known, *meant}):
            raise TypeError(f"the format {name!r} does not take {', '.join(unknown)}")
        given = {key: value for key, value in options.items() if key in known}
        if name == "csv":
            return join_tables([parse_csv(content, **given) for content in contents])
        if name == "parquet":
            return join_tables([parse_parquet(content)[0] for content in contents])
        return join_tables([parse_arff(content, **given) for content in contents])
    return None


def _places(there: Sequence[str], wanted: Sequence[str], path: str) -> list[int]:
    """Return the positions of the wanted columns."""
    if list(there) == list(wanted):
        return list(range(len(wanted)))
    if missing := [name for name in wanted if name not in set(there)]:
        raise _missing(missing, there, path)
    if twice := [name for name in repeated(there) if name in set(wanted)]:
        raise DataFormatError(
            f"several columns have the same name, and it is not clear which is meant: "
            f"{listed(twice)}",
            path,
        )
    if twice := repeated(wanted):
        raise DataFormatError(
            f"the model has several features of the same name ({listed(twice)}): the columns must "
            "be those of its training data, in their order",
            path,
        )
    places = {name: i for i, name in enumerate(there)}
    return [places[name] for name in wanted]


def _missing(missing: Sequence[str], there: Sequence[str], path: str) -> DataFormatError:
    return DataFormatError(
        f"{len(missing)} column(s) that the model needs are missing: {listed(missing)}; the file "
        f"has {listed(there)}",
        path,
    )


def _check_extra(extra: Sequence[str], ignore_extra: bool, path: str) -> None:
    if extra and not ignore_extra:
        raise DataFormatError(
            f"{len(extra)} column(s) are unknown to the model: {listed(extra)}; leave them out, or "
            "pass over them with ignore_extra=True",
            path,
        )


def _match_table(
    table: Table,
    feature_names: Sequence[str],
    label_names: Sequence[str],
    coding: Coding,
    ignore_extra: bool,
) -> Any:
    columns = [coding.indicators.get(name, (name, ""))[0] for name in feature_names]
    # A column may stand behind several features, one for each of its words.
    distinct = list(dict.fromkeys(columns)) if coding.indicators else columns
    known = {*label_names, *coding.left_out}
    if list(distinct) != [name for name in table.names if name not in known]:
        if missing := [name for name in distinct if name not in set(table.names)]:
            raise _missing(missing, table.names, table.path)
        extra = [name for name in table.names if name not in set(distinct) | known]
        _check_extra(extra, ignore_extra, table.path)
    rest = [i for i, name in enumerate(table.names) if name not in known]
    if [table.names[i] for i in rest] == list(distinct) and len(distinct) == len(columns):
        places = rest  # the same columns in the same order, whatever their names
    else:
        where = _places([*table.names], distinct, table.path)
        by_name = dict(zip(distinct, where, strict=True))
        places = [by_name[name] for name in columns]
    changed = {
        j: values
        for j, (name, place) in enumerate(zip(feature_names, places, strict=True))
        if (values := _recoded(table, place, name, coding)) is not None
    }
    _warn_of_new_words(table, coding)
    X = table.values[:, places]
    if not changed:
        return X
    if sp.issparse(X):
        X = sp.lil_array(X)
    for j, values in changed.items():
        X[:, [j]] = values[:, np.newaxis]
    return sp.csr_array(X) if sp.issparse(X) else X


def _recoded(table: Table, place: int, feature: str, coding: Coding) -> np.ndarray | None:
    """Return a feature's values; None if they are as they stand in the table."""
    attribute = table.attributes[place]
    if feature in coding.indicators:
        return _indicator(table.column(place), attribute, coding.indicators[feature][1])
    code = coding.codes.get(feature)
    if attribute.kind == "numeric":
        return None if code is None else _by_number(table, place, code)
    meanings = [_meaning(word, code) for word in attribute.categories]
    if meanings == list(range(len(meanings))):
        return None
    positions = table.column(place)
    there = ~np.isnan(positions)
    values = np.full(len(positions), np.nan)
    found = np.array([np.nan if m is None else m for m in meanings] or [np.nan])
    values[there] = found[positions[there].astype(int)]
    wrong = there & np.isnan(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        word = attribute.categories[int(positions[row])]
        wants = "numbers" if code is None else f"one of {listed(code)}"
        raise table.error(
            f"the column {attribute.name!r} is {word!r} here, and the model wants {wants}", row
        )
    return values


def _meaning(word: str, code: Mapping[str, float] | None) -> float | None:
    """Return the number that a word stood for in training, if any."""
    if code is None:
        try:
            return float(word)
        except ValueError:
            return None
    if word in code:
        return code[word]
    by_truth = {truth(known): value for known, value in code.items()}
    return None if None in by_truth else by_truth.get(truth(word))


def _indicator(values: np.ndarray, attribute: Attribute, word: str) -> np.ndarray:
    if attribute.kind == "numeric":  # a file whose words all happen to be numbers
        meant = _meaning(word, None)
        on = values == meant if meant is not None else np.zeros(len(values), dtype=bool)
    else:
        place = attribute.categories.index(word) if word in attribute.categories else -1
        on = values == place
    return np.where(np.isnan(values), np.nan, on.astype(float))


def _by_number(table: Table, place: int, code: Mapping[str, float]) -> np.ndarray:
    """Return numbers where the training data had words: 1 for yes, 3 for "3"."""
    values = table.column(place)
    out = np.full(len(values), np.nan)
    for value in np.unique(values[~np.isnan(values)]):
        meant = _meaning(f"{value:g}", code)
        if meant is None:
            raise table.error(
                f"the column {table.names[place]!r} is {value:g} here, and the model wants one of "
                f"{listed(code)}",
                int(np.argmax(values == value)),
            )
        out[values == value] = meant
    return out


def _warn_of_new_words(table: Table, coding: Coding) -> None:
    known: dict[str, set[str]] = {}
    for column, word in coding.indicators.values():
        known.setdefault(column, set()).add(word)
    for attribute in table.attributes:
        if attribute.name in known and attribute.kind != "numeric":
            new = [word for word in attribute.categories if word not in known[attribute.name]]
            if new:
                warn_user(
                    f"{table.path}: the column {attribute.name!r} has words that the training "
                    f"data did not have: {listed(new)}; all of its features are 0 there"
                )
