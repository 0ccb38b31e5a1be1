"""Held-out scores and coefficients of one kernel: exact, by landmarks, or with unknown labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from imcc._array.array import Array, asarray, take_rows, zeros
from imcc._math.ensemble.held_out import FoldRidge, Held, Ridge, feature_weights
from imcc._math.ensemble.model import make_kernel
from imcc._math.ensemble.patterns import FeatureRidges, KernelRidges, PatternScorer
from imcc._math.ensemble.records import Kernel
from imcc._math.ensemble.spectrum import Spectrum
from imcc._math.maps import NystroemMap
from imcc._utils.validation import Features


class Scorer(Protocol):
    """Interface of a kernel for the search."""

    def held_out(self, penalty: float, eta: float = 0.0) -> Array:
        """Return the scores of all rows by models without them, (n, q)."""

    def coefficients(self, penalty: float, eta: float = 0.0) -> tuple[Array, Array]:
        """Return coefficients of the anchors, (n_anchors, q), and intercepts, (q,)."""


def kernel_scorer(K: Array, held: Held, penalties: Sequence[float]) -> Scorer:
    """Return the scorer of an exact kernel matrix, which is overwritten."""
    if held.known is None:
        return ExactScorer(K, held)
    return PatternScorer(KernelRidges(K), held, penalties)


def feature_scorer(
    kernel: Kernel, rows: Features, landmarks: Features, held: Held, penalties: Sequence[float]
) -> Scorer:
    """Return the scorer of Nyström features of some landmarks."""
    nystroem = NystroemMap.fit(make_kernel(kernel.name), kernel.width, None, landmarks)
    n = rows.shape[0]
    features = zeros((n, nystroem.basis.shape[1]), held.labels.signs)
    step = max(1, 2**22 // landmarks.shape[0])
    for start in range(0, n, step):
        block = slice(start, min(start + step, n))
        features[block, :] = nystroem.transform(rows[block, :])
    if held.known is None:
        return FeatureScorer(nystroem, features, held)
    return PatternScorer(FeatureRidges(nystroem, features), held, penalties)


class ExactScorer:
    """Held-out scores and coefficients for an exact kernel matrix, which is overwritten."""

    def __init__(self, K: Array, held: Held) -> None:
        self._folds: FoldRidge | None = None
        if held.folds is not None and held.fold_labels is not None:
            self._folds = FoldRidge(K, held.fold_labels, held.folds)
        self._held, self._K = held, K
        self._ridge: Ridge | None = None

    @property
    def ridge(self) -> Ridge:
        """The model of all rows, decomposed when it is first needed."""
        if self._ridge is None:
            labels = self._held.labels
            self._ridge = Ridge(Spectrum.of_kernel(self._K, labels.weight), labels)
        return self._ridge

    def held_out(self, penalty: float, eta: float = 0.0) -> Array:
        """Return the scores of all rows by models without them."""
        if self._folds is not None:
            return self._folds.held_out(penalty, eta)
        return self.ridge.leave_one_out(penalty, eta)

    def coefficients(self, penalty: float, eta: float = 0.0) -> tuple[Array, Array]:
        """Return coefficients of the rows and intercepts."""
        return self.ridge.coefficients(penalty, eta)


class FeatureScorer:
    """The same for features of landmarks (Nyström), for many rows."""

    def __init__(self, nystroem: NystroemMap, features: Array, held: Held) -> None:
        self._map, self._held = nystroem, held
        self._parts: list[tuple[Ridge, Array, Array, np.ndarray]] = []
        if held.folds is not None and held.fold_labels is not None:
            for fold, labels in zip(held.folds, held.fold_labels, strict=True):
                train = take_rows(features, fold.train)
                spectrum, basis = Spectrum.of_features(train, labels.weight)
                ridge = Ridge(spectrum, labels)
                self._parts.append((ridge, basis, take_rows(features, fold.test), fold.test))
        spectrum, self._basis = Spectrum.of_features(features, held.labels.weight)
        self._ridge = Ridge(spectrum, held.labels)

    def held_out(self, penalty: float, eta: float = 0.0) -> Array:
        """Return the scores of all rows by models without them."""
        if not self._parts:
            return self._ridge.leave_one_out(penalty, eta)
        signs = self._held.labels.signs
        out = zeros(tuple(signs.shape), signs)
        for ridge, basis, tests, rows in self._parts:
            weights, intercept = feature_weights(ridge, basis, penalty, eta)
            out[asarray(rows, signs), :] = tests @ weights + intercept
        return out

    def coefficients(self, penalty: float, eta: float = 0.0) -> tuple[Array, Array]:
        """Return coefficients of the landmarks and intercepts."""
        weights, intercept = feature_weights(self._ridge, self._basis, penalty, eta)
        return self._map.basis @ weights, intercept
