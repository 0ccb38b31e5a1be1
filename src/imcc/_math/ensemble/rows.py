"""The training rows in every view, their labels, and the criteria."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold

from imcc._array.array import Array, asarray, take_rows, to_numpy
from imcc._math.ensemble.held_out import Held, Labels
from imcc._math.ensemble.model import on_host_or_device
from imcc._math.ensemble.records import Options
from imcc._math.ensemble.selection import Criterion
from imcc._math.ensemble.views import View, fit_view
from imcc._math.search.folds import Fold
from imcc._utils.validation import Features

N_FOLDS = 5


class Rows:
    """The training rows in every view, and the labels that vary.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    signs : array of shape (n_samples, q)
        Labels as -1.0 and +1.0; 0.0 where unknown.
    binary : bool
    weight : ndarray of shape (n_samples,) or None
    known : ndarray of bool, shape (n_samples, q), or None
        Which labels are known; None if all are.
    options : Options
    """

    def __init__(
        self,
        X: Features,
        signs: Array,
        binary: bool,
        weight: np.ndarray | None,
        known: np.ndarray | None,
        options: Options,
    ) -> None:
        self.n = X.shape[0]
        self.binary, self.weight, self.known, self.options = binary, weight, known, options
        self.signs = signs
        self.on = to_numpy(signs) > 0
        self._X = X
        self._views: dict[str, View] = {}
        self._rows: dict[str, Features] = {}

    @property
    def n_nonzero(self) -> float:
        """Mean number of entries per row that are not zero."""
        stored = self._X.nnz if sp.issparse(self._X) else self._X.size
        return stored / max(self.n, 1)

    def view(self, name: str) -> View:
        """Return a view, which is fitted when it is first needed."""
        if name not in self._views:
            self._views[name] = fit_view(name, self._X)
        return self._views[name]

    def rows(self, name: str) -> Features:
        """Return all rows in a view, on the device of the labels."""
        if name not in self._rows:
            moved = self.view(name).transform(self._X)
            self._rows[name] = on_host_or_device(moved, self.signs)
        return self._rows[name]

    def held(self, part: np.ndarray, folds: list[Fold] | None) -> Held:
        """Return labels and folds for a part of the rows."""
        signs = take_rows(self.signs, part)
        weight = None if self.weight is None else asarray(self.weight[part], self.signs)
        own = None if folds is None else restricted(folds, part)
        if self.known is not None:
            return Held(Labels.of(signs, weight), own, None, self.known[part])
        labels = Labels.of(signs, weight)
        if own is None:
            return Held(labels, None, None)
        return Held(labels, own, [labels.of_rows(fold.train) for fold in own])

    def weighting(self, part: np.ndarray) -> Criterion:
        """Return the criterion for the weights of the members."""
        if self.options.weights == "scoring":
            return self.criterion(part)
        return self._criterion(part, "log_loss")

    def criterion(self, part: np.ndarray) -> Criterion:
        """Return the criterion for kernels, penalties and couplings."""
        return self._criterion(part, self.options.scoring)

    def _criterion(self, part: np.ndarray, scoring: Any) -> Criterion:
        weight = None if self.weight is None else self.weight[part]
        known = None if self.known is None else self.known[part]
        return Criterion(self.on[part], scoring, self.binary, weight, self.signs, known)


def restricted(folds: list[Fold], part: np.ndarray) -> list[Fold]:
    """Return folds of a part of the rows, as places in it; without empty ones."""
    found = []
    for fold in folds:
        test = np.flatnonzero(np.isin(part, fold.test))
        train = np.flatnonzero(np.isin(part, fold.train))
        if len(test) and len(train):
            found.append(Fold(train, test))
    return found


def make_folds(n: int, seed: int) -> list[Fold]:
    """Return shuffled folds of rows."""
    splitter = KFold(min(N_FOLDS, n), shuffle=True, random_state=np.random.RandomState([seed, 12]))
    return [Fold(train, test) for train, test in splitter.split(np.empty((n, 0)))]
