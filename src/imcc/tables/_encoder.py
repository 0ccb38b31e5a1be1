"""TableEncoder: from a table to features, by a schema."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from imcc._utils.errors import InvalidArgumentError
from imcc.datasets._errors import listed, repeated
from imcc.tables._columns import as_table
from imcc.tables._infer import column_options, infer_schema
from imcc.tables._schema import Schema, TableError, require_rows
from imcc.tables._steps import BLOCK_ROWS, Category, Cells, Entries, Text, fit_steps
from imcc.tables._typed import MISSING_VALUE, typed_arrays, typed_names

#: The shares of the features' variance that a kind's columns have by default.
WEIGHTS = {"numbers": 1.0, "categories": 1.0, "text": 4.0}
# Entries that are scaled at a time.
_FEW_ENTRIES = 2**16
# Features are sparse if this fraction of the entries is stored at most, as in scikit-learn.
_MOST_STORED = 0.3
# Different unknown values of a column that are counted one by one, and what stands for the rest.
_MOST_UNKNOWN = 1000
_OTHER_VALUES = "(others)"


class TableEncoder(TransformerMixin, BaseEstimator):
    r"""Convert a table with columns of any type to features.

    The types are inferred from the training table (:func:`infer_schema`) and applied unchanged to
    other tables, whose columns are matched by name.  The features are those of transformers of
    scikit-learn:

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
    steps_ : list
        What was learned from the columns, in the order of the features.
    scales_ : list of float
        The factor on the features of each step, which balances the blocks.
    is_sparse_ : bool
        Whether features are a sparse matrix: if most of them are 0, and not all are numbers.
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
        return self.fit_schema(table, infer_schema(table, **column_options(self)))

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
        """Fit the steps, and return the features before blocks are weighted."""
        require_rows(table)
        if not schema.features:
            kinds = ", ".join(f"{c.name!r} is {c.kind}" for c in schema.columns[:10])
            raise TableError(
                "the table has no columns that could be features: "
                + (kinds or "it has none, or all are dropped")
            )
        first = typed_arrays(table.slice(0, BLOCK_ROWS), schema)
        names = [name for column in schema.feature_columns for name in typed_names(column)]
        if twice := repeated(names):
            raise TableError(
                f"parts of dates and columns would have the same names: {listed(twice)}; rename "
                "one of them"
            )
        self.schema_ = schema
        self.steps_ = fit_steps(table, schema)
        self.scales_ = [1.0] * len(self.steps_)
        self.feature_names_in_ = np.array(
            [column.name for column in schema if column.kind != "label"], dtype=object
        )
        self.n_features_in_ = len(self.feature_names_in_)
        # By the first rows, as in scikit-learn's ColumnTransformer.  With numbers only, of which
        # none are left out, features are dense.
        n_rows, n_stored = min(table.num_rows, BLOCK_ROWS), 0
        for step in self.steps_:
            may_be_sparse = isinstance(step, Category | Text)
            n_stored += len(step.entries(first)[0]) if may_be_sparse else n_rows * step.width
        self.is_sparse_ = n_stored < _MOST_STORED * n_rows * self._n_features
        return self._encoded(table)[0]

    @property
    def _n_features(self) -> int:
        return sum(step.width for step in self.steps_)

    def _weigh(self, features: Any, weights: Mapping[str, float]) -> Any:
        """Scale the blocks of the training table's features in place, and those of later tables.

        The variance of a block is the sum of the variances of its features, that is, half of the
        mean squared distance of two rows.
        """
        widths = [step.width for step in self.steps_]
        blocks = [_block_of(step.part) for step in self.steps_]
        variances, block_of_feature = _variances(features), np.repeat(blocks, widths)
        scales = {}
        for block, columns in blocks_of(self.schema_).items():
            wanted = weights["text" if block.startswith("text ") else block] * len(columns)
            total = float(variances[block_of_feature == block].sum())
            scales[block] = float(np.sqrt(wanted / total)) if total > 0 else 1.0
        self.scales_ = [scales[block] for block in blocks]
        factors = np.repeat(self.scales_, widths)
        if not sp.issparse(features):
            features *= factors
            return features
        for start in range(0, features.nnz, _FEW_ENTRIES):
            some = slice(start, start + _FEW_ENTRIES)
            features.data[some] *= factors[features.indices[some]]
        return features

    def _encoded(self, table: Any) -> tuple[Any, dict[str, dict[str, int]]]:
        """Return the features of a table, and the counts of values that training did not have.

        They are computed in blocks of rows, and stored in arrays that are resized in place, so that
        only the table and the features are in memory completely.
        """
        require_rows(table)
        shape = table.num_rows, self._n_features
        dense = None if self.is_sparse_ else np.zeros(shape)
        data, indices = np.empty(0), np.empty(0, dtype=np.int32)
        counts, end = [np.zeros(1, dtype=np.int64)], 0
        unknown: dict[str, dict[str, int]] = {}
        for start in range(0, table.num_rows, BLOCK_ROWS):
            part = table.slice(start, BLOCK_ROWS)
            try:
                cells = typed_arrays(part, self.schema_)
            except TableError as error:
                raise error.renumbered(start.__add__) from error
            add_counts(unknown, self._unknown_values(cells))
            rows, places, values = self._entries(cells)
            if dense is not None:
                dense[start + rows, places] = values
                continue
            # The steps are in the order of their features: so are the entries of each row, then.
            order = np.argsort(rows, kind="stable")
            begin, end = end, end + len(rows)
            if end > len(data):  # room for further rows like these, and a few more
                n_left = table.num_rows - start - part.num_rows
                room = end + len(rows) * n_left // part.num_rows * 51 // 50
                data.resize(room, refcheck=False)
                indices.resize(room, refcheck=False)
            data[begin:end], indices[begin:end] = values[order], places[order]
            counts.append(np.bincount(rows, minlength=part.num_rows))
        if dense is not None:
            return dense, unknown
        data.resize(end, refcheck=False)
        indices.resize(end, refcheck=False)
        return sp.csr_matrix((data, indices, np.cumsum(np.concatenate(counts))), shape), unknown

    def _entries(self, cells: Cells) -> Entries:
        """Return the features of rows that are not 0."""
        parts, width = [], 0
        for step, scale in zip(self.steps_, self.scales_, strict=True):
            rows, places, values = step.entries(cells)
            values *= scale
            parts.append((rows, places + width, values))
            width += step.width
        rows, places, values = map(np.concatenate, zip(*parts, strict=True))
        if places.max(initial=-1) >= width:  # SciPy's compiled code does not check what a file says
            raise ValueError("the encoder is damaged: its features have wrong numbers")
        return rows, places, values

    def _unknown_values(self, cells: Cells) -> dict[str, dict[str, int]]:
        """Count the values of rows that are not in the training table."""
        found: dict[str, dict[str, int]] = {}
        for name in self.schema_.of_kind("yes/no"):
            flags = cells[name]
            others = flags[~(np.isnan(flags) | (flags == 0) | (flags == 1))]
            found[name] = Counter(f"{flag:.15g}" for flag in others.tolist())
        for step in self.steps_:
            if isinstance(step, Category):
                values = Counter(cells[step.column].tolist())
                values.pop(MISSING_VALUE, None)
                found[step.column] = {v: n for v, n in values.items() if v not in step.places}
        return {name: values for name, values in found.items() if values}

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
        features, unknown = self._encoded(as_table(X))
        if unknown:
            warnings.warn(UnknownValuesWarning(unknown), stacklevel=2)
        return features

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features, derived from those of the columns."""
        check_is_fitted(self)
        return np.array([name for step in self.steps_ for _, name in step.names], dtype=object)

    def feature_columns(self) -> np.ndarray:
        """Return the column of the table that each feature is derived from.

        Returns
        -------
        ndarray of str of shape (n_features,)
        """
        check_is_fitted(self)
        return np.array([column for step in self.steps_ for column, _ in step.names], dtype=object)

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
        return hasattr(self, "is_sparse_")


def check_weights(weights: Mapping[str, float] | None) -> dict[str, float]:
    """Return the weights of all blocks; check those that are given."""
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


def _block_of(part: str) -> str:
    """Return the block that a part of the features belongs to."""
    return "numbers" if part in ("missing", "yes/no") else part


def _variances(features: Any) -> np.ndarray:
    """Return the variance of every feature, without another array of all entries."""
    scaler = StandardScaler(with_mean=False)
    for start in range(0, features.shape[0], BLOCK_ROWS):
        scaler.partial_fit(features[start : start + BLOCK_ROWS])
    return scaler.var_


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

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.counts,)


def add_counts(counts: dict[str, dict[str, int]], more: Mapping[str, Mapping[str, int]]) -> None:
    """Add the counts of unknown values of columns to others, in place."""
    for name, values in more.items():
        found = counts.setdefault(name, {})
        for value, often in values.items():
            # If the column has ids by mistake, the first thousand values are enough.
            key = value if value in found or len(found) < _MOST_UNKNOWN else _OTHER_VALUES
            found[key] = found.get(key, 0) + often
