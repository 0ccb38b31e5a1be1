"""LLSFCV and JFSCCV: the parameters of LLSF and JFSC chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from imcc.baselines._sparse_cv import SparseLinearCV
from imcc.baselines.jfsc import JFSC
from imcc.baselines.llsf import LLSF
from imcc.estimators.imcc_cv import check_axis

POWERS_OF_2 = tuple(2.0**k for k in range(-10, 11))
POWERS_OF_4 = tuple(4.0**k for k in range(-5, 6))
STARTS = (0.1, 1.0, 10.0)


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
    n_iter_ : int
        Iterations of ``best_estimator_``.
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
    n_iter_ : int
        Iterations of ``best_estimator_``.
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
