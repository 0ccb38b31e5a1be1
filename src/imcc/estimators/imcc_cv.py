"""IMCCClassifierCV: the exact search, with the interface of scikit-learn's GridSearchCV."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from imcc._backend.device import explained_memory_errors, on_device
from imcc._core.clustering import split_n_clusters
from imcc._core.fitting import FitSettings
from imcc._core.kernels import check_kernel
from imcc._core.maps import check_approximation
from imcc._core.models import REMEDY, SPANS
from imcc._search.folds import Fold, check_each_once, make_folds, renumbered
from imcc._search.grid import Grid, check_axis, check_list
from imcc._search.out_of_fold import out_of_fold_scores
from imcc._search.results import (
    EdgeOfGridWarning,
    by_rank,
    cv_results,
    edges_of_grid,
    parameter_grids,
    score_keys,
)
from imcc._search.scorers import check_scoring
from imcc._search.search import search
from imcc._stream.sources import refuse_stream
from imcc._utils.errors import Message, named
from imcc._utils.progress import part
from imcc._utils.validation import (
    check_choice,
    check_count,
    check_features,
    check_weighted,
    draw_seed,
)
from imcc.estimators.base_search import SearchClassifier
from imcc.estimators.imcc import IMCCClassifier

PAPER_WEIGHTS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
PAPER_N_CLUSTERS = (8, 16, 32, 64, 128, 256)
WIDTH_SCALES = (0.25, 0.5, 1.0, 2.0)
#: The named grids: for each axis the values that are tried unless others are given.
GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "default": {
        "alphas": (0.0, 0.1, 1.0, 10.0),
        "betas": PAPER_WEIGHTS,
        "gammas": (0.0, 0.1, 1.0),
        "n_clusters": (16, 64),
        "kernels": ("rbf",),
        "width_scales": WIDTH_SCALES,
    },
    "paper": {
        "alphas": PAPER_WEIGHTS,
        "betas": PAPER_WEIGHTS,
        "gammas": PAPER_WEIGHTS,
        "n_clusters": PAPER_N_CLUSTERS,
        "kernels": ("rbf",),
        "width_scales": (1.0,),
    },
}
#: A second kernel, in the widths of the default grid: ``IMCCClassifierCV(**KERNEL_SEARCH)`` tries
#: the rbf and the laplacian kernel in four widths each, for twice the time of the default grid.
KERNEL_SEARCH = {"kernels": ("rbf", "laplacian"), "width_scales": WIDTH_SCALES}


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
    alphas, betas, gammas : sequence of float or None, default=None
        Values to try for each weight.  On every axis, None is the values of the ``grid``, and a
        single value instead of a sequence stays fixed.
    n_clusters : sequence or None, default=None
        Values to try; an entry may be a sequence (several clusterings at once) or None (the
        clusterer's own number; alone: ``[None]``).  Where a fold has fewer distinct rows than
        clusters asked for, as many as there are are used, with a warning.
    grid : {"default", "paper"}, default="default"
        Where axes that are not given have their values from; see the notes.  "paper" is the paper's
        grid: 2058 settings, the weights 1e-3, 1e-2, ..., 1e3, the numbers of clusters 8, 16, ...,
        256, and one width.
    kernels : sequence of str or callable, or None, default=None
        Kernels to try; "rbf" in both grids.
    width_scales : sequence of float or None, default=None
        Factors on the width to try, for kernels that have one.  ``**imcc.KERNEL_SEARCH`` sets
        ``kernels`` and ``width_scales`` to two kernels in four widths.
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
    calibrate : bool, default=False
        Whether to fit probabilities: the rows are scored by models of the chosen setting that were
        fitted without them, on the folds of the search, and for each label the log-odds
        ``a f + c``, a >= 0, are fitted to its scores f, as
        :class:`imcc.calibration.MultilabelCalibrator` does.  The search then has ``predict_proba``,
        its ``decision_function`` gives the log-odds, and ``predict`` is p >= 1/2.  Costs one fit
        per fold, on the clusters that the search has found; ``cv`` must hold out each row exactly
        once.
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
    calibration_ : LogisticMaps
        The maps from scores to log-odds, with ``slope`` and ``offset`` of shape (n_labels,); with
        ``calibrate=True``.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`IMCCClassifier`.

    Warns
    -----
    EdgeOfGridWarning
        When the best setting has the smallest or largest of at least three values of an axis, and
        values beyond it may be better.  Not at a natural bound, such as alpha = 0.

    Notes
    -----
    The default grid has 672 settings: alpha 0, 0.1, 1, 10; beta 1e-3, 1e-2, ..., 1e3; gamma 0, 0.1,
    1; 16 and 64 clusters; and the factors 0.25, 0.5, 1, 2 on the width.  The width matters more
    than everything else but beta, so it has four values, although each costs an eigendecomposition
    per fold; once it is searched, alpha, gamma and the number of clusters change little, so they
    have few values.  alpha = gamma = 0 is kernel ridge regression: the cross-validated score is
    never below that of :class:`imcc.baselines.KernelRidgeBaseline` on the same folds.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import IMCCClassifierCV
    >>> X, Y = make_multilabel_classification(150, n_classes=4, random_state=0)
    >>> search = IMCCClassifierCV(n_clusters=(4, 8), random_state=0).fit(X, Y)
    >>> len(search.cv_results_["params"])
    672
    >>> sorted(search.best_params_)
    ['alpha', 'beta', 'gamma', 'kernel', 'n_clusters', 'width_scale']
    >>> search.predict(X).shape
    (150, 4)
    """

    def __init__(
        self,
        alphas: Sequence[float] | None = None,
        betas: Sequence[float] | None = None,
        gammas: Sequence[float] | None = None,
        n_clusters: Sequence[Any] | None = None,
        *,
        grid: str = "default",
        kernels: Sequence[str | Callable[..., float]] | None = None,
        width_scales: Sequence[float] | None = None,
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
        calibrate: bool = False,
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
        self.grid = grid
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
        self.calibrate = calibrate
        self.n_jobs = n_jobs
        self.progress = progress
        self.verbose = verbose
        self.clusterer = clusterer
        self.span = span
        self.random_state = random_state
        self.device = device

    def fit(
        self, X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None
    ) -> IMCCClassifierCV:
        """Search the grid, then fit the best setting on all rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Or an array of torch or CuPy, which is worked on where it is.
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
            Labels coded {0, 1}, {-1, +1} or boolean; or one class per row.  NaN in a dense label
            matrix is a label that is not known, as for :class:`IMCCClassifier`: the fits and the
            metrics of the folds and the probabilities leave it out.  Of scikit-learn's scorers,
            those that are means over labels can do so (``"f1_macro"``, ``"roc_auc"``).
        groups : array-like of shape (n_samples,), optional
            Passed on to the splitter.
        sample_weight : array-like of shape (n_samples,), optional
            How many rows each row counts for, >= 0: in the fits of the folds, in the means over
            held-out rows that metrics are (ours, and scorers that take ``sample_weight``; other
            callables are not weighted) and in the last fit.  Rows of weight 0 are left out, before
            the rows are split.

        Returns
        -------
        self : IMCCClassifierCV
        """
        check_choice("grid", self.grid, GRIDS)
        grid = Grid(
            alphas=check_axis("alphas", self._axis("alphas"), at_least=0),
            betas=check_axis("betas", self._axis("betas"), above=0),
            gammas=check_axis("gammas", self._axis("gammas"), at_least=0),
            n_clusters=_check_n_clusters(self._axis("n_clusters")),
        )
        kernels = [
            (kernel, check_kernel(kernel, self.kernel_params, self.width))
            for kernel in check_list("kernels", self._axis("kernels"))
        ]
        width_scales = check_axis("width_scales", self._axis("width_scales"), above=0).tolist()
        scoring = check_scoring(self.scoring, self.refit, scorers=True)
        calibrate = self._check_calibrate()
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
        n_rows = X.shape[0]
        weighted = check_weighted(X, y, sample_weight, type(self).__name__, unknown=True)
        X, target, weights = weighted.X, weighted.target, weighted.weights
        cv = renumbered(self.cv, weighted.kept, n_rows)
        folds = make_folds(cv, X, target, weighted.part(groups))
        if calibrate:
            check_each_once(folds, X.shape[0])
        if self.verbose:
            _print_size(grid, kernels, width_scales, len(folds))
        seed = draw_seed(self.random_state)
        rows = on_device(X, self.device)
        # Fitting the best setting takes about as long as one fold of one width.
        n_pieces = len(folds) * sum(len(width_scales) if k.has_width else 1 for _, k in kernels)
        pieces = (n_pieces, 1)
        with (
            explained_memory_errors(f"the search with {X.shape[0]} x {X.shape[1]} rows", REMEDY),
            part(0, pieces),
        ):
            found = search(
                rows,
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
                seed=seed,
                n_jobs=self.n_jobs,
                progress=progress,
                weights=weights,
            )
        keys = score_keys(scoring.names, self.scoring)
        results = cv_results(grid, kernels, width_scales, keys, found.results)
        self._store_results(target, results, len(folds))
        if scoring.decides is not None:
            best = next(by_rank(results, keys[scoring.decides]))
            self._store_best(best)
            if self.verbose:
                _print(f"{scoring.decides}={best.score:.6g} with {best.params}")
            if message := _edges(results, keys[scoring.decides], grid, width_scales, folds):
                warnings.warn(message, EdgeOfGridWarning, stacklevel=3)
        if self.refit is not False:
            start = time.perf_counter()
            chosen = self.estimator_for(self.best_params_)
            with part(1, pieces, "fitting the best setting"):
                self.best_estimator_ = chosen.fit(given, y, sample_weight)
            self.refit_time_ = time.perf_counter() - start
        if calibrate:
            scores = out_of_fold_scores(
                rows,
                target.signs,
                folds,
                [of_fold.only(self._chosen_entry(grid)) for of_fold in found.clusters],
                self._chosen_settings(seed),
                self.n_jobs,
                weights,
                target.known,
            )
            self._store_calibration(scores, target, weights)
        return self

    def _axis(self, name: str) -> Any:
        """Return the values to try of an axis."""
        given = getattr(self, name)
        return GRIDS[self.grid][name] if given is None else given

    def _chosen_entry(self, grid: Grid) -> int:
        """Return which entry of ``n_clusters`` was chosen; it may be None or an array."""
        chosen = self.best_params_["n_clusters"]
        return next(i for i, entry in enumerate(grid.n_clusters) if entry is chosen)

    def _chosen_settings(self, seed: int) -> FitSettings:
        """Return the chosen setting with the search's own seed."""
        # With a random_state that nothing is drawn from.
        chosen = self.estimator_for(self.best_params_).set_params(random_state=0)
        return replace(chosen._read_settings(), seed=seed)

    def _axes_of(self, params: Mapping[str, Any]) -> dict[str, Any]:
        axes = {name if name == "n_clusters" else f"{name}s": v for name, v in params.items()}
        return {"width_scales": 1.0, **axes}

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


def _edges(
    results: Mapping[str, Any],
    key: str,
    grid: Grid,
    width_scales: Sequence[float],
    folds: Sequence[Fold],
) -> Message | None:
    """Return what to say of a best setting at the edge of the grid."""
    axes = {
        "alpha": grid.alphas.tolist(),
        "beta": grid.betas.tolist(),
        "gamma": grid.gammas.tolist(),
        "n_clusters": grid.n_clusters,
        "width_scale": width_scales,
    }
    fewest = min(len(fold.train) for fold in folds)
    bounds = {"alpha": (0.0, np.inf), "gamma": (0.0, np.inf), "n_clusters": (1, fewest)}
    found = edges_of_grid(results, key, axes, bounds)
    if not found:
        return None
    message = Message("the best setting is at the edge of the grid, and others may be better: ")
    for i, (name, (value, side)) in enumerate(found.items()):
        listed = named(name if name == "n_clusters" else f"{name}s")
        between = "; " if i else ""
        beyond = "smaller" if side == "smallest" else "larger"
        message += f"{between}{name}={value:g} is the {side} of " + listed
        message += f", try {beyond} values"
    return message


def _print_size(grid: Grid, kernels: Any, width_scales: Sequence[float], n_folds: int) -> None:
    axes = parameter_grids(grid, kernels, width_scales)
    n_settings = sum(len(ParameterGrid(part)) for part in axes)
    _print(f"{n_settings} settings on {n_folds} folds")


def _print_progress(done: int, total: int) -> None:
    _print(f"{done} of {total} pieces done")


def _print(text: str) -> None:
    print(f"imcc search: {text}", file=sys.stderr, flush=True)
