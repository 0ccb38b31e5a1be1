"""TableEncoder: from a table to features, by a schema and scikit-learn's own transformers."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from imcc.tables._balance import block_scales, blocks_of, check_weights, scaled
from imcc.tables._columns import as_table
from imcc.tables._encoding import UnknownValuesWarning, encoded
from imcc.tables._schema import Schema, TableError, infer_schema, require_rows
from imcc.tables._transformer import fit_column_transformer
from imcc.tables._typed import MISSING_VALUE, date_parts, typed_frame


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
        weights = check_weights(self.weights)
        table = as_table(X)
        require_rows(table)
        if not schema.features:
            raise TableError(_without_features(schema))
        encoder = fit_column_transformer(table, schema)
        features, _ = encoded(table, schema, encoder)
        scales = block_scales(encoder, features, schema, weights)
        encoder.set_params(transformer_weights=scales)
        self.schema_ = schema
        self.encoder_ = encoder
        self.block_columns_ = {name: len(columns) for name, columns in blocks_of(schema).items()}
        self.feature_names_in_ = np.array(
            [column.name for column in schema if column.kind != "label"], dtype=object
        )
        self.n_features_in_ = len(self.feature_names_in_)
        return scaled(features, encoder, scales)

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
        features, unknown = encoded(as_table(X), self.schema_, self.encoder_)
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
        return super().set_output(transform=transform)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "encoder_")


def _without_features(schema: Schema) -> str:
    kinds = [f"{c.name!r} is {c.kind}" for c in schema]
    more = f"; and {len(kinds) - 10} more" if len(kinds) > 10 else ""
    found = "; ".join(kinds[:10]) + more if kinds else "it has none, or all are dropped"
    return f"the table has no columns that could be features: {found}"


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
