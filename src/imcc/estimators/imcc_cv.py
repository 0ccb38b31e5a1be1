"""IMCCClassifierCV: the exact search, with the interface of scikit-learn's GridSearchCV."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sklearn.model_selection import ParameterGrid

from imcc._backend.device import explained_memory_errors, on_device
from imcc._core.clustering import split_n_clusters
from imcc._core.kernels import check_kernel
from imcc._core.maps import check_approximation
from imcc._core.models import REMEDY, SPANS
from imcc._search.folds import make_folds
from imcc._search.grid import Grid, check_axis, check_list
from imcc._search.results import by_rank, cv_results, parameter_grids, score_keys
from imcc._search.scorers import check_scoring
from imcc._search.search import search
from imcc._stream.sources import refuse_stream
from imcc._utils.validation import (
    check_choice,
    check_count,
    check_features,
    draw_seed,
    encode_target,
)
from imcc.estimators.base_search import SearchClassifier
from imcc.estimators.imcc import IMCCClassifier

PAPER_WEIGHTS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
PAPER_N_CLUSTERS = (8, 16, 32, 64, 128, 256)
#: Axes worth adding to the paper's grid, since kernel and width matter more than anything else:
#: ``IMCCClassifierCV(**KERNEL_SEARCH)`` tries the rbf and the laplacian kernel in four widths each.
KERNEL_SEARCH = {"kernels": ("rbf", "laplacian"), "width_scales": (0.25, 0.5, 1.0, 2.0)}


class IMCCClassifierCV(SearchClassifier):
    """IMCC with its parameters chosen by cross-validation over a whole grid, exactly.

    Gives what ``GridSearchCV(IMCCClassifier(), ...)`` would give, hundreds of times faster: all
    settings of a fold share one eigendecomposition.  The rows are clustered inside each fold, never
    with held-out rows.

    Means over the folds that differ by less than 1e-9, relative to the largest, are tied, and the
    first of the tied settings in ``cv_results_`` is chosen.  Labels that the training rows of a
    fold cannot tell apart (equal, opposite or constant columns) are scored exactly alike, and tie
    in the metrics.  So the choice does not depend on rounding, nor on the number of threads.

    Parameters
    ----------
    alphas, betas, gammas : sequence of float, default=(1e-3, 1e-2, ..., 1e3)
        Values to try for each weight; the paper's by default.  On every axis, a single value
        instead of a sequence stays fixed.
    n_clusters : sequence, default=(8, 16, 32, 64, 128, 256)
        Values to try; an entry may be a sequence (several clusterings at once) or None (the
        clusterer's own number).  Where a fold has fewer distinct rows than clusters asked for, as
        many as there are are used, with a warning.
    kernels : sequence of str or callable, default=("rbf",)
        Kernels to try.
    width_scales : sequence of float, default=(1.0,)
        Factors on the width to try, for kernels that have one.  ``**imcc.KERNEL_SEARCH`` sets
        ``kernels`` and ``width_scales`` to values worth trying.
    kernel_params : dict or None, default=None
        As for :class:`IMCCClassifier`, for all kernels.
    width : "mean_distance" or float, default="mean_distance"
        As for :class:`IMCCClassifier`; the rule is applied to the training rows of each fold.
    cv : int, splitter or iterable of (train, test), default=5
        An integer is that many folds: stratified for a 1-D target, otherwise plain and unshuffled,
        as everywhere in scikit-learn.  Rows that come in some order want
        ``KFold(5, shuffle=True, random_state=0)``.
    scoring : str, callable, sequence of str or dict, default="average_precision"
        What settings are judged by: a name in :data:`imcc.metrics.METRICS`; else the name of one of
        scikit-learn's scorers (``"f1_macro"``), or a callable ``scorer(estimator, X, y)``, that
        needs no more of the estimator than ``decision_function`` and ``predict``; the X it is
        given has no columns.  Several as a list of names, or a dict of names and scorers.  Metrics
        of ours are as they are, scorers greater-is-better.
    refit : bool or str, default=True
        Whether to fit ``best_estimator_`` on all rows.  With several metrics, the name of the one
        that decides.
    n_jobs : int or None, default=None
        Folds and widths computed at the same time, through joblib (so ``joblib.parallel_config``
        applies).  None is one, which uses all cores inside the linear algebra.  On a device, one
        piece after the other is computed, whatever this says.
    progress : bool or callable, default=False
        True prints a line as each piece is done; a callable is called as ``progress(done, total)``.
    verbose : int, default=0
        1 prints the size of the search and the setting it chooses, 2 also a line as each piece is
        done (as ``progress=True``); to the standard error stream.
    approximation, n_components, landmarks, clusterer, span, random_state, device
        As for :class:`IMCCClassifier`; width and landmarks are chosen inside each fold.  The search
        is exact within the approximation, and its cost grows with the rows, not with their cube.

    Attributes
    ----------
    best_params_ : dict
    best_score_ : float
        Mean over the folds of the deciding metric, as it is (losses are not negated).
    best_index_ : int
    best_estimator_ : IMCCClassifier
        Fitted on all rows (unless ``refit=False``).
    cv_results_ : dict of ndarray
        In the shape of ``GridSearchCV``: ``params``, ``param_*``, ``split*_test_*``,
        ``mean_test_*``, ``std_test_*``, ``rank_test_*``, and times, which are a fold's total
        shared out evenly over its settings.  Metrics are as they are; ranks know which way is up.
    n_splits_ : int
    refit_time_ : float
        Seconds.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`IMCCClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import IMCCClassifierCV
    >>> X, Y = make_multilabel_classification(150, n_classes=4, random_state=0)
    >>> search = IMCCClassifierCV(n_clusters=(4, 8), random_state=0).fit(X, Y)
    >>> len(search.cv_results_["params"])
    686
    >>> sorted(search.best_params_)
    ['alpha', 'beta', 'gamma', 'kernel', 'n_clusters', 'width_scale']
    >>> search.predict(X).shape
    (150, 4)
    """

    def __init__(
        self,
        alphas: Sequence[float] = PAPER_WEIGHTS,
        betas: Sequence[float] = PAPER_WEIGHTS,
        gammas: Sequence[float] = PAPER_WEIGHTS,
        n_clusters: Sequence[Any] = PAPER_N_CLUSTERS,
        *,
        kernels: Sequence[str | Callable[..., float]] = ("rbf",),
        width_scales: Sequence[float] = (1.0,),
        kernel_params: Mapping[str, Any] | None = None,
        width: str | float = "mean_distance",
        approximation: str | None = None,
        n_components: int | None = None,
        landmarks: Any = "kmeans",
        cv: Any = 5,
        scoring: str | Callable[..., float] | Sequence[str] | Mapping[str, Any] = (
            "average_precision"
        ),
        refit: bool | str = True,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int], None] = False,
        verbose: int = 0,
        clusterer: Any = None,
        span: str = "train",
        random_state: Any = None,
        device: str | None = None,
    ) -> None:
        self.alphas = alphas
        self.betas = betas
        self.gammas = gammas
        self.n_clusters = n_clusters
        self.kernels = kernels
        self.width_scales = width_scales
        self.kernel_params = kernel_params
        self.width = width
        self.approximation = approximation
        self.n_components = n_components
        self.landmarks = landmarks
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.progress = progress
        self.verbose = verbose
        self.clusterer = clusterer
        self.span = span
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> IMCCClassifierCV:
        """Search the grid, then fit the best setting on all rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Or an array of torch or CuPy, which is worked on where it is.
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
            Labels coded {0, 1}, {-1, +1} or boolean; or one class per row.
        groups : array-like of shape (n_samples,), optional
            Passed on to the splitter.

        Returns
        -------
        self : IMCCClassifierCV
        """
        grid = Grid(
            alphas=check_axis("alphas", self.alphas, at_least=0),
            betas=check_axis("betas", self.betas, above=0),
            gammas=check_axis("gammas", self.gammas, at_least=0),
            n_clusters=_check_n_clusters(self.n_clusters),
        )
        kernels = [
            (kernel, check_kernel(kernel, self.kernel_params, self.width))
            for kernel in check_list("kernels", self.kernels)
        ]
        width_scales = check_axis("width_scales", self.width_scales, above=0).tolist()
        scoring = check_scoring(self.scoring, self.refit, scorers=True)
        check_choice("span", self.span, SPANS)
        options = (self.width, self.n_components, self.landmarks, self.span)
        approximations = [
            check_approximation(self.approximation, kernel, *options) for _, kernel in kernels
        ]
        check_count("verbose", self.verbose, at_least=0)
        progress = self.progress or (self.verbose > 1) or None
        progress = _print_progress if progress is True else progress
        if progress is not None and not callable(progress):
            raise ValueError(f"progress must be True, False or a callable, got {progress!r}")
        refuse_stream(X, y, type(self).__name__)
        given = X
        X = check_features(self, X, reset=True)
        target = encode_target(y, X.shape[0], type(self).__name__)
        folds = make_folds(self.cv, X, target, groups)
        if self.verbose:
            _print_size(grid, kernels, width_scales, len(folds))
        with explained_memory_errors(f"the search with {X.shape[0]} x {X.shape[1]} rows", REMEDY):
            outcomes = search(
                on_device(X, self.device),
                target,
                folds,
                grid,
                scoring,
                kernels=[kernel for _, kernel in kernels],
                approximations=approximations,
                width=self.width,
                width_scales=width_scales,
                clusterer=self.clusterer,
                span=self.span,
                seed=draw_seed(self.random_state),
                n_jobs=self.n_jobs,
                progress=progress,
            )
        keys = score_keys(scoring.names, self.scoring)
        results = cv_results(grid, kernels, width_scales, keys, outcomes)
        self._store_results(target, results, len(folds))
        if scoring.decides is not None:
            best = next(by_rank(results, keys[scoring.decides]))
            self._store_best(best)
            if self.verbose:
                _print(f"{scoring.decides}={best.score:.6g} with {best.params}")
        if self.refit is not False:
            start = time.perf_counter()
            self.best_estimator_ = self.estimator_for(self.best_params_).fit(given, y)
            self.refit_time_ = time.perf_counter() - start
        return self

    def estimator_for(self, params: Mapping[str, Any]) -> IMCCClassifier:
        """Return the classifier of one setting of the grid, unfitted.

        Parameters
        ----------
        params : mapping
            An entry of ``cv_results_["params"]``.
        """
        return IMCCClassifier(
            **params,
            kernel_params=self.kernel_params,
            width=self.width,
            approximation=self.approximation,
            n_components=self.n_components,
            landmarks=self.landmarks,
            clusterer=self.clusterer,
            span=self.span,
            random_state=self.random_state,
            device=self.device,
        )


def _check_n_clusters(values: Any) -> list[Any]:
    listed = check_list("n_clusters", values)
    for value in listed:
        split_n_clusters(value)
    return listed


def _print_size(grid: Grid, kernels: Any, width_scales: Sequence[float], n_folds: int) -> None:
    axes = parameter_grids(grid, kernels, width_scales)
    n_settings = sum(len(ParameterGrid(part)) for part in axes)
    _print(f"{n_settings} settings on {n_folds} folds")


def _print_progress(done: int, total: int) -> None:
    _print(f"{done} of {total} pieces done")


def _print(text: str) -> None:
    print(f"imcc search: {text}", file=sys.stderr, flush=True)
