"""IMCCClassifierCV: the exact search behind the face of scikit-learn's GridSearchCV."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import check_cv

from imcc._backend.array import Array, is_numpy
from imcc._backend.device import explained_memory_errors, on_device
from imcc._core.clustering import split_n_clusters
from imcc._core.kernels import check_kernel
from imcc._core.maps import check_approximation
from imcc._core.models import REMEDY, SPANS
from imcc._search.fold import Fold, Grid
from imcc._search.results import check_scoring, cv_results
from imcc._search.search import search
from imcc._stream.sources import refuse_stream
from imcc._utils.validation import (
    Features,
    Target,
    check_choice,
    check_features,
    check_number,
    draw_seed,
    encode_target,
)
from imcc.estimators.base import ScoringClassifierMixin
from imcc.estimators.imcc import IMCCClassifier

PAPER_WEIGHTS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
PAPER_N_CLUSTERS = (8, 16, 32, 64, 128, 256)
#: Axes worth adding to the paper's grid, since kernel and width matter more than anything else:
#: ``IMCCClassifierCV(**KERNEL_SEARCH)`` tries the rbf and the laplacian kernel in four widths each.
KERNEL_SEARCH = {"kernels": ("rbf", "laplacian"), "width_scales": (0.25, 0.5, 1.0, 2.0)}


class IMCCClassifierCV(ScoringClassifierMixin, BaseEstimator):
    """IMCC with its parameters chosen by cross-validation over a whole grid, exactly.

    Gives what ``GridSearchCV(IMCCClassifier(), ...)`` would give, hundreds of times faster: all
    settings of a fold share one eigendecomposition.  The rows are clustered inside each fold, never
    with held-out rows.

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
    scoring : str or sequence of str, default="average_precision"
        One or several of the names in :data:`imcc.metrics.METRICS`.
    refit : bool or str, default=True
        Whether to fit ``best_estimator_`` on all rows.  With several metrics, the name of the one
        that decides.
    n_jobs : int or None, default=None
        Folds and widths computed at the same time, through joblib (so ``joblib.parallel_config``
        applies).  None is one, which uses all cores inside the linear algebra.  On a device, one
        piece after the other is computed, whatever this says.
    progress : bool or callable, default=False
        True prints a line as each piece is done; a callable is called as ``progress(done, total)``.
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
        scoring: str | Sequence[str] = "average_precision",
        refit: bool | str = True,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int], None] = False,
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
        self.clusterer = clusterer
        self.span = span
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> IMCCClassifierCV:
        """Search the grid, then fit the best setting on all rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            Or an array of torch or CuPy, which is worked on where it is.
        y : array-like, data frame or sparse matrix of shape (n_rows, n_labels), or (n_rows,)
            Labels coded {0, 1}, {-1, +1} or boolean; or one class a row.
        groups : array-like of shape (n_rows,), optional
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
        metrics, decides = check_scoring(self.scoring, self.refit)
        check_choice("span", self.span, SPANS)
        asked = (self.width, self.n_components, self.landmarks, self.span)
        approximations = [
            check_approximation(self.approximation, kernel, *asked) for _, kernel in kernels
        ]
        progress = _print_progress if self.progress is True else self.progress or None
        if progress is not None and not callable(progress):
            raise ValueError(f"progress must be True, False or a callable, got {progress!r}")
        refuse_stream(X, y, type(self).__name__)
        given = X
        X = check_features(self, X, reset=True)
        target = encode_target(y, X.shape[0], type(self).__name__)
        folds = make_folds(self.cv, X, target, groups)
        with explained_memory_errors(f"the search with {X.shape[0]} x {X.shape[1]} rows", REMEDY):
            outcomes = search(
                on_device(X, self.device),
                target,
                folds,
                grid,
                metrics,
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
        self.n_splits_ = len(outcomes[0, 0])
        self._remember_target(target)
        self.multimetric_ = not isinstance(self.scoring, str)
        keys = {metric: metric if self.multimetric_ else "score" for metric in metrics}
        self.cv_results_ = cv_results(grid, kernels, width_scales, keys, outcomes)
        for name in ("index_", "params_", "score_", "estimator_"):
            self.__dict__.pop(f"best_{name}", None)  # of an earlier fit
        if decides is not None:
            self._decide(keys[decides])
        if self.refit is not False:
            self._refit(given, y)
        return self

    def _decide(self, key: str) -> None:
        self.best_index_ = int(self.cv_results_[f"rank_test_{key}"].argmin())
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.cv_results_[f"mean_test_{key}"][self.best_index_])

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

    def _refit(self, X: Any, y: Any) -> None:
        start = time.perf_counter()
        self.best_estimator_ = self.estimator_for(self.best_params_).fit(X, y)
        self.refit_time_ = time.perf_counter() - start

    def _scores(self, X: Any) -> Array:
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("refit=False: no model was fitted on all rows; use refit=True")
        return self.best_estimator_._scores(X)


def make_folds(cv: Any, X: Features, target: Target, groups: Any = None) -> list[Fold]:
    """Split the rows as ``cv`` says; see :class:`IMCCClassifierCV`."""
    # A 1-D target is split by class; an indicator matrix cannot be.
    by = target.signs
    if target.kind == "binary":
        by = target.signs[:, 0]
    elif target.kind == "multiclass":
        by = target.signs.argmax(axis=1)
    splitter = check_cv(cv, by, classifier=True)
    # Splitters look at the number of rows only, and know NumPy's arrays only.
    rows = X if is_numpy(X) else np.empty((X.shape[0], 0))
    folds = [Fold(train, test) for train, test in splitter.split(rows, by, groups)]
    if not all(len(fold.train) and len(fold.test) for fold in folds):
        raise ValueError("cv gives a fold without training rows or without held-out rows")
    return folds


def check_list(name: str, values: Any) -> list[Any]:
    """Return the values of an axis; a single one stands for itself."""
    single = isinstance(values, str) or not isinstance(values, Iterable)
    listed = [values] if single else list(values)
    if not listed:
        raise ValueError(f"{name} must have at least one value to try, got none")
    return listed


def check_axis(name: str, values: Any, **bound: float) -> np.ndarray:
    """Return the numbers of an axis, each within its bound."""
    return np.array([check_number(name, value, **bound) for value in check_list(name, values)])


def _check_n_clusters(values: Any) -> list[Any]:
    listed = check_list("n_clusters", values)
    for value in listed:
        split_n_clusters(value)
    return listed


def _print_progress(done: int, total: int) -> None:
    print(f"imcc search: {done} of {total} pieces done", file=sys.stderr, flush=True)
