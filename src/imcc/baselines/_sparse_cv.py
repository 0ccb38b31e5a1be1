"""What LLSFCV and JFSCCV share: check, draw settings, search, lay out, refit."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid

from imcc._search.fold import check_defined, judged_labels
from imcc._search.results import check_scoring, lay_out
from imcc._utils.validation import (
    check_count,
    check_features,
    check_number,
    draw_seed,
    encode_target,
)
from imcc.baselines._proximal import UnboundedError
from imcc.baselines._sparse_linear import SparseLinearClassifier
from imcc.baselines._sparse_search import Candidate, Outcome, search_settings
from imcc.estimators.base import ScoringClassifierMixin
from imcc.estimators.imcc_cv import make_folds


class SparseLinearCV(ScoringClassifierMixin, BaseEstimator, ABC):
    """The search that LLSFCV and JFSCCV share; subclasses have the axes of their grid.

    A subclass has ``_model``, the class it searches for, and ``_axes()``.
    """

    _model: type[SparseLinearClassifier]
    cv: Any
    scoring: str | Sequence[str]
    refit: bool | str
    budget: int | None
    halving: bool
    max_iter: int
    tol: float
    n_jobs: int | None
    random_state: Any

    @abstractmethod
    def _axes(self) -> dict[str, np.ndarray]:
        """Return the axes of the grid."""

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Search the grid, then fit the best setting on all rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
        y : array-like, data frame or sparse matrix of shape (n_rows, n_labels), or (n_rows,)
            Labels coded {0, 1}, {-1, +1} or boolean; or one class a row.
        groups : array-like of shape (n_rows,), optional
            Passed on to the splitter.

        Returns
        -------
        self
        """
        settings = list(ParameterGrid({k: v.tolist() for k, v in self._axes().items()}))
        metrics, decides = check_scoring(self.scoring, self.refit)
        if self.budget is not None:
            check_count("budget", self.budget)
        if not isinstance(self.halving, (bool, np.bool_)):
            raise ValueError(f"halving must be True or False, got {self.halving!r}")
        if self.halving and decides is None:
            raise ValueError("halving=True needs a metric that decides: name it in refit")
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, at_least=0)
        given = X
        X = check_features(self, X, reset=True)
        target = encode_target(y, X.shape[0], type(self).__name__)

        folds, judged = (
            make_folds(self.cv, X, target, groups),
            judged_labels(target.signs, target.kind),
        )
        check_defined(metrics, judged, folds)
        n_in_grid = len(settings)
        settings = self._drawn(settings)
        models = [self._model(**setting) for setting in settings]
        outcome = search_settings(
            self._model.problem,
            X,
            target.signs > 0,
            judged,
            folds,
            [Candidate(model._weights(), model._start_ridge()) for model in models],
            metrics,
            decides=0 if decides is None else metrics.index(decides),
            halving=bool(self.halving),
            max_iter=self.max_iter,
            tol=self.tol,
            n_jobs=self.n_jobs,
        )
        self._check_bounded(outcome)
        self.n_splits_ = len(outcome.tried)
        self._remember_target(target)
        self.multimetric_ = not isinstance(self.scoring, str)
        keys = {metric: metric if self.multimetric_ else "score" for metric in metrics}
        self._remember_results(settings, keys, outcome, n_in_grid)
        for name in ("best_index_", "best_params_", "best_score_", "best_estimator_", "n_iter_"):
            self.__dict__.pop(name, None)
        if decides is not None:
            self._decide(keys[decides], given, y)
        return self

    def _drawn(self, settings: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return as many settings as the budget allows, in the order of the grid."""
        if self.budget is None or self.budget >= len(settings):
            return settings
        rng = np.random.default_rng(draw_seed(self.random_state))
        drawn = rng.choice(len(settings), self.budget, replace=False)
        return [settings[i] for i in np.sort(drawn)]

    def _check_bounded(self, outcome: Outcome) -> None:
        if not outcome.bounded.all(axis=0).any():
            raise UnboundedError(
                "every setting of the grid is unbounded below on some fold: use smaller alphas"
                + (", smaller gammas" if self._model._has_fisher_term else "")
                + " or larger betas"
            )

    def _remember_results(
        self,
        settings: list[dict[str, Any]],
        keys: dict[str, str],
        outcome: Outcome,
        n_in_grid: int,
    ) -> None:
        self.cv_results_ = lay_out(
            settings, keys, outcome.fit_seconds, outcome.score_seconds, list(outcome.values)
        )
        self.cv_results_["bounded"] = outcome.bounded.all(axis=0)
        self.cv_results_["n_folds_tried"] = outcome.tried.sum(axis=0)
        self.budget_ = {
            "settings_in_grid": n_in_grid,
            "settings_tried": len(settings),
            "halving": bool(self.halving),
            "fits": int(outcome.tried.sum()),
            "fits_of_full_search": n_in_grid * len(outcome.tried),
            "fits_unbounded": int(np.count_nonzero(~outcome.bounded)),
        }

    def _decide(self, key: str, X: Any, y: Any) -> None:
        """Take the best setting; with ``refit``, the best one that is bounded on all rows."""
        ranks = self.cv_results_[f"rank_test_{key}"]
        means = self.cv_results_[f"mean_test_{key}"]
        for index in np.argsort(ranks, kind="stable"):
            if np.isnan(means[index]):
                break
            self.best_index_ = int(index)
            self.best_params_ = self.cv_results_["params"][index]
            self.best_score_ = float(means[index])
            if self.refit is False or self._refit(X, y):
                return
        raise UnboundedError("no setting that is bounded on the folds is bounded on all rows")

    def estimator_for(self, params: Mapping[str, Any]) -> Any:
        """Return the model of one setting of the grid, unfitted.

        Parameters
        ----------
        params : mapping
            An entry of ``cv_results_["params"]``.
        """
        return self._model(**params, max_iter=self.max_iter, tol=self.tol)

    def _refit(self, X: Any, y: Any) -> bool:
        """Fit the best setting on all rows; return whether it is bounded there."""
        start = time.perf_counter()
        model = self.estimator_for(self.best_params_)
        try:
            self.best_estimator_ = model.fit(X, y)
        except UnboundedError:
            warnings.warn(
                f"{self.best_params_} is bounded on the folds but not on all rows: the setting "
                "ranked next is used",
                ConvergenceWarning,
                stacklevel=4,
            )
            return False
        self.refit_time_ = time.perf_counter() - start
        self.n_iter_ = self.best_estimator_.n_iter_
        return True

    def _scores(self, X: Any) -> np.ndarray:
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("refit=False: no model was fitted on all rows; use refit=True")
        return self.best_estimator_._scores(X)
