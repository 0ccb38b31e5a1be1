"""What all searches share once their settings are judged: store, choose, score by the best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from imcc._backend.array import Array, moved_record
from imcc._core.logistic import LogisticMaps, fit_logistic_maps
from imcc._search.results import Best, results_frame
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import Target, check_choice, check_switch
from imcc.estimators.base import LogOddsClassifierMixin, ScoringClassifierMixin


def is_calibrated(estimator: Any) -> bool:
    """Return whether a search gives probabilities, or will once it is fitted."""
    if hasattr(estimator, "cv_results_") or hasattr(estimator, "best_estimator_"):
        return hasattr(estimator, "calibration_")
    return bool(getattr(estimator, "calibrate", False))


def _gives_probabilities(self: Any) -> bool:
    if not is_calibrated(self):
        raise AttributeError(
            f"{type(self).__name__} has predict_proba only with calibrate=True; set it before fit"
        )
    return True


class SearchMixin(LogOddsClassifierMixin):
    """What a fitted search offers: predictions, probabilities if it is calibrated, its table.

    A class that uses it has the parameter ``calibrate`` and, once fitted, ``best_estimator_`` and,
    with ``calibrate=True``, ``calibration_``; its scores are then log-odds.
    """

    predict_proba = available_if(_gives_probabilities)(LogOddsClassifierMixin.predict_proba)

    def predict(
        self, X: Any, thresholds: Any = None, *, probability_thresholds: Any = None
    ) -> np.ndarray:
        """Predict the labels of every row.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            For a Dask collection the result is a Dask array, computed on request.
        thresholds : float or array-like of shape (n_labels,), optional
            The score from which on a label is predicted, one for all labels or one for each;
            0 unless given.  With ``calibrate=True`` the scores are log-odds, and 0 is a probability
            of 1/2.
        probability_thresholds : float or array-like of shape (n_labels,), optional
            In place of ``thresholds``, the probability from which on a label is predicted; for
            ``calibrate=True`` only.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            1 where the score is at least 0, otherwise 0; always a dense integer array, whatever the
            labels were coded as.  For a 1-D training target: shape (n_samples,), the best-scored
            class.
        """
        if is_calibrated(self):
            return LogOddsClassifierMixin.predict(
                self, X, thresholds, probability_thresholds=probability_thresholds
            )
        if probability_thresholds is not None:
            raise InvalidArgumentError(
                "probability_thresholds", "needs probabilities: set calibrate=True before fit"
            )
        return ScoringClassifierMixin.predict(self, X, thresholds)

    def to_frame(self, by: str | None = None) -> Any:
        """Return ``cv_results_`` as a pandas data frame, the best setting first.

        Parameters
        ----------
        by : str, optional
            The metric whose ranks the settings are sorted by; the one that decides unless given.

        Returns
        -------
        pandas.DataFrame
            One row per setting, labelled by its place in ``cv_results_``: parameters, then rank,
            mean and standard deviation of the metric, then all other columns.
        """
        check_is_fitted(self, "cv_results_")
        names = [
            name.removeprefix("rank_test_")
            for name in self.cv_results_
            if name.startswith("rank_test_")
        ]
        if by is None:
            by = names[0] if len(names) == 1 else self.refit or None
        return results_frame(self.cv_results_, check_choice("by", by, names))

    def _scores(self, X: Any) -> Array:
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("refit=False: no model was fitted on all rows; use refit=True")
        scores = self.best_estimator_._scores(X)
        maps = self.__dict__.get("calibration_")
        return scores if maps is None else moved_record(maps, scores).log_odds(scores)

    best_estimator_: Any
    calibration_: LogisticMaps
    cv_results_: dict[str, Any]
    refit: Any


class SearchClassifier(SearchMixin, BaseEstimator):
    """A classifier that chooses its setting by cross-validation, like ``GridSearchCV``.

    A subclass has the parameters ``scoring``, ``refit`` and ``calibrate``; its ``fit`` judges the
    settings, then calls :meth:`_store_results` and, for the setting it takes, :meth:`_store_best`
    and, with the scores that this setting gives held-out rows, :meth:`_store_calibration`.
    """

    scoring: Any
    calibrate: bool

    def _check_calibrate(self) -> bool:
        """Return whether to calibrate."""
        if check_switch("calibrate", self.calibrate) and self.refit is False:
            raise ValueError(
                "calibrate=True needs a model to calibrate: use refit=True or, with several "
                "metrics, the name of the one that decides"
            )
        return bool(self.calibrate)

    def _store_results(self, target: Target, results: dict[str, Any], n_splits: int) -> None:
        """Store what was found, and forget what an earlier fit has chosen."""
        self._remember_target(target)
        self.n_splits_ = n_splits
        self.multimetric_ = not (isinstance(self.scoring, str) or callable(self.scoring))
        self.cv_results_ = results
        for name in ("index_", "params_", "score_", "estimator_"):
            self.__dict__.pop(f"best_{name}", None)
        for name in ("refit_time_", "calibration_"):
            self.__dict__.pop(name, None)

    def _store_best(self, best: Best) -> None:
        self.best_index_ = best.index
        self.best_params_ = best.params
        self.best_score_ = best.score

    def _store_calibration(
        self, scores: np.ndarray, target: Target, weights: np.ndarray | None = None
    ) -> None:
        """Fit the log-odds to the out-of-fold scores of the chosen setting."""
        self.calibration_ = fit_logistic_maps(
            scores, target.signs > 0, sample_weight=weights, known=target.known
        )

    def at_best_setting(self) -> Self:
        """Return an unfitted search that has the chosen setting only.

        Its fit gives the probabilities of that setting on other rows, which an unfitted
        ``best_estimator_`` has not.
        """
        return self.at_setting(self.best_params_)

    def at_setting(self, params: Mapping[str, Any]) -> Self:
        """Return an unfitted search that has one setting only.

        Parameters
        ----------
        params : mapping
            An entry of ``cv_results_["params"]``.
        """
        axes = {name: [value] for name, value in self._axes_of(params).items()}
        return clone(self).set_params(**axes)

    def _axes_of(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the constructor's names of the axes, and the value of a setting on each."""
        return {f"{name}s": value for name, value in params.items()}
