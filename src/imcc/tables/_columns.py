"""Columns of a table as Arrow arrays.

Tables of pandas, polars, Arrow or from text files are converted to a ``pyarrow.Table``.  Text is
trimmed, and common words for a missing value count as missing.
"""

from __future__ import annotations

import ctypes
import difflib
import itertools
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from imcc._utils.cells import MISSING
from imcc._utils.errors import ImccError, InvalidArgumentError, given
from imcc._utils.optional import require
from imcc.datasets._errors import DataFormatError, DataWarning, listed, repeated

# Of the years that dates of Python may have, counted from 1970 on.
_FIRST_SECOND = int(np.datetime64("0001-01-01T00:00:00", "s").astype(np.int64))
_LAST_SECOND = int(np.datetime64("9999-12-31T23:59:59", "s").astype(np.int64))


class TableError(ImccError, ValueError):
    """A table is invalid, or does not match its schema.

    Parameters
    ----------
    problem : str
        Description of the problem.
    row : int, default=None
        The first invalid row, counted from 0.

    Examples
    --------
    >>> print(TableError("column 'age' has 'abc', which is no number", row=7))
    row 7: column 'age' has 'abc', which is no number
    """

    def __init__(self, problem: str, row: int | None = None) -> None:
        self.problem, self.row = problem, row
        super().__init__(problem if row is None else f"row {row}: " + problem)

    def renumbered(self, number: Callable[[int], int]) -> TableError:
        """Return the error with the number of its row in another table."""
        return TableError(self.problem, None if self.row is None else number(self.row))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.row)


@contextmanager
def damage_reported(path: str, what: str) -> Iterator[None]:
    """Raise a DataFormatError instead of what other packages raise for damaged files.

    Parameters
    ----------
    path : str
        The file.
    what : str
        What it should be.
    """
    try:
        yield
    except (DataFormatError, ImportError):
        raise
    except Exception as error:  # of many kinds
        # The message of a LookupError is but the key.
        why = "something is missing" if isinstance(error, LookupError) else error
        raise DataFormatError(
            f"this is not {what}, or it is damaged or incomplete ({why})", path
        ) from error


def arrow() -> Any:
    """Return pyarrow; an error explains how to install it."""
    # Looked up many times per table, and each import takes a microsecond.
    return sys.modules.get("pyarrow") or require("pyarrow", "Reading tables")


def compute() -> Any:
    """Return pyarrow.compute; an error explains how to install pyarrow."""
    return sys.modules.get("pyarrow.compute") or require("pyarrow.compute", "Reading tables")


def release_memory() -> None:
    """Return unused memory of the allocators to the system."""
    arrow().default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of the GNU C library
        if trim is not None:
            trim(0)


def as_table(frame: Any) -> Any:
    """Return a data frame as a ``pyarrow.Table``.

    Parameters
    ----------
    frame : pandas or polars data frame, pyarrow table, mapping of names to columns, or records
        Records are a list with a mapping of names to values for each row.
    """
    pa = arrow()
    if isinstance(frame, pa.Table):
        table = frame
    elif isinstance(frame, Mapping):
        table = _from_columns(frame)
    elif isinstance(frame, (list, tuple)) and all(isinstance(row, Mapping) for row in frame):
        table = _from_columns(_columns_of_records(frame))
    elif hasattr(frame, "columns"):
        _refuse_repeated(str(name) for name in frame.columns)
        if hasattr(frame, "reset_index"):  # pandas: the index is no column
            frame = frame.reset_index(drop=True)
        table = _converted(pa.table, frame)
    else:
        raise InvalidArgumentError(
            "X",
            "must be a table with named columns (a pandas or polars data frame, a pyarrow table, "
            f"a dict of columns or a list of records), got {type(frame).__name__}",
        )
    _refuse_repeated(table.column_names)
    for j, kind in enumerate(table.schema.types):
        if _is_view(kind):
            table = table.set_column(j, table.field(j).name, without_views(table.column(j)))
    return table


def _refuse_repeated(names: Iterable[str]) -> None:
    if twice := repeated(names):
        raise InvalidArgumentError("X", f"has several columns of the same name: {listed(twice)}")


def _columns_of_records(records: Sequence[Mapping[Any, Any]]) -> dict[Any, list[Any]]:
    """Return the columns of records, which must all have the same names."""
    names = records[0].keys() if records else ()
    for number, record in enumerate(records):
        if record.keys() != names:
            odd = listed(sorted(map(str, record.keys() ^ names)))
            raise InvalidArgumentError(
                "X",
                f"must have records with the same names: row {number} and row 0 differ in {odd}; "
                "pass None for a missing value",
            )
    return {name: [record[name] for record in records] for name in names}


def _from_columns(columns: Mapping[Any, Any]) -> Any:
    pa = arrow()
    arrays = {}
    for name, values in columns.items():
        known = isinstance(values, (pa.Array, pa.ChunkedArray))
        arrays[str(name)] = values if known else _converted(pa.array, values, repr(str(name)))
    counts = {name: len(values) for name, values in arrays.items()}
    if len(set(counts.values())) > 1:
        raise InvalidArgumentError("X", f"has columns of different lengths: {counts}")
    return pa.table(arrays)


def _converted(convert: Callable[[Any], Any], values: Any, name: str = "") -> Any:
    """Convert a column or a data frame with pyarrow; an error for values that it cannot convert."""
    try:
        return convert(values)
    except (arrow().ArrowException, ValueError, TypeError, OverflowError) as error:
        said = ", ".join(str(part) for part in error.args)
        raise InvalidArgumentError(
            "X",
            f"has a column {name} whose values are of different types, or of an unknown one: "
            f"{said}{_first_of_other_type(values)}",
        ) from error


def _first_of_other_type(values: Any) -> str:
    """Return which row of a list is the first with another type than those before, in words."""
    first = ""
    for row, value in enumerate(values if isinstance(values, list) else ()):
        if value is None:
            continue
        kind = "number" if isinstance(value, (int, float)) else type(value).__name__
        if first and kind != first:
            return f" (row {row} has {value!r})"
        first = kind
    return ""


def column_names(cells: Iterable[str], path: str) -> list[str]:
    """Return the names of the columns of a file, with ``column0`` and so on for empty cells."""
    names = [cell.strip() or f"column{i}" for i, cell in enumerate(cells)]
    twice = repeated(names)
    if not twice:
        return names
    taken, seen, renamed = set(names), set(), {}
    numbers = {name: itertools.count(2) for name in twice}
    for i, name in enumerate(names):
        if name in seen:
            others = (f"{name}_{number}" for number in numbers[name])
            renamed[i] = names[i] = next(other for other in others if other not in taken)
        seen.add(name)
    shown = ", ".join(f"column {i + 1} is now {other!r}" for i, other in [*renamed.items()][:5])
    warnings.warn(
        DataWarning(
            f"{path}: several columns are called {listed(twice)}: {shown}"
            f"{', ...' if len(renamed) > 5 else ''}; if one repeats another, leave it out"
        ),
        stacklevel=2,
    )
    return names


def check_column(option: str, name: str, names: Sequence[str]) -> None:
    """Raise an error for an argument that names a column that is not there."""
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)
        hint = f"; is it {near[0]!r}?" if near else f"; the columns are {listed(names, 12)}"
        raise InvalidArgumentError(option, f"names {name!r}, which is no column{hint}")


def is_text(values: Any) -> bool:
    """Return whether a column has text."""
    kind = values.type
    return _is_text_type(kind.value_type if arrow().types.is_dictionary(kind) else kind)


def _is_text_type(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or _is_view(kind))


def _is_view(kind: Any) -> bool:
    return bool(getattr(arrow().types, "is_string_view", lambda _: False)(kind))


def is_plain(values: Any, *, dates: bool = True) -> bool:
    """Return whether :func:`plain_column` takes the type of a column."""
    types, kind = arrow().types, values.type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_date(kind) or types.is_timestamp(kind):
        return dates
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return bool(number or types.is_boolean(kind) or types.is_null(kind) or _is_text_type(kind))


def _checked_dates(name: str, values: Any) -> Any:
    """Return dates, in UTC if they have a time zone; an error for years that Python has not."""
    pa, pc = arrow(), compute()
    if has_zone(values):
        values = pc.cast(values, pa.timestamp(values.type.unit, "UTC"))
    seconds = pc.cast(pc.cast(values, pa.timestamp("s"), safe=False), pa.int64())
    wrong = pc.or_(pc.less(seconds, _FIRST_SECOND), pc.greater(seconds, _LAST_SECOND))
    if pc.any(wrong).as_py():
        row = pc.index(wrong, True).as_py()
        raise TableError(
            f"column {name!r} has a date that is not in the years 1 to 9999: correct it, or leave "
            "the column out with " + given("drop", [name]),
            row,
        )
    return values


def plain_column(
    name: str, values: Any, missing_words: Collection[str] = MISSING, *, dates: bool = True
) -> Any:
    """Return a column of any type of Arrow as null, booleans, numbers, dates or text.

    A column without values is null.  NaN is a missing number, dates with a time zone are in UTC,
    and text is trimmed.  Another type is an error.

    Parameters
    ----------
    name : str
        Name of the column, for messages.
    values : pyarrow array
        The column.
    missing_words : collection of str
        Words for a missing value, in lower case.
    dates : bool, default=True
        Whether it may have dates.
    """
    pa, pc = arrow(), compute()
    types = pa.types
    missing = pa.chunked_array([pa.nulls(len(values))])
    if values.null_count == len(values):
        return missing
    if not is_plain(values, dates=dates):
        raise TableError(
            f"column {name!r} has the type {values.type}, and not numbers, text, yes/no"
            + (" or dates" if dates else "")
            + ": convert it, or leave it out with "
            + given("drop", [name])
            + "; a column of lists can be that of the tags"
        )
    if is_text(values):
        text = pc.utf8_trim_whitespace(pc.cast(without_views(values), pa.large_string()))
        words = pa.array(sorted(missing_words), pa.large_string())
        spelled = pc.fill_null(pc.is_in(pc.utf8_lower(text), value_set=words), False)
        return pc.if_else(spelled, pa.scalar(None, pa.large_string()), text)
    if types.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    kind = values.type
    if types.is_date(kind) or types.is_timestamp(kind):
        values = _checked_dates(name, values)
    elif types.is_decimal(kind) and kind.bit_width < 128:  # which lack some of Arrow's functions
        values = pc.cast(values, pa.decimal128(kind.precision, kind.scale))
    elif types.is_floating(kind):
        # Data frames represent missing numbers as NaN.
        values = pc.if_else(pc.is_nan(values), None, values)
    return missing if values.null_count == len(values) else values


def without_views(values: Any) -> Any:
    """Return text without the views of polars, which lack some of Arrow's functions."""
    pa, kind = arrow(), values.type
    if _is_view(kind):
        return compute().cast(values, pa.large_string())
    if not (pa.types.is_dictionary(kind) and _is_view(kind.value_type)):
        return values
    return pa.chunked_array(
        pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast(pa.large_string()))
        for part in values.chunks
    )


def to_python(values: Any) -> list[Any]:
    """Return the values of a column as objects of Python; an error if it has no such objects."""
    try:
        return values.to_pylist()
    except (OverflowError, ValueError, arrow().ArrowException) as error:
        raise TableError(
            f"values of the type {values.type} cannot be represented in Python: {error}"
        ) from error


def has_zone(values: Any) -> bool:
    """Return whether a column has timestamps with a time zone."""
    return getattr(values.type, "tz", None) is not None
