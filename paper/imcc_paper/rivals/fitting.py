"""What the rivals have in common: views of the rows, labels to learn, Platt's sigmoid."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, ndtri
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import MaxAbsScaler, StandardScaler, normalize

from imcc_paper.methods._base import is_constant, prior_log_odds

#: Rows with more than this share of zeros are "mostly zero", as for the ensemble.
ZERO_SHARE = 0.8
#: Views of dense rows and of rows that are mostly zero; see :class:`View`.
DENSE_VIEWS = ("standard", "ranks", "root")
SPARSE_VIEWS = ("tfidf", "unit", "scaled")
# Log-odds are kept between these numbers, so that one wrong label cannot cost more than 16.
_LARGEST = 16.0


def is_mostly_zero(X: Any) -> bool:
    """Whether more than ZERO_SHARE of the entries are zero."""
    stored = X.count_nonzero() if sp.issparse(X) else np.count_nonzero(X)
    return bool(stored < (1 - ZERO_SHARE) * X.shape[0] * X.shape[1])


def as_rows(X: Any) -> Any:
    """Return rows as CSR matrix if they are mostly zero, as array otherwise."""
    if is_mostly_zero(X):
        return sp.csr_matrix(X, dtype=np.float64)
    X = X.toarray() if sp.issparse(X) else X
    return np.ascontiguousarray(X, dtype=np.float64)


class View:
    """A transformation of the rows, fitted without labels; those that the ensemble has.

    ========  ==================  =============================================================
    name      for                 a row becomes
    ========  ==================  =============================================================
    raw       trees               itself
    standard  dense               (x - mean) / standard deviation, per column
    ranks     dense               the normal score of its rank among the training rows, per column
    root      dense               the square root of x minus the column's minimum, standardised
    scaled    mostly zeros        x / largest absolute value, per column
    unit      mostly zeros        x / |x|
    tfidf     mostly zeros        x times the inverse document frequency, scaled to unit length
    ========  ==================  =============================================================
    """

    def __init__(self, name: str, X: Any) -> None:
        self.name = name
        match name:
            case "standard":
                self._scaler = StandardScaler().fit(X)
            case "ranks":
                self._sorted = np.sort(X, axis=0)
            case "root":
                self._floor = X.min(axis=0)
                self._scaler = StandardScaler().fit(self._root(X))
            case "scaled":
                self._scaler = MaxAbsScaler().fit(X)
            case "tfidf":
                self._scaler = TfidfTransformer().fit(X)
            case "raw" | "unit":
                pass
            case _:
                raise ValueError(f"there is no view {name!r}")

    def __call__(self, X: Any) -> Any:
        """Return rows in this view."""
        match self.name:
            case "raw":
                return X
            case "unit":
                return normalize(X)
            case "ranks":
                return self._normal_scores(X)
            case "root":
                return self._scaler.transform(self._root(X))
        return self._scaler.transform(X)

    def _root(self, X: np.ndarray) -> np.ndarray:
        return np.sqrt(np.maximum(X - self._floor, 0.0))

    def _normal_scores(self, X: np.ndarray) -> np.ndarray:
        n, shares = len(self._sorted), np.empty(X.shape)
        for j, column in enumerate(self._sorted.T):
            below, up_to = (np.searchsorted(column, X[:, j], side=s) for s in ("left", "right"))
            shares[:, j] = (below + up_to) / (2 * n)
        return ndtri(np.clip(shares, 0.5 / n, 1 - 0.5 / n))


class Learned:
    """The labels that some training rows have and some have not; the others have a prior.

    Attributes
    ----------
    labels : ndarray of int
        Numbers of the labels to learn.
    """

    def __init__(self, on: np.ndarray) -> None:
        self.labels = np.array([j for j in range(on.shape[1]) if not is_constant(on[:, j])], int)
        self._prior = prior_log_odds(on)

    def all_labels(self, scores: np.ndarray) -> np.ndarray:
        """Return the log-odds of all labels from those of the learned ones."""
        out = np.tile(self._prior, (len(scores), 1))
        out[:, self.labels] = clipped(scores)
        return out


def clipped(scores: np.ndarray) -> np.ndarray:
    """Return log-odds that are not too far from 0."""
    return np.clip(scores, -_LARGEST, _LARGEST)


def log_odds(probabilities: np.ndarray, smallest: float = 1e-6) -> np.ndarray:
    """Return the log-odds of probabilities, which are kept away from 0 and 1."""
    p = np.clip(probabilities, smallest, 1 - smallest)
    return np.log(p) - np.log1p(-p)


def loss(on: np.ndarray, scores: np.ndarray) -> float:
    """Return the mean log loss of log-odds.

    >>> round(loss(np.array([[True, False]]), np.zeros((1, 2))), 3)
    0.693
    """
    return float((np.logaddexp(0.0, scores) - on * scores).mean())


def platt(scores: np.ndarray, on: np.ndarray) -> tuple[float, float]:
    """Return slope and intercept of Platt's sigmoid for the scores of a label.

    The targets are Platt's, (n + 1) / (n + 2) and 1 / (n + 2), which keep the slope finite where
    the scores separate the rows.  A slope is at least 0: scores that say the opposite count as
    none.

    >>> slope, intercept = platt(np.array([-1.0, -1.0, 1.0, 1.0]), np.array([0, 0, 1, 1]) > 0)
    >>> round(slope, 3), round(abs(intercept), 3)
    (1.099, 0.0)
    """
    n = int(on.sum())
    target = np.where(on, (n + 1) / (n + 2), 1 / (len(on) - n + 2))
    rest = float(prior_log_odds(on[:, None])[0])
    spread = float(scores.std())
    if not spread:
        return 0.0, rest
    x = np.column_stack([(scores - scores.mean()) / spread, np.ones(len(scores))])

    def total(w: np.ndarray) -> float:
        z = x @ w
        return float((np.logaddexp(0.0, z) - target * z).sum())

    w, value = np.array([0.0, rest]), np.inf
    for _ in range(100):
        p = expit(x @ w)
        gradient = x.T @ (p - target)
        curvature = (x * (p * (1 - p))[:, None]).T @ x + 1e-9 * np.eye(2)
        step, size, now = np.linalg.solve(curvature, gradient), 1.0, total(w)
        while size > 1e-6 and total(w - size * step) > now:
            size /= 2
        w, before, value = w - size * step, value, now
        if before - value < 1e-9 * (1 + abs(value)) and abs(gradient).max() < 1e-4:
            break
    if w[0] <= 0:
        return 0.0, rest
    return float(w[0] / spread), float(w[1] - w[0] * scores.mean() / spread)
