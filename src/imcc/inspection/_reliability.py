r"""Scores as probabilities.

IMCC fits labels y in {-1, +1} by least squares, and the best least-squares prediction of y is its
conditional mean, E[y | x] = 2 P(y = +1 | x) - 1.  So ::

    (score + 1) / 2

is an estimate of P(label | x), the method "linear".  The penalty beta shrinks it towards 1/2, it is
not bounded (it is clipped to [0, 1] here), and it need not be calibrated; :func:`reliability` shows
whether it is.  The other two methods, Platt's sigmoid and isotonic regression, learn a map from
score to probability by cross-fitting, so that no row is mapped by a function learned from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import StratifiedKFold

from imcc._math.platt import fit_sigmoid
from imcc._utils.plain import to_plain
from imcc._utils.text import printable
from imcc._utils.validation import check_choice, check_count
from imcc.inspection._diagnostics import checked
from imcc.inspection._tables import as_frame, as_text

METHODS = ("linear", "platt", "isotonic")
STRATEGIES = ("uniform", "quantile")


@dataclass(frozen=True)
class Reliability:
    """Predicted probabilities and observed frequencies of one label, per bin.

    Attributes
    ----------
    label : str
        Name of the label.
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins; a bin is [left, right), the last one includes its right edge.
    counts : ndarray of shape (n_bins,)
        Number of rows per bin.
    predicted : ndarray of shape (n_bins,)
        Mean probability per bin; NaN for an empty bin.
    observed : ndarray of shape (n_bins,)
        Fraction of the rows of a bin that have the label; NaN for an empty bin.
    brier : float
        Brier score, the mean of (probability - true value)^2; lower is better.
    calibration_error : float
        Mean over the rows of ``|predicted - observed|`` of their bin; lower is better.
    """

    label: str
    edges: np.ndarray
    counts: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray
    brier: float
    calibration_error: float

    def __repr__(self) -> str:
        title = (
            f"Reliability of {printable(self.label)}: Brier score {self.brier:.3f}, calibration "
            f"error {self.calibration_error:.3f}"
        )
        rows = [
            [float(left), float(right), int(count), float(predicted), float(observed)]
            for left, right, count, predicted, observed in zip(
                self.edges[:-1],
                self.edges[1:],
                self.counts,
                self.predicted,
                self.observed,
                strict=True,
            )
        ]
        return as_text(title, ["from", "to", "rows", "predicted", "observed"], rows)

    def to_frame(self) -> Any:
        """Return a data frame with one row per bin.

        Returns
        -------
        pandas.DataFrame
            With the columns ``left``, ``right``, ``count``, ``predicted`` and ``observed``.
        """
        return as_frame(
            {
                "left": self.edges[:-1],
                "right": self.edges[1:],
                "count": self.counts,
                "predicted": self.predicted,
                "observed": self.observed,
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that can be written as JSON, with None for empty bins."""
        return to_plain({name: getattr(self, name) for name in self.__dataclass_fields__})


def probabilities(
    scores: Any, y_true: Any = None, *, method: str = "linear", cv: int = 5, random_state: int = 0
) -> np.ndarray:
    """Convert scores to probabilities.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_labels)
        Scores of rows that the model was not trained on.
    y_true : array-like of shape (n_samples, n_labels), default=None
        Labels of these rows; required for "platt" and "isotonic".
    method : {"linear", "platt", "isotonic"}, default="linear"
        "linear" is (score + 1) / 2, for models such as IMCC that are least-squares fits of
        {-1, +1}.  "platt" and "isotonic" learn a map per label by cross-fitting.
    cv : int, default=5
        Number of stratified folds for "platt" and "isotonic", >= 2; fewer if a label has fewer
        rows of either class.
    random_state : int, default=0
        Seed of the folds.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Probabilities in [0, 1].  With "platt" and "isotonic", labels with fewer than two rows of
        either class get their relative frequency.

    See Also
    --------
    reliability : Compare probabilities with observed frequencies.
    imcc.estimators.MultilabelCalibrator : Calibrate a classifier.

    Examples
    --------
    >>> from imcc.inspection import probabilities
    >>> probabilities([[-1.0, 0.5], [0.0, 1.5]]).tolist()
    [[0.0, 0.75], [0.5, 1.0]]
    """
    check_choice("method", method, METHODS)
    if method == "linear":
        return np.clip((np.asarray(scores, dtype=np.float64) + 1) / 2, 0.0, 1.0)
    check_count("cv", cv)
    if y_true is None or cv < 2:
        raise ValueError(f"method={method!r} needs y_true and cv >= 2")
    on, scores, _ = checked(y_true, scores, None)
    fit = _platt if method == "platt" else _isotonic
    return np.column_stack(
        [_cross_fitted(on[:, j], scores[:, j], fit, cv, random_state) for j in range(on.shape[1])]
    )


def _cross_fitted(
    on: np.ndarray,
    scores: np.ndarray,
    fit: Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]],
    cv: int,
    seed: int,
) -> np.ndarray:
    n_folds = min(cv, int(on.sum()), int((~on).sum()))
    if n_folds < 2:
        return np.full(len(on), on.mean())
    out = np.empty(len(on))
    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(on, on):
        out[test] = fit(scores[train], on[train])(scores[test])
    return out


def _platt(scores: np.ndarray, on: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    slope, offset = fit_sigmoid(scores, on)
    return lambda new: expit(slope * new + offset)


def _isotonic(scores: np.ndarray, on: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(scores, on).predict


def reliability(
    y_true: Any,
    chances: Any,
    *,
    n_bins: int = 10,
    strategy: str = "uniform",
    label_names: Sequence[str] | None = None,
) -> list[Reliability]:
    """Compare probabilities with observed frequencies, per label.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels, coded {0, 1}, {-1, +1} or boolean.
    chances : array-like of shape (n_samples, n_labels)
        Predicted probabilities, for example of :func:`probabilities`.
    n_bins : int, default=10
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or bins with the same number of rows (as far as ties allow).
    label_names : sequence of str, default=None
        Names of the labels; ``label0, label1, ...`` by default.

    Returns
    -------
    list of Reliability
        One entry per label.

    See Also
    --------
    diagnose_probabilities : With confidence intervals.
    draw_reliability : Plot the result.

    Examples
    --------
    >>> from imcc.inspection import reliability
    >>> (label,) = reliability([[1], [0], [1], [1]], [[0.9], [0.2], [0.7], [0.3]], n_bins=2)
    >>> label.counts.tolist(), label.predicted.tolist(), label.observed.tolist()
    ([2, 2], [0.25, 0.8], [0.5, 1.0])
    """
    check_count("n_bins", n_bins)
    check_choice("strategy", strategy, STRATEGIES)
    on, values, names = checked(y_true, chances, label_names)
    if values.min() < 0 or values.max() > 1:
        raise ValueError(
            "chances must be between 0 and 1, got values from "
            f"{values.min():g} to {values.max():g}; convert scores with probabilities()"
        )
    return [
        _reliability(names[j], on[:, j], values[:, j].astype(np.float64), n_bins, strategy)
        for j in range(on.shape[1])
    ]


def bins_of(edges: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the index of each value's bin; see :class:`Reliability`."""
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)


def _reliability(
    name: str, on: np.ndarray, values: np.ndarray, n_bins: int, strategy: str
) -> Reliability:
    edges = np.linspace(0, 1, n_bins + 1)
    if strategy == "quantile":
        edges = np.unique(np.quantile(values, edges))
        if len(edges) == 1:  # all the same
            edges = np.array([edges[0], edges[0]])
    bins = bins_of(edges, values)
    counts = np.bincount(bins, minlength=len(edges) - 1)
    sums, hits = (np.bincount(bins, w, minlength=len(counts)) for w in (values, on.astype(float)))
    filled = counts > 0
    predicted, observed = np.full((2, len(counts)), np.nan)
    predicted[filled], observed[filled] = (
        sums[filled] / counts[filled],
        hits[filled] / counts[filled],
    )
    gaps = np.abs(predicted - observed)[filled]
    return Reliability(
        name,
        edges,
        counts,
        predicted,
        observed,
        float(np.mean((values - on) ** 2)),
        float(gaps @ counts[filled] / len(values)),
    )
