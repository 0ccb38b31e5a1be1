"""Scores of held-out rows: leave-one-out in closed form, or folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from imcc._array.array import Array, asarray, namespace, submatrix, take_rows, to_numpy
from imcc._math.ensemble.spectrum import Coupling, Spectrum
from imcc._math.search.folds import Fold


@dataclass(frozen=True)
class Labels:
    """The labels of some rows, also in the eigenbasis of their correlations.

    Attributes
    ----------
    signs : array of shape (n, q)
    coupling : Coupling
    rotated : array of shape (n, q)
        ``signs @ coupling.vectors``.
    weight : array of shape (n,) or None
    """

    signs: Array
    coupling: Coupling
    rotated: Array
    weight: Array | None

    @classmethod
    def of(cls, signs: Array, weight: Array | None = None) -> Labels:
        """Rotate labels."""
        coupling = Coupling.of(to_numpy(signs), None if weight is None else to_numpy(weight))
        return cls(signs, coupling, signs @ asarray(coupling.vectors, signs), weight)

    def of_rows(self, rows: np.ndarray) -> Labels:
        """Return the labels of some rows, with the correlations of these rows."""
        weight = None if self.weight is None else take_rows(self.weight, rows)
        return Labels.of(take_rows(self.signs, rows), weight)


@dataclass(frozen=True)
class Held:
    """What is held out of some rows.

    Attributes
    ----------
    labels : Labels
    folds : list of Fold or None
        None if single rows are held out.
    fold_labels : list of Labels or None
        Those of the training rows of each fold, if all labels are known.
    known : ndarray of bool, shape (n, q), or None
        Which labels are known; None if all are.
    """

    labels: Labels
    folds: list[Fold] | None
    fold_labels: list[Labels] | None
    known: np.ndarray | None = None


class Ridge:
    """Kernel ridge regression on some rows, for any penalty and coupling.

    Parameters
    ----------
    spectrum : Spectrum
    labels : Labels
    """

    def __init__(self, spectrum: Spectrum, labels: Labels) -> None:
        self.spectrum, self.labels = spectrum, labels
        self._projected = spectrum.project(labels.signs)
        # The eigenbasis of the labels only rotates what is projected already.
        self._vectors = asarray(labels.coupling.vectors, labels.signs)

    def leave_one_out(self, penalty: float, eta: float = 0.0) -> Array:
        """Return the leave-one-out scores, (n, q)."""
        if eta == 0:
            return self.spectrum.leave_one_out(self.labels.signs, self._projected, penalty)
        penalties = self.labels.coupling.penalties(penalty, eta)
        rotated = self._projected @ self._vectors
        found = self.spectrum.leave_one_out(self.labels.rotated, rotated, penalties)
        return found @ self._vectors.T

    def coefficients(self, penalty: float, eta: float = 0.0) -> tuple[Array, Array]:
        """Return coefficients (n, q) and intercepts (q,)."""
        if eta == 0:
            return self.spectrum.coefficients(self.labels.signs, self._projected, penalty)
        penalties = self.labels.coupling.penalties(penalty, eta)
        rotated = self._projected @ self._vectors
        coef, intercept = self.spectrum.coefficients(self.labels.rotated, rotated, penalties)
        return coef @ self._vectors.T, intercept @ self._vectors.T


class FoldRidge:
    """Kernel ridge regression on the training rows of folds, and the scores of the held-out rows.

    Parameters
    ----------
    K : array of shape (n, n)
        The kernel matrix.
    labels : list of Labels
        Those of the training rows of each fold.
    folds : list of Fold
    """

    def __init__(self, K: Array, labels: list[Labels], folds: list[Fold]) -> None:
        self._folds, self._shape = folds, (K.shape[0], labels[0].signs.shape[1])
        self.ridges: list[Ridge] = []
        self.across: list[Array] = []
        for fold, own in zip(folds, labels, strict=True):
            self.across.append(submatrix(K, fold.test, fold.train))
            inner = submatrix(K, fold.train, fold.train)
            self.ridges.append(Ridge(Spectrum.of_kernel(inner, own.weight), own))

    def held_out(self, penalty: float, eta: float = 0.0) -> Array:
        """Return the scores of all rows, each from the model of the fold that holds it out."""
        parts = []
        for ridge, across in zip(self.ridges, self.across, strict=True):
            coef, intercept = ridge.coefficients(penalty, eta)
            parts.append(across @ coef + intercept)
        return put_rows(parts, [fold.test for fold in self._folds], self._shape)


def feature_weights(ridge: Ridge, basis: Array, penalty: float, eta: float) -> tuple[Array, Array]:
    """Return the weights of features, W = Phi' alpha, and the intercepts.

    With S Phi = U diag(w) basis^+, W is basis diag(w) U' t.
    """
    alpha, intercept = ridge.coefficients(penalty, eta)
    spectrum = ridge.spectrum
    t = alpha if spectrum.root is None else alpha / spectrum.root
    return (basis * spectrum.values) @ (spectrum.vectors.T @ t), intercept


def put_rows(parts: list[Array], rows: list[np.ndarray], shape: tuple[int, int]) -> Array:
    """Return the rows of several arrays in their places; each row occurs once."""
    order = np.argsort(np.concatenate(rows), kind="stable")
    assert len(order) == shape[0]
    return take_rows(namespace(parts[0]).concat(parts, axis=0), order)


def check_folds(folds: list[Fold], n: int) -> None:
    """Raise an error if the folds do not hold out every row exactly once."""
    if not np.array_equal(np.sort(np.concatenate([fold.test for fold in folds])), np.arange(n)):
        raise ValueError(
            "cv must hold every row out exactly once, so that each row has one held-out score; "
            "use a splitter such as KFold or GroupKFold"
        )
