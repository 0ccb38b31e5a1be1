"""Models for tables with numbers, categories, text, dates and missing values.

:func:`infer_schema` infers the types of the columns of a table by documented rules, which can be
overridden.  :class:`TableEncoder` converts the columns to features with scikit-learn's
transformers, and :class:`TableClassifier` combines it with a classifier.
"""

from imcc._utils.cells import MISSING
from imcc.tables._classifier import TableClassifier
from imcc.tables._corrected import TreeCorrectedClassifier
from imcc.tables._encoder import TableEncoder
from imcc.tables._encoding import UnknownValuesWarning
from imcc.tables._example import example_table, write_example
from imcc.tables._labels import indicator_columns, read_tags, tag_matrix, tag_separator
from imcc.tables._read import (
    TableFile,
    decoded,
    is_table,
    iterate_table,
    joined_tables,
    read_table,
    table_fingerprint,
)
from imcc.tables._schema import KINDS, Column, Schema, TableError, infer_schema
from imcc.tables._toml import KnownColumns, read_schema, schema_text, write_schema
from imcc.tables._typed import check_table

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
