"""IMCCClassifierCV: the exact search, with the interface of scikit-learn's GridSearchCV."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from imcc._array.device import explained_memory_errors, on_device
from imcc._math.clustering import split_n_clusters
from imcc._math.fitting import REMEDY, check_approximation
from imcc._math.kernels import check_kernel
from imcc._math.search.fold import Search
from imcc._math.search.folds import Fold, check_each_once, make_folds, renumbered
from imcc._math.search.grid import Grid, check_axis, check_list
from imcc._math.search.results import (
    EdgeOfGridWarning,
    by_rank,
    cv_results,
    edges_of_grid,
    score_keys,
)
from imcc._math.search.scorers import check_scoring
from imcc._math.search.search import out_of_fold_scores, run_search
from imcc._math.stream.sources import refuse_stream
from imcc._utils.errors import Message, named
from imcc._utils.progress import part
from imcc._utils.validation import (
    check_choice,
    check_features,
    check_weighted,
    draw_seed,
    explained_singularity,
)
from imcc.estimators.base_search import SearchClassifier
from imcc.estimators.imcc import IMCCClassifier

PAPER_WEIGHTS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
PAPER_N_CLUSTERS = (8, 16, 32, 64, 128, 256)
# Widths are factors of this one, computed from the training rows of each fold.
_WIDTH = "mean_distance"
WIDTH_SCALES = (0.25, 0.5, 1.0, 2.0)
#: The named grids: default values of each axis.
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


class IMCCClassifierCV(SearchClassifier):
    """IMCC with parameters selected by an exact cross-validated search over a grid.

    Gives the results of ``GridSearchCV(IMCCClassifier(), ...)``, hundreds of times faster, because
    all settings of a fold share one eigendecomposition.  The training rows of each fold are
    clustered separately, without the held-out rows.

    Means over folds whose relative difference is below 1e-9 count as tied; of the tied settings,
    the first one in ``cv_results_`` is selected.  Labels that are equal, opposite or constant in
    the training rows of a fold get exactly tied scores.  The selection therefore does not depend on
    rounding or on the number of threads.

    Parameters
    ----------
    alphas, betas, gammas : sequence of float or None, default=None
        Values to try for ``alpha``, ``beta`` and ``gamma``.  For this and all other axes, None uses
        the values of ``grid``, and a single value keeps the parameter fixed.
    n_clusters : sequence or None, default=None
        Values to try.  An entry can be a sequence (several clusterings together) or None (the
        number that the clusterer is configured with; write ``[None]`` to try only this).  If a fold
        has fewer distinct rows than clusters, the number of clusters is reduced, with a warning.
    grid : {"default", "paper"}, default="default"
        Source of the values of axes that are None, see Notes.  "paper" is the grid of the paper
        with 2058 settings: the weights 1e-3, 1e-2, ..., 1e3, the numbers of clusters 8, 16, ...,
        256, and one width.
    kernels : sequence of str or callable, or None, default=None
        Kernels to try; only "rbf" in both grids.  ``("rbf", "laplacian")`` takes twice the time.
    width_scales : sequence of float or None, default=None
        Factors of the width to try, for kernels that have a width.
    approximation : {"nystroem"} or None, default=None
        As for :class:`IMCCClassifier`; landmarks are chosen within each fold.  The search is exact
        for the given approximation, and its time is linear in the number of rows instead of cubic.
    n_components : int or None, default=None
        As for :class:`IMCCClassifier`.
    landmarks : {"kmeans", "random"} or array of shape (n_components, n_features), default="kmeans"
        As for :class:`IMCCClassifier`.
    cv : int, splitter or iterable of (train, test), default=5
        An integer is the number of folds: stratified for a 1-D target, otherwise consecutive
        without shuffling, as in scikit-learn.  For sorted rows, use
        ``KFold(5, shuffle=True, random_state=0)``.
    scoring : str, callable, sequence of str or dict, default="average_precision"
        Metric to select the setting by: a name from :data:`imcc.metrics.METRICS`, the name of a
        scikit-learn scorer such as ``"f1_macro"``, or a callable ``scorer(estimator, X, y)`` that
        only uses ``decision_function`` and ``predict`` of the estimator; it is called with an X
        without columns.  For several metrics, a list of names or a dict from names to scorers.
        Values of ``METRICS`` are not negated; for scorers, greater is better.
    refit : bool or str, default=True
        Whether to fit ``best_estimator_`` on all rows.  With several metrics, the name of the
        metric that selects the best setting.
    calibrate : bool, default=False
        Whether to calibrate probabilities.  Each row is scored by a model with the selected setting
        that was fitted without the row, on the folds of the search.  For each label, the log-odds
        ``a f + c`` with a >= 0 are fitted to its scores f, as by
        :class:`imcc.estimators.MultilabelCalibrator`.  The search then has ``predict_proba``;
        ``decision_function`` returns the log-odds, and ``predict`` the labels with p >= 1/2.  This
        needs one more fit per fold, with the clusters of the search; ``cv`` must hold out each row
        exactly once.
    n_jobs : int or None, default=None
        Number of folds and widths to compute in parallel, through joblib
        (``joblib.parallel_config`` applies).  None means 1, with several threads of the linear
        algebra where matrices are large.  Ignored on a device.
    clusterer : scikit-learn clusterer, array of shape (n_clusters, n_features) or None, \
default=None
        As for :class:`IMCCClassifier`.
    random_state : int, RandomState instance or None, default=None
        As for :class:`IMCCClassifier`.
    device : str or None, default=None
        As for :class:`IMCCClassifier`.

    Attributes
    ----------
    best_params_ : dict
        The selected setting.
    best_score_ : float
        Its mean over the folds of the selecting metric; losses are not negated.
    best_index_ : int
        Its position in ``cv_results_``.
    best_estimator_ : IMCCClassifier
        Fitted on all rows with the selected setting.  Not available with ``refit=False``.
    cv_results_ : dict of ndarray
        Results in the format of ``GridSearchCV``: ``params``, ``param_*``, ``split*_test_*``,
        ``mean_test_*``, ``std_test_*``, ``rank_test_*``, and times, which are the total of a fold
        divided evenly among its settings.  Losses are not negated; rank 1 is the best setting in
        any case.
    n_splits_ : int
        Number of folds.
    calibration_ : LogisticMaps
        Maps from scores to log-odds, with ``slope`` and ``offset`` of shape (n_labels,).  Only with
        ``calibrate=True``.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`IMCCClassifier`.

    Warns
    -----
    EdgeOfGridWarning
        If the best setting has the smallest or largest of at least three values of an axis, so that
        values outside the grid may be better.  Not at a natural bound, such as alpha = 0.

    See Also
    --------
    IMCCClassifier : The classifier with fixed parameters.
    KernelEnsembleClassifier : Ensemble of kernel models, without a grid to choose.

    Notes
    -----
    The default grid has 672 settings: alpha 0, 0.1, 1, 10; beta 1e-3, 1e-2, ..., 1e3; gamma 0, 0.1,
    1; 16 and 64 clusters; and the factors 0.25, 0.5, 1, 2 of the width.  The width matters more
    than all other parameters except beta, so it has four values, although each of them needs an
    eigendecomposition per fold.  With a searched width, alpha, gamma and the number of clusters
    have little effect, so they have few values.  alpha = gamma = 0 is kernel ridge regression: the
    cross-validated score is never worse than that of :class:`imcc.baselines.KernelRidgeBaseline` on
    the same folds.

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
        clusterer: Any = None,
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
        self.approximation = approximation
        self.n_components = n_components
        self.landmarks = landmarks
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.calibrate = calibrate
        self.n_jobs = n_jobs
        self.clusterer = clusterer
        self.random_state = random_state
        self.device = device

    def fit(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None
    ) -> IMCCClassifierCV:
        """Search the grid, then fit the best setting on all rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Training rows.  Arrays of torch and CuPy are processed on their device.
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
            Labels coded {0, 1}, {-1, +1} or boolean; a set or list of labels per row; or one class
            per row.  NaN in a dense indicator matrix is an unknown label, as for
            :class:`IMCCClassifier`; it is ignored by fits, metrics and calibration.  Of the scorers
            of scikit-learn, those that are means over labels support this (``"f1_macro"``,
            ``"roc_auc"``).
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, >= 0, for the fits of the folds, the metrics of held-out rows
            (:data:`imcc.metrics.METRICS` and scorers that accept ``sample_weight``; other callables
            are not weighted) and the final fit.  Rows of weight 0 are removed before the rows are
            split.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, passed to the splitter; with a number of folds as ``cv``, the rows of
            a group are held out together.

        Returns
        -------
        self : IMCCClassifierCV
            The fitted search.
        """
        check_choice("grid", self.grid, GRIDS)
        grid = Grid(
            alphas=check_axis("alphas", self._axis("alphas"), at_least=0),
            betas=check_axis("betas", self._axis("betas"), above=0),
            gammas=check_axis("gammas", self._axis("gammas"), at_least=0),
            n_clusters=check_list("n_clusters", self._axis("n_clusters")),
            kernels=[
                (kernel, check_kernel(kernel, None, _WIDTH))
                for kernel in check_list("kernels", self._axis("kernels"))
            ],
            width_scales=check_axis("width_scales", self._axis("width_scales"), above=0).tolist(),
        )
        for value in grid.n_clusters:
            split_n_clusters(value)
        scoring = check_scoring(self.scoring, self.refit)
        calibrate = self._check_calibrate()
        options = (_WIDTH, self.n_components, self.landmarks)
        approximations = [
            check_approximation(self.approximation, kernel, *options) for _, kernel in grid.kernels
        ]
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
        seed = draw_seed(self.random_state)
        search = Search(
            on_device(X, self.device),
            target,
            folds,
            grid,
            scoring,
            approximations,
            self.clusterer,
            seed,
            weights,
        )
        # Fitting the best setting takes about as long as one fold of one width.
        pieces = (len(folds) * sum(len(grid.scales(kernel)) for _, kernel in grid.kernels), 1)
        with (
            explained_memory_errors(f"the search with {X.shape[0]} x {X.shape[1]} rows", REMEDY),
            explained_singularity(
                "a setting of the grid", X, getattr(self, "feature_names_in_", None)
            ),
            part(0, pieces),
        ):
            outcomes, clusters = run_search(search, self.n_jobs)
        keys = score_keys(scoring.names, self.scoring)
        results = cv_results(grid, keys, outcomes)
        self._store_results(target, results, len(folds))
        if scoring.decides is not None:
            key = keys[scoring.decides]
            self._store_best(by_rank(results, key)[0], key)
            if message := _edges(results, key, grid, folds):
                warnings.warn(message, EdgeOfGridWarning, stacklevel=3)
        if self.refit is not False:
            chosen = self.estimator_for(self.best_params_)
            with part(1, pieces, "fitting the best setting"):
                self.best_estimator_ = chosen.fit(given, y, sample_weight=sample_weight)
        if calibrate:
            # By identity: an entry of n_clusters may be None or an array.
            of_best = self.best_params_["n_clusters"]
            entry = next(i for i, value in enumerate(grid.n_clusters) if value is of_best)
            # A fixed random_state, so that nothing is drawn from that of the search.
            chosen = self.estimator_for(self.best_params_).set_params(random_state=0)
            settings = replace(chosen._read_settings(), seed=seed)
            scores = out_of_fold_scores(search, clusters, entry, settings, self.n_jobs)
            self._store_calibration(scores, target, weights)
        return self

    def _axis(self, name: str) -> Any:
        """Return the values to try on an axis."""
        given = getattr(self, name)
        return GRIDS[self.grid][name] if given is None else given

    def _axes_of(self, params: Mapping[str, Any]) -> dict[str, Any]:
        axes = {name if name == "n_clusters" else f"{name}s": v for name, v in params.items()}
        return {"width_scales": 1.0, **axes}

    def estimator_for(self, params: Mapping[str, Any]) -> IMCCClassifier:
        """Return an unfitted classifier with one setting of the grid.

        Parameters
        ----------
        params : mapping
            An entry of ``cv_results_["params"]``.

        Returns
        -------
        IMCCClassifier
        """
        return IMCCClassifier(
            **params,
            approximation=self.approximation,
            n_components=self.n_components,
            landmarks=self.landmarks,
            clusterer=self.clusterer,
            random_state=self.random_state,
            device=self.device,
        )


def _edges(
    results: Mapping[str, Any], key: str, grid: Grid, folds: Sequence[Fold]
) -> Message | None:
    """Return the warning for a best setting at the edge of the grid; None if it is not."""
    axes = {
        "alpha": grid.alphas.tolist(),
        "beta": grid.betas.tolist(),
        "gamma": grid.gammas.tolist(),
        "n_clusters": grid.n_clusters,
        "width_scale": grid.width_scales,
    }
    fewest = min(len(fold.train) for fold in folds)
    bounds = {"alpha": (0.0, np.inf), "gamma": (0.0, np.inf), "n_clusters": (1, fewest)}
    found = edges_of_grid(results, key, axes, bounds)
    if not found:
        return None
    message = Message(
        "the best setting is at the edge of the grid, and values beyond it may be better"
    )
    for i, (name, (value, side)) in enumerate(found.items()):
        message += f"{'; ' if i else ': '}{name}={value:g} is the {side} of "
        message += named(name if name == "n_clusters" else f"{name}s")
        message += f", try {'smaller' if side == 'smallest' else 'larger'} values"
    return message
