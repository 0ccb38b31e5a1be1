"""LLSFCV and JFSCCV: the parameters of LLSF and JFSC chosen by cross-validation.

For each fold, the sums over its rows (X^T X, X^T Y, R, scatters and the largest eigenvalues) are
computed once.  Settings that only differ in beta form a path: it starts at the ridge solution with
the largest beta, and each setting starts from the solution of the previous one.
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid

from imcc._array.device import limited_threads
from imcc._math.search.folds import (
    Fold,
    check_defined,
    check_each_once,
    evaluated_labels,
    make_folds,
    renumbered,
)
from imcc._math.search.grid import check_axis
from imcc._math.search.results import by_rank, check_all_finite, lay_out, rank_settings, score_keys
from imcc._math.search.scorers import Scoring, check_scoring
from imcc._utils.validation import (
    Features,
    Target,
    check_choice,
    check_count,
    check_features,
    check_switch,
    check_weighted,
    draw_seed,
)
from imcc.baselines._proximal import Problem, UnboundedError, solve
from imcc.baselines._sparse_linear import (
    LearnedLabels,
    SparseLinearClassifier,
    linear_scores,
    scaled,
)
from imcc.baselines.jfsc import JFSC
from imcc.baselines.llsf import LLSF
from imcc.estimators.base_search import SearchClassifier
from imcc.estimators.cross_fit import cross_fit_scores
from imcc.metrics import METRICS, LabelMetrics

POWERS_OF_2 = tuple(2.0**k for k in range(-10, 11))
POWERS_OF_4 = tuple(4.0**k for k in range(-5, 6))
STARTS = (0.1, 1.0, 10.0)
# Minimum number of settings that halving keeps.
FINALISTS = 3


class SparseLinearCV(SearchClassifier):
    """Base class of LLSFCV and JFSCCV, which differ in the model and its parameters."""

    _model: ClassVar[type[SparseLinearClassifier]]
    cv: Any
    budget: int | None
    halving: bool
    unit_rows: bool
    fit_intercept: bool
    max_iter: int
    tol: float
    n_jobs: int | None
    random_state: Any

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None) -> Self:
        """Search the grid, then fit the best setting on all rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
            Labels coded {0, 1}, {-1, +1} or boolean; or one class per row.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, >= 0, used in the fits, in the metrics on held-out rows and in the
            final fit.  Rows of weight 0 are ignored.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, as for :meth:`imcc.IMCCClassifierCV.fit`.

        Returns
        -------
        self : object
            The fitted search.
        """
        axes = {
            name: check_axis(f"{name}s", getattr(self, f"{name}s"), **bound).tolist()
            for name, bound in self._model._bounds.items()
        }
        settings = list(ParameterGrid(axes))
        n_in_grid = len(settings)
        scoring = check_scoring(self.scoring, self.refit)
        self._check_parameters(scoring)
        calibrate = self._check_calibrate()
        given = X
        X = check_features(self, X, reset=True)
        n_rows = X.shape[0]
        weighted = check_weighted(X, y, sample_weight, type(self).__name__)
        X, target, weights = weighted.X, weighted.target, weighted.weights
        cv = renumbered(self.cv, weighted.kept, n_rows)
        folds = make_folds(cv, X, target, weighted.part(groups))
        check_defined(scoring.names, target, folds)
        if calibrate:
            check_each_once(folds, X.shape[0])
        if self.budget is not None and self.budget < n_in_grid:
            rng = np.random.default_rng(draw_seed(self.random_state))
            drawn = rng.choice(n_in_grid, self.budget, replace=False)
            settings = [settings[i] for i in np.sort(drawn)]
        evaluation = _Evaluation(scoring, [self.estimator_for(s) for s in settings], len(folds))
        with limited_threads(max(X.shape)):
            evaluation.run(
                scaled(X, self.unit_rows), target, folds, weights, self.halving, self.n_jobs
            )
        check_all_finite(settings, evaluation.finite)
        bounded = evaluation.bounded.all(axis=0)
        if not bounded.any():
            fisher = ", smaller gammas" if self._model is JFSC else ""
            raise UnboundedError(
                "every setting of the grid is unbounded below on some fold: use smaller alphas"
                f"{fisher} or larger betas"
            )
        keys = score_keys(scoring.names, self.scoring)
        times = evaluation.fit_seconds, evaluation.score_seconds
        results = lay_out(settings, keys, *times, list(evaluation.values))
        results["bounded"] = bounded
        results["n_folds_tried"] = evaluation.tried.sum(axis=0)
        self._store_results(target, results, len(folds))
        self.budget_ = {
            "settings_in_grid": n_in_grid,
            "settings_tried": len(settings),
            "halving": bool(self.halving),
            "fits": int(evaluation.tried.sum()),
            "fits_of_full_search": n_in_grid * len(folds),
            "fits_unbounded": int(np.count_nonzero(~evaluation.bounded)),
        }
        self.__dict__.pop("n_iter_", None)
        if scoring.decides is not None:
            self._decide(keys[scoring.decides], given, y, sample_weight)
        if calibrate:
            scores = cross_fit_scores(
                self.estimator_for(self.best_params_),
                X,
                target.signs,
                cv=[(fold.train, fold.test) for fold in folds],
                sample_weight=weights,
                n_jobs=self.n_jobs,
            )
            self._store_calibration(scores, target, weights)
        return self

    def _check_parameters(self, scoring: Scoring) -> None:
        for name in scoring.scorers:
            check_choice("scoring", name, METRICS)
        if self.budget is not None:
            check_count("budget", self.budget)
        if check_switch("halving", self.halving) and scoring.decides is None:
            raise ValueError(
                "halving=True needs a metric to rank the settings by: name it in refit"
            )
        self.estimator_for({})._check_parameters()

    def _decide(self, key: str, X: Any, y: Any, sample_weight: Any) -> None:
        """Choose the best setting; with ``refit``, the best one that is bounded on all rows."""
        for index in by_rank(self.cv_results_, key):
            self._store_best(index, key)
            if self.refit is False:
                return
            try:
                model = self.estimator_for(self.best_params_)
                self.best_estimator_ = model.fit(X, y, sample_weight=sample_weight)
            except UnboundedError:
                warnings.warn(
                    f"the objective of {self.best_params_} is bounded below on the folds but not "
                    "on all rows; the next best setting is used instead",
                    ConvergenceWarning,
                    stacklevel=4,
                )
                continue
            self.n_iter_ = self.best_estimator_.n_iter_
            return
        raise UnboundedError("no setting that is bounded on the folds is bounded on all rows")

    def estimator_for(self, params: Mapping[str, Any]) -> Any:
        """Return the unfitted model of one setting.

        Parameters
        ----------
        params : mapping
            An entry of ``cv_results_["params"]``.

        Returns
        -------
        LLSF or JFSC
        """
        return self._model(
            **params,
            unit_rows=self.unit_rows,
            fit_intercept=self.fit_intercept,
            max_iter=self.max_iter,
            tol=self.tol,
        )


class LLSFCV(SparseLinearCV):
    """LLSF with its parameters chosen by cross-validation.

    The default grid is that of the paper.

    Parameters
    ----------
    alphas, betas : sequence of float, default=(2^-10, 2^-9, ..., 2^10)
        Values of alpha and beta to try.
    gammas : sequence of float, default=(0.1, 1.0, 10.0)
        Values of gamma to try, the ridge penalty of the starting point.
    cv : int, splitter or iterable of (train, test), default=5
        As for :class:`imcc.IMCCClassifierCV`.
    scoring : str or sequence of str, default="average_precision"
        One or several names of :data:`imcc.metrics.METRICS`.
    refit : bool or str, default=True
        Whether to fit ``best_estimator_`` on all rows.  With several metrics, the name of the one
        by which the best setting is chosen.
    calibrate : bool, default=False
        Whether to fit probabilities, as for :class:`imcc.IMCCClassifierCV`.
    budget : int or None, default=None
        Number of settings to try, drawn at random from the grid; None means all.
    halving : bool, default=False
        Whether only the better half of the settings (but at least three) is evaluated on the next
        fold, by the metric of ``refit``.  Eliminated settings have NaN for the remaining folds and
        are ranked last.
    unit_rows, fit_intercept, max_iter, tol
        As for :class:`LLSF`.
    n_jobs : int or None, default=None
        Number of paths of settings computed in parallel, in threads.
    random_state : int, RandomState instance or None, default=None
        Seed for drawing the settings; used if ``budget`` is given.

    Attributes
    ----------
    best_params_ : dict
        The best setting.
    best_score_ : float
        Mean over the folds of the metric by which it was chosen; losses are not negated.
    best_index_ : int
        Its index in ``cv_results_``.
    best_estimator_ : LLSF
        Fitted on all rows; not if ``refit=False``.
    cv_results_ : dict of ndarray
        As for ``GridSearchCV``, for the settings that were tried, and in addition ``bounded`` and
        ``n_folds_tried``.  Unbounded settings have NaN and are ranked last.
    budget_ : dict
        The cost of the search: ``settings_in_grid``, ``settings_tried``, ``halving``, ``fits``,
        ``fits_of_full_search`` and ``fits_unbounded``.
    n_splits_ : int
        Number of folds.
    n_iter_ : int
        Number of iterations of ``best_estimator_``; not if ``refit=False``.
    calibration_ : LogisticMaps
        Maps from scores to log-odds; only if ``calibrate=True``.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Raises
    ------
    UnboundedError
        By ``fit``, if the objective of every setting is unbounded below.  A subclass of
        ``ValueError``.

    See Also
    --------
    LLSF : The model without a search.

    Notes
    -----
    Computations that do not depend on the setting are done once per fold.  Settings that only
    differ in beta form a path, from the largest beta to the smallest, on which each setting starts
    from the previous solution.  If the objective has a single minimum, the starting point does not
    matter; if it has several, a path may end in a different one than a separate fit.

    Means over the folds that differ by less than 1e-9, relative to the largest, are tied; the first
    of the tied settings in ``cv_results_`` is chosen.

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
        calibrate: bool = False,
        budget: int | None = None,
        halving: bool = False,
        unit_rows: bool = False,
        fit_intercept: bool = True,
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
        self.calibrate = calibrate
        self.budget = budget
        self.halving = halving
        self.unit_rows = unit_rows
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state


class JFSCCV(SparseLinearCV):
    """JFSC with its parameters chosen by cross-validation.

    The default grid is that of the paper.

    Parameters
    ----------
    alphas, betas, gammas : sequence of float, default=(4^-5, 4^-4, ..., 4^5)
        Values of alpha, beta and gamma to try.
    etas : sequence of float, default=(0.1, 1.0, 10.0)
        Values of eta to try, the ridge penalty of the starting point.
    cv : int, splitter or iterable of (train, test), default=5
        As for :class:`imcc.IMCCClassifierCV`.
    scoring : str or sequence of str, default="average_precision"
        One or several names of :data:`imcc.metrics.METRICS`.
    refit : bool or str, default=True
        Whether to fit ``best_estimator_`` on all rows.  With several metrics, the name of the one
        by which the best setting is chosen.
    calibrate : bool, default=False
        Whether to fit probabilities, as for :class:`imcc.IMCCClassifierCV`.
    budget : int or None, default=None
        Number of settings to try, drawn at random from the grid; None means all.
    halving : bool, default=False
        Whether only the better half of the settings (but at least three) is evaluated on the next
        fold, by the metric of ``refit``.  Eliminated settings have NaN for the remaining folds and
        are ranked last.
    unit_rows, fit_intercept, max_iter, tol
        As for :class:`JFSC`.
    n_jobs : int or None, default=None
        Number of paths of settings computed in parallel, in threads.
    random_state : int, RandomState instance or None, default=None
        Seed for drawing the settings; used if ``budget`` is given.

    Attributes
    ----------
    best_params_ : dict
        The best setting.
    best_score_ : float
        Mean over the folds of the metric by which it was chosen; losses are not negated.
    best_index_ : int
        Its index in ``cv_results_``.
    best_estimator_ : JFSC
        Fitted on all rows; not if ``refit=False``.
    cv_results_ : dict of ndarray
        As for ``GridSearchCV``, for the settings that were tried, and in addition ``bounded`` and
        ``n_folds_tried``.  Unbounded settings have NaN and are ranked last.
    budget_ : dict
        The cost of the search: ``settings_in_grid``, ``settings_tried``, ``halving``, ``fits``,
        ``fits_of_full_search`` and ``fits_unbounded``.
    n_splits_ : int
        Number of folds.
    n_iter_ : int
        Number of iterations of ``best_estimator_``; not if ``refit=False``.
    calibration_ : LogisticMaps
        Maps from scores to log-odds; only if ``calibrate=True``.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Raises
    ------
    UnboundedError
        By ``fit``, if the objective of every setting is unbounded below.  A subclass of
        ``ValueError``.

    See Also
    --------
    JFSC : The model without a search.

    Notes
    -----
    Computations that do not depend on the setting are done once per fold.  Settings that only
    differ in beta form a path, from the largest beta to the smallest, on which each setting starts
    from the previous solution.  If the objective has a single minimum, the starting point does not
    matter; if it has several, a path may end in a different one than a separate fit.

    Means over the folds that differ by less than 1e-9, relative to the largest, are tied; the first
    of the tied settings in ``cv_results_`` is chosen.

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
        calibrate: bool = False,
        budget: int | None = None,
        halving: bool = False,
        unit_rows: bool = False,
        fit_intercept: bool = True,
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
        self.calibrate = calibrate
        self.budget = budget
        self.halving = halving
        self.unit_rows = unit_rows
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state


class _Evaluation:
    """The values of all settings on all folds; arrays of shape (n_folds, n_settings).

    Attributes
    ----------
    values : ndarray of shape (n_metrics, n_folds, n_settings)
        NaN where a setting was not tried or is unbounded.
    bounded : ndarray of bool
        False where the objective was found to be unbounded below.
    tried : ndarray of bool
    finite : ndarray of bool
        False where scores were not finite.
    fit_seconds, score_seconds : ndarray
    """

    def __init__(self, scoring: Scoring, models: Sequence[Any], n_folds: int) -> None:
        shape = (n_folds, len(models))
        self._scoring, self._models = scoring, models
        self._settings = [model._setting() for model in models]
        self.values = np.full((len(scoring.names), *shape), np.nan)
        self.bounded, self.finite = np.ones((2, *shape), dtype=bool)
        self.tried = np.zeros(shape, dtype=bool)
        self.fit_seconds, self.score_seconds = np.zeros((2, *shape))

    def run(
        self,
        X: Features,
        target: Target,
        folds: Sequence[Fold],
        weights: np.ndarray | None,
        halving: bool,
        n_jobs: int | None,
    ) -> None:
        """Evaluate the settings fold by fold; with ``halving``, only the better half goes on."""
        remaining = np.arange(len(self._models))
        on, evaluated = target.signs > 0, evaluated_labels(target.signs, target.kind)
        parallel = Parallel(n_jobs=n_jobs, prefer="threads")
        for i, fold in enumerate(folds):
            labels = LearnedLabels(on[fold.train])
            problem, starts = None, {}
            if labels.learned.any():
                of_train = None if weights is None else weights[fold.train]
                learned = on[fold.train][:, labels.learned]
                problem = self._models[0]._problem(X[fold.train], learned, of_train)
                ridges = {self._settings[k][1] for k in remaining}
                starts = {ridge: problem.ridge(ridge) for ridge in ridges}
            of_tests = None if weights is None else weights[fold.test]
            metrics = LabelMetrics(evaluated[fold.test], weights=of_tests)
            # Settings that only differ in beta form a path, the largest beta first.
            paths: dict[Any, list[int]] = defaultdict(list)
            for k in sorted(remaining.tolist(), key=lambda k: -self._models[k].beta):
                setting, ridge = self._settings[k]
                paths[ridge, setting.alpha, setting.gamma].append(k)
            # Each path writes its own columns.
            parallel(
                delayed(self._follow)(path, i, problem, starts, X[fold.test], labels, metrics)
                for path in paths.values()
            )
            if halving and i + 1 < len(folds):
                remaining = self._better_half(remaining)

    def _follow(
        self,
        path: Sequence[int],
        fold: int,
        problem: Problem | None,
        starts: Mapping[float, np.ndarray],
        held_out: Features,
        labels: LearnedLabels,
        metrics: LabelMetrics,
    ) -> None:
        """Solve and evaluate the settings of a path on a fold; without a problem, evaluate only."""
        W = fresh = starts.get(self._settings[path[0]][1])
        for k in path:
            begin = time.perf_counter()
            self.tried[fold, k] = True
            if problem is not None and W is not None:
                try:
                    model, (weights, _) = self._models[k], self._settings[k]
                    W, *_ = solve(problem, weights, W, model.max_iter, model.tol)
                except UnboundedError:
                    self.bounded[fold, k], W = False, fresh
            solved = time.perf_counter()
            self.fit_seconds[fold, k] = solved - begin
            if self.bounded[fold, k]:
                # Scores that overflow are an error with the setting's name, not a warning.
                with np.errstate(over="ignore", invalid="ignore"):
                    scores = linear_scores(held_out, labels.expand(W, held_out.shape[1])).T
                self.finite[fold, k] = np.isfinite(scores).all()
                if len(scores) < metrics.n_labels:
                    # A binary 1-D target: the ranking of its two classes.
                    scores = np.concatenate([-scores, scores])
                if self.finite[fold, k]:
                    means = metrics.means(scores[:, np.newaxis], self._scoring.names)
                    self.values[:, fold, k] = means[:, 0]
            self.score_seconds[fold, k] = time.perf_counter() - solved

    def _better_half(self, members: np.ndarray) -> np.ndarray:
        """Return the better half of the settings by their means over the folds evaluated so far.

        Unbounded settings are dropped.
        """
        decides = self._scoring.decides
        assert decides is not None  # halving needs one
        values = self.values[self._scoring.names.index(decides)][:, members]
        defined = ~np.isnan(values).all(axis=1)
        means = values[defined].mean(axis=0) if defined.any() else np.zeros(len(members))
        ranks = rank_settings(means, METRICS[decides].greater_is_better)
        in_order = members[np.argsort(ranks, kind="stable")]  # NaN is last
        n_known = int(np.count_nonzero(~np.isnan(means)))
        return in_order[: max(min(FINALISTS, n_known), -(-n_known // 2))]
