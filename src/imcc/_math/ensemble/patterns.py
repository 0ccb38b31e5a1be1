"""Unknown labels: each label is learned from the rows in which it is known.

Other rows are ignored, but views and widths are computed from all rows.  Labels that are known in
the same rows share decompositions; each pattern of known rows needs another decomposition per
kernel.  Labels are not coupled, since this needs the same rows for all labels.

The held-out scores of all penalties are computed at once and the decomposition is discarded, so
that only one matrix is in memory, however many patterns there are.  The coefficients of the
selected penalty need another decomposition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from imcc._array.array import Array, asarray, namespace, submatrix, take, take_rows, zeros
from imcc._math.ensemble.held_out import Held, Labels, Ridge, feature_weights
from imcc._math.ensemble.spectrum import Spectrum
from imcc._math.maps import NystroemMap
from imcc._math.solver import label_patterns


class RowsFit(Protocol):
    """Ridge regression on some of the rows."""

    def leave_one_out(self, penalty: float) -> Array:
        """Return the scores of these rows, each from the model without it."""

    def score(self, tests: np.ndarray, penalty: float) -> Array:
        """Return the scores of other rows."""

    def coefficients(self, penalty: float) -> tuple[Array, Array]:
        """Return the coefficients of all anchors, and the intercepts."""


class Ridges(Protocol):
    """A kernel of all rows, from which models of some rows are fitted."""

    def fit(self, rows: np.ndarray, labels: Labels) -> RowsFit:
        """Fit ridge regression on some rows."""


@dataclass(frozen=True)
class KernelRidges:
    """Models of some rows from the kernel matrix of all."""

    K: Array

    def fit(self, rows: np.ndarray, labels: Labels) -> RowsFit:
        """Fit ridge regression on some rows."""
        spectrum = Spectrum.of_kernel(submatrix(self.K, rows, rows), labels.weight)
        return _KernelFit(self.K, rows, Ridge(spectrum, labels))


@dataclass(frozen=True)
class _KernelFit:
    K: Array
    rows: np.ndarray
    ridge: Ridge

    def leave_one_out(self, penalty: float) -> Array:
        return self.ridge.leave_one_out(penalty)

    def score(self, tests: np.ndarray, penalty: float) -> Array:
        coef, intercept = self.ridge.coefficients(penalty)
        return submatrix(self.K, tests, self.rows) @ coef + intercept

    def coefficients(self, penalty: float) -> tuple[Array, Array]:
        coef, intercept = self.ridge.coefficients(penalty)
        return _placed(coef, self.rows, self.K.shape[0]), intercept


@dataclass(frozen=True)
class FeatureRidges:
    """Models of some rows from the features of all."""

    nystroem: NystroemMap
    features: Array

    def fit(self, rows: np.ndarray, labels: Labels) -> RowsFit:
        """Fit ridge regression on some rows."""
        spectrum, basis = Spectrum.of_features(take_rows(self.features, rows), labels.weight)
        return _FeatureFit(self, Ridge(spectrum, labels), basis)


@dataclass(frozen=True)
class _FeatureFit:
    source: FeatureRidges
    ridge: Ridge
    basis: Array

    def leave_one_out(self, penalty: float) -> Array:
        return self.ridge.leave_one_out(penalty)

    def score(self, tests: np.ndarray, penalty: float) -> Array:
        weights, intercept = feature_weights(self.ridge, self.basis, penalty, 0.0)
        return take_rows(self.source.features, tests) @ weights + intercept

    def coefficients(self, penalty: float) -> tuple[Array, Array]:
        weights, intercept = feature_weights(self.ridge, self.basis, penalty, 0.0)
        return self.source.nystroem.basis @ weights, intercept


class PatternScorer:
    """Held-out scores and coefficients where some labels are unknown.

    Unknown labels are scored by the model of all rows in which the label is known, which is fitted
    without them.  The scores of labels that no other row could be learned from are 0.

    Parameters
    ----------
    ridges : KernelRidges or FeatureRidges
    held : Held
    penalties : sequence of float
    """

    def __init__(self, ridges: Ridges, held: Held, penalties: Sequence[float]) -> None:
        assert held.known is not None
        self._ridges, self._held = ridges, held
        self._patterns = label_patterns(held.known)
        n, parts = held.known.shape[0], []
        for rows, columns in self._patterns:
            scores = [zeros((n, len(columns)), held.labels.signs) for _ in penalties]
            for tests, found in self._held_out(rows, columns, penalties):
                at = asarray(tests, held.labels.signs)
                for part, values in zip(scores, found, strict=True):
                    part[at, :] = values
            parts.append(scores)
        self._scores = {
            penalty: self._assembled([part[k] for part in parts])
            for k, penalty in enumerate(penalties)
        }

    def _held_out(
        self, rows: np.ndarray, columns: np.ndarray, penalties: Sequence[float]
    ) -> Iterator[tuple[np.ndarray, Iterator[Array]]]:
        """Yield rows and their held-out scores for each penalty."""
        if self._held.folds is None:
            if len(rows) > 1:
                fit = self._fit(rows, columns)
                yield rows, (fit.leave_one_out(penalty) for penalty in penalties)
                others = np.setdiff1d(np.arange(self._held.labels.signs.shape[0]), rows)
                if len(others):
                    yield others, (fit.score(others, penalty) for penalty in penalties)
            return
        for fold in self._held.folds:
            train = np.intersect1d(fold.train, rows)
            if len(train):
                fit, tests = self._fit(train, columns), fold.test
                yield tests, (fit.score(tests, penalty) for penalty in penalties)

    def _fit(self, rows: np.ndarray, columns: np.ndarray) -> RowsFit:
        labels = self._held.labels
        weight = None if labels.weight is None else take_rows(labels.weight, rows)
        return self._ridges.fit(rows, Labels.of(submatrix(labels.signs, rows, columns), weight))

    def held_out(self, penalty: float, eta: float = 0.0) -> Array:
        """Return the scores of all rows by models without them."""
        assert eta == 0
        return self._scores[penalty]

    def coefficients(self, penalty: float, eta: float = 0.0) -> tuple[Array, Array]:
        """Return coefficients of the anchors and intercepts."""
        assert eta == 0
        found = [self._fit(*pattern).coefficients(penalty) for pattern in self._patterns]
        intercepts = self._assembled([intercept[None, :] for _, intercept in found])
        return self._assembled([coef for coef, _ in found]), intercepts[0, :]

    def _assembled(self, parts: list[Array]) -> Array:
        """Return the columns of all patterns in the order of the labels."""
        order = np.argsort(np.concatenate([columns for _, columns in self._patterns]))
        joined = namespace(parts[0]).concat(parts, axis=1)
        return take(joined, asarray(order, joined), 1)


def _placed(values: Array, rows: np.ndarray, n: int) -> Array:
    """Return values of some rows in their places among n, zero elsewhere."""
    out = zeros((n, values.shape[1]), values)
    out[asarray(rows, values), :] = values
    return out
