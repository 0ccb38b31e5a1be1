"""TableEncoder: from a table to features, by a schema and scikit-learn's own transformers."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.utils.validation import check_is_fitted

from imcc.tables._balance import block_scales, check_weights, scaled
from imcc.tables._columns import as_table
from imcc.tables._schema import Schema, TableError, infer_schema, require_rows
from imcc.tables._transformer import (
    BLOCK_ROWS,
    fit_column_transformer,
    indicated,
    transform_columns,
)
from imcc.tables._typed import MISSING_VALUE, date_parts, typed_arrays

# Different unknown values of a column that are counted one by one, and what stands for the rest.
_MOST_UNKNOWN = 1000
_OTHER_VALUES = "(others)"


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
        X : pandas or polars data frame, pyarrow table, dict of columns, or list of records
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
        X : pandas or polars data frame, pyarrow table, dict of columns, or list of records
            Training table.
        y, **fit_params
            Ignored.

        Returns
        -------
        ndarray or CSR matrix of shape (n_samples, n_features)
        """
        table = as_table(X)
        return self.fit_schema(table, self._infer_schema(table))

    def _infer_schema(self, table: Any, labels: Collection[str] = ()) -> Schema:
        """Infer the schema of a table with the parameters of the encoder."""
        return infer_schema(
            table,
            kinds=self.kinds,
            date_formats=self.date_formats,
            drop=self.drop,
            labels=labels,
            missing_words=self.missing_words,
        )

    def fit_schema(self, X: Any, schema: Schema) -> Any:
        """Fit the transformers for a given schema, and return the features.

        Parameters
        ----------
        X : pandas or polars data frame, pyarrow table, dict of columns, or list of records
            Training table.
        schema : Schema
            Types of the columns; the parameters of the encoder about columns are ignored.

        Returns
        -------
        ndarray or CSR matrix of shape (n_samples, n_features)
        """
        weights = check_weights(self.weights)
        return self._weigh(self._fit_unweighted(as_table(X), schema), weights)

    def _fit_unweighted(self, table: Any, schema: Schema) -> Any:
        """Fit the transformers, and return the features before blocks are weighted."""
        require_rows(table)
        if not schema.features:
            kinds = ", ".join(f"{c.name!r} is {c.kind}" for c in schema.columns[:10])
            raise TableError(
                "the table has no columns that could be features: "
                + (kinds or "it has none, or all are dropped")
            )
        encoder = fit_column_transformer(table, schema)
        features, _ = _encoded(table, schema, encoder)
        self.schema_ = schema
        self.encoder_ = encoder
        self.feature_names_in_ = np.array(
            [column.name for column in schema if column.kind != "label"], dtype=object
        )
        self.n_features_in_ = len(self.feature_names_in_)
        return features

    def _weigh(self, features: Any, weights: Mapping[str, float]) -> Any:
        """Scale the blocks of the training table's features in place, and those of later tables."""
        scales = block_scales(self.encoder_, features, self.schema_, weights)
        self.encoder_.set_params(transformer_weights=scales)
        return scaled(features, self.encoder_, scales)

    def transform(self, X: Any) -> Any:
        """Return the features of a table.

        Parameters
        ----------
        X : pandas or polars data frame, pyarrow table, dict of columns, or list of records
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
        return np.array([name for _, name in self._features()], dtype=object)

    def feature_columns(self) -> np.ndarray:
        """Return the column of the table that each feature is derived from.

        Returns
        -------
        ndarray of str of shape (n_features,)
        """
        return np.array([column for column, _ in self._features()], dtype=object)

    def _features(self) -> list[tuple[str, str]]:
        """Return the column of the table and the name of each feature."""
        check_is_fitted(self)
        dates = [column for column in self.schema_ if column.kind == "date"]
        origin = {part: column.name for column in dates for part in date_parts(column)}
        found: list[tuple[str, str]] = []
        for step, transformer, columns in self.encoder_.transformers_:
            if step == "categories":
                rare = transformer.infrequent_categories_
                for column, values, others in zip(
                    columns, transformer.categories_, rare, strict=True
                ):
                    few = set() if others is None else set(others)
                    found += [(column, f"{column}={v}") for v in values if v not in few]
                    found += [(column, f"{column}=infrequent")] if few else []
            elif step.startswith("text "):
                for part, vectorizer in transformer.transformer_list:
                    form = "{} has '{}'" if part == "words" else "{} has '...{}...'"
                    terms = vectorizer.get_feature_names_out()
                    found += [(columns, form.format(columns, term)) for term in terms]
            elif step != "remainder":
                form = "{} is missing" if step == "missing" else "{}"
                found += [(origin.get(c, c), form.format(c)) for c in columns]
        return found

    def typed_columns(self, X: Any) -> dict[str, np.ndarray]:
        """Return the feature columns of a table, as numbers and text.

        Parameters
        ----------
        X : pandas or polars data frame, pyarrow table, dict of columns, or list of records

        Returns
        -------
        dict of str to ndarray
            Numbers, 0 and 1 for yes/no, and days since 1970 for dates, NaN if missing; strings for
            categories and text, None if missing.
        """
        check_is_fitted(self)
        typed = typed_arrays(as_table(X), self.schema_)
        found = {}
        for name in self.schema_.features:
            column = self.schema_[name]
            values = typed[date_parts(column)[0] if column.kind == "date" else name]
            if column.kind in ("category", "text"):
                missing = "" if column.kind == "text" else MISSING_VALUE
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
        # With a docstring of ours: that of scikit-learn has references to its own pages.
        return super().set_output(transform=transform)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "encoder_")


def _encoded(
    table: Any, schema: Schema, encoder: ColumnTransformer
) -> tuple[Any, dict[str, dict[str, int]]]:
    """Return the features of a table, and the counts of values that are not in the training table.

    Computed in blocks of rows, so that only the table and the features are in memory completely.
    """
    require_rows(table)
    dense: Any = None
    sparse: _SparseRows | None = None
    unknown: dict[str, dict[str, int]] = {}
    for start in range(0, table.num_rows, BLOCK_ROWS):
        try:
            typed = typed_arrays(table.slice(start, BLOCK_ROWS), schema)
        except TableError as error:
            if error.row is None:
                raise
            raise TableError(error.problem, error.row + start) from error
        _count_unknown_values(typed, schema, encoder, unknown)
        block = transform_columns(encoder, typed)
        if table.num_rows <= BLOCK_ROWS:
            return block, unknown
        if sp.issparse(block):
            sparse = sparse or _SparseRows(table.num_rows, block)
            sparse.append(block)
        else:
            dense = np.empty((table.num_rows, block.shape[1])) if dense is None else dense
            dense[start : start + len(block)] = block
    return dense if sparse is None else sparse.result(), unknown


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
    typed: Mapping[str, np.ndarray],
    schema: Schema,
    encoder: ColumnTransformer,
    counts: dict[str, dict[str, int]],
) -> None:
    """Count values that are not in the training table."""
    for name in schema.of_kind("yes/no"):
        flags = typed[name]
        others = flags[~(np.isnan(flags) | (flags == 0) | (flags == 1))]
        for value, often in zip(*np.unique(others, return_counts=True), strict=True):
            _add_unknown(counts, name, f"{value:.15g}", int(often))
    for name, known in indicated(encoder).items():
        for value, often in Counter(typed[name].tolist()).items():
            if value not in known.places and value != MISSING_VALUE:
                _add_unknown(counts, name, str(value), often)
