"""Models for tables with numbers, categories, text, dates and missing values.

:func:`read_table` reads CSV, TSV and Parquet files and spreadsheets.  :func:`infer_schema` infers
the types of the columns of a table by documented rules, which can be overridden.
:class:`TableEncoder` converts the columns to features with scikit-learn's transformers, and
:class:`TableClassifier` combines it with a classifier.  :func:`write_predictions` predicts files of
any size.  :func:`read_dataset` converts a table of numbers and categories to arrays.
"""

from imcc.tables._classifier import TableClassifier
from imcc.tables._dataset import read_dataset
from imcc.tables._encoder import TableEncoder, UnknownValuesWarning
from imcc.tables._example import example_table
from imcc.tables._infer import infer_schema
from imcc.tables._labels import read_tags, tag_matrix
from imcc.tables._load import read_table
from imcc.tables._predict import write_predictions
from imcc.tables._schema import (
    Column,
    KnownColumns,
    Schema,
    TableError,
    read_schema,
    write_schema,
)

__all__ = [
    "Column",
    "KnownColumns",
    "Schema",
    "TableClassifier",
    "TableEncoder",
    "TableError",
    "UnknownValuesWarning",
    "example_table",
    "infer_schema",
    "read_dataset",
    "read_schema",
    "read_table",
    "read_tags",
    "tag_matrix",
    "write_predictions",
    "write_schema",
]
