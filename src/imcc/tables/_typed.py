"""From the cells of a table to numbers and text, as its schema says."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from imcc.datasets._errors import listed
from imcc.tables._columns import arrow, compute, is_text, plain_column, to_python
from imcc.tables._dates import to_times
from imcc.tables._numbers import plain_numbers, to_flags, to_numbers
from imcc.tables._schema import Column, Schema, TableError

#: What stands for a missing value among categories.
MISSING_VALUE = "(missing)"


def date_parts(column: Column) -> list[str]:
    """Return the names of the numbers that a date is converted to."""
    parts = ["day", "month (sin)", "month (cos)", "weekday (sin)", "weekday (cos)"]
    if column.has_time:
        parts += ["hour (sin)", "hour (cos)"]
    return [f"{column.name}: {part}" for part in parts]


def typed_names(column: Column) -> list[str]:
    """Return the names of the columns that a column of the table is converted to."""
    return date_parts(column) if column.kind == "date" else [column.name]


def typed_arrays(table: Any, schema: Schema) -> dict[str, np.ndarray]:
    """Return the feature columns of a table as arrays of numbers and text.

    Parameters
    ----------
    table : pyarrow.Table
    schema : Schema
        Types of the columns; a value that is not of the type of its column is an error.
    """
    features, there = schema.features, set(table.column_names)
    absent = [name for name in features if name not in there]
    if absent:
        is_other = len(absent) == len(features)
        raise TableError(
            f"{'this is another table than the model was fitted to: ' if is_other else ''}"
            f"{len(absent)} column(s) that the model needs are missing: {listed(absent, 10)}; the "
            f"table has {listed(table.column_names, 10)}"
        )
    columns: dict[str, np.ndarray] = {}
    for column in schema.feature_columns:
        columns |= read_column(table, column, schema.missing_words)
    return columns


def read_column(
    table: Any, column: Column, missing_words: Collection[str]
) -> dict[str, np.ndarray]:
    """Return the columns of numbers or text that a column of a table is converted to."""
    dates = column.kind not in ("number", "yes/no")
    values = plain_column(column.name, table[column.name], missing_words, dates=dates)
    return typed_column(column, values)


def typed_column(column: Column, values: Any) -> dict[str, np.ndarray]:
    """Return the columns of numbers or text that a column of a table is converted to."""
    pc = compute()
    if column.kind == "number":
        if is_text(values):
            written = values
            values = plain_numbers(written, column.decimal, column.percent, column.currency)
            problem = "is not a number with a percent sign" if column.percent else "is not a number"
            if values.null_count > written.null_count:
                wrong = pc.and_(pc.is_null(values), pc.is_valid(written))
                _refuse(column, written, wrong.to_numpy(), problem)
        elif column.percent:
            present = np.asarray(pc.is_valid(values).to_numpy(), dtype=bool)
            _refuse(column, values, present, "has no percent sign, as in the training table")
        numbers = to_numbers(values)
        _refuse(column, values, np.isinf(numbers), "is infinite")
        return {column.name: numbers}
    if column.kind == "yes/no":
        flags, neither = to_flags(values)
        if _may_count(column) and neither.any():
            # The training table happened to have only 0 and 1 in a column of counts.
            others = to_numbers(plain_numbers(values) if is_text(values) else values)
            flags, neither = np.where(neither, others, flags), neither & ~np.isfinite(others)
        no, yes = column.words or ("0", "1")
        _refuse(column, values, neither, f"is neither {no!r} nor {yes!r}")
        return {column.name: flags}
    if column.kind == "date":
        times, wrong, problem = to_times(values, column.date_format, column.has_zone)
        _refuse(column, values, wrong, problem)
        return _date_columns(column, times)
    return {column.name: _as_text(values, "" if column.kind == "text" else MISSING_VALUE)}


def _may_count(column: Column) -> bool:
    """Return whether an inferred yes/no column of 0 and 1 may have other numbers later."""
    return not column.overruled and column.words in (None, ("0", "1"), ("0.0", "1.0"))


def _refuse(column: Column, values: Any, wrong: np.ndarray, problem: str) -> None:
    rows = np.flatnonzero(wrong)
    if len(rows):
        (first,) = to_python(values.slice(int(rows[0]), 1))
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        raise TableError(
            f"column {column.name!r} is of the kind {column.kind}, but {first!r} {problem}{more}; "
            "correct the table, or fit a model that knows the word or has another kind for the "
            "column",
            int(rows[0]),
        )


def words_and_codes(values: Any) -> tuple[list[str], np.ndarray]:
    """Return the distinct values of a column as text, and the position of the value of each cell.

    Missing cells have the position after the last value; 1.0 and 1 are the same text.
    """
    pa, pc = arrow(), compute()
    if pa.types.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    coded = values.dictionary_encode()
    words = to_python(coded.dictionary)
    if pa.types.is_floating(values.type):
        words = [f"{word:.15g}" for word in words]
    codes = np.asarray(pc.fill_null(coded.indices, len(words)).to_numpy(zero_copy_only=False))
    return [str(word) for word in words], codes


def _as_text(values: Any, missing: str) -> np.ndarray:
    """Return a column as an array of str, in which equal cells share one object."""
    words, codes = words_and_codes(values)
    return np.array([*words, missing], dtype=object)[codes]


def _date_columns(column: Column, times: np.ndarray) -> dict[str, np.ndarray]:
    missing = np.isnat(times)
    days = times.astype("datetime64[D]").astype(np.float64)
    month = times.astype("datetime64[M]").astype(np.int64) % 12
    weekday = (times.astype("datetime64[D]").astype(np.int64) + 3) % 7
    hour = (times.astype("datetime64[s]").astype(np.int64) % 86_400) / 3600.0
    angles = [2 * np.pi * month / 12, 2 * np.pi * weekday / 7]
    if column.has_time:
        angles.append(2 * np.pi * hour / 24)
    parts = [days] + [wave(angle) for angle in angles for wave in (np.sin, np.cos)]
    return {
        name: np.where(missing, np.nan, part)
        for name, part in zip(date_parts(column), parts, strict=True)
    }
