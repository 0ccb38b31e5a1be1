"""The steps from typed columns to features, each fitted to the columns of some kinds.

They learn with scikit-learn's transformers and compute features directly: for a single row, the
checks of scikit-learn would take ten times as long.  The features are the same to the last digit.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import RobustScaler, StandardScaler
from sklearn.utils.sparsefuncs_fast import inplace_csr_row_normalize_l2

from imcc._utils.errors import given
from imcc.tables._columns import release_memory
from imcc.tables._schema import Column, Schema, TableError
from imcc.tables._typed import read_column

#: Rows that are looked at at a time.
BLOCK_ROWS = 2048
# Values of a category that occur less often share one indicator.
_MIN_FREQUENCY = 3
# The most features of each of the two TF-IDF parts of a text column.
_MAX_TERMS = 20_000
# Cells of numbers that are learned from at a time.
_FIT_CELLS = 2**18

#: Typed columns by name, as :func:`imcc.tables._typed.typed_arrays` returns them.
Cells = Mapping[str, np.ndarray]
#: Entries of a matrix that are not zero: their rows, columns and values.
Entries = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass
class Numbers:
    """Numbers with missing ones replaced, less their centers, divided by their scales.

    Attributes
    ----------
    origins : dict of str to str
        The column of the table that each typed column is from.
    filling, center, scale : ndarray of shape (n_columns,)
        What replaces missing values, what is subtracted, and what is divided by.
    part : str
        The part of the features that they belong to.
    """

    origins: dict[str, str]
    filling: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    part: str

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.origins)

    @property
    def names(self) -> list[tuple[str, str]]:
        """The column of the table and the name of each feature."""
        return [(column, name) for name, column in self.origins.items()]

    def entries(self, cells: Cells) -> Entries:
        """Return the features of rows."""
        numbers = np.column_stack([cells[name] for name in self.origins])
        numbers = np.where(np.isnan(numbers), self.filling, numbers)
        numbers -= self.center
        numbers /= self.scale
        rows, places = np.nonzero(numbers)
        return rows, places, numbers[rows, places]


@dataclass
class Missing:
    """An indicator per column of numbers of whether the value is missing."""

    origins: dict[str, str]
    part: str = "missing"

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.origins)

    @property
    def names(self) -> list[tuple[str, str]]:
        """The column of the table and the name of each feature."""
        return [(column, f"{name} is missing") for name, column in self.origins.items()]

    def entries(self, cells: Cells) -> Entries:
        """Return the features of rows."""
        is_missing = np.isnan(np.column_stack([cells[name] for name in self.origins]))
        rows, places = np.nonzero(is_missing)
        return rows, places, np.ones(len(rows))


@dataclass
class Category:
    """An indicator per frequent value of a column, and one that the rare values share.

    Attributes
    ----------
    column : str
        Name of the column.
    places : dict of str to int
        The indicator of each value of the training table; rare values have the last one.
    other : int
        The indicator of rare and of unknown values, or -1 if no value is rare.
    """

    column: str
    places: dict[str, int]
    other: int
    part: str = "categories"

    @property
    def frequent(self) -> list[str]:
        """The values that have an indicator of their own, in its order."""
        return [value for value, place in self.places.items() if place != self.other]

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.places) if self.other < 0 else min(self.other + 1, len(self.places))

    @property
    def names(self) -> list[tuple[str, str]]:
        """The column of the table and the name of each feature."""
        values = self.frequent + (["infrequent"] if self.other >= 0 else [])
        return [(self.column, f"{self.column}={value}") for value in values]

    def entries(self, cells: Cells) -> Entries:
        """Return the features of rows."""
        get, other = self.places.get, self.other
        places = np.array([get(value, other) for value in cells[self.column].tolist()])
        rows = np.flatnonzero(places >= 0)
        return rows, places[rows], np.ones(len(rows))


# The analyzer of each vectorizer, for as long as that exists.
_ANALYZERS: WeakKeyDictionary[Any, Callable[[str], list[str]]] = WeakKeyDictionary()


@dataclass
class Text:
    """TF-IDF of the words and pairs of words of a column, or of the parts of its words.

    Attributes
    ----------
    column : str
        Name of the column.
    vectorizer : TfidfVectorizer
        The fitted vectorizer.
    form : str
        Name of the feature of a term, with braces for it.
    part : str
        The part of the features that they belong to.
    """

    column: str
    vectorizer: TfidfVectorizer
    form: str
    part: str

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.vectorizer.vocabulary_)

    @property
    def names(self) -> list[tuple[str, str]]:
        """The column of the table and the name of each feature."""
        terms = self.vectorizer.get_feature_names_out()
        return [(self.column, f"{self.column} has '{self.form.format(term)}'") for term in terms]

    def entries(self, cells: Cells) -> Entries:
        """Return the features of rows, as ``vectorizer.transform`` computes them."""
        vectorizer, texts = self.vectorizer, cells[self.column]
        analyze = _ANALYZERS.get(vectorizer)
        if analyze is None:
            analyze = _ANALYZERS[vectorizer] = vectorizer.build_analyzer()
        place_of = vectorizer.vocabulary_.get
        indices, counts, ends = array("i"), array("d"), array("i", [0])
        for text in texts.tolist():
            found = Counter(map(place_of, analyze(text)))
            found.pop(None, None)
            places = sorted(found)
            indices.extend(places)
            counts.extend(map(found.__getitem__, places))
            ends.append(len(indices))
        data, where = np.array(counts), np.array(indices, dtype=np.int32)
        np.log(data, out=data)
        data += 1.0
        data *= vectorizer.idf_[where]
        parts = data, where, np.array(ends, dtype=np.int32)
        weighted = sp.csr_matrix(parts, shape=(len(texts), len(vectorizer.vocabulary_)))
        inplace_csr_row_normalize_l2(weighted)
        rows = np.repeat(np.arange(len(texts)), np.diff(weighted.indptr))
        return rows, weighted.indices, weighted.data


Step = Numbers | Missing | Category | Text


def fit_steps(table: Any, schema: Schema) -> list[Step]:
    """Return the steps, fitted to the columns of a table one at a time.

    Parameters
    ----------
    table : pyarrow.Table
    schema : Schema
        Types of its columns.
    """
    numbers = _Learner(
        "numbers",
        SimpleImputer(strategy="median", keep_empty_features=True),
        RobustScaler(quantile_range=(5.0, 95.0), unit_variance=True),
    )
    flags = _Learner(
        "yes/no",
        SimpleImputer(strategy="most_frequent", keep_empty_features=True),
        StandardScaler(),
    )
    often_missing: dict[str, str] = {}
    categories: list[Category] = []
    texts: list[Text] = []
    for column in schema.feature_columns:
        blocks = [
            read_column(table.slice(start, BLOCK_ROWS), column, schema.missing_words)
            for start in range(0, table.num_rows, BLOCK_ROWS)
        ]
        cells = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
        del blocks
        release_memory()
        if column.kind == "category":
            categories.append(_fit_category(column, cells[column.name]))
        elif column.kind == "text":
            texts += _fit_text(column, cells[column.name], f"text {len(texts) // 2}")
        else:
            (flags if column.kind == "yes/no" else numbers).fit(column, cells)
            if column.kind != "yes/no" and column.often_missing:
                often_missing[next(iter(cells))] = column.name
    missing = [Missing(often_missing)] if often_missing else []
    return [*numbers.step(), *missing, *flags.step(), *categories, *texts]


class _Learner:
    """Learns what replaces missing numbers, and their center and scale, of a few columns at a time.

    Parameters
    ----------
    part : str
        The part of the features that the numbers belong to.
    impute, scale : transformer
        What learns the first, and the others.
    """

    def __init__(self, part: str, impute: Any, scale: Any) -> None:
        self._part, self._impute, self._scale = part, impute, scale
        self._origins: dict[str, str] = {}
        self._waiting: list[np.ndarray] = []
        self._learned: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def fit(self, column: Column, cells: Cells) -> None:
        """Learn from the numbers that a column of the table became."""
        self._origins |= dict.fromkeys(cells, column.name)
        self._waiting += cells.values()
        if sum(map(len, self._waiting)) >= _FIT_CELLS:
            self._learn()

    def _learn(self) -> None:
        impute, scale = self._impute, self._scale
        scale.fit(impute.fit_transform(np.array(self._waiting).T))
        center = scale.center_ if hasattr(scale, "center_") else scale.mean_
        self._learned.append((impute.statistics_, center, scale.scale_))
        self._waiting.clear()

    def step(self) -> list[Numbers]:
        """Return the step, or none without columns."""
        if self._waiting:
            self._learn()
        if not self._learned:
            return []
        filling, center, scale = np.concatenate(self._learned, axis=1)
        return [Numbers(self._origins, filling, center, scale, self._part)]


def _fit_category(column: Column, cells: np.ndarray) -> Category:
    counts = Counter(cells.tolist())
    frequent = sorted(value for value, often in counts.items() if often >= _MIN_FREQUENCY)
    rare = sorted(value for value, often in counts.items() if often < _MIN_FREQUENCY)
    places = {value: place for place, value in enumerate(frequent)}
    places |= dict.fromkeys(rare, len(frequent))
    other = len(frequent) if rare else -1
    return Category(column.name, places, other)


def _fit_text(column: Column, cells: np.ndarray, part: str) -> list[Text]:
    # Terms that occur in a single row are not informative, unless there are very few rows.
    least = 1 if column.n_rows < 50 else 3
    common: dict[str, Any] = {
        "sublinear_tf": True,
        "strip_accents": "unicode",
        "max_features": _MAX_TERMS,
    }
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=min(2, least), **common)
    parts = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=least, **common)
    try:
        for vectorizer in (words, parts):
            vectorizer.fit(cells)
            # NumPy's integers would be an array each in a model file.
            terms = vectorizer.vocabulary_
            vectorizer.vocabulary_ = {term: int(place) for term, place in terms.items()}
    except ValueError as error:
        if "empty vocabulary" not in str(error) and "no terms remain" not in str(error):
            raise
        raise TableError(
            f"column {column.name!r} is of the kind text, but has no words that occur in "
            "several rows: leave it out with " + given("drop", [column.name]) + ", or set its "
            "kind with " + given("kinds", {column.name: "category"})
        ) from error
    return [
        Text(column.name, words, "{}", part),
        Text(column.name, parts, "...{}...", part),
    ]
