"""Reading rows for a model, with columns matched to its features by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.cells import is_missing, truth
from imcc._utils.errors import InvalidTypeError, given, message_of
from imcc.datasets._arff import parse_arff
from imcc.datasets._coding import Coding
from imcc.datasets._csv import parse_csv
from imcc.datasets._dataset import LABEL_DTYPE, Dataset, concatenate
from imcc.datasets._encode import label_columns
from imcc.datasets._errors import DataFormatError, listed, repeated, warn_user
from imcc.datasets._files import MAX_CELLS, Content, Source, open_all, refuses_by_memory
from imcc.datasets._formats import check_options, format_to_read
from imcc.datasets._mat import mat_features
from imcc.datasets._npz import npz_features
from imcc.datasets._parquet import parse_parquet
from imcc.datasets._svmlight import indicators_of, parse_svmlight
from imcc.datasets._table import Attribute, Table, find_columns, join_tables


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
    table = _table(chosen.name, contents, options, coding)
    if table is not None:
        if table.values.shape[0] == 0:
            raise table.error("the file has no rows")
        X = _match_table(table, feature_names, label_names, coding, ignore_extra)
        if not with_labels:
            return X, None
        return X, label_columns(table, find_columns(table, label_names, "the model"))
    check_options(chosen, options)
    if chosen.name == "svmlight":
        return _match_svmlight(
            contents,
            feature_names,
            label_names,
            coding.index_base,
            with_labels=with_labels,
            ignore_extra=ignore_extra,
            **options,
        )
    if not with_labels:
        return _unlabelled(chosen.name, contents, feature_names, ignore_extra, options), None
    dataset = chosen.reader(contents, max_bytes=max_bytes, **options)
    return match_dataset(
        dataset, feature_names, label_names, with_labels=True, ignore_extra=ignore_extra
    )


def _match_svmlight(
    contents: list[Content],
    feature_names: Sequence[str],
    label_names: Sequence[str],
    known_base: int | None,
    *,
    with_labels: bool,
    ignore_extra: bool,
    n_features: int | None = None,
    index_base: str = "auto",
    encoding: str | None = None,
    name: str | None = None,  # noqa: ARG001 - not used here, but an option of the format
) -> tuple[Any, np.ndarray | None]:
    """Match svmlight files, which may contain only some of the labels, or none."""
    parsed = parse_svmlight(
        contents,
        len(feature_names) if n_features is None else n_features,
        index_base,
        known_base=known_base,
        encoding=encoding,
    )
    header = parsed.rows.header
    if not header.get("feature_names") and parsed.X.shape[1] == len(feature_names):
        X = parsed.X  # features without names are matched by position
    else:
        places = _places(parsed.feature_names, feature_names, parsed.path)
        known = {*feature_names, *label_names}
        _check_extra([n for n in parsed.feature_names if n not in known], ignore_extra, parsed.path)
        X = parsed.X[:, places]
    if not with_labels:
        return X, None
    numbers = np.unique(np.array(parsed.rows.labels, dtype=np.int64)).tolist()
    columns = _label_columns_of(numbers, header.get("label_names"), label_names, parsed.path)
    extra = [number for number, column in columns.items() if column is None]
    if extra and not ignore_extra:
        raise DataFormatError(
            f"{len(extra)} label(s) are unknown to the model: {listed(extra)}; its labels are "
            f"{listed(label_names)}. Remove them, or ignore them with "
            + given("ignore_extra", True),
            parsed.path,
        )
    Y = np.zeros((len(parsed.rows), len(label_names)), dtype=LABEL_DTYPE)
    if numbers:
        found = indicators_of(parsed.rows, numbers)
        for j, number in enumerate(numbers):
            if (column := columns[number]) is not None:
                Y[:, column] = found[:, j]
    return X, Y


def _label_columns_of(
    numbers: list[int], names: list[str] | None, label_names: Sequence[str], path: str
) -> dict[int, int | None]:
    """Return the column of each label number of an svmlight file; None if it is not a label."""
    places = {name: column for column, name in enumerate(label_names)}
    if names:
        if numbers and not 0 <= numbers[0] <= numbers[-1] < len(names):
            raise DataFormatError(f"a label number is beyond its {len(names)} names", path)
        return {number: places.get(names[number]) for number in numbers}
    # The names of read_svmlight: the number, or label0, label1, ... if the file declares sizes.
    found = {n: places.get(str(n), places.get(f"label{n}")) for n in numbers}
    if numbers and all(column is None for column in found.values()):
        raise DataFormatError(
            f"the labels of the file are numbers without names ({listed(numbers)}), but the labels "
            f"of the model are {listed(label_names)}: they cannot be matched",
            path,
        )
    return found


def _unlabelled(
    name: str,
    contents: list[Content],
    feature_names: Sequence[str],
    ignore_extra: bool,
    options: dict[str, Any],
) -> Any:
    """Return the features of .npz or .mat files, which need not have labels."""
    variables = options.get("variables")
    if name == "npz":
        matrices, names = npz_features(contents, variables)
    else:
        matrices, names = mat_features(contents, variables), ()
    path = ", ".join(content.path for content in contents)
    widths = {matrix.shape[1] for matrix in matrices}
    if len(widths) > 1:
        raise DataFormatError(
            f"the parts have different numbers of features: {sorted(widths)}", path
        )
    rows = [np.zeros((matrix.shape[0], 1), dtype=np.int8) for matrix in matrices]
    try:
        # The label is a placeholder, so that the checks of a data set can be used.
        parts = [Dataset(m, y, names, source=path) for m, y in zip(matrices, rows, strict=True)]
    except (ValueError, TypeError) as error:
        raise DataFormatError(message_of(error), path) from error
    dataset = concatenate(parts)
    return match_dataset(dataset, feature_names, ignore_extra=ignore_extra)[0]


def match_dataset(
    dataset: Dataset,
    feature_names: Sequence[str],
    label_names: Sequence[str] = (),
    *,
    with_labels: bool = False,
    ignore_extra: bool = False,
) -> tuple[Any, np.ndarray | None]:
    """Return the columns of a data set that a model needs.

    Parameters
    ----------
    dataset : Dataset
        The data.
    feature_names, label_names, with_labels, ignore_extra
        As for :func:`read_matching`.

    Returns
    -------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features in the order of ``feature_names``.
    Y : ndarray of shape (n_samples, n_labels) or None
        Labels in the order of ``label_names``; None unless ``with_labels``.

    Examples
    --------
    >>> match_dataset(Dataset([[1.0, 2.0]], [[1]], ("a", "b")), ["b", "a"])[0].tolist()
    [[2.0, 1.0]]
    """
    path = dataset.source or dataset.name
    places = _places(dataset.feature_names, feature_names, path)
    known = {*feature_names, *label_names}
    extra = [name for name in dataset.feature_names if name not in known]
    _check_extra(extra, ignore_extra, path)
    X = dataset.X[:, places]
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
    _check_extra([name for name in dataset.label_names if name not in wanted], ignore_extra, path)
    return X, dataset.Y[:, [there[name] for name in label_names]]


def _table(
    name: str, contents: list[Content], options: dict[str, Any], coding: Coding
) -> Table | None:
    """Return the table of a file with named columns; None for other formats."""
    if name in ("csv", "mulan", "meka", "parquet"):
        known = {"csv": ("delimiter", "header", "encoding"), "parquet": ()}.get(name, ("encoding",))
        # These are ignored: labels are selected by name, and words are encoded as in training.
        meant = ("labels", "label_prefix", "nominal")
        if unknown := sorted(set(options) - {*known, *meant}):
            raise InvalidTypeError(unknown[0], f"is not an option of the format {name!r}")
        taken = {key: value for key, value in options.items() if key in known}
        if name == "csv":
            # A value of the training data, such as "none", is a value here.
            words = {column: set(code) for column, code in coding.codes.items()}
            words |= _words_of_columns(coding)
            kept = {column: set(filter(is_missing, there)) for column, there in words.items()}
            return join_tables([parse_csv(content, **taken, kept=kept) for content in contents])
        if name == "parquet":
            return join_tables([parse_parquet(content)[0] for content in contents])
        return join_tables([parse_arff(content, **taken) for content in contents])
    return None


def _places(there: Sequence[str], wanted: Sequence[str], path: str) -> list[int]:
    """Return the positions of the wanted columns."""
    if list(there) == list(wanted):
        return list(range(len(wanted)))
    known, needed = set(there), set(wanted)
    if missing := [name for name in wanted if name not in known]:
        raise _missing(missing, there, path)
    if twice := [name for name in repeated(there) if name in needed]:
        raise DataFormatError(
            f"several columns have the same name, so they cannot be matched: {listed(twice)}",
            path,
        )
    if twice := repeated(wanted):
        raise DataFormatError(
            f"the model has several features of the same name ({listed(twice)}): the columns must "
            "be those of its training data, in the same order",
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
            f"{len(extra)} column(s) are unknown to the model: {listed(extra)}; remove them, or "
            "ignore them with " + given("ignore_extra", True),
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
    # A column can correspond to several features, one per word.
    distinct = list(dict.fromkeys(columns)) if coding.indicators else columns
    known = {*label_names, *coding.left_out}
    if list(distinct) != [name for name in table.names if name not in known]:
        there, needed = set(table.names), {*distinct, *known}
        if missing := [name for name in distinct if name not in there]:
            raise _missing(missing, table.names, table.path)
        extra = [name for name in table.names if name not in needed]
        _check_extra(extra, ignore_extra, table.path)
    rest = [i for i, name in enumerate(table.names) if name not in known]
    if [table.names[i] for i in rest] == list(distinct) and len(distinct) == len(columns):
        places = rest  # the same columns in the same order, whatever their names
    else:
        where = _places([*table.names], distinct, table.path)
        by_name = dict(zip(distinct, where, strict=True))
        places = [by_name[name] for name in columns]
    words = _words_of_columns(coding)
    for place in dict.fromkeys(places):
        if (name := table.names[place]) in words:
            _check_words(table, place, words[name])
    changed = {
        j: values
        for j, (name, place) in enumerate(zip(feature_names, places, strict=True))
        if (values := _recoded(table, place, name, coding)) is not None
    }
    if table.values.shape[0] * len(places) > MAX_CELLS and not sp.issparse(table.values):
        raise table.error(
            f"{table.values.shape[0]:,} rows of the {len(places):,} features of the model do not "
            "fit into memory; split the file"
        )
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
            f"the column {attribute.name!r} is {word!r} here, but the model expects {wants}", row
        )
    return values


def _meaning(word: str, code: Mapping[str, float] | None) -> float | None:
    """Return the code of a word in the training data, or None."""
    if code is None:
        try:
            return float(word)
        except ValueError:
            # Parquet files have booleans, which are numbers.
            return {"false": 0.0, "true": 1.0}.get(word.lower())
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
    """Return the codes of numbers in a column that had words in the training data."""
    values = table.column(place)
    out = np.full(len(values), np.nan)
    for value in np.unique(values[~np.isnan(values)]):
        meant = _meaning(f"{value:g}", code)
        if meant is None:
            raise table.error(
                f"the column {table.names[place]!r} is {value:g} here, but the model expects one "
                f"of {listed(code)}",
                int(np.argmax(values == value)),
            )
        out[values == value] = meant
    return out


def _words_of_columns(coding: Coding) -> dict[str, set[str]]:
    """Return the words of each column of words in the training data."""
    words: dict[str, set[str]] = {}
    for column, word in coding.indicators.values():
        words.setdefault(column, set()).add(word)
    return words


def _check_words(table: Table, place: int, known: set[str]) -> None:
    """Warn about new words, for which all indicators are 0; raise an error if none can match."""
    attribute = table.attributes[place]
    if attribute.kind != "numeric":
        new: list[Any] = [word for word in attribute.categories if word not in known]
    else:
        values = table.column(place)
        numbers = {meaning for word in known if (meaning := _meaning(word, None)) is not None}
        new = [f"{v:g}" for v in np.unique(values[~np.isnan(values)]).tolist() if v not in numbers]
        if new and not numbers:
            raise table.error(
                f"the column {attribute.name!r} contains numbers ({listed(new)}), but in the "
                f"training data of the model it contained words ({listed(sorted(known))})"
            )
    if new:
        warn_user(
            f"{table.path}: the column {attribute.name!r} has words that did not occur in the "
            f"training data: {listed(new)}; all features of the column are 0 there"
        )
