"""TableEncoder: conversion of a table to features by a schema and scikit-learn's transformers."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.optional import require
from imcc.tabular._columns import arrow as _arrow
from imcc.tabular._columns import (
    as_table,
    clean_text,
    compute,
    is_text,
    looks_numeric,
    release_memory,
    to_flags,
    to_numbers,
    to_times,
    with_points,
)
from imcc.tabular._schema import Column, Schema, TableError, infer_schema

# Values that occur less often share one indicator.
_MIN_FREQUENCY = 3
# The most features of each of the two TF-IDF parts of a text column.
_MAX_TERMS = 20_000
# Rows that are encoded, and entries that are scaled, at a time.
_BLOCK_ROWS = 2048
_BLOCK_ENTRIES = 2**20
_FEW_ENTRIES = 2**16
# Cells of numbers that are fitted to at a time, and what the steps learn of each column.
_FIT_CELLS = 2**18
_LEARNED = {"statistics_", "center_", "scale_", "mean_", "var_"}
# Different unknown values of a column that are counted one by one, and what stands for the rest.
_MOST_UNKNOWN = 1000
_OTHER_VALUES = "(others)"
# What stands for a missing value among categories.
_MISSING_VALUE = "(missing)"
#: The shares of the features' variance that a kind's columns have by default.
WEIGHTS = {"numbers": 1.0, "categories": 1.0, "text": 4.0}


class TableEncoder(TransformerMixin, BaseEstimator):
    r"""Convert a table with columns of any type to features.

    The types are inferred from the training table (:func:`infer_schema`) and applied unchanged to
    other tables, whose columns are matched by name.  The features are computed by a
    ``ColumnTransformer``:

    * numbers and parts of dates: missing values are replaced by the median, with an indicator if
      they are frequent (at least 5 %); scaled by the range of the middle 90 % of the values;
    * yes/no: missing values are replaced by the more frequent value; standardised.  Other numbers
      in a column of 0 and 1 of a later table are used as they are, and counted in a warning;
    * categories: one indicator per value; values with fewer than 3 rows share an indicator.  A
      value that is not in the training table counts as rare, or as none if there are no rare
      values, and is counted in a warning;
    * text: TF-IDF of words and pairs of words, and of parts of words (3 to 5 characters);
    * ids and constants are not used.

    The features form blocks: numbers, categories, and one per text column.  Each block is scaled so
    that its total variance over the training rows is the weight of the block times its number of
    columns, so that blocks with many features do not dominate.

    Parameters
    ----------
    kinds : dict of str to str, default=None
        Types of columns that override the inferred ones: ``{"zip": "category"}``.
    date_formats : dict of str to str, default=None
        Formats of dates, as for ``datetime.strptime``.
    drop : collection of str, default=()
        Columns that are not used.
    missing_words : collection of str, default=()
        Further words for a missing value.
    weights : dict of str to float, default=None
        Weights of the blocks "numbers", "categories" and "text", > 0; those not given are as in
        ``{"numbers": 1, "categories": 1, "text": 4}``.

    Attributes
    ----------
    schema_ : Schema
        Types of the columns.
    encoder_ : ColumnTransformer
        The fitted transformer, with the scales of the blocks as ``transformer_weights``.
    block_columns_ : dict of str to int
        Number of columns of the table in each block.
    n_features_in_ : int
        Number of columns of the table, except labels and dropped columns.
    feature_names_in_ : ndarray of str
        Names of these columns.

    See Also
    --------
    TableClassifier : Combines the encoder with a classifier.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame(
    ...     {"age": [31, 45, None, 28], "town": ["Ulm", "Bonn", "Ulm", "Bonn"], "city": "x"}
    ... )
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age is missing', 'town=infrequent']
    """

    def __init__(
        self,
        *,
        kinds: Mapping[str, str] | None = None,
        date_formats: Mapping[str, str] | None = None,
        drop: Collection[str] = (),
        missing_words: Collection[str] = (),
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self.kinds = kinds
        self.date_formats = date_formats
        self.drop = drop
        self.missing_words = missing_words
        self.weights = weights

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Infer the schema of a table and fit the transformers.

        Parameters
        ----------
        X : pandas or polars data frame, pyarrow table, or dict of columns
            Training table.
        y : None
            Ignored.

        Returns
        -------
        self : TableEncoder
            The fitted encoder.
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Infer the schema of a table, fit the transformers, and return the features.

        Parameters
        ----------
        X : pandas or polars data frame, pyarrow table, or dict of columns
            Training table.
        y, **fit_params
            Ignored.

        Returns
        -------
        ndarray or CSR matrix of shape (n_samples, n_features)
        """
        table = as_table(X)
        schema = infer_schema(
            table,
            kinds=self.kinds,
            date_formats=self.date_formats,
            drop=self.drop,
            missing_words=self.missing_words,
        )
        return self.fit_schema(table, schema)

    def fit_schema(self, X: Any, schema: Schema) -> Any:
        """Fit the transformers for a given schema, and return the features.

        Parameters
        ----------
        X : pandas or polars data frame, pyarrow table, or dict of columns
            Training table.
        schema : Schema
            Types of the columns; the parameters of the encoder about columns are ignored.

        Returns
        -------
        ndarray or CSR matrix of shape (n_samples, n_features)
        """
        weights = _check_weights(self.weights)
        table = as_table(X)
        if not schema.features:
            raise TableError(
                "the table has no columns that could be features: "
                + "; ".join(f"{c.name!r} is {c.kind}" for c in schema)
            )
        encoder = _fit_column_transformer(table, schema)
        features, _ = _encoded(table, schema, encoder)
        scales = _block_scales(encoder, features, schema, weights)
        encoder.set_params(transformer_weights=scales)
        self.schema_ = schema
        self.encoder_ = encoder
        self.block_columns_ = {name: len(columns) for name, columns in blocks_of(schema).items()}
        self.feature_names_in_ = np.array(
            [column.name for column in schema if column.kind != "label"], dtype=object
        )
        self.n_features_in_ = len(self.feature_names_in_)
        return _scaled(features, encoder, scales)

    def transform(self, X: Any) -> Any:
        """Return the features of a table.

        Parameters
        ----------
        X : pandas or polars data frame, pyarrow table, or dict of columns
            Columns are matched by name; unused columns may be missing.

        Returns
        -------
        ndarray or CSR matrix of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        features, unknown = _encoded(as_table(X), self.schema_, self.encoder_)
        if unknown:
            warnings.warn(UnknownValuesWarning(unknown), stacklevel=2)
        return features

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features, derived from those of the columns."""
        check_is_fitted(self)
        names: list[str] = []
        for step, transformer, columns in self.encoder_.transformers_:
            if step == "remainder":
                continue
            if step == "categories":
                names += _indicator_names(transformer, columns)
            elif step == "missing":
                names += [f"{column} is missing" for column in columns]
            elif step.startswith("text "):
                for part, vectorizer in transformer.transformer_list:
                    terms = vectorizer.get_feature_names_out()
                    form = "{} has '{}'" if part == "words" else "{} has '...{}...'"
                    names += [form.format(columns, term) for term in terms]
            else:
                names += columns
        return np.array(names, dtype=object)

    def feature_columns(self) -> np.ndarray:
        """Return the column of the table that each feature is derived from.

        Returns
        -------
        ndarray of str of shape (n_features,)
        """
        check_is_fitted(self)
        origin = {
            part: column.name
            for column in self.schema_
            if column.kind == "date"
            for part in date_parts(column)
        }
        names: list[str] = []
        for step, transformer, columns in self.encoder_.transformers_:
            if step == "remainder":
                continue
            if step == "categories":
                for column in columns:
                    names += [column] * len(_indicator_names(transformer, columns, column))
            elif step.startswith("text "):
                terms = (v.get_feature_names_out() for _, v in transformer.transformer_list)
                names += [columns] * sum(map(len, terms))
            else:
                names += [origin.get(column, column) for column in columns]
        return np.array(names, dtype=object)

    def typed_columns(self, X: Any) -> dict[str, np.ndarray]:
        """Return the feature columns of a table, as numbers and text.

        Parameters
        ----------
        X : pandas or polars data frame, pyarrow table, or dict of columns

        Returns
        -------
        dict of str to ndarray
            Numbers, 0 and 1 for yes/no, and days since 1970 for dates, NaN if missing; strings for
            categories and text, None if missing.
        """
        check_is_fitted(self)
        typed = typed_frame(as_table(X), self.schema_)
        found = {}
        for name in self.schema_.features:
            column = self.schema_[name]
            values = typed[date_parts(column)[0] if column.kind == "date" else name].to_numpy()
            if column.kind in ("category", "text"):
                missing = "" if column.kind == "text" else _MISSING_VALUE
                values = np.array([None if v == missing else v for v in values], dtype=object)
            found[name] = values
        return found

    def set_output(self, *, transform: str | None = None) -> TableEncoder:
        """Set the container that ``transform`` returns, as for scikit-learn's transformers.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, default=None
            "default" means an array or a CSR matrix.  Data frames need dense features.

        Returns
        -------
        self : TableEncoder
        """
        return super().set_output(transform=transform)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "encoder_")


def _indicator_names(
    encoder: OneHotEncoder, columns: list[str], only: str | None = None
) -> list[str]:
    """Return the names of the indicators of categories, rare values last."""
    names = []
    together = encoder.infrequent_categories_
    for column, values, rare in zip(columns, encoder.categories_, together, strict=True):
        if only not in (None, column):
            continue
        among = set() if rare is None else set(rare)
        names += [f"{column}={value}" for value in values if value not in among]
        names += [f"{column}=infrequent"] if among else []
    return names


def _check_weights(weights: Mapping[str, float] | None) -> dict[str, float]:
    merged = {**WEIGHTS, **(weights or {})}
    if set(merged) != set(WEIGHTS) or not all(
        isinstance(w, (int, float)) and np.isfinite(w) and w > 0 for w in merged.values()
    ):
        raise InvalidArgumentError(
            "weights", f"must give numbers above 0 to some of {sorted(WEIGHTS)}, got {weights!r}"
        )
    return merged


def blocks_of(schema: Schema) -> dict[str, list[str]]:
    """Return the blocks of features and their columns of the table."""
    blocks = {
        "numbers": schema.of_kind("number", "date", "yes/no"),
        "categories": schema.of_kind("category"),
    }
    blocks |= {f"text {j}": [name] for j, name in enumerate(schema.of_kind("text"))}
    return {name: columns for name, columns in blocks.items() if columns}


def date_parts(column: Column) -> list[str]:
    """Return the names of the numbers that a date is converted to."""
    parts = ["day", "month (sin)", "month (cos)", "weekday (sin)", "weekday (cos)"]
    if column.has_time:
        parts += ["hour (sin)", "hour (cos)"]
    return [f"{column.name}: {part}" for part in parts]


def make_column_transformer(schema: Schema) -> ColumnTransformer:
    """Return the unfitted transformer of the typed columns of a schema."""
    numbers, frequent = [], []
    for column in schema:
        names = [column.name] if column.kind == "number" else []
        if column.kind == "date":
            names = date_parts(column)
        numbers += names
        if names and column.often_missing:
            frequent.append(names[0])
    scale = RobustScaler(quantile_range=(5.0, 95.0), unit_variance=True)
    impute = SimpleImputer(strategy="median", keep_empty_features=True)
    flags = Pipeline(
        [
            ("impute", SimpleImputer(strategy="most_frequent", keep_empty_features=True)),
            ("scale", StandardScaler()),
        ]
    )
    indicators = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=_MIN_FREQUENCY, dtype=np.float64
    )
    steps: list[tuple[str, Any, Any]] = [
        ("numbers", Pipeline([("impute", impute), ("scale", scale)]), numbers),
        ("missing", MissingIndicator(features="all"), frequent),
        ("flags", flags, schema.of_kind("yes/no")),
        ("categories", indicators, schema.of_kind("category")),
    ]
    steps = [step for step in steps if step[2]]
    for j, name in enumerate(schema.of_kind("text")):
        # Terms that occur in a single row are not informative, unless there are very few rows.
        least = 1 if schema[name].n_rows < 50 else 3
        words = TfidfVectorizer(
            ngram_range=(1, 2),
            sublinear_tf=True,
            strip_accents="unicode",
            min_df=min(2, least),
            max_features=_MAX_TERMS,
        )
        parts = TfidfVectorizer(
            analyzer="char_wb",
            ngram_range=(3, 5),
            sublinear_tf=True,
            strip_accents="unicode",
            min_df=min(3, least),
            max_features=_MAX_TERMS,
        )
        steps.append((f"text {j}", FeatureUnion([("words", words), ("parts", parts)]), name))
    return ColumnTransformer(steps)


# Which block the steps of the transformer belong to, for those that are not called like it.
_BLOCK = {"missing": "numbers", "flags": "numbers"}


def _block_scales(
    encoder: ColumnTransformer, features: Any, schema: Schema, weights: Mapping[str, float]
) -> dict[str, float]:
    """Return the factor on each step's features that gives its block the variance it should have.

    The variance of a block is the sum of the variances of its features, that is, half of the mean
    squared distance of two rows.
    """
    variances = _variances(features)
    blocks = blocks_of(schema)
    totals = dict.fromkeys(blocks, 0.0)
    for step, where in encoder.output_indices_.items():
        if step != "remainder":
            totals[_BLOCK.get(step, step)] += float(variances[where].sum())
    scales = {}
    for step in encoder.output_indices_:
        if step == "remainder":
            continue
        block = _BLOCK.get(step, step)
        kind = "text" if block.startswith("text ") else block
        wanted = weights[kind] * len(blocks[block])
        scales[step] = float(np.sqrt(wanted / totals[block])) if totals[block] > 0 else 1.0
    return scales


def _variances(features: Any) -> np.ndarray:
    """Return the variance of every feature, without another array of all entries."""
    n_rows, n_columns = features.shape
    sums, squares = np.zeros(n_columns), np.zeros(n_columns)
    if sp.issparse(features):
        for start in range(0, features.nnz, _BLOCK_ENTRIES):
            some, more = np.zeros(n_columns), np.zeros(n_columns)
            for first in range(start, min(start + _BLOCK_ENTRIES, features.nnz), _FEW_ENTRIES):
                part = slice(first, min(first + _FEW_ENTRIES, start + _BLOCK_ENTRIES))
                where, values = features.indices[part], features.data[part]
                np.add.at(some, where, values)
                np.add.at(more, where, values**2)
            sums += some
            squares += more
    else:
        for start in range(0, n_rows, _BLOCK_ROWS):
            block = features[start : start + _BLOCK_ROWS]
            sums += block.sum(axis=0)
            squares += (block**2).sum(axis=0)
    return squares / n_rows - (sums / n_rows) ** 2


def _scaled(features: Any, encoder: ColumnTransformer, scales: Mapping[str, float]) -> Any:
    """Multiply the steps' features by their factors, in place."""
    factors = np.ones(features.shape[1])
    for step, factor in scales.items():
        factors[encoder.output_indices_[step]] = factor
    if sp.issparse(features):
        for start in range(0, features.nnz, _FEW_ENTRIES):
            part = slice(start, start + _FEW_ENTRIES)
            features.data[part] *= factors[features.indices[part]]
    else:
        features *= factors
    return features


def _fit_column_transformer(table: Any, schema: Schema) -> ColumnTransformer:
    """Fit the transformer of a schema's columns to a table, a few columns at a time.

    ``ColumnTransformer.fit`` transforms all rows, in all steps, to find out how many features there
    are; here a few rows do that, with steps that have been fitted before.
    """
    unfitted = make_column_transformer(schema)
    few = typed_frame(table.slice(0, _BLOCK_ROWS), schema)
    steps = []
    for name, transformer, columns in unfitted.transformers:
        if isinstance(columns, str):
            fitted = clone(transformer).fit(_typed_rows(table, schema, [columns])[columns])
        elif name == "categories":
            fitted = clone(transformer).fit(_some_of_each(table, schema, columns))
        elif name == "missing":
            fitted = clone(transformer).fit(few[columns])  # of every column, whatever it holds
        else:
            fitted = _fit_by_columns(transformer, table, schema, columns, few)
        steps.append((name, FrozenEstimator(fitted), columns))
        release_memory()
    with warnings.catch_warnings():
        # A value that counts as rare among all rows.
        warnings.filterwarnings("ignore", message="Found unknown categories")
        encoder = ColumnTransformer(steps).fit(few)
    encoder.transformers_ = [
        (name, step.estimator if isinstance(step, FrozenEstimator) else step, columns)
        for name, step, columns in encoder.transformers_
    ]
    encoder.transformers = unfitted.transformers
    return encoder


def _fit_by_columns(
    transformer: Pipeline, table: Any, schema: Schema, columns: list[str], few: Any
) -> Pipeline:
    """Fit steps that treat columns independently, to a few columns at a time.

    The fitted attributes are concatenated; scikit-learn would copy all columns several times.
    """
    size = max(1, _FIT_CELLS // max(table.num_rows, 1))
    parts = []
    for start in range(0, len(columns), size):
        group = columns[start : start + size]
        parts.append(clone(transformer).fit(_typed_rows(table, schema, group)[group]))
    if len(parts) == 1:
        return parts[0]
    joined = clone(transformer).fit(few[columns])  # with what does not depend on the rows
    for name, step in joined.named_steps.items():
        for learned in _LEARNED & set(vars(step)):
            values = [getattr(part.named_steps[name], learned) for part in parts]
            setattr(step, learned, np.concatenate(values))
        if hasattr(step, "n_samples_seen_"):
            step.n_samples_seen_ = parts[0].named_steps[name].n_samples_seen_
    return joined


def _typed_rows(table: Any, schema: Schema, columns: list[str]) -> Any:
    """Return some columns of a typed frame, with what is in between for few rows at a time."""
    pandas = require("pandas", "tables", "Encoding tables")
    starts = range(0, max(table.num_rows, 1), _BLOCK_ROWS)
    parts = [typed_frame(table.slice(at, _BLOCK_ROWS), schema, set(columns)) for at in starts]
    return parts[0] if len(parts) == 1 else pandas.concat(parts, ignore_index=True)


def _some_of_each(table: Any, schema: Schema, columns: list[str]) -> Any:
    """Return a frame with all values of categories, frequent ones only as often as needed.

    An encoder learns from it what it would from all rows: which values there are, and which of
    them have fewer rows than :data:`_MIN_FREQUENCY`.
    """
    pandas = require("pandas", "tables", "Encoding tables")
    kept, frequent = {}, {}
    for name in columns:
        cells = _typed_rows(table, schema, [name])[name].to_numpy(dtype=object)
        codes, values = pandas.factorize(cells)
        often = np.bincount(codes)
        kept[name] = np.repeat(values, np.minimum(often, _MIN_FREQUENCY))
        frequent[name] = values[often.argmax()]
    n_rows = max(map(len, kept.values()))
    # Columns that are filled up have a frequent value: without one, all their rows are kept.
    return pandas.DataFrame(
        {
            name: np.concatenate([cells, np.repeat(frequent[name], n_rows - len(cells))])
            for name, cells in kept.items()
        },
        dtype=object,
    )


def _encoded(
    table: Any, schema: Schema, encoder: ColumnTransformer
) -> tuple[Any, dict[str, dict[str, int]]]:
    """Return the features of a table, and the counts of values that are not in the training table.

    Computed in blocks of rows, so that only the table and the features are in memory completely.
    """
    made: _Rows | None = None
    unknown: dict[str, dict[str, int]] = {}
    for start in range(0, max(table.num_rows, 1), _BLOCK_ROWS):
        try:
            typed = typed_frame(table.slice(start, _BLOCK_ROWS), schema)
        except TableError as error:
            if error.row is None:
                raise
            raise TableError(error.problem, error.row + start) from error
        _count_unknown_values(typed, schema, encoder, unknown)
        with warnings.catch_warnings():
            # Counted above, with the values.
            warnings.filterwarnings("ignore", message="Found unknown categories")
            block = encoder.transform(typed)
        made = made or (_SparseRows if sp.issparse(block) else _DenseRows)(table.num_rows, block)
        made.append(block)
    assert made is not None
    return made.result(), unknown


class _DenseRows:
    """An array that is filled a block of rows at a time."""

    def __init__(self, n_rows: int, first: np.ndarray) -> None:
        self.array = np.empty((n_rows, first.shape[1]))
        self.end = 0

    def append(self, block: np.ndarray) -> None:
        self.array[self.end : self.end + len(block)] = block
        self.end += len(block)

    def result(self) -> np.ndarray:
        return self.array


class _SparseRows:
    """A CSR matrix that is filled in blocks of rows, in arrays that are resized in place.

    Collecting the blocks and concatenating them would need twice the memory.
    """

    def __init__(self, n_rows: int, first: Any) -> None:
        self.shape = (n_rows, first.shape[1])
        # The number of entries estimated from the first block, and a few more.
        room = first.nnz * n_rows // max(first.shape[0], 1)
        self.data = np.empty(room + room // 50 + 1)
        self.indices = np.empty(len(self.data), dtype=np.int32)
        self.counts = [np.zeros(1, dtype=np.int64)]
        self.end = 0

    def append(self, block: Any) -> None:
        block = sp.csr_matrix(block)
        end = self.end + block.nnz
        if end > len(self.data):
            self._resize(end + len(self.data) // 16)
        self.data[self.end : end] = block.data
        self.indices[self.end : end] = block.indices
        self.counts.append(np.diff(block.indptr))
        self.end = end

    def _resize(self, size: int) -> None:
        # In place: nothing else refers to the arrays.
        self.data.resize(size, refcheck=False)
        self.indices.resize(size, refcheck=False)

    def result(self) -> Any:
        self._resize(self.end)
        ends = np.cumsum(np.concatenate(self.counts))
        ends = ends.astype(np.int32) if self.end <= np.iinfo(np.int32).max else ends
        return sp.csr_matrix((self.data, self.indices, ends), shape=self.shape)


_Rows = _DenseRows | _SparseRows


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")


def typed_frame(table: Any, schema: Schema, only: Collection[str] | None = None) -> Any:
    """Return the feature columns of a table as a pandas data frame of numbers and text.

    Parameters
    ----------
    table : pyarrow.Table
    schema : Schema
        Types of the columns; a value that is not of the type of its column is an error.
    only : collection of str, default=None
        Columns of the frame to return; all by default.
    """
    pandas = require("pandas", "tables", "Encoding tables")
    absent = [name for name in schema.features if name not in table.column_names]
    if absent:
        raise TableError(
            f"{len(absent)} column(s) that the model needs are missing: {_listed(absent)}; the "
            f"table has {_listed(table.column_names)}"
        )
    columns: dict[str, Any] = {}
    for column in schema:
        if column.name not in schema.features:
            continue
        made = date_parts(column) if column.kind == "date" else [column.name]
        if only is not None and not set(made) & set(only):
            continue
        values = table[column.name]
        if is_text(values):
            values, _ = clean_text(values, schema.missing_words)
        typed = _typed(column, values)
        if taken := sorted(set(typed) & (set(columns) | (set(schema.features) - {column.name}))):
            raise TableError(
                f"the parts of the date {column.name!r} would have the same names as the column(s) "
                f"{taken}: rename one of them"
            )
        columns |= typed
    # With explicit types: pandas would convert text to its own type, with another copy.
    return pandas.DataFrame(
        {name: pandas.Series(cells, dtype=cells.dtype) for name, cells in columns.items()}
    )


def check_table(frame: Any, schema: Schema) -> None:
    """Check that a table has the columns of a schema, with values of their types.

    Parameters
    ----------
    frame : pandas or polars data frame, pyarrow table, or dict of columns
        The table.
    schema : Schema
        Types of the columns.

    Raises
    ------
    TableError
        If a column is missing or has an invalid value; with the first invalid row.
    """
    typed_frame(as_table(frame), schema)


def _typed(column: Column, values: Any) -> dict[str, np.ndarray]:
    """Return the columns of numbers or text that a column of a table is converted to."""
    pc = compute()
    if column.kind == "number":
        if is_text(values):
            written, values = values, with_points(values, column.decimal)
            numeric = np.asarray(pc.fill_null(looks_numeric(values), True).to_numpy(), dtype=bool)
            _refuse(column, written, ~numeric, "is not a number")
        numbers = to_numbers(values)
        _refuse(column, values, np.isinf(numbers), "is infinite")
        return {column.name: numbers}
    if column.kind == "yes/no":
        flags, neither = to_flags(values, column.words)
        if _may_count(column) and neither.any():
            # The training table happened to have only 0 and 1 in a column of counts.
            others = _numbers_among(values, neither)
            flags, neither = np.where(neither, others, flags), neither & ~np.isfinite(others)
        no, yes = column.words or ("0", "1")
        _refuse(column, values, neither, f"is neither {no!r} nor {yes!r}")
        return {column.name: flags}
    if column.kind == "date":
        times, wrong = to_times(values, column.date_format)
        _refuse(column, values, wrong, f"is not a date in the format {column.date_format}")
        return _date_columns(column, times)
    return {column.name: _as_text(values, "" if column.kind == "text" else _MISSING_VALUE)}


def _may_count(column: Column) -> bool:
    """Return whether an inferred yes/no column of 0 and 1 may have other numbers later."""
    return not column.overruled and column.words in (None, ("0", "1"), ("0.0", "1.0"))


def _numbers_among(values: Any, wanted: np.ndarray) -> np.ndarray:
    """Return the numbers in some cells of a column; NaN for other cells and for text."""
    pc = compute()
    found = np.full(len(wanted), np.nan)
    where = np.flatnonzero(wanted)
    cells = values.take(where)
    if is_text(cells):
        cells = pc.if_else(looks_numeric(cells), cells, None)
    found[where] = to_numbers(cells)
    return found


def _refuse(column: Column, values: Any, wrong: np.ndarray, problem: str) -> None:
    rows = np.flatnonzero(wrong)
    if len(rows):
        first = values[int(rows[0])].as_py()
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        raise TableError(
            f"column {column.name!r} is of the kind {column.kind}, but {first!r} {problem}{more}; "
            "correct the table, or fit a model that knows the word or has another kind for the "
            "column",
            int(rows[0]),
        )


def _as_text(values: Any, missing: str) -> np.ndarray:
    """Return a column as an array of str; 1.0 and 1 are the same text.

    Equal cells share one object, so that a cell only needs a pointer.
    """
    pa, pc = _arrow(), compute()
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    if pa.types.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    coded = pc.dictionary_encode(values)
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    if isinstance(coded, pa.ChunkedArray):  # of no chunk or, in old versions, of one
        coded = (
            coded.chunk(0) if coded.num_chunks else pa.array([], values.type).dictionary_encode()
        )
    words = coded.dictionary.to_pylist()
    if pa.types.is_floating(values.type):
        words = [f"{word:.15g}" for word in words]
    lookup = np.array([*map(str, words), missing], dtype=object)
    codes = np.asarray(pc.fill_null(coded.indices, len(words)).to_numpy(zero_copy_only=False))
    return lookup[codes]


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


class UnknownValuesWarning(UserWarning):
    """A table has values that are not in the training table.

    Parameters
    ----------
    counts : mapping of str to mapping of str to int
        Per column, the number of rows with each value.
    """

    def __init__(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        self.counts = counts
        said = [
            f"{name!r} in {sum(values.values())} rows ({', '.join(map(repr, sorted(values)[:3]))}"
            f"{', ...' if len(values) > 3 else ''})"
            for name, values in counts.items()
        ]
        super().__init__(
            "values that the training table does not have (categories count as rare or as none, "
            "numbers as they are): " + "; ".join(said)
        )

    def add_to(self, counts: dict[str, dict[str, int]]) -> None:
        """Add the counts of this warning to others.

        Parameters
        ----------
        counts : dict of str to dict of str to int
            Modified in place.
        """
        for name, values in self.counts.items():
            for value, often in values.items():
                _add_unknown(counts, name, value, often)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.counts,)


def _add_unknown(counts: dict[str, dict[str, int]], name: str, value: str, often: int) -> None:
    found = counts.setdefault(name, {})
    # If the column has ids by mistake, the first thousand values are enough.
    value = value if value in found or len(found) < _MOST_UNKNOWN else _OTHER_VALUES
    found[value] = found.get(value, 0) + often


def _count_unknown_values(
    typed: Any, schema: Schema, encoder: ColumnTransformer, counts: dict[str, dict[str, int]]
) -> None:
    """Count values that are not in the training table."""
    pandas = require("pandas", "tables", "Encoding tables")
    for name in schema.of_kind("yes/no"):
        flags = typed[name].to_numpy()
        others = flags[~(np.isnan(flags) | (flags == 0) | (flags == 1))]
        for value, often in zip(*np.unique(others, return_counts=True), strict=True):
            _add_unknown(counts, name, f"{value:.15g}", int(often))
    names = schema.of_kind("category")
    if not names:
        return
    known = encoder.named_transformers_["categories"].categories_
    for name, categories in zip(names, known, strict=True):
        codes, values = pandas.factorize(typed[name].to_numpy(dtype=object))
        there = {*categories, _MISSING_VALUE}
        often = np.bincount(codes, minlength=len(values))
        for j, value in enumerate(values):
            if value not in there:
                _add_unknown(counts, name, str(value), int(often[j]))
