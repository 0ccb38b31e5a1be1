"""Reading rows for a model, with columns matched to its features by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.cells import truth
from imcc._utils.errors import InvalidTypeError, given, message_of
from imcc.datasets._arff import parse_arff
from imcc.datasets._coding import Coding
from imcc.datasets._dataset import LABEL_DTYPE, Dataset, concatenate
from imcc.datasets._encode import find_columns, label_columns
from imcc.datasets._errors import DataFormatError, listed, repeated, warn_user
from imcc.datasets._files import MAX_CELLS, Content, Source, open_all, refuses_by_memory
from imcc.datasets._formats import checked_reader, format_to_read
from imcc.datasets._mat import mat_features
from imcc.datasets._npz import npz_features
from imcc.datasets._svmlight import indicators_of, parse_svmlight
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
        from imcc.tables._dataset import match_table

        return match_table(contents, feature_names, label_names, coding, **wanted, **options)
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
        return _match_svmlight(
            contents, feature_names, label_names, coding.index_base, **wanted, **options
        )
    if not with_labels:
        return _unlabelled(chosen.name, contents, feature_names, ignore_extra, options), None
    return match_dataset(reader(contents, **options), feature_names, label_names, **wanted)


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
    """Return the columns of a data set that a model needs; see :func:`read_matching`.

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
    if [names[i] for i in rest] == distinct and len(distinct) == len(columns):
        return rest  # the same columns in the same order, even if several have the same name
    there, needed = set(names), {*distinct, *known}
    if missing := [name for name in distinct if name not in there]:
        raise _missing(missing, names, path)
    _check_extra([name for name in names if name not in needed], ignore_extra, path)
    by_name = dict(zip(distinct, _places(names, distinct, path), strict=True))
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
