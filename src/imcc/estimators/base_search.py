"""Base class of the searches: store the results, choose the best setting, predict with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if

from imcc._array.array import Array, moved_record
from imcc._math.logistic import LogisticMaps, fit_logistic_maps
from imcc._utils.errors import ImccError
from imcc._utils.validation import Target, check_switch
from imcc.estimators.base import LogOddsClassifierMixin


class _NotRefittedError(ImccError, AttributeError):
    """Raised by methods that need ``best_estimator_``, after a search with ``refit=False``."""


def _gives_probabilities(search: Any) -> bool:
    """Whether a search has probabilities, or will have them after ``fit``."""
    is_fitted = hasattr(search, "cv_results_") or hasattr(search, "best_estimator_")
    if not (hasattr(search, "calibration_") if is_fitted else search.calibrate):
        raise AttributeError(
            f"{type(search).__name__} has predict_proba only with calibrate=True; set it before fit"
        )
    return True


class SearchClassifier(LogOddsClassifierMixin, BaseEstimator):
    """Base class of classifiers that select a setting by cross-validation, like ``GridSearchCV``.

    Subclasses have the parameters ``scoring``, ``refit`` and ``calibrate``.  Their ``fit``
    evaluates the settings and calls :meth:`_store_results`, then :meth:`_store_best` for the
    selected setting, and, with ``calibrate=True``, :meth:`_store_calibration` with the scores of
    this setting for held-out rows; the scores are then log-odds.
    """

    _uses_groups = True
    predict_proba = available_if(_gives_probabilities)(LogOddsClassifierMixin.predict_proba)

    def _scores(self, X: Any) -> Array:
        if not hasattr(self, "best_estimator_"):
            raise _NotRefittedError(
                "no model was fitted on all rows, because refit=False; use refit=True"
            )
        scores = self.best_estimator_._scores(X)
        maps = self.__dict__.get("calibration_")
        return scores if maps is None else moved_record(maps, scores).log_odds(scores)

    best_estimator_: Any
    calibration_: LogisticMaps
    cv_results_: dict[str, Any]
    refit: Any
    scoring: Any
    calibrate: bool

    def _check_calibrate(self) -> bool:
        """Return the checked parameter ``calibrate``."""
        if check_switch("calibrate", self.calibrate) and self.refit is False:
            raise ValueError(
                "calibrate=True needs a fitted model: use refit=True or, with several metrics, "
                "the name of the metric that selects the best setting"
            )
        return bool(self.calibrate)

    def _store_results(self, target: Target, results: dict[str, Any], n_splits: int) -> None:
        """Store the results, and delete the best setting of an earlier fit."""
        self._remember_target(target)
        self.n_splits_ = n_splits
        self.cv_results_ = results
        for name in ("index_", "params_", "score_", "estimator_"):
            self.__dict__.pop(f"best_{name}", None)
        self.__dict__.pop("calibration_", None)

    def _store_best(self, index: int, key: str) -> None:
        """Store the selected setting; ``key`` is the part of the columns of its metric."""
        self.best_index_ = index
        self.best_params_ = self.cv_results_["params"][index]
        self.best_score_ = float(self.cv_results_[f"mean_test_{key}"][index])

    def _store_calibration(
        self, scores: np.ndarray, target: Target, weights: np.ndarray | None = None
    ) -> None:
        """Fit the maps to log-odds on the out-of-fold scores of the selected setting."""
        self.calibration_ = fit_logistic_maps(
            scores, target.signs > 0, sample_weight=weights, known=target.known
        )

    def at_setting(self, params: Mapping[str, Any]) -> Self:
        """Return an unfitted search with only one setting in its grid.

        If it is calibrated, it has the probabilities of this setting, unlike a clone of
        ``best_estimator_``.

        Parameters
        ----------
        params : mapping
            An entry of ``cv_results_["params"]``.

        Returns
        -------
        estimator
            Of the same class.
        """
        axes = {name: [value] for name, value in self._axes_of(params).items()}
        return clone(self).set_params(**axes)

    def _axes_of(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of a setting per axis, by the name of the constructor's parameter."""
        return {f"{name}s": value for name, value in params.items()}
