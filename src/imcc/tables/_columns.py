"""Columns of a table as Arrow arrays: detection of types and conversion to numbers.

Tables of pandas, polars, Arrow or from text files are converted to a ``pyarrow.Table``.  Text is
trimmed, and common words for a missing value count as missing.
"""

from __future__ import annotations

import ctypes
import difflib
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from imcc._utils.cells import MISSING, label_values, truth
from imcc._utils.errors import ImccError, InvalidArgumentError, given
from imcc._utils.optional import require
from imcc.datasets._errors import DataWarning, listed, repeated

# A finite decimal number.  Words such as "inf" and hexadecimal numbers are not numbers in a table.
NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"

# The same with a decimal comma: 1,5; and with points between thousands: 1.234,5.
COMMA_NUMBER = r"^[+-]?\d+(,\d+)?$"
POINTS_NUMBER = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?$"

# Commas between thousands, and a decimal point: 1,234 or 1,234.5.  The second pattern matches those
# in which no comma can be a decimal comma: there are several, or there is a point as well.
THOUSANDS_NUMBER = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$"
_SURELY_THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(,\d{3}|\.\d*)$"

# A number with a percent sign, also after a space that does not break: 12 %, 12.5% or 12,5 %.
_PERCENT_SIGN = r"[\s\x{00a0}\x{202f}]*%"
_PERCENTAGE = rf"^([-+.,\deE]+){_PERCENT_SIGN}$"
# Signs of amounts, before or after the number.
_CURRENCIES = ("€", "$", "£", "¥", "EUR", "USD", "GBP", "CHF")

#: With at least this fraction of numbers, the other values of a column are an error.
MOSTLY = 0.8

#: Name of the format of dates as in 2021-05-31, up to 2021-05-31T14:30:05.25+02:00.
ISO = "ISO 8601"
_ISO_DATE = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
#: Date formats that are detected; day/month and month/day only if just one of them fits all values.
DATE_FORMATS = (
    ISO,
    *(
        day + time
        for day in ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")
        for time in ("", " %H:%M", " %H:%M:%S")
    ),
)
#: What all of these look like, also with a year of two digits.
DATE_SHAPE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T]\d.*)?$"


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
    taken, seen, renamed = set(names), dict.fromkeys(names, 0), {}
    for i, name in enumerate(names):
        seen[name] += 1
        if seen[name] == 1:
            continue
        while (other := f"{name}_{seen[name]}") in taken:
            seen[name] += 1
        taken.add(other)
        names[i] = renamed[f"column {i + 1}"] = other
    shown = ", ".join(f"{place} is now {other!r}" for place, other in [*renamed.items()][:5])
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
    pa, kind = arrow(), values.type
    types = pa.types
    while types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        kind = kind.value_type
    if isinstance(kind, pa.BaseExtensionType):
        # JSON is text, but a period that is stored as a number is no number.
        return _is_text_type(kind.storage_type)
    if types.is_date(kind) or types.is_timestamp(kind):
        return dates
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return bool(number or types.is_boolean(kind) or types.is_null(kind) or _is_text_type(kind))


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
    types, given_type = pa.types, values.type
    missing = pa.chunked_array([pa.nulls(len(values))])
    if types.is_run_end_encoded(given_type):
        values = pc.run_end_decode(values)
    if values.null_count == len(values):
        return missing
    if not is_plain(values, dates=dates):
        raise TableError(
            f"column {name!r} has the type {given_type}, and not numbers, text, yes/no"
            + (" or dates" if dates else "")
            + ": convert it, or leave it out with "
            + given("drop", [name])
            + "; a column of lists can be that of the tags"
        )
    if isinstance(values.type, pa.BaseExtensionType):
        values = pc.cast(values, values.type.storage_type)
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


def _checked_dates(name: str, values: Any) -> Any:
    """Return dates, in UTC if they have a time zone; an error for years that Python has not."""
    pa, pc = arrow(), compute()
    if getattr(values.type, "tz", None) is not None:
        values = pc.cast(values, pa.timestamp(values.type.unit, "UTC"))
    seconds = pc.cast(pc.cast(values, pa.timestamp("s"), safe=False), pa.int64())
    first, last = (
        np.datetime64(time, "s").astype(np.int64).item()
        for time in ("0001-01-01T00:00:00", "9999-12-31T23:59:59")
    )
    wrong = pc.or_(pc.less(seconds, first), pc.greater(seconds, last))
    if pc.any(wrong).as_py():
        row = pc.index(wrong, True).as_py()
        raise TableError(
            f"column {name!r} has a date that is not in the years 1 to 9999: correct it, or leave "
            "the column out with " + given("drop", [name]),
            row,
        )
    return values


def to_python(values: Any) -> list[Any]:
    """Return the values of a column as objects of Python; an error if it has no such objects."""
    try:
        return values.to_pylist()
    except (OverflowError, ValueError, arrow().ArrowException) as error:
        raise TableError(
            f"values of the type {values.type} cannot be represented in Python: {error}"
        ) from error


def looks_numeric(text: Any) -> Any:
    """Return which cells of a clean column of text are numbers (null if missing)."""
    return compute().match_substring_regex(text, NUMBER)


def _counted(text: Any, pattern: str) -> int:
    """Return how many cells match a pattern."""
    pc = compute()
    return pc.sum(pc.match_substring_regex(text, pattern)).as_py() or 0


def _amount(currency: str) -> str:
    """Return the pattern of amounts in a currency; its groups are those of a number."""
    sign, space = re.escape(currency), r"[\s\x{00a0}\x{202f}]*"
    return rf"^(?:([-+]?){space}{sign}{space}([-+]?[.,\d]+)|([-+]?[.,\d]+){space}{sign})$"


def currency_of(text: Any) -> str:
    """Return the sign of the currency that most cells of a clean column of text have, or ""."""
    least = MOSTLY * (len(text) - text.null_count)
    return next((c for c in _CURRENCIES if 0 < least <= _counted(text, _amount(c))), "")


def number_form(name: str, text: Any, stated: bool = False) -> tuple[str, bool]:
    """Return how the numbers of a clean column of text are written.

    At least 80 % of the cells must be such numbers.

    Parameters
    ----------
    name : str
        Name of the column, for messages.
    text : pyarrow array of text
        The column.
    stated : bool, default=False
        Whether it is known that the column has numbers.

    Returns
    -------
    decimal : str
        "," (1,5) or ".," (1.234,5) if some cells have a decimal comma.  ",." (1,234.5) if some
        cells have commas that can only be thousands separators: several, or with a point; or, if
        ``stated``, if not all numbers can be read with decimal commas.  Otherwise ".".
    percent : bool
        Whether the numbers have percent signs: all of them, or most if ``stated``.
    """
    pc = compute()
    present = len(text) - text.null_count
    n_signs = _counted(text, _PERCENTAGE)
    percent = n_signs > 0 and n_signs >= (MOSTLY if stated else 1.0) * present
    text = with_points(text, ".", percent)
    groups = pc.match_substring_regex(text, THOUSANDS_NUMBER)
    sure = _counted(text, _SURELY_THOUSANDS) > 0
    if stated and not sure and pc.any(groups).as_py():
        sure = not pc.all(pc.match_substring_regex(text, POINTS_NUMBER)).as_py()
    if sure and _counted(text, f"{THOUSANDS_NUMBER}|{NUMBER}") >= MOSTLY * present:
        return ",.", percent
    for decimal, pattern in ((",", COMMA_NUMBER), (".,", POINTS_NUMBER)):
        fits = pc.match_substring_regex(text, pattern)
        commas = text.filter(pc.and_(fits, pc.match_substring(text, ",")))
        if len(commas) and (pc.sum(fits).as_py() or 0) >= MOSTLY * present:
            if decimal == ",":
                _refuse_thousands(name, text)
            return decimal, percent
    return ".", percent


def _refuse_thousands(name: str, text: Any) -> None:
    """Raise an error if all commas of a clean column may be thousands separators, as in 1,234."""
    pc = compute()
    commas = text.filter(pc.match_substring(text, ","))
    if pc.all(pc.match_substring_regex(commas, r"^[+-]?[1-9]\d{0,2},\d{3}$")).as_py():
        raise TableError(
            f"column {name!r} holds numbers such as {commas[0].as_py()!r}, in which the "
            "comma may stand for decimals or between thousands: write them with a decimal "
            "point, or say that it is no number with " + given("kinds", {name: "category"})
        )


def with_points(text: Any, decimal: str, percent: bool = False, currency: str = "") -> Any:
    """Return a clean column of text with plain decimal points in the cells that are such numbers.

    With ``percent``, such numbers have a percent sign, which is removed: 12 % becomes 12.  A sign
    of the ``currency`` is removed, too.
    """
    pc = compute()
    if currency:
        text = pc.replace_substring_regex(text, _amount(currency), r"\1\2\3")
    if percent:
        # A cell without the sign is not a number: 0.12 may be 12 %.
        text = pc.if_else(
            pc.match_substring_regex(text, _PERCENTAGE),
            pc.replace_substring_regex(text, _PERCENTAGE, r"\1"),
            pc.replace_substring_regex(text, "^", "without % "),
        )
    if decimal == ".":
        return text
    if decimal == ",.":
        groups = pc.match_substring_regex(text, THOUSANDS_NUMBER)
        return pc.if_else(groups, pc.replace_substring(text, ",", ""), text)
    fits = pc.match_substring_regex(text, COMMA_NUMBER if decimal == "," else POINTS_NUMBER)
    plain = pc.replace_substring(pc.replace_substring(text, ".", ""), ",", ".")
    # A cell with a point is not a number: 1.500 is ambiguous.
    return pc.if_else(fits, plain, pc.replace_substring(text, ".", " . "))


def unclear_numbers(text: Any) -> tuple[list[str], list[str]]:
    """Return examples of numbers that are written in different ways, with signs or commas.

    Parameters
    ----------
    text : pyarrow array of text
        Clean column that is not read as numbers.

    Returns
    -------
    numbers : list of str
        One example of each way; empty if most cells are no numbers, or none has such a sign.
    words : list of str
        Up to three values that are no numbers.
    """
    pc = compute()
    forms = (NUMBER, COMMA_NUMBER, POINTS_NUMBER, THOUSANDS_NUMBER)
    signs = "|".join(form.removesuffix("$") + f"({_PERCENT_SIGN})?$" for form in forms)
    number = pc.match_substring_regex(text, "|".join([signs, *map(_amount, _CURRENCIES)]))
    numbers, words = (pc.unique(text.filter(which)) for which in (number, pc.invert(number)))
    written = _counted(numbers, "|".join(["[%,]", *map(_amount, _CURRENCIES)]))
    if not written or pc.sum(number).as_py() < MOSTLY * (len(text) - text.null_count):
        return [], []
    found: dict[tuple[bool, ...], str] = {}
    for cell in numbers[:1000].to_pylist():
        found.setdefault(tuple(sign in cell for sign in (*"%,.", *_CURRENCIES)), cell)
    return list(found.values()), words[:3].to_pylist()


def to_numbers(values: Any) -> np.ndarray:
    """Return a clean column of numbers as float64, NaN if missing."""
    pa, pc = arrow(), compute()
    if is_text(values):
        # Arrow does not read a leading plus sign.
        values = pc.replace_substring_regex(values, r"^\+", "")
    if pa.types.is_decimal(values.type):
        values = pc.cast(values, pa.float64(), safe=False)
    found = pc.cast(values, pa.float64(), safe=False)
    return np.asarray(pc.fill_null(found, float("nan")).to_numpy(), dtype=np.float64)


def to_flags(values: Any, *, signs: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return a yes/no column as 0.0 and 1.0, NaN if missing, and which cells are neither.

    With ``signs``, -1 and 1 mean no and yes if there are no other values.
    """
    pa, pc = arrow(), compute()
    if pa.types.is_boolean(values.type):
        values = pc.cast(values, pa.uint8())
    if not is_text(values):
        flags = to_numbers(values)
        if signs and np.isin(flags[~np.isnan(flags)], (-1, 1)).all():
            flags = np.where(flags == -1, 0.0, flags)
        return flags, ~(np.isnan(flags) | (flags == 0) | (flags == 1))
    words = values.drop_null().unique()
    spellings = words.to_pylist()
    means = label_values(spellings) if signs else {word: truth(word) for word in spellings}
    numbers = np.array([*(means[word] for word in spellings), None], dtype=np.float64)
    codes = pc.fill_null(pc.index_in(values, value_set=words), len(words)).to_numpy()
    flags = numbers[codes]
    return flags, np.isnan(flags) & (codes < len(words))


def parse_date(text: str, layout: str) -> datetime | None:
    """Return the date of a text, in UTC if it has a time zone; None if it is none in this format.

    >>> parse_date("29.02.2024", "%d.%m.%Y"), parse_date("29.02.2023", "%d.%m.%Y")
    (datetime.datetime(2024, 2, 29, 0, 0), None)
    """
    try:
        if layout != ISO:
            moment = datetime.strptime(text, layout)
        elif _ISO_DATE.fullmatch(text):
            moment = datetime.fromisoformat(text)
        else:
            return None
        return moment if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, re.error):
        return None


def is_date_format(layout: Any) -> bool:
    """Return whether dates can be written and read in a format.

    >>> is_date_format("%d.%m.%y"), is_date_format("%Q")
    (True, False)
    """
    if not isinstance(layout, str):
        return False
    example = datetime(2021, 5, 31, 14, 30, 5, tzinfo=UTC)
    return layout == ISO or parse_date(example.strftime(layout), layout) is not None


def to_times(values: Any, layout: str | None, zoned: bool) -> tuple[np.ndarray, np.ndarray, str]:
    """Return a date column as datetime64[s] in UTC, and what is wrong with it.

    Parameters
    ----------
    values : pyarrow array
    layout : str or None
        Format of text; None means ISO 8601.
    zoned : bool
        Whether the dates must have a time zone.

    Returns
    -------
    times : ndarray
        NaT if missing.
    wrong : ndarray of bool
        Which cells are not such dates.
    problem : str
        What is wrong with them.
    """
    pa, pc = arrow(), compute()
    present = np.asarray(pc.is_valid(values).to_numpy(zero_copy_only=False), dtype=bool)
    other_zone = (
        "has no time zone, unlike the dates of the training table"
        if zoned
        else "has a time zone, unlike the dates of the training table"
    )
    if is_text(values):
        layout = layout or ISO
        texts = values.drop_null().unique()
        moments = [*(parse_date(text, layout) for text in texts.to_pylist()), None]
        codes = pc.fill_null(pc.index_in(values, value_set=texts), len(texts)).to_numpy()
        times = np.array([m and m.replace(tzinfo=None) for m in moments], "datetime64[s]")[codes]
        wrong = present & np.isnat(times)
        if wrong.any():
            return times, wrong, f"is not a date in the format {layout}"
        differs = np.array([m is not None and (m.tzinfo is not None) != zoned for m in moments])
        return times, differs[codes], other_zone
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        parsed = pc.cast(values, pa.timestamp("s"), safe=False)
        times = np.asarray(parsed.to_numpy(zero_copy_only=False)).astype("datetime64[s]")
        return times, present & (has_zone(values) != zoned), other_zone
    return np.full(len(values), "NaT", "datetime64[s]"), present, "is not a date"


def has_zone(values: Any) -> bool:
    """Return whether a column has timestamps with a time zone."""
    return getattr(values.type, "tz", None) is not None
