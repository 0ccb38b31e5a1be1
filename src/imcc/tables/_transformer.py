"""The column transformer of a schema, fitted to a table a few columns at a time."""

from __future__ import annotations

import warnings
from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, RobustScaler, StandardScaler
from sklearn.utils.sparsefuncs_fast import inplace_csr_row_normalize_l2

from imcc._utils.errors import given
from imcc._utils.optional import require
from imcc.tables._columns import release_memory
from imcc.tables._schema import Schema, TableError
from imcc.tables._typed import date_parts, typed_frame

#: Rows that are looked at at a time.
BLOCK_ROWS = 2048
# Values that occur less often share one indicator.
_MIN_FREQUENCY = 3
# The most features of each of the two TF-IDF parts of a text column.
_MAX_TERMS = 20_000
# Cells of numbers that are fitted to at a time, and what the steps learn of each column.
_FIT_CELLS = 2**18
_LEARNED = {"statistics_", "center_", "scale_", "mean_", "var_"}


class Indicators(OneHotEncoder):
    """A OneHotEncoder whose result is checked, because SciPy's compiled code does not check it.

    The encoder computes column numbers from several of its attributes, and a model file may contain
    any numbers.
    """

    def transform(self, X: Any) -> Any:
        """Return the indicators of rows as a sparse matrix."""
        if not self.sparse_output:
            raise ValueError("sparse_output must be True")
        encoded = super().transform(X)
        encoded.check_format(full_check=True)
        return encoded


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
    indicators = Indicators(
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
        common: dict[str, Any] = {
            "sublinear_tf": True,
            "strip_accents": "unicode",
            "max_features": _MAX_TERMS,
        }
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=min(2, least), **common)
        parts = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=least, **common)
        steps.append((f"text {j}", FeatureUnion([("words", words), ("parts", parts)]), name))
    return ColumnTransformer(steps)


def fit_column_transformer(table: Any, schema: Schema) -> ColumnTransformer:
    """Fit the transformer of a schema's columns to a table, a few columns at a time.

    ``ColumnTransformer.fit`` transforms all rows, in all steps, to find out how many features there
    are; here a few rows do that, with steps that have been fitted before.
    """
    unfitted = make_column_transformer(schema)
    few = typed_frame(table.slice(0, BLOCK_ROWS), schema)
    steps = []
    for name, transformer, columns in unfitted.transformers:
        if isinstance(columns, str):
            cells = _typed_rows(table, schema, [columns])[columns]
            try:
                fitted = clone(transformer).fit(cells)
                for _, vectorizer in fitted.transformer_list:
                    # NumPy's integers would be an array each in a model file.
                    terms = vectorizer.vocabulary_
                    vectorizer.vocabulary_ = {term: int(place) for term, place in terms.items()}
            except ValueError as error:
                if "empty vocabulary" not in str(error) and "no terms remain" not in str(error):
                    raise
                raise TableError(
                    f"column {columns!r} is of the kind text, but has no words that occur in "
                    "several rows: leave it out with " + given("drop", [columns]) + ", or set its "
                    "kind with " + given("kinds", {columns: "category"})
                ) from error
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


def transform_columns(encoder: ColumnTransformer, columns: Mapping[str, np.ndarray]) -> Any:
    """Return the features of typed columns, as ``encoder.transform`` does for their data frame.

    The results are the same to the last digit.  The steps are those of
    :func:`make_column_transformer`, and are computed directly: for a single row, the checks of
    scikit-learn would take ten times as long.

    Parameters
    ----------
    encoder : ColumnTransformer
        Fitted by :func:`fit_column_transformer`.
    columns : mapping of str to ndarray
        Columns of :func:`imcc.tables._typed.typed_arrays`.

    Returns
    -------
    ndarray or CSR matrix of shape (n_samples, n_features)
    """
    scales = encoder.transformer_weights or {}
    n, width = 0, 0
    rows: list[np.ndarray] = []
    places: list[np.ndarray] = []
    entries: list[np.ndarray] = []
    for name, step, names in encoder.transformers_:
        if name == "remainder":
            continue
        for block in _blocks(encoder, name, step, names, columns):
            n = block.shape[0]
            if sp.issparse(block):
                rows.append(np.repeat(np.arange(n), np.diff(block.indptr)))
                places.append(block.indices + width)
                found = block.data
            else:
                own, column = np.nonzero(block)
                rows.append(own)
                places.append(column + width)
                found = block[own, column]
            entries.append(found * scales[name] if name in scales else found)
            width += block.shape[1]
    row, place, entry = np.concatenate(rows), np.concatenate(places), np.concatenate(entries)
    if not encoder.sparse_output_:
        out = np.zeros((n, width))
        out[row, place] = entry
        return out
    # The blocks are in the order of their features: so are the entries of each row, then.
    order = np.argsort(row, kind="stable") if n > 1 else slice(None)
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))]).astype(np.int32)
    parts = entry[order].astype(np.float64, copy=False), place[order].astype(np.int32), ends
    return sp.csr_matrix(parts, shape=(n, width))


def _blocks(
    encoder: ColumnTransformer,
    name: str,
    step: Any,
    names: Any,
    columns: Mapping[str, np.ndarray],
) -> list[Any]:
    """Return the features of a step before they are scaled, as arrays or CSR matrices."""
    if isinstance(names, str):
        return [_tfidf(vectorizer, columns[names]) for _, vectorizer in step.transformer_list]
    if name == "categories":
        return [_indicators(encoder, columns)]
    block = np.column_stack([columns[column] for column in names])
    return [np.isnan(block) if name == "missing" else _scaled(step, block)]


def _scaled(step: Pipeline, block: np.ndarray) -> np.ndarray:
    """Return numbers with missing ones replaced, less their centers, divided by their scales."""
    impute, scale = step.named_steps["impute"], step.named_steps["scale"]
    block = np.where(np.isnan(block), impute.statistics_, block)
    block -= scale.center_ if hasattr(scale, "center_") else scale.mean_
    block /= scale.scale_
    return block


@dataclass(frozen=True)
class Indicated:
    """The places of the values of a category among its indicators.

    Attributes
    ----------
    places : dict of str to int
        Of each value of the training table; values of few rows share the last one.
    n_places : int
        Number of indicators.
    unknown : int
        Place of other values: that of rare values, or -1 if there is none.
    """

    places: dict[str, int]
    n_places: int
    unknown: int


# What follows from a fitted step, for as long as it exists.
_INDICATED: WeakKeyDictionary[Any, list[Indicated]] = WeakKeyDictionary()
_ANALYZERS: WeakKeyDictionary[Any, Callable[[str], list[str]]] = WeakKeyDictionary()


def indicated(encoder: ColumnTransformer) -> dict[str, Indicated]:
    """Return the indicators of each category of an encoder."""
    steps = {name: (step, columns) for name, step, columns in encoder.transformers_}
    if "categories" not in steps:
        return {}
    step, columns = steps["categories"]
    found = _INDICATED.get(step)
    if found is None:
        found = []
        for values, rare in zip(step.categories_, step.infrequent_categories_, strict=True):
            few = set() if rare is None else set(rare)
            often = [value for value in values if value not in few]
            places = {value: place for place, value in enumerate(often)}
            places |= dict.fromkeys(few, len(often))
            found.append(Indicated(places, len(often) + bool(few), len(often) if few else -1))
        _INDICATED[step] = found
    return dict(zip(columns, found, strict=True))


def _indicators(encoder: ColumnTransformer, columns: Mapping[str, np.ndarray]) -> Any:
    """Return the indicators of categories as a sparse matrix."""
    width, places = 0, []
    for name, known in indicated(encoder).items():
        get, unknown = known.places.get, known.unknown
        own = np.array([get(value, unknown) for value in columns[name].tolist()])
        places.append(np.where(own < 0, -1, own + width))
        width += known.n_places
    found = np.column_stack(places)
    is_on = found >= 0
    ends = np.concatenate([[0], np.cumsum(is_on.sum(axis=1))])
    indices = found[is_on]
    return sp.csr_matrix((np.ones(len(indices)), indices, ends), shape=(len(found), width))


def _tfidf(vectorizer: TfidfVectorizer, texts: np.ndarray) -> Any:
    """Return the TF-IDF of texts as a sparse matrix."""
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
    shape = len(texts), len(vectorizer.vocabulary_)
    weighted = sp.csr_matrix((data, where, np.array(ends, dtype=np.int32)), shape=shape)
    inplace_csr_row_normalize_l2(weighted)
    return weighted


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
    pandas = require("pandas", "Encoding tables")
    starts = range(0, max(table.num_rows, 1), BLOCK_ROWS)
    parts = [typed_frame(table.slice(at, BLOCK_ROWS), schema, set(columns)) for at in starts]
    return parts[0] if len(parts) == 1 else pandas.concat(parts, ignore_index=True)


def _some_of_each(table: Any, schema: Schema, columns: list[str]) -> Any:
    """Return a frame with all values of categories, frequent ones only as often as needed.

    An encoder learns from it what it would from all rows: which values there are, and which of
    them have fewer rows than :data:`_MIN_FREQUENCY`.
    """
    pandas = require("pandas", "Encoding tables")
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
