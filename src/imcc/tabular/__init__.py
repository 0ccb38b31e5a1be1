"""Models for tables with numbers, categories, text, dates and missing values.

:func:`infer_schema` infers the types of the columns of a table by documented rules, which can be
overridden.  :class:`TableEncoder` converts the columns to features with scikit-learn's
transformers, and :class:`TableClassifier` combines it with a classifier.
"""

from imcc._utils.cells import MISSING
from imcc.tabular._classifier import TableClassifier
from imcc.tabular._corrected import TreeCorrectedClassifier
from imcc.tabular._encoder import TableEncoder
from imcc.tabular._encoding import UnknownValuesWarning
from imcc.tabular._example import example_table, write_example
from imcc.tabular._labels import indicator_columns, read_tags, tag_matrix, tag_separator
from imcc.tabular._read import (
    TableFile,
    decoded,
    is_table,
    iterate_table,
    joined_tables,
    read_table,
    table_fingerprint,
)
from imcc.tabular._schema import KINDS, Column, Schema, TableError, infer_schema
from imcc.tabular._toml import KnownColumns, read_schema, schema_text, write_schema
from imcc.tabular._typed import check_table

__all__ = [
    "KINDS",
    "MISSING",
    "Column",
    "KnownColumns",
    "Schema",
    "TableClassifier",
    "TableEncoder",
    "TableError",
    "TableFile",
    "TreeCorrectedClassifier",
    "UnknownValuesWarning",
    "check_table",
    "decoded",
    "example_table",
    "indicator_columns",
    "infer_schema",
    "is_table",
    "iterate_table",
    "joined_tables",
    "read_schema",
    "read_table",
    "read_tags",
    "schema_text",
    "table_fingerprint",
    "tag_matrix",
    "tag_separator",
    "write_example",
    "write_schema",
]
