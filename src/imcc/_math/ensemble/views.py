"""Views and spaces: transformations of the rows, fitted to the training rows without labels.

========  =============  =====================================================================
view      for            a row becomes
========  =============  =====================================================================
raw       all            itself
standard  dense          (x - mean) / standard deviation, per column
ranks     dense          the normal score of its rank among the training rows, per column
root      dense          the square root of x minus the column's minimum (0 if negative)
tfidf     mostly zeros   x times the inverse document frequency, then scaled to unit length
========  =============  =====================================================================

Dense views are centred, which does not change distances and reduces the rounding errors of the
products they are computed from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri
from sklearn.preprocessing import normalize
from sklearn.utils.sparsefuncs_fast import inplace_csr_row_normalize_l2

from imcc._utils.validation import Features

#: The default views of dense rows, and of rows that are mostly zero.
DENSE_VIEWS = ("standard", "ranks", "root")
SPARSE_VIEWS = ("raw", "tfidf")
VIEWS = (*SPARSE_VIEWS, *DENSE_VIEWS)
#: Rows with more than this share of zeros are "mostly zeros".
ZERO_SHARE = 0.8
# Maximum number of quantiles of a column that ranks are computed from.
_KNOTS = 250
# Steps of a column for the laplacian kernel, dense and mostly zero.  Chosen on splits that are not
# reported: six (three) are as accurate as Manhattan distances, and twelve are not better.
_STEPS, _SPARSE_STEPS = 6, 3


@dataclass(frozen=True)
class View:
    """A fitted view.

    Attributes
    ----------
    name : str
    center : ndarray of shape (n_features,) or None
        Subtracted last (first for "standard").
    factor : ndarray of shape (n_features,) or None
        One over the standard deviation, or the inverse document frequency.
    floor : ndarray of shape (n_features,) or None
        The smallest value of each column ("root").
    knots : ndarray of float32, shape (n_knots, n_features), or None
        Quantiles of each column ("ranks").
    """

    name: str
    center: np.ndarray | None = None
    factor: np.ndarray | None = None
    floor: np.ndarray | None = None
    knots: np.ndarray | None = None

    def transform(self, X: Features) -> Features:
        """Return rows in this view, in float64; dense where the view is centred."""
        X = X.astype(np.float64, copy=False)
        match self.name:
            case "standard":
                return (_dense(X) - self.center) * self.factor
            case "ranks":
                return _normal_scores(_dense(X), self.knots) - self.center
            case "root":
                return np.sqrt(np.maximum(_dense(X) - self.floor, 0.0)) - self.center
            case "tfidf":
                assert self.factor is not None
                return _of_unit_length(X, self.factor)
        return X if self.center is None else _dense(X) - self.center


def fit_view(name: str, X: Features) -> View:
    """Fit a view to training rows, on the host.

    Parameters
    ----------
    name : str
        One of VIEWS.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    """
    match name:
        case "standard":
            dense = _dense(X)
            deviation = dense.std(axis=0)
            varies = deviation > 1e-12 * np.abs(dense).max(axis=0, initial=0.0)
            factor = np.where(varies, 1.0 / np.where(varies, deviation, 1.0), 0.0)
            return View(name, dense.mean(axis=0), factor)
        case "ranks":
            dense = _dense(X)
            knots = np.sort(dense, axis=0)
            if len(knots) > _KNOTS:
                # Values that occur, with evenly spaced ranks.
                at = np.round(np.linspace(0, len(knots) - 1, _KNOTS)).astype(int)
                knots = knots[at]
            # The values of rows in single precision (imcc._math.ensemble.model.centered).
            knots = knots.astype(np.float32)
            return View(name, _normal_scores(dense, knots).mean(axis=0), knots=knots)
        case "root":
            dense = _dense(X)
            floor = dense.min(axis=0)
            return View(name, np.sqrt(dense - floor).mean(axis=0), floor=floor)
        case "tfidf":
            # A feature occurs where it is not zero; smoothed as if one more row had all features.
            occurs = np.asarray((X != 0).sum(axis=0)).ravel()
            return View(name, factor=np.log((1 + X.shape[0]) / (1 + occurs)) + 1)
    return View(name, None if sp.issparse(X) else X.mean(axis=0, dtype=np.float64))


def choose_views(names: Any, X: Features) -> list[str]:
    """Return the views to try: the given ones, or for "auto" the default views of the rows."""
    if isinstance(names, str) and names == "auto":
        return list(SPARSE_VIEWS if is_mostly_zero(X) else DENSE_VIEWS)
    return list(names)


def is_mostly_zero(X: Features) -> bool:
    """Whether more than ZERO_SHARE of the entries are zero."""
    stored = X.count_nonzero() if sp.issparse(X) else np.count_nonzero(X)
    return bool(stored < (1 - ZERO_SHARE) * X.shape[0] * X.shape[1])


def _dense(X: Features) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)


def _of_unit_length(X: Features, factor: np.ndarray) -> Features:
    """Return rows whose columns are multiplied by factors, divided by their lengths."""
    if not sp.issparse(X):
        return normalize(X * factor)
    # scikit-learn's function for matrices would check a single row longer than this takes.
    parts = (X.data * factor[X.indices], X.indices, X.indptr)
    scaled = sp.csr_matrix(parts, shape=X.shape)
    inplace_csr_row_normalize_l2(scaled)
    return scaled


def _normal_scores(X: np.ndarray, knots: np.ndarray | None) -> np.ndarray:
    """Return the normal quantiles of the ranks of values among knots, ties in the middle."""
    assert knots is not None
    n, out = len(knots), np.empty_like(X)
    for j in range(X.shape[1]):
        below = np.searchsorted(knots[:, j], X[:, j], side="left")
        up_to = np.searchsorted(knots[:, j], X[:, j], side="right")
        out[:, j] = (below + up_to) / (2 * n)
    return ndtri(np.clip(out, 0.5 / n, 1 - 0.5 / n))


@dataclass(frozen=True)
class Space:
    r"""Coordinates of a kernel: those of a view, or the steps of its columns.

    The Manhattan distance of two rows is the squared Euclidean distance of their steps: with edges
    :math:`e_0 < e_1 < \ldots < e_L` of a column, a value x becomes the L coordinates ::

        sqrt(e_l - e_(l-1)) clip((x - e_(l-1)) / (e_l - e_(l-1)), 0, 1),

    of which the squared distance is ``|x - x'|`` if both are edges, and less between two edges.  So
    both kernels need products of matrices only, many times faster than differences.

    Attributes
    ----------
    view : View
    edges : ndarray of shape (n_steps + 1, n_view_features) or None
        None for the coordinates of the view.
    """

    view: View
    edges: np.ndarray | None = None

    def transform(self, X: Features) -> Features:
        """Return rows in this space, in float32."""
        return self.coordinates(self.view.transform(X))

    def coordinates(self, rows: Features) -> Features:
        """Return rows of the view in this space, in float32."""
        if self.edges is None:
            return rows.astype(np.float32)
        lows, sizes = self.edges[:-1], np.diff(self.edges, axis=0)
        if sp.issparse(rows):
            return _sparse_steps(rows, sizes)
        out = np.empty((rows.shape[0], sizes.size), dtype=np.float32)
        for at, (low, size) in enumerate(zip(lows, sizes, strict=True)):
            share = np.divide(rows - low, size, out=np.zeros_like(rows), where=size > 0)
            columns = slice(at * rows.shape[1], (at + 1) * rows.shape[1])
            out[:, columns] = np.clip(share, 0.0, 1.0) * np.sqrt(size)
        return out


def fit_space(view: View, kernel: str, X: Features) -> Space:
    """Fit the space of a kernel, "rbf" or "laplacian", to training rows.

    The edges of a dense column are its quantiles.  Those of a sparse column are evenly spaced
    between 0 and its largest absolute value, so that zeros stay zeros.
    """
    if kernel == "rbf":
        return Space(view)
    rows = view.transform(X)
    if sp.issparse(rows):
        largest = np.asarray(abs(rows).max(axis=0).todense()).ravel()
        return Space(view, np.linspace(0.0, 1.0, _SPARSE_STEPS + 1)[:, None] * largest)
    return Space(view, np.quantile(rows, np.linspace(0.0, 1.0, _STEPS + 1), axis=0))


def _sparse_steps(rows: sp.csr_matrix, sizes: np.ndarray) -> sp.csr_matrix:
    """Return the steps of sparse rows; negative values have negative coordinates."""
    n_steps, n_columns = sizes.shape
    own, data = sizes[:, rows.indices].T, rows.data[:, None]
    share = abs(data) - np.arange(n_steps) * own
    share = np.divide(share, own, out=np.zeros(own.shape), where=own > 0)
    values = np.sign(data) * np.clip(share, 0.0, 1.0) * np.sqrt(own)
    columns = rows.indices[:, None] + n_columns * np.arange(n_steps, dtype=rows.indices.dtype)
    kept = values != 0
    starts = np.concatenate([[0], np.cumsum(kept)])[n_steps * rows.indptr]
    parts = (values[kept].astype(np.float32), columns[kept], starts)
    return sp.csr_matrix(parts, shape=(rows.shape[0], n_steps * n_columns))
