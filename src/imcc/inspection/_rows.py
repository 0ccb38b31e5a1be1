"""The nearest rows of a row, and its explanation by its columns and these rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import _num_samples

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.progress import part, report_progress
from imcc._utils.validation import check_count, known_labels
from imcc._utils.wrappers import transformed
from imcc.inspection._columns import ColumnAttribution, explain_columns
from imcc.inspection._mixed import as_rows, make_mixer, row_texts, take_rows
from imcc.inspection._results import Result, as_frame

# Number of rows whose features are in memory at a time.
_ROWS = 4096


@dataclass(frozen=True, repr=False)
class NearestRows(Result):
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

    def _title(self) -> str:
        return f"NearestRows: {len(self.rows)} rows, by the distance of their features"

    def _table(self) -> dict[str, list[Any]]:
        return {
            "row": list(self.names),
            "distance": list(self.distances),
            ", ".join(self.columns): [", ".join(row) for row in self.values],
        }

    def to_frame(self) -> Any:
        """Return a data frame of the values, indexed by row name and distance.

        Returns
        -------
        pandas.DataFrame
        """
        index = {"row": self.names, "distance": self.distances}
        return as_frame(np.array(self.values, dtype=object), index, list(self.columns))


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

    Returns
    -------
    NearestRows
        With ``rows`` (indices), ``names``, ``distances``, ``columns``, ``values`` as text and
        ``labels``, nearest first; ``to_frame()`` and ``to_dict()``.

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
    for name, values in (("names", names), ("Y", Y)):
        if values is not None and (count := _num_samples(values)) != n_rows:
            raise InvalidArgumentError(name, f"has {count} entries for {n_rows} rows")
    mixer = make_mixer(model, x, take_rows(X, np.arange(1)), feature_names)
    here = _features(model, take_rows(mixer.table, [0]))
    distances = np.empty(n_rows)
    for start in range(0, n_rows, _ROWS):
        block = np.arange(start, min(start + _ROWS, n_rows))
        there = _features(model, take_rows(X, block))
        distances[block] = euclidean_distances(there, here)[:, 0]
        report_progress(int(block[-1]) + 1, n_rows)
    distances[left_out] = np.inf
    order = np.argsort(distances, kind="stable")[: min(n_nearest, n_rows - len(left_out))]
    columns, texts = row_texts(model, X, order.tolist(), feature_names)
    labels = None
    if Y is not None:
        on, _ = known_labels(as_rows(Y), "Y")
        words = [f"label{j}" for j in range(on.shape[1])] if label_names is None else label_names
        labels = tuple(tuple(str(words[int(j)]) for j in np.flatnonzero(row)) for row in on[order])
    return NearestRows(
        rows=tuple(int(i) for i in order),
        names=tuple(str(i if names is None else names[int(i)]) for i in order),
        distances=tuple(float(distances[i]) for i in order),
        columns=columns,
        values=tuple(map(tuple, texts)),
        labels=labels,
    )


def _features(model: Any, X: Any) -> Any:
    """Return the features that the innermost model is given."""
    X = transformed(model, X)
    return X if sp.issparse(X) else np.asarray(X, dtype=np.float64)


@dataclass(frozen=True, repr=False)
class RowExplanation(Result):
    """The explanation of one row.

    Attributes
    ----------
    columns : ColumnAttribution
        Contributions of the columns to the scores of the labels.
    nearest : NearestRows
        The nearest rows.
    """

    columns: ColumnAttribution
    nearest: NearestRows

    def __repr__(self) -> str:
        return f"{self.columns}\n{self.nearest}"

    def to_frame(self) -> Any:
        """Return a data frame of the contributions of the columns to all labels."""
        return self.columns.to_frame()


def explain_row(
    model: Any,
    x: Any,
    X: Any,
    Y: Any = None,
    *,
    n_nearest: int = 5,
    names: Sequence[object] | None = None,
    leave_out: Collection[int] = (),
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    **options: Any,
) -> RowExplanation:
    """Explain the scores of a row by its columns, with the rows around it.

    Parameters
    ----------
    model : classifier
        A fitted classifier.
    x : array-like, data frame, Arrow table or sparse matrix of one row
        The row.
    X : array-like, data frame, Arrow table or sparse matrix
        Rows that the row is compared with: the training rows, or other typical rows.
    Y : array-like of shape (n_samples, n_labels), default=None
        Labels of these rows, to show those of the nearest rows.
    n_nearest : int, default=5
        Number of nearest rows.
    names : sequence, default=None
        Identifiers of the rows of X; their indices by default.
    leave_out : collection of int, default=()
        Indices of rows of X that cannot be nearest rows, such as x itself.
    label_names, feature_names : sequence of str, default=None
        Names of labels and columns; by default those stored by the model.
    **options
        Passed to :func:`explain_columns`: ``n_background``, ``max_evaluations``, ``max_columns``
        and ``random_state``.

    Returns
    -------
    RowExplanation
        With ``columns``, the result of :func:`explain_columns`, and ``nearest``, that of
        :func:`nearest_rows`.

    See Also
    --------
    explain_columns, nearest_rows : The parts of the result.

    Examples
    --------
    >>> import numpy as np
    >>> from imcc import IMCCClassifier
    >>> from imcc.inspection import explain_row
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> clf = IMCCClassifier(n_clusters=8, random_state=0).fit(X, (X[:, :2] > 0).astype(int))
    >>> found = explain_row(clf, [2.0, 0.0, 0.0], X)
    >>> found.columns.parts(0, top=1)[0].column, len(found.nearest.rows)
    ('x0', 5)
    """
    check_count("n_nearest", n_nearest)
    named: dict[str, Any] = {"label_names": label_names, "feature_names": feature_names}
    shares = (4.0, 1.0)
    with part(0, shares, "scoring mixed rows"):
        columns = explain_columns(model, x, X, **named, **options)
    with part(1, shares, "searching the nearest rows"):
        nearest = nearest_rows(
            model, x, X, Y, n_nearest=n_nearest, names=names, leave_out=leave_out, **named
        )
    return RowExplanation(columns, nearest)
