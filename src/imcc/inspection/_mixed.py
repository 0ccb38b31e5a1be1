"""Mixed rows, which have some columns of one row and the others of background rows.

Rows are mixed in the container of the input (array, sparse matrix, data frame or Arrow table), so
that the model scores the same kind of table as it was trained on.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.optional import require
from imcc._utils.wrappers import layers
from imcc.inspection._results import names_of_features


@dataclass(frozen=True)
class Mixer:
    """One row and background rows, and a way to mix them.

    Attributes
    ----------
    columns : tuple of str
    table : ndarray, CSR matrix, data frame (pandas, polars) or Arrow table
        The one row, followed by the background rows.
    owners : ndarray of shape (n_features,) or None
        Index of the column that each feature of an array or a matrix belongs to; None for a data
        frame or an Arrow table.
    """

    columns: tuple[str, ...]
    table: Any
    owners: np.ndarray | None = None

    def mixed(self, rows: np.ndarray, taken: np.ndarray) -> Any:
        """Return background rows with some columns taken from the one row.

        Parameters
        ----------
        rows : ndarray of shape (n,)
            Indices of background rows.
        taken : ndarray of bool of shape (n, n_columns)
            Which columns are taken from the one row.
        """
        if self.owners is None:
            places = np.where(taken, 0, rows[:, np.newaxis] + 1)
            columns = {name: self._take(name, places[:, j]) for j, name in enumerate(self.columns)}
            # An Arrow table is not made by its class.
            return getattr(type(self.table), "from_pydict", type(self.table))(columns)
        row, others = self.table[:1], self.table[rows + 1]
        if not sp.issparse(row):
            return np.where(taken[:, self.owners], row, others)
        # Entries of the background row in columns that are kept, and of the one row in the others.
        numbers = np.repeat(np.arange(len(rows)), np.diff(others.indptr))
        stay = ~taken[numbers, self.owners[others.indices]]
        at, entry = np.nonzero(taken[:, self.owners[row.indices]])
        data = np.concatenate([others.data[stay], row.data[entry]])
        where = np.concatenate([numbers[stay], at])
        features = np.concatenate([others.indices[stay], row.indices[entry]])
        return type(row)(sp.csr_array((data, (where, features)), shape=others.shape))

    def _take(self, name: str, places: np.ndarray) -> Any:
        column, kind = self.table[name], _frame_kind(self.table)
        if kind == "pandas":
            return column.array.take(places)
        return column.gather(places) if kind == "polars" else column.take(places)

    def differs(self) -> np.ndarray:
        """Return where background rows differ from the one row, shape (n_rows, n_columns)."""
        if self.owners is None:
            each = []
            for first, *others in self.cells():
                each.append([cell != first for cell in others])
            return np.array(each, dtype=bool).T
        n_rows = self.table.shape[0] - 1
        differ = self.table[1:] != self.table[np.zeros(n_rows, dtype=int)]
        if not sp.issparse(differ) and self.table.dtype.kind == "f":
            differ &= ~(np.isnan(self.table[1:]) & np.isnan(self.table[:1]))
        rows, features = differ.nonzero()
        found = np.zeros((n_rows, len(self.columns)), dtype=bool)
        found[rows, self.owners[features]] = True
        return found

    def cells(self) -> list[list[Any]]:
        """Return the values of each column of a data frame or Arrow table, None where missing."""
        found, kind = [], _frame_kind(self.table)
        for name in self.columns:
            column = self.table[name]
            if kind == "pandas":
                values = column.astype(object).where(column.notna(), None).tolist()
            else:
                values = column.to_list() if kind == "polars" else column.to_pylist()
            found.append([None if value != value else value for value in values])
        return found

    def texts(self, count: int) -> list[list[str]]:
        """Return the first rows as text, the one row before the background rows.

        Missing values are "missing".
        """
        if self.owners is None:
            rows: Any = zip(*(column[:count] for column in self.cells()), strict=True)
        else:
            first = self.table[:count]
            rows = (first.toarray() if sp.issparse(first) else first).tolist()
        return [list(map(_as_text, row)) for row in rows]


def make_mixer(
    model: Any, x: Any, background: Any, feature_names: Sequence[str] | None = None
) -> Mixer:
    """Return the mixer for the type of table of the background rows.

    Parameters
    ----------
    model : classifier
        A fitted classifier; only the columns that it uses are mixed, if it stores their names.
    x : array-like, data frame, Arrow table or sparse matrix of one row
        May also be a vector or a dict of columns.
    background : array-like, data frame, Arrow table or sparse matrix
    feature_names : sequence of str, default=None
        Names of the columns of an array; by default those stored by the model.
    """
    if isinstance(x, Mapping):
        x = as_rows({name: [v] if np.ndim(v) == 0 else v for name, v in x.items()})
        if _frame_kind(background) == "pandas":
            x = x.to_pandas()
        elif _frame_kind(background) == "polars":
            x = require("polars", "Mixing rows").from_arrow(x)
    kind = _frame_kind(background)
    if kind is None:
        is_sparse = sp.issparse(background)
        background = background.tocsr() if is_sparse else np.asarray(background)
        row = x.toarray() if sp.issparse(x) else np.atleast_2d(np.asarray(x))
        if background.ndim != 2 or row.shape != (1, background.shape[1]):
            raise InvalidArgumentError(
                "x",
                "must be one row with as many features as the background, got shapes "
                f"{row.shape} and {background.shape}",
            )
        stack = partial(sp.vstack, format="csr") if is_sparse else np.vstack
        features = names_of_features(model, background.shape[1], feature_names)
        return Mixer(features, stack([row, background]), np.arange(len(features)))
    if _frame_kind(x) != kind:
        raise InvalidArgumentError(
            "x",
            f"must be the same kind of table as the background ({kind}), got {type(x).__name__}",
        )
    if len(x) != 1:
        raise InvalidArgumentError("x", f"must be one row, got {len(x)} rows")
    names = _used_columns(model, background)
    for which, table in (("x", x), ("background", background)):
        if absent := [name for name in names if name not in _names(table)]:
            raise InvalidArgumentError(which, f"lacks columns that the model uses: {absent[:10]}")
    if kind == "arrow":
        pa = require("pyarrow", "Mixing rows")
        columns = {name: _joined_columns(pa, x[name], background[name]) for name in names}
        joined = pa.table(columns)
    elif kind == "pandas":
        pandas = require("pandas", "Mixing rows")
        joined = pandas.concat([x[names], background[names]], ignore_index=True)
    else:
        polars = require("polars", "Mixing rows")
        parts = [x.select(names), background.select(names)]
        joined = polars.concat(parts, how="vertical_relaxed")
    return Mixer(tuple(names), joined)


def _joined_columns(pa: Any, own: Any, others: Any) -> Any:
    """Return an Arrow column of the one row and background rows, in a type that suits both.

    A single row does not determine the type of a column: a missing value has none, and 40 is an
    integer.  Codes of a dictionary are decoded.
    """
    own, others = (
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in (own, others)
    )
    types = pa.types
    is_text = types.is_string(others.type) or types.is_large_string(others.type)
    is_wider = types.is_integer(own.type) and (
        types.is_integer(others.type) or types.is_floating(others.type)
    )
    common = others.type if types.is_null(own.type) or is_text or is_wider else own.type
    chunks = [*own.cast(common).chunks, *others.cast(common).chunks]
    return pa.chunked_array(chunks, type=common).combine_chunks()


def as_rows(table: Any) -> Any:
    """Return a dict of columns as an Arrow table, and a list of rows as an array."""
    if isinstance(table, Mapping):
        pa = require("pyarrow", "A dict of columns")
        columns = {str(name): pa.array(v, from_pandas=True) for name, v in table.items()}
        return pa.table(columns)
    return table if hasattr(table, "shape") else np.asarray(table)


def _frame_kind(table: Any) -> str | None:
    if hasattr(table, "iloc") and hasattr(table, "columns"):
        return "pandas"
    if hasattr(table, "num_rows") and hasattr(table, "column_names"):
        return "arrow"
    return "polars" if hasattr(table, "gather_every") and hasattr(table, "columns") else None


def _names(table: Any) -> list[str]:
    return list(table.column_names if hasattr(table, "column_names") else table.columns)


def _used_columns(model: Any, table: Any) -> list[Any]:
    """Return the columns that a model uses: those of its schema, or those seen in ``fit``."""
    for layer in layers(model):
        if hasattr(layer, "schema_"):
            return list(layer.schema_.features)
        if getattr(layer, "feature_names_in_", None) is not None:
            return list(layer.feature_names_in_)
    return _names(table)


def take_rows(background: Any, rows: Any) -> Any:
    """Return some rows of a table of any kind."""
    kind = _frame_kind(background)
    if kind == "pandas":
        return background.iloc[rows]
    if kind == "arrow":
        return background.take(rows)
    return background[rows]


def row_texts(
    model: Any, X: Any, rows: Sequence[int], feature_names: Sequence[str] | None = None
) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return the columns of a table that a model uses, and some rows in them as text."""
    first, chosen = take_rows(X, rows[:1]), take_rows(X, rows)
    mixer = make_mixer(model, first, chosen, feature_names)
    return mixer.columns, mixer.texts(len(rows) + 1)[1:]


def _as_text(value: Any) -> str:
    if value is None or value != value or (isinstance(value, str) and not value.strip()):
        return "missing"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def encoded(model: Any, mixer: Mixer) -> tuple[Any, Mixer]:
    """Return a model and a mixer of features instead of cells, if each is made from one column.

    Text is then encoded once per row, not once per mixed row; the scores are the same.  If the
    model does not begin with an encoder of tables, ``model`` and ``mixer`` are returned unchanged.
    """
    found = _without_encoder(model)
    if found is None or mixer.owners is not None:
        return model, mixer
    (encoder, inside), columns = found, list(mixer.columns)
    made_from = encoder.feature_columns()
    if not set(made_from) <= set(columns):
        return model, mixer
    owners = np.array([columns.index(name) for name in made_from])
    with warnings.catch_warnings():
        # Warnings about these cells were given when the original rows were scored.
        warnings.simplefilter("ignore")
        features = encoder.transform(mixer.table)
    features = features.tocsr() if sp.issparse(features) else np.asarray(features)
    return inside, Mixer(mixer.columns, features, owners)


def _without_encoder(model: Any) -> tuple[Any, Any] | None:
    """Return the encoder of tables that a model begins with, and the model without it."""
    if isinstance(model, Pipeline):
        (_, encoder), *rest = model.steps
        if not hasattr(encoder, "feature_columns"):
            return None
        return encoder, rest[0][1] if len(rest) == 1 else Pipeline(rest)
    below = [*layers(model)][1:]
    found = _without_encoder(below[0]) if below else None
    if found is None or hasattr(model, "schema_"):  # a table classifier passes its rows on
        return found
    copied = copy.copy(model)
    is_search = getattr(model, "best_estimator_", None) is below[0]
    setattr(copied, "best_estimator_" if is_search else "estimator_", found[1])
    return found[0], copied
