"""LLSFCV and JFSCCV: the parameters of LLSF and JFSC chosen by cross-validation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid

from imcc._results import check_scoring, lay_out
from imcc._validation import check_count, check_features, check_number, encode_target
from imcc.baselines._proximal import UnboundedError
from imcc.baselines._sparse_linear import SparseLinearClassifier
from imcc.baselines._sparse_search import Candidate, Outcome, search_settings
from imcc.baselines.jfsc import JFSC
from imcc.baselines.llsf import LLSF
from imcc.estimator import ScoringClassifierMixin, draw_seed
from imcc.estimator_cv import check_axis, make_folds
from imcc.search import judged_labels

POWERS_OF_2 = tuple(2.0**k for k in range(-10, 11))
POWERS_OF_4 = tuple(4.0**k for k in range(-5, 6))
STARTS = (0.1, 1.0, 10.0)


class SparseLinearCV(ScoringClassifierMixin, BaseEstimator):
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

    def _axes(self) -> dict[str, np.ndarray]:
        raise NotImplementedError

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

        n_in_grid = len(settings)
        settings = self._drawn(settings)
        models = [self._model(**setting) for setting in settings]
        outcome = search_settings(
            self._model.problem,
            X,
            target.signs > 0,
            judged_labels(target.signs, target.kind),
            make_folds(self.cv, X, target, groups),
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
        for name in ("best_index_", "best_params_", "best_score_", "best_estimator_"):
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
                + (", smaller gammas" if self._model is JFSC else "")
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

    def _refit(self, X: Any, y: Any) -> bool:
        """Fit the best setting on all rows; return whether it is bounded there."""
        start = time.perf_counter()
        model = self._model(**self.best_params_, max_iter=self.max_iter, tol=self.tol)
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
        return True

    def _scores(self, X: Any) -> np.ndarray:
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("refit=False: no model was fitted on all rows; use refit=True")
        return self.best_estimator_._scores(X)


class LLSFCV(SparseLinearCV):
    """LLSF with its parameters chosen by cross-validation; the paper's grid by default.

    Parameters
    ----------
    alphas, betas : sequence of float, default=(2^-10, 2^-9, ..., 2^10)
        Values to try; on every axis a single value stays fixed.
    gammas : sequence of float, default=(0.1, 1, 10)
        Values to try for the ridge of the starting point.
    cv : int, splitter or iterable of (train, test), default=5
        As for :class:`imcc.IMCCClassifierCV`.
    scoring : str or sequence of str, default="average_precision"
        One or several of the names in :data:`imcc.metrics.METRICS`.
    refit : bool or str, default=True
        Whether to fit ``best_estimator_`` on all rows.  With several metrics, the name of the one
        that decides.
    budget : int or None, default=None
        Settings to try, drawn at random from the grid; None is all of them.
    halving : bool, default=False
        Whether only the better half of the settings goes on to the next fold (but no fewer than
        three), by the metric that decides.  Settings that are out have NaN for the other folds and
        are ranked last.
    max_iter, tol
        As for the model.
    n_jobs : int or None, default=None
        Paths of settings computed at the same time, in threads.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw of settings.

    Attributes
    ----------
    best_params_ : dict
    best_score_ : float
        Mean over the folds of the deciding metric, as it is (losses are not negated).
    best_index_ : int
    best_estimator_ : LLSF
        Fitted on all rows (unless ``refit=False``).
    cv_results_ : dict of ndarray
        In the shape of ``GridSearchCV``, for the settings that were tried; besides, ``bounded``
        and ``n_folds_tried``.  UnboundedError settings have NaN and are ranked last.
    budget_ : dict
        What the search spent: ``settings_in_grid``, ``settings_tried``, ``halving``, ``fits``,
        ``fits_of_full_search`` and ``fits_unbounded``.
    n_splits_ : int
    refit_time_ : float
        Seconds.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Notes
    -----
    What does not depend on the setting is computed once for a fold, and settings that differ in
    beta only form a path, from the largest beta down, on which each begins where the one before it
    ended.  Where the objective has one minimum, the starting point does not matter; where it has
    several, a path may end in another one than a fit on its own.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc.baselines import LLSFCV
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> search = LLSFCV(budget=20, halving=True, random_state=0).fit(X, Y)
    >>> sorted(search.best_params_)
    ['alpha', 'beta', 'gamma']
    >>> search.budget_["settings_in_grid"], search.budget_["settings_tried"]
    (1323, 20)
    """

    _model = LLSF

    def __init__(
        self,
        alphas: Sequence[float] = POWERS_OF_2,
        betas: Sequence[float] = POWERS_OF_2,
        gammas: Sequence[float] = STARTS,
        *,
        cv: Any = 5,
        scoring: str | Sequence[str] = "average_precision",
        refit: bool | str = True,
        budget: int | None = None,
        halving: bool = False,
        max_iter: int = 1000,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.alphas = alphas
        self.betas = betas
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.budget = budget
        self.halving = halving
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _axes(self) -> dict[str, np.ndarray]:
        return {
            "alpha": check_axis("alphas", self.alphas, at_least=0),
            "beta": check_axis("betas", self.betas, at_least=0),
            "gamma": check_axis("gammas", self.gammas, above=0),
        }


class JFSCCV(SparseLinearCV):
    """JFSC with its parameters chosen by cross-validation; the paper's grid by default.

    Parameters
    ----------
    alphas, betas, gammas : sequence of float, default=(4^-5, 4^-4, ..., 4^5)
        Values to try; on every axis a single value stays fixed.
    etas : sequence of float, default=(0.1, 1, 10)
        Values to try for the ridge of the starting point.
    cv : int, splitter or iterable of (train, test), default=5
        As for :class:`imcc.IMCCClassifierCV`.
    scoring : str or sequence of str, default="average_precision"
        One or several of the names in :data:`imcc.metrics.METRICS`.
    refit : bool or str, default=True
        Whether to fit ``best_estimator_`` on all rows.  With several metrics, the name of the one
        that decides.
    budget : int or None, default=None
        Settings to try, drawn at random from the grid; None is all of them.
    halving : bool, default=False
        Whether only the better half of the settings goes on to the next fold (but no fewer than
        three), by the metric that decides.  Settings that are out have NaN for the other folds and
        are ranked last.
    max_iter, tol
        As for the model.
    n_jobs : int or None, default=None
        Paths of settings computed at the same time, in threads.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw of settings.

    Attributes
    ----------
    best_params_ : dict
    best_score_ : float
        Mean over the folds of the deciding metric, as it is (losses are not negated).
    best_index_ : int
    best_estimator_ : JFSC
        Fitted on all rows (unless ``refit=False``).
    cv_results_ : dict of ndarray
        In the shape of ``GridSearchCV``, for the settings that were tried; besides, ``bounded``
        and ``n_folds_tried``.  UnboundedError settings have NaN and are ranked last.
    budget_ : dict
        What the search spent: ``settings_in_grid``, ``settings_tried``, ``halving``, ``fits``,
        ``fits_of_full_search`` and ``fits_unbounded``.
    n_splits_ : int
    refit_time_ : float
        Seconds.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Notes
    -----
    What does not depend on the setting is computed once for a fold, and settings that differ in
    beta only form a path, from the largest beta down, on which each begins where the one before it
    ended.  Where the objective has one minimum, the starting point does not matter; where it has
    several, a path may end in another one than a fit on its own.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc.baselines import JFSCCV
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> search = JFSCCV(budget=20, halving=True, random_state=0).fit(X, Y)
    >>> sorted(search.best_params_)
    ['alpha', 'beta', 'eta', 'gamma']
    >>> search.budget_["settings_in_grid"], search.budget_["settings_tried"]
    (3993, 20)
    """

    _model = JFSC

    def __init__(
        self,
        alphas: Sequence[float] = POWERS_OF_4,
        betas: Sequence[float] = POWERS_OF_4,
        gammas: Sequence[float] = POWERS_OF_4,
        etas: Sequence[float] = STARTS,
        *,
        cv: Any = 5,
        scoring: str | Sequence[str] = "average_precision",
        refit: bool | str = True,
        budget: int | None = None,
        halving: bool = False,
        max_iter: int = 1000,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.alphas = alphas
        self.betas = betas
        self.gammas = gammas
        self.etas = etas
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.budget = budget
        self.halving = halving
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _axes(self) -> dict[str, np.ndarray]:
        return {
            "alpha": check_axis("alphas", self.alphas, at_least=0),
            "beta": check_axis("betas", self.betas, at_least=0),
            "gamma": check_axis("gammas", self.gammas, at_least=0),
            "eta": check_axis("etas", self.etas, above=0),
        }
