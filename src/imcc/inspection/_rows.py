"""The nearest rows of a row, and descriptions of groups of rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.plain import to_plain
from imcc._utils.validation import check_count, known_labels
from imcc._utils.wrappers import first_step_with, transformers
from imcc.inspection._columns import ColumnAttribution
from imcc.inspection._mixed import (
    as_rows,
    background_rows,
    make_mixer,
    values_of_row,
)
from imcc.inspection._names import names_of_features
from imcc.inspection._tables import as_frame, as_text
from imcc.inspection._unwrap import unwrap

# Number of rows whose features are in memory at a time.
_ROWS = 4096
# A group is described by differences from all rows of more than this many standard errors of a
# random group of the same size ...
_LEAST_Z = 3.0
# ... and by values that at least this fraction of the group has (for words of a text: less).
_LEAST_SHARE = 0.5
_LEAST_WORD_SHARE = 0.3
_WORDS_PER_TEXT = 2
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, repr=False)
class NearestRows:
    """The rows of a table nearest to a row, by Euclidean distance of their features.

    Attributes
    ----------
    rows : tuple of int
        Indices of the rows, nearest first.
    names : tuple of str
        Identifiers of the rows, or their indices.
    distances : tuple of float
        Distances to the row.
    columns : tuple of str
        The columns that the model uses.
    values : tuple of tuple of str
        Values of each row in these columns, as text.
    labels : tuple of tuple of str, or None
        Labels of each row; None if they are not known.
    """

    rows: tuple[int, ...]
    names: tuple[str, ...]
    distances: tuple[float, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    labels: tuple[tuple[str, ...], ...] | None

    def __repr__(self) -> str:
        title = f"NearestRows: {len(self.rows)} rows, by the distance of their features"
        rows = [
            [name, distance, ", ".join(row)]
            for name, distance, row in zip(self.names, self.distances, self.values, strict=True)
        ]
        return as_text(title, ["row", "distance", ", ".join(self.columns)], rows)

    def first(self, count: int) -> NearestRows:
        """Return only the nearest of these rows.

        Parameters
        ----------
        count : int
            Maximum number of rows.

        Returns
        -------
        NearestRows
        """
        check_count("count", count)
        return NearestRows(
            self.rows[:count],
            self.names[:count],
            self.distances[:count],
            self.columns,
            self.values[:count],
            None if self.labels is None else self.labels[:count],
        )

    def to_frame(self) -> Any:
        """Return a data frame of the values, indexed by row name and distance.

        Returns
        -------
        pandas.DataFrame
        """
        values = dict(zip(self.columns, zip(*self.values, strict=True), strict=True))
        index = {"row": list(self.names), "distance": list(self.distances)}
        return as_frame({name: list(column) for name, column in values.items()}, index=index)

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that can be written as JSON, with one record per row."""
        return to_plain(
            {
                "rows": [
                    {
                        "row": row,
                        "name": name,
                        "distance": distance,
                        "values": dict(zip(self.columns, values, strict=True)),
                        "labels": None if self.labels is None else list(self.labels[k]),
                    }
                    for k, (row, name, distance, values) in enumerate(
                        zip(self.rows, self.names, self.distances, self.values, strict=True)
                    )
                ]
            }
        )


def nearest_rows(
    model: Any,
    x: Any,
    X: Any,
    Y: Any = None,
    *,
    n_nearest: int = 5,
    names: Sequence[object] | None = None,
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    leave_out: Collection[int] = (),
    progress: Callable[[int, int], None] | None = None,
) -> NearestRows:
    """Return the rows of a table that are nearest to a row in the feature space of the model.

    Parameters
    ----------
    model : classifier
        A fitted classifier.  If it is a pipeline or a :class:`imcc.tables.TableClassifier`, the
        features are the output of its transformers.
    x : array-like, data frame, Arrow table or sparse matrix of one row
        The row.
    X : array-like, data frame, Arrow table or sparse matrix
        Rows to search, usually the training rows.
    Y : array-like of shape (n_samples, n_labels), default=None
        Labels of these rows.  NaN in a dense matrix is an unknown label, which is not listed.
    n_nearest : int, default=5
        Number of rows to return.
    names : sequence, default=None
        Identifiers of the rows of X; their indices by default.
    label_names : sequence of str, default=None
        Names of the columns of Y; ``label0, label1, ...`` by default.
    feature_names : sequence of str, default=None
        Names of the columns of an array; by default those stored by the model.
    leave_out : collection of int, default=()
        Indices of rows of X to exclude, such as x itself.
    progress : callable, default=None
        Called repeatedly with the number of rows searched and the total number.

    Returns
    -------
    NearestRows

    Examples
    --------
    >>> import numpy as np
    >>> from imcc import IMCCClassifier
    >>> from imcc.inspection import nearest_rows
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0], [4.0, 5.0]])
    >>> clf = IMCCClassifier(n_clusters=2, random_state=0).fit(X, [[0, 1], [0, 1], [1, 0], [1, 0]])
    >>> found = nearest_rows(clf, [4.0, 4.0], X, n_nearest=2)
    >>> found.rows, found.values[0]
    ((3, 2), ('4', '5'))
    """
    check_count("n_nearest", n_nearest)
    X = as_rows(X)
    n_rows = int(X.shape[0])
    left_out = sorted(set(leave_out))
    if len(left_out) >= n_rows:
        raise InvalidArgumentError("X", "has no rows except those in leave_out")
    names = None if names is None else list(names)
    for name, given in (("names", names), ("Y", Y)):
        count = (
            n_rows if given is None else given.shape[0] if hasattr(given, "shape") else len(given)
        )
        if count != n_rows:
            raise InvalidArgumentError(name, f"has {count} entries for {n_rows} rows")
    mixer = make_mixer(model, x, background_rows(X, np.arange(1)), feature_names)
    one = np.ones((1, len(mixer.columns)), dtype=bool)
    here = _features(model, mixer.mixed(np.zeros(1, dtype=int), one))
    distances = np.empty(n_rows)
    for start in range(0, n_rows, _ROWS):
        part = np.arange(start, min(start + _ROWS, n_rows))
        there = _features(model, background_rows(X, part))
        distances[part] = euclidean_distances(there, here)[:, 0]
        if progress is not None:
            progress(int(part[-1]) + 1, n_rows)
    distances[left_out] = np.inf
    order = np.argsort(distances, kind="stable")[: min(n_nearest, n_rows - len(left_out))]
    values = [
        tuple(values_of_row(make_mixer(model, background_rows(X, [i]), background_rows(X, [i]))))
        for i in order
    ]
    labels = None
    if Y is not None:
        on, _ = known_labels(as_rows(Y), "Y")
        words = [f"label{j}" for j in range(on.shape[1])] if label_names is None else label_names
        labels = tuple(tuple(str(words[int(j)]) for j in np.flatnonzero(row)) for row in on[order])
    return NearestRows(
        rows=tuple(int(i) for i in order),
        names=tuple(str(i if names is None else names[int(i)]) for i in order),
        distances=tuple(float(distances[i]) for i in order),
        columns=mixer.columns,
        values=tuple(values),
        labels=labels,
    )


def _features(model: Any, X: Any) -> Any:
    """Return the features that the innermost model is given."""
    for step in transformers(model):
        X = step.transform(X)
    return X if sp.issparse(X) else np.asarray(X, dtype=np.float64)


def cluster_of(model: Any, x: Any) -> tuple[int, np.ndarray]:
    """Return the cluster whose centre is nearest to a row, and its training rows.

    Parameters
    ----------
    model : IMCCClassifier, IMCCClassifierCV, TunedThresholds, a search or a pipeline
        A fitted model that is or contains an IMCCClassifier.
    x : array-like, data frame, Arrow table or sparse matrix of one row
        The row.

    Returns
    -------
    cluster : int
        Row of the cluster in ``cluster_centers_``.
    rows : ndarray of int
        Indices of the training rows in the cluster.
    """
    inside = unwrap(model)
    if not hasattr(x, "shape") or (not sp.issparse(x) and np.ndim(x) == 1):
        x = np.atleast_2d(np.asarray(x))
    distances = euclidean_distances(inside.transform(x), inside.classifier.cluster_centers_)
    cluster = int(distances[0].argmin())
    return cluster, np.flatnonzero((inside.assignment == cluster).any(axis=1))


@dataclass(frozen=True)
class GroupFact:
    """A difference between a group of rows and all rows.

    Attributes
    ----------
    column : str
        Name of the column.
    text : str
        Description.
    strength : float
        The difference in standard deviations over all rows, of a number or of an indicator.
    """

    column: str
    text: str
    strength: float


@dataclass(frozen=True, repr=False)
class GroupDescription:
    """Description of a group of rows.

    Attributes
    ----------
    size, n_rows : int
        Number of rows in the group and in the table.
    facts : tuple of GroupFact
        Differences from all rows, the strongest first; empty if no column differs by more than
        expected by chance.
    """

    size: int
    n_rows: int
    facts: tuple[GroupFact, ...]

    def __str__(self) -> str:
        return ", ".join(fact.text for fact in self.facts) or "no column stands out"

    def __repr__(self) -> str:
        title = f"GroupDescription of {self.size:,} of {self.n_rows:,} rows: {self}"
        return as_text(title, ["column", "strength"], [[f.column, f.strength] for f in self.facts])

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that can be written as JSON."""
        return to_plain({**vars(self), "facts": [vars(fact) for fact in self.facts]})


def describe_group(
    model: Any, X: Any, rows: Any, *, top: int = 5, feature_names: Sequence[str] | None = None
) -> GroupDescription:
    """Describe how a group of rows, such as a cluster, differs from all rows.

    Numbers are compared by their means, categories by the relative frequency of the most frequent
    value of the group (if at least half of the group has it), texts by the relative frequency of
    words (of at least 30 %).  Differences are measured in standard deviations over all rows; those
    of at most three standard errors of a random group of the same size are omitted.

    Parameters
    ----------
    model : classifier or None
        A fitted :class:`imcc.tables.TableClassifier` determines the types of the columns; for
        other models, or None, they are derived from X.
    X : array-like, data frame, Arrow table or sparse matrix
        All rows.
    rows : array-like of int or of bool
        Indices of the rows of the group, or a mask.
    top : int, default=5
        Maximum number of differences.
    feature_names : sequence of str, default=None
        Names of the columns of an array; by default those stored by the model.

    Returns
    -------
    GroupDescription

    Examples
    --------
    >>> import pandas as pd
    >>> from imcc.inspection import describe_group
    >>> frame = pd.DataFrame({"age": range(40), "region": ["Süd"] * 10 + ["Nord"] * 30})
    >>> print(describe_group(None, frame, range(10)))
    region = Süd (100% of these rows, 25% of all), 15 below the mean in age
    """
    check_count("top", top)
    X = as_rows(X)
    n_rows = int(X.shape[0])
    chosen = np.asarray(rows)
    inside = np.zeros(n_rows, dtype=bool)
    if chosen.size:
        inside[chosen] = True
    size = int(inside.sum())
    if not size:
        raise InvalidArgumentError("rows", "must not be empty")
    facts: list[GroupFact] = []
    for name, values, kind in _typed(model, X, feature_names):
        facts += _facts(name, values, kind, inside)
    # A random group of this size differs by about 1/sqrt(size), less if it is most of the rows.
    chance = np.sqrt((1 - size / n_rows) / size)
    facts = [fact for fact in facts if fact.strength > _LEAST_Z * chance]
    facts.sort(key=lambda fact: -fact.strength)
    return GroupDescription(size, n_rows, tuple(facts[:top]))


def _typed(
    model: Any, X: Any, feature_names: Sequence[str] | None
) -> list[tuple[str, np.ndarray, str]]:
    """Return name, values (NaN or None if missing) and kind of the columns of a table."""
    encoder = first_step_with(model, "typed_columns")
    if encoder is not None:
        kinds = encoder.schema_
        return [(n, v, kinds[n].kind) for n, v in encoder.typed_columns(X).items()]
    if sp.issparse(X):
        X = X.toarray() if X.shape[1] <= 2000 else X.tocsc()
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if hasattr(X, "iloc"):
        found = []
        for name in X.columns:
            numeric = X[name].dtype.kind in "biuf"
            values = X[name].to_numpy(dtype=np.float64 if numeric else object, na_value=np.nan)
            if not numeric:
                values = np.array([None if v != v else str(v) for v in values], dtype=object)
            found.append((str(name), values, "number" if numeric else "category"))
        return found
    names = names_of_features(model, X.shape[1], feature_names)
    columns = (X[:, [j]].toarray()[:, 0] if sp.issparse(X) else X[:, j] for j in range(X.shape[1]))
    return [
        (name, np.asarray(values, dtype=np.float64), "number")
        for name, values in zip(names, columns, strict=True)
    ]


def _facts(name: str, values: np.ndarray, kind: str, inside: np.ndarray) -> list[GroupFact]:
    if kind in ("category", "text"):
        known = np.array([v is not None for v in values])
    else:
        known = ~np.isnan(values.astype(np.float64))
    found = []
    missing = _share_fact(name, f"{name} is missing", ~known, inside, _LEAST_SHARE)
    if missing is not None:
        found.append(missing)
    if not known.any():
        return found
    if kind == "text":
        return found + _word_facts(name, values, inside)
    if kind in ("category", "yes/no"):
        if kind == "yes/no":
            values = np.array([{0.0: "no", 1.0: "yes"}.get(v) for v in values], dtype=object)
        counted = Counter(v for v, i in zip(values, inside, strict=True) if i and v is not None)
        for value, _ in counted.most_common(1):
            fact = _share_fact(name, f"{name} = {value}", values == value, inside, _LEAST_SHARE)
            found += [] if fact is None else [fact]
        return found
    numbers = values.astype(np.float64)
    mean, spread = float(numbers[known].mean()), float(numbers[known].std())
    ours = numbers[known & inside]
    if not len(ours) or spread <= 1e-12 * max(abs(mean), 1e-300):
        return found
    gap = float(ours.mean()) - mean
    if kind == "date":
        text = f"{abs(gap):.0f} days {'after' if gap > 0 else 'before'} the mean in {name}"
    else:
        text = f"{_size(abs(gap))} {'above' if gap > 0 else 'below'} the mean in {name}"
    # With missing values, the mean is as uncertain as that of a smaller group.
    strength = abs(gap) / spread * np.sqrt(len(ours) / inside.sum())
    return [*found, GroupFact(name, text, float(strength))]


def _size(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < 1e15 else f"{value:.3g}"


def _share_fact(
    name: str, text: str, has: np.ndarray, inside: np.ndarray, least: float
) -> GroupFact | None:
    """Return a fact if ``has`` is more frequent in the group than among all rows, else None."""
    ours, overall = float(has[inside].mean()), float(has.mean())
    if ours < least or ours <= overall:
        return None
    strength = (ours - overall) / np.sqrt(overall * (1 - overall))
    text += f" ({ours:.0%} of these rows, {overall:.0%} of all)"
    return GroupFact(name, text, float(strength))


def _word_facts(name: str, values: np.ndarray, inside: np.ndarray) -> list[GroupFact]:
    words = [set() if v is None else set(_WORD.findall(v.lower())) for v in values]
    ours: Counter[str] = Counter()
    for row in np.flatnonzero(inside):
        ours.update(words[row])
    least = _LEAST_WORD_SHARE * inside.sum()
    found = []
    for word, count in sorted(ours.items()):
        if count < least:
            continue
        has = np.array([word in row for row in words])
        fact = _share_fact(name, f"{name} has '{word}'", has, inside, _LEAST_WORD_SHARE)
        found += [] if fact is None else [fact]
    return sorted(found, key=lambda fact: -fact.strength)[:_WORDS_PER_TEXT]


@dataclass(frozen=True)
class RowReport:
    """The explanation of one row, for the HTML page, the command line and JSON.

    Attributes
    ----------
    name : str
        Name of the row.
    attribution : ColumnAttribution
        Contributions of the columns to the labels shown.
    background : str
        Description of the background rows.
    nearest : NearestRows or None
        The nearest rows.
    nearest_in : str
        Description of the rows that were searched.
    group : GroupDescription or None
        Description of a group of rows around the row.
    group_name : str
        Name of the group, such as a cluster or the nearest rows.
    """

    name: str
    attribution: ColumnAttribution
    background: str
    nearest: NearestRows | None = None
    nearest_in: str = ""
    group: GroupDescription | None = None
    group_name: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that can be written as JSON."""
        return to_plain(
            {
                "row": self.name,
                "background": self.background,
                "columns": self.attribution.to_dict(),
                "nearest_in": self.nearest_in or None,
                "nearest": None if self.nearest is None else self.nearest.to_dict()["rows"],
                "group": None
                if self.group is None
                else {"name": self.group_name, "text": str(self.group), **self.group.to_dict()},
            }
        )
