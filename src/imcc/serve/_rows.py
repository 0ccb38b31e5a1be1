"""The rows of a request: strict JSON, converted to what the model was fitted to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from imcc._utils.optional import require
from imcc._utils.wrappers import transformers
from imcc.datasets._coding import Coding
from imcc.persistence._card import ModelCard
from imcc.tables._columns import as_table
from imcc.tables._dataset import match_rows
from imcc.tables._load import TableSource, check_columns, frame_for_model
from imcc.tables._predict import table_model

_SPARSE = {"indices", "values"}


def parse_rows(body: bytes, max_rows: int) -> list[Any]:
    """Return the rows in the JSON text of a request: one row, or a list of them.

    NaN and infinity, which are not JSON, and keys that occur twice are refused.
    """
    problem = require("starlette.exceptions", "Serving a model").HTTPException

    def refuse_constant(word: str) -> NoReturn:
        raise ValueError(f"{word} is not JSON; a missing value is null")

    def refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"the key {twice!r} occurs twice in one object")
        return record

    try:
        found = json.loads(
            body.decode("utf-8"), parse_constant=refuse_constant, object_pairs_hook=refuse_repeated
        )
    except RecursionError as error:
        raise problem(400, "the body is not valid JSON: it is nested too deeply") from error
    except ValueError as error:
        raise problem(400, f"the body is not valid JSON: {error}") from error
    if found is None or isinstance(found, (bool, int, float)):
        raise ValueError(f"the body must be a row or a list of rows, got {found!r}")
    many = isinstance(found, list) and (not found or isinstance(found[0], (dict, list, str)))
    rows = found if many else [found]
    if not rows:
        raise ValueError("the body has no rows: it is an empty list")
    if len(rows) > max_rows:
        raise problem(
            413, f"the body has {len(rows):,} rows, and a request may have {max_rows:,}: send fewer"
        )
    return rows


def rows_for_model(model: Any, card: ModelCard, rows: list[Any], ignore_extra: bool) -> Any:
    """Return the rows of a request as what a model was fitted to.

    Records become a table, a data frame or an array, by the names of their keys; lists of numbers
    an array; objects of indices and values a sparse matrix; texts stay as they are.
    """
    kind = type(rows[0])
    for number, row in enumerate(rows):
        if type(row) is not kind:
            raise ValueError(
                f"row {number} is {_said(row)}, unlike row 0, which is {_said(rows[0])}"
            )
    inner = table_model(model)
    if inner is not None:
        if kind is not dict:
            raise ValueError(
                "the model was fitted to a table: a row must be an object of columns and values, "
                f"got {_said(rows[0])}"
            )
        table = as_table(rows)
        check_columns(inner, table.column_names, "the request", ignore_extra)
        return table
    if kind is dict:
        if set(rows[0]) == _SPARSE and not _SPARSE.issubset(card.feature_names):
            return _sparse_rows(rows, len(card.feature_names))
        source = TableSource([], as_table(rows), [0])
        wanted: dict[str, Any] = {"with_labels": False, "ignore_extra": ignore_extra}
        if transformers(model) and not card.columns and hasattr(model, "feature_names_in_"):
            return frame_for_model(source, card.feature_names, card.label_names, **wanted)[0]
        coding = Coding.from_dict(card.columns) if card.columns else Coding()
        return match_rows(source, card.feature_names, card.label_names, coding, **wanted)[0]
    return _dense_rows(rows, len(card.feature_names)) if kind is list else rows


def _said(row: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return names.get(type(row), "null" if row is None else "a number")


def _check_numbers(number: int, values: Any) -> None:
    """Refuse a list of a request that has anything but numbers and null."""
    if not isinstance(values, list):
        raise ValueError(f"row {number}: a list of numbers is expected, got {_said(values)}")
    for place, value in enumerate(values):
        if value is not None and not isinstance(value, (int, float)):
            raise ValueError(
                f"row {number}: value {place} must be a number or null, got {_said(value)}"
            )


def _floats(values: Sequence[Any]) -> np.ndarray:
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError as error:
        raise ValueError("a number is too large: at most about 1.8e308") from error


def _dense_rows(rows: list[list[Any]], n_features: int) -> np.ndarray:
    for number, row in enumerate(rows):
        _check_numbers(number, row)
        if len(row) != n_features:
            raise ValueError(
                f"row {number} has {len(row)} values, and the model has {n_features} features"
            )
    return _floats(rows)


def _sparse_rows(rows: list[dict[str, Any]], n_features: int) -> Any:
    """Return rows that are given by the places of their values; all others are 0."""
    indices: list[int] = []
    values: list[Any] = []
    ends = [0]
    for number, row in enumerate(rows):
        if set(row) != _SPARSE:
            raise ValueError(f"row {number} must have the keys indices and values only")
        places = row["indices"]
        _check_numbers(number, row["values"])
        if not isinstance(places, list) or not all(
            type(place) is int and 0 <= place < n_features for place in places
        ):
            raise ValueError(
                f"row {number}: indices must be a list of integers from 0 to {n_features - 1}, the "
                "places of the values"
            )
        if len(places) != len(row["values"]) or len(set(places)) < len(places):
            raise ValueError(
                f"row {number}: indices must have one place for each value, and each place once; "
                f"got {len(places)} indices and {len(row['values'])} values"
            )
        indices += places
        values += row["values"]
        ends.append(len(indices))
    shape = len(rows), n_features
    found = sp.csr_matrix(
        (_floats(values), np.array(indices, np.int32), np.array(ends, np.int32)), shape=shape
    )
    found.sort_indices()
    return found
