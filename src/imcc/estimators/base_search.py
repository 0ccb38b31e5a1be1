"""What all searches share once their settings are judged: store, choose, score by the best."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from imcc._backend.array import Array
from imcc._search.results import Best
from imcc._utils.validation import Target
from imcc.estimators.base import ScoringClassifierMixin


class SearchClassifier(ScoringClassifierMixin, BaseEstimator):
    """A classifier that chooses its setting by cross-validation, like ``GridSearchCV``.

    A subclass has the parameters ``scoring`` and ``refit``; its ``fit`` judges the settings, then
    calls :meth:`_store_results` and, for the setting it takes, :meth:`_store_best`.
    """

    scoring: Any
    refit: bool | str

    def _store_results(self, target: Target, results: dict[str, Any], n_splits: int) -> None:
        """Store what was found, and forget what an earlier fit has chosen."""
        self._remember_target(target)
        self.n_splits_ = n_splits
        self.multimetric_ = not (isinstance(self.scoring, str) or callable(self.scoring))
        self.cv_results_ = results
        for name in ("index_", "params_", "score_", "estimator_"):
            self.__dict__.pop(f"best_{name}", None)
        self.__dict__.pop("refit_time_", None)

    def _store_best(self, best: Best) -> None:
        self.best_index_ = best.index
        self.best_params_ = best.params
        self.best_score_ = best.score

    def _scores(self, X: Any) -> Array:
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("refit=False: no model was fitted on all rows; use refit=True")
        return self.best_estimator_._scores(X)

    best_estimator_: Any
