"""Mixed rows, which have some columns of one row and the others of background rows.

Rows are mixed in the container of the input (array, sparse matrix, data frame or Arrow table), so
that the model scores the same kind of table as it was trained on.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.optional import require
from imcc._utils.wrappers import first_step_with, layers
from imcc.inspection._results import names_of_features


@dataclass(frozen=True)
class ArrayMixer:
    """Mixer for the rows of an array or a CSR matrix, whose features belong to columns.

    Attributes
    ----------
    columns : tuple of str
    row : ndarray or CSR matrix of shape (1, n_features)
    background : ndarray or CSR matrix of shape (n_rows, n_features)
    owners : ndarray of shape (n_features,)
        Index of the column that each feature belongs to.
    """

    columns: tuple[str, ...]
    row: Any
    background: Any
    owners: np.ndarray

    def mixed(self, rows: np.ndarray, taken: np.ndarray) -> Any:
        """Return background rows with some columns taken from the one row.

        Parameters
        ----------
        rows : ndarray of shape (n,)
            Indices of background rows.
        taken : ndarray of bool of shape (n, n_columns)
            Which columns are taken from the one row.
        """
        if not sp.issparse(self.background):
            return np.where(taken[:, self.owners], self.row, self.background[rows])
        others = self.background[rows]
        # Entries of the background row in columns that are kept, and of the one row in the others.
        numbers = np.repeat(np.arange(len(rows)), np.diff(others.indptr))
        stay = ~taken[numbers, self.owners[others.indices]]
        from_row = taken[:, self.owners[self.row.indices]]
        at, entry = np.nonzero(from_row)
        data = np.concatenate([others.data[stay], self.row.data[entry]])
        where = np.concatenate([numbers[stay], at])
        features = np.concatenate([others.indices[stay], self.row.indices[entry]])
        found = sp.csr_array((data, (where, features)), shape=others.shape)
        return type(self.background)(found)

    def differs(self) -> np.ndarray:
        """Return where background rows differ from the one row, shape (n_rows, n_columns)."""
        n_rows = self.background.shape[0]
        found = np.zeros((n_rows, len(self.columns)), dtype=bool)
        if sp.issparse(self.background):
            repeated = sp.csr_array(sp.vstack([self.row] * n_rows))
            rows, features = (sp.csr_array(self.background) != repeated).nonzero()
        else:
            same = self.background == self.row
            if self.background.dtype.kind == "f":
                same |= np.isnan(self.background) & np.isnan(self.row)
            rows, features = np.nonzero(~same)
        found[rows, self.owners[features]] = True
        return found

    def texts(self, count: int) -> list[list[str]]:
        """Return the first rows as text, the one row before the background rows.

        Missing values are "missing".
        """
        parts = self.row, self.background[: count - 1]
        dense = (part.toarray() if sp.issparse(part) else part for part in parts)
        return [[_as_text(value) for value in row] for part in dense for row in part.tolist()]


@dataclass(frozen=True)
class FrameMixer:
    """Mixer for the rows of a data frame (pandas, polars) or an Arrow table.

    Attributes
    ----------
    columns : tuple of str
    kind : {"arrow", "pandas", "polars"}
    frame : table
        The one row, followed by the background rows.
    """

    columns: tuple[str, ...]
    kind: str
    frame: Any

    def mixed(self, rows: np.ndarray, taken: np.ndarray) -> Any:
        """Return background rows with some columns taken from the one row."""
        found = {
            name: self._take(name, np.where(taken[:, j], 0, rows + 1))
            for j, name in enumerate(self.columns)
        }
        if self.kind == "arrow":
            return require("pyarrow", "Mixing rows").table(found)
        return require(self.kind, "Mixing rows").DataFrame(found)

    def _take(self, name: str, index: np.ndarray) -> Any:
        if self.kind == "pandas":
            return self.frame[name].array.take(index)
        if self.kind == "polars":
            return self.frame[name].gather(index)
        return self.frame[name].take(index)

    def cells(self, name: str) -> list[Any]:
        """Return the values of a column, None where missing."""
        column = self.frame[name]
        if self.kind == "pandas":
            missing = column.isna().to_numpy()
            values = column.tolist()
            return [None if gone else v for v, gone in zip(values, missing, strict=True)]
        return column.to_list() if self.kind == "polars" else column.to_pylist()

    def differs(self) -> np.ndarray:
        """Return where background rows have another value than the one row."""
        found = []
        for name in self.columns:
            first, *others = (None if cell != cell else cell for cell in self.cells(name))
            found.append([cell != first for cell in others])
        return np.array(found, dtype=bool).T

    def texts(self, count: int) -> list[list[str]]:
        """Return the first rows as text, the one row before the background rows."""
        columns = [map(_as_text, self.cells(name)[:count]) for name in self.columns]
        return [list(row) for row in zip(*columns, strict=True)]


#: One row, background rows, and a way to mix them.
Mixer: TypeAlias = ArrayMixer | FrameMixer


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
        return _array_mixer(model, x, background, feature_names)
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
    return FrameMixer(tuple(names), kind, joined)


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


def _array_mixer(
    model: Any, x: Any, background: Any, feature_names: Sequence[str] | None
) -> ArrayMixer:
    if sp.issparse(background):
        background = background.tocsr()
        row = x if sp.issparse(x) else sp.csr_array(np.atleast_2d(np.asarray(x)))
        row = type(background)(row.tocsr()) if not isinstance(row, type(background)) else row
    else:
        background = np.asarray(background)
        row = x.toarray() if sp.issparse(x) else np.atleast_2d(np.asarray(x))
    if background.ndim != 2 or row.shape != (1, background.shape[1]):
        raise InvalidArgumentError(
            "x",
            f"must be one row with as many features as the background, got shapes {row.shape} and "
            f"{background.shape}",
        )
    names = names_of_features(model, background.shape[1], feature_names)
    return ArrayMixer(tuple(names), row, background, np.arange(len(names)))


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
    encoder = first_step_with(model, "feature_columns")
    inside = None if encoder is None else _without(model, encoder)
    if encoder is None or inside is None or not isinstance(mixer, FrameMixer):
        return model, mixer
    columns = list(mixer.columns)
    made_from = encoder.feature_columns()
    if not set(made_from) <= set(columns):
        return model, mixer
    owners = np.array([columns.index(name) for name in made_from])
    with warnings.catch_warnings():
        # Warnings about these cells were given when the original rows were scored.
        warnings.simplefilter("ignore")
        features = encoder.transform(mixer.frame)
    features = features.tocsr() if sp.issparse(features) else np.asarray(features)
    return inside, ArrayMixer(mixer.columns, features[:1], features[1:], owners)


def _without(model: Any, encoder: Any) -> Any | None:
    """Return the model without its encoder; None if the encoder is not the first step."""
    if isinstance(model, Pipeline):
        if model.steps[0][1] is encoder:
            rest = model.steps[1:]
            return rest[0][1] if len(rest) == 1 else Pipeline(rest)
        return None
    inside = next((name for name in ("estimator_", "best_estimator_") if hasattr(model, name)), "")
    if not inside:
        return None
    below = _without(getattr(model, inside), encoder)
    if below is None or hasattr(model, "schema_"):  # a table classifier passes its rows on
        return below
    found = copy.copy(model)
    setattr(found, inside, below)
    return found
