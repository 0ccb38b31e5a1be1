r"""Quality of probabilities per label, with intervals.

For one label with probabilities p_i and true values y_i in {0, 1} of n rows::

    log loss           = -1/n sum_i [y_i log p_i + (1 - y_i) log(1 - p_i)]
    Brier score        =  1/n sum_i (p_i - y_i)^2
    calibration error  =  1/n sum_b |sum_{i in b} (p_i - y_i)|,   over bins b of probabilities

The first two are proper scoring rules: in expectation they are lowest for the true probabilities.
The last, the expected calibration error (ECE), only measures whether the label is as frequent as
predicted; a constant probability for all rows can be perfectly calibrated but useless.

Intervals are computed by the bootstrap: rows are drawn with replacement, all labels of a row
together, and the quantiles of the resampled values are the bounds.  The calibration error is a sum
of absolute values, so noise increases it, and resampling adds noise: the resampled values are
therefore shifted so that their mean is the value on the original rows.  Even perfect probabilities
have a positive calibration error on few rows; ``error_by_chance`` is its mean over true values
drawn with these probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from imcc._utils.config import get_config
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import check_count, check_share
from imcc._utils.wrappers import innermost
from imcc.baselines import (
    JFSC,
    LIFT,
    LLSF,
    BinaryRelevanceSVM,
    EnsembleClassifierChains,
    KernelRidgeBaseline,
)
from imcc.estimators.cross_fit import label_scores
from imcc.estimators.imcc import IMCCClassifier
from imcc.inspection._bootstrap import Estimate, estimate, resampled_counts
from imcc.inspection._diagnostics import checked
from imcc.inspection._results import Result

#: Probabilities are clipped to [CLIP, 1 - CLIP] in the log loss, which would otherwise be infinite
#: if a label with probability 0 occurs.
CLIP = 1e-7
MEASURES = ("log_loss", "brier", "calibration_error")
# Number of draws for ``error_by_chance``: a mean needs fewer than quantiles.
_DRAWS = 50


@dataclass(frozen=True)
class LabelCalibration:
    """Quality of the probabilities of one label.

    Attributes
    ----------
    label : str
        Name of the label.
    support : int
        Number of rows that have the label.
    log_loss, brier, calibration_error : Estimate
        Lower is better.
    error_by_chance : float
        Mean calibration error of perfectly calibrated probabilities on the same number of rows.
    counts : ndarray of shape (n_bins,)
        Number of rows per bin of probabilities.
    predicted : ndarray of shape (n_bins,)
        Mean probability per bin; NaN for an empty bin.
    observed : ndarray of shape (n_bins,)
        Fraction of the rows of a bin that have the label; NaN for an empty bin.
    """

    label: str
    support: int
    log_loss: Estimate
    brier: Estimate
    calibration_error: Estimate
    error_by_chance: float
    counts: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray


@dataclass(frozen=True, repr=False)
class CalibrationDiagnostics(Result):
    """Quality of the probabilities of all labels.

    ``to_frame()`` has one row per label, with the columns ``support``; ``log_loss``,
    ``log_loss_low``, ``log_loss_high`` and the same for ``brier`` and ``calibration_error``; and
    ``error_by_chance``.

    Attributes
    ----------
    labels : tuple of LabelCalibration
        One entry per label.
    n_rows : int
        Number of rows.
    confidence : float
        Confidence level of the intervals.
    log_loss, brier, calibration_error : Estimate
        Means over the labels.
    error_by_chance : float
        Mean over the labels.
    """

    labels: tuple[LabelCalibration, ...]
    n_rows: int
    confidence: float
    log_loss: Estimate
    brier: Estimate
    calibration_error: Estimate
    error_by_chance: float

    _n_index = 1
    _shown = ("label", "support", *MEASURES, "error_by_chance")

    def _title(self) -> str:
        return (
            f"Probabilities of {len(self.labels):,} labels on {self.n_rows:,} rows: log loss "
            f"{self.log_loss}, Brier score {self.brier}, calibration error "
            f"{self.calibration_error} ({self.error_by_chance:.3f} by chance)"
        )

    def _table(self) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {
            "label": [label.label for label in self.labels],
            "support": [label.support for label in self.labels],
        }
        for name in MEASURES:
            for part, word in (("value", ""), ("low", "_low"), ("high", "_high")):
                columns[f"{name}{word}"] = [
                    getattr(getattr(label, name), part) for label in self.labels
                ]
        columns["error_by_chance"] = [label.error_by_chance for label in self.labels]
        return columns


def diagnose_probabilities(
    y_true: Any,
    chances: Any,
    *,
    n_bins: int = 10,
    confidence: float = 0.95,
    n_resamples: int = 500,
    random_state: int = 0,
    label_names: Sequence[str] | None = None,
) -> CalibrationDiagnostics:
    r"""Compute log loss, Brier score and calibration error of probabilities, with intervals.

    For one label with probabilities p_i and true values y_i in {0, 1} of n rows::

        log loss           = -1/n sum_i [y_i log p_i + (1 - y_i) log(1 - p_i)]
        Brier score        =  1/n sum_i (p_i - y_i)^2
        calibration error  =  1/n sum_b |sum_{i in b} (p_i - y_i)|,   over bins b of probabilities

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels, coded {0, 1}, {-1, +1} or boolean.
    chances : array-like of shape (n_samples, n_labels)
        Predicted probabilities.
    n_bins : int, default=10
        Number of bins of equal width for the calibration error.
    confidence : float, default=0.95
        Confidence level of the intervals, in (0, 1).
    n_resamples : int, default=500
        Number of bootstrap resamples; 0 gives no intervals.
    random_state : int, default=0
        Seed of the bootstrap.
    label_names : sequence of str, default=None
        Names of the labels; ``label0, label1, ...`` by default.

    Returns
    -------
    CalibrationDiagnostics
        With ``log_loss``, ``brier`` and ``calibration_error`` over all labels, each with ``value``,
        ``low`` and ``high``; the same per label in ``labels``, with ``counts``, ``predicted`` and
        ``observed`` per bin; ``error_by_chance``; ``to_frame()`` and ``to_dict()``.

    See Also
    --------
    diagnose : Quality of the scores and of the decisions.

    Notes
    -----
    In the log loss, probabilities are clipped to [1e-7, 1 - 1e-7].

    Examples
    --------
    >>> import numpy as np
    >>> from imcc.inspection import diagnose_probabilities
    >>> rng = np.random.default_rng(0)
    >>> right = rng.uniform(size=(2000, 2))
    >>> truth = rng.uniform(size=(2000, 2)) < right
    >>> found = diagnose_probabilities(truth, right)
    >>> wrong = diagnose_probabilities(truth, np.sqrt(right))
    >>> found.log_loss.value < wrong.log_loss.value
    True
    >>> found.calibration_error.value < 0.05 < wrong.calibration_error.low
    True
    """
    check_count("n_resamples", n_resamples, at_least=0)
    check_share("confidence", confidence)
    check_count("n_bins", n_bins)
    on, values, names = checked(y_true, chances, label_names)
    if values.min() < 0 or values.max() > 1:
        raise InvalidArgumentError(
            "chances",
            f"must be probabilities between 0 and 1, got values from {values.min():g} to "
            f"{values.max():g}; convert scores with score_probabilities",
        )
    binned = BinnedProbabilities(on, values.astype(np.float64), n_bins)
    rng = np.random.default_rng(random_state)
    blocks = resampled_counts(len(on), n_resamples, rng, get_config().sum_entries)
    drawn = np.concatenate([binned.of(counts) for counts in blocks])
    by_chance = binned.by_chance(rng)
    counts, predicted, observed = binned.reliability()
    labels = tuple(
        LabelCalibration(
            label=names[j],
            support=int(on[:, j].sum()),
            **_estimates(binned.measures[:, j], drawn[:, :, j], confidence),
            error_by_chance=float(by_chance[j]),
            counts=counts[j],
            predicted=predicted[j],
            observed=observed[j],
        )
        for j in range(on.shape[1])
    )
    return CalibrationDiagnostics(
        labels=labels,
        n_rows=len(on),
        confidence=confidence,
        **_estimates(binned.measures.mean(axis=1), drawn.mean(axis=2), confidence),
        error_by_chance=float(by_chance.mean()),
    )


class BinnedProbabilities:
    """Probabilities in bins, with the contribution of each row and bin to the measures.

    Attributes
    ----------
    bins : ndarray of shape (n_samples, n_labels)
        Index of the bin of each probability: [left, right), the last one with its right edge.
    measures : ndarray of shape (3, n_labels)
        The measures on the original rows.
    losses : ndarray of shape (n_samples, 2 * n_labels)
        Log loss and Brier score per row.
    gaps : csr_array of shape (n_samples, n_labels * n_bins)
        Probability minus true value, in the column of the bin.
    """

    def __init__(self, on: np.ndarray, values: np.ndarray, n_bins: int) -> None:
        n, q = on.shape
        self.on, self.values, self.n_bins = on, values, n_bins
        clipped = np.clip(values, CLIP, 1 - CLIP)
        log_losses = -np.log(np.where(on, clipped, 1 - clipped))
        self.losses = np.hstack([log_losses, (values - on) ** 2])
        edges = np.linspace(0, 1, n_bins + 1)
        self.bins = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, n_bins - 1)
        self.columns = (self.bins + n_bins * np.arange(q)).ravel()
        rows = np.arange(0, n * q + 1, q)
        shape = (n, q * n_bins)
        self.gaps = sp.csr_array(((values - on).ravel(), self.columns, rows), shape=shape)
        self.measures = self.of(np.ones((1, n)))[0]

    def of(self, counts: np.ndarray) -> np.ndarray:
        """Return the measures of resamples given by counts, shape (n_resamples, 3, n_labels)."""
        n, q = self.on.shape
        means = counts @ self.losses / n
        gaps = np.abs((self.gaps.T @ counts.T).T) / n
        errors = gaps.reshape(len(counts), q, self.n_bins).sum(axis=2)
        return np.stack([means[:, :q], means[:, q:], errors], axis=1)

    def by_chance(self, rng: np.random.Generator) -> np.ndarray:
        """Return the mean calibration errors for true values drawn with the probabilities."""
        n, q = self.on.shape
        total = np.zeros(q)
        for _ in range(_DRAWS):
            sums = self._sums(self.values - (rng.random((n, q)) < self.values))
            total += np.abs(sums).sum(axis=1) / n
        return total / _DRAWS

    def reliability(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return per label and bin: rows, mean probability, and share of rows with the label."""
        counts = self._sums(np.ones(self.on.shape))
        with np.errstate(invalid="ignore"):
            predicted, observed = (self._sums(v) / counts for v in (self.values, self.on))
        return counts.astype(np.int64), predicted, observed

    def _sums(self, entries: np.ndarray) -> np.ndarray:
        """Sum entries of shape (n_samples, n_labels) per label and bin."""
        q = self.on.shape[1]
        sums = np.bincount(self.columns, entries.ravel(), minlength=q * self.n_bins)
        return sums.reshape(q, self.n_bins)


def _estimates(values: np.ndarray, drawn: np.ndarray, confidence: float) -> dict[str, Estimate]:
    """Return the three measures with intervals from resampled values, shape (n_resamples, 3)."""
    if len(drawn):
        errors = np.maximum(drawn[:, 2] - drawn[:, 2].mean() + values[2], 0.0)
        drawn = np.column_stack([drawn[:, :2], errors])
    return {
        name: estimate(float(values[k]), drawn[:, k], confidence) for k, name in enumerate(MEASURES)
    }


# What the scores of the models estimate; those of other classes do not estimate probabilities.
_LEAST_SQUARES = (IMCCClassifier, KernelRidgeBaseline)  # of -1 and +1: 2 P - 1
_SHARES = (LLSF, JFSC)  # P - 1/2
_PLATT = (BinaryRelevanceSVM, EnsembleClassifierChains, LIFT)  # log-odds, or margins


def score_probabilities(model: Any, X: Any, n_labels: int) -> np.ndarray | None:
    """Return the probabilities that the scores of a model imply, without calibration.

    Parameters
    ----------
    model : classifier
        A fitted classifier.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        Rows.
    n_labels : int
        Number of labels.

    Returns
    -------
    ndarray of shape (n_samples, n_labels), or None
        The model's own probabilities if it has ``predict_proba``; (score + 1) / 2, clipped to
        [0, 1], for IMCC and kernel ridge, which are least-squares fits of -1 and +1; score + 1/2,
        clipped to [0, 1], for LLSF and JFSC; 1 / (1 + exp(-score)) for the support vector machines
        with ``scores="probability"``.  None for scores that do not estimate a
        probability, such as margins.
    """
    if hasattr(model, "predict_proba"):
        return label_scores(model, X, n_labels, method="predict_proba")
    inner = innermost(model)
    if isinstance(inner, _LEAST_SQUARES):
        return np.clip((label_scores(model, X, n_labels) + 1) / 2, 0.0, 1.0)
    if isinstance(inner, _SHARES):
        return np.clip(label_scores(model, X, n_labels) + 0.5, 0.0, 1.0)
    if isinstance(inner, _PLATT) and inner.scores == "probability":
        return expit(label_scores(model, X, n_labels))
    return None
