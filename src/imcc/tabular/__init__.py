"""Tables as people have them: numbers, categories, text and dates in, a model out.

:func:`infer_schema` says what the columns of a table are, by stated rules that can be overruled.
:class:`TableEncoder` turns them into features with scikit-learn's own transformers, and
:class:`TableClassifier` puts a classifier behind it.
"""

from imcc.tabular._classifier import TableClassifier
from imcc.tabular._columns import MISSING
from imcc.tabular._encoder import TableEncoder
from imcc.tabular._labels import indicator_columns, read_tags, tag_matrix
from imcc.tabular._read import read_table
from imcc.tabular._schema import KINDS, Column, Schema, TableError, infer_schema

__all__ = [
    "KINDS",
    "MISSING",
    "Column",
    "Schema",
    "TableClassifier",
    "TableEncoder",
    "TableError",
    "indicator_columns",
    "infer_schema",
    "read_table",
    "read_tags",
    "tag_matrix",
]
