"""KernelEnsembleClassifier: a calibrated ensemble of kernel models, selected by leave-one-out."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold

from imcc._array.array import Array, asarray, is_numpy, to_numpy
from imcc._array.device import explained_memory_errors, on_device, require_memory
from imcc._math.ensemble.held_out import check_folds
from imcc._math.ensemble.model import KERNELS, EnsembleModel, small_indices
from imcc._math.ensemble.records import Fitted, Options
from imcc._math.ensemble.rows import restricted
from imcc._math.ensemble.search import N_LANDMARKS, RECIPE, fit_ensemble
from imcc._math.ensemble.selection import CRITERIA
from imcc._math.ensemble.views import VIEWS, choose_views, is_mostly_zero
from imcc._math.fitting import warn_of_patterns
from imcc._math.search.folds import Fold, make_folds
from imcc._math.search.grid import check_axis, check_list
from imcc._math.solver import label_patterns
from imcc._math.stream.sources import refuse_stream
from imcc._utils.validation import (
    Features,
    Target,
    check_choice,
    check_count,
    check_features,
    check_number,
    check_sample_weight,
    draw_seed,
    encode_target,
)
from imcc.estimators.base import LogOddsClassifierMixin, restore_on_failure

PENALTIES = tuple(float(p) for p in 10.0 ** np.arange(-3, 3.25, 0.5))
ETAS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7)
EXACT_ROWS = 8000
# Number of n x n matrices in memory with exact kernels: the kernel matrix, its eigenvectors and the
# workspace of the decomposition.
EXACT_MATRICES = 6
REMEDY = "use fewer rows, or a smaller exact_rows (Nyström features above it)"


class KernelEnsembleClassifier(LogOddsClassifierMixin, BaseEstimator):
    r"""Multi-label ensemble of calibrated kernel models, selected by exact leave-one-out.

    ``fit(X, y)`` needs no parameters to be chosen.  It tries kernels of several widths on several
    views of the features (raw, standardised, ranks, ...), each with many penalties.  One
    eigendecomposition per kernel gives the exact leave-one-out scores for all penalties.  The
    scores of each model are converted to log-odds per label, and a greedy selection finds the
    members and weights whose mean log-odds are best.

    Members are kernel ridge regression models, some of them with coupled labels.  Models with
    virtual examples (:class:`IMCCClassifier`) are evaluated on the same folds and join the ensemble
    where they improve it; ``virtual_weight_`` is their total weight.

    Parameters
    ----------
    views : "auto" or sequence of str, default="auto"
        Views of the features: "raw", "standard", "ranks", "root", "unit" and "tfidf".  "standard",
        "ranks" and "root" convert sparse rows to dense ones.  "auto" means "raw", "unit" and
        "tfidf" if more than 80 % of the entries are 0, and otherwise the first four.
    kernels : sequence of {"rbf", "laplacian"}, default=("rbf", "laplacian")
        Kernels to try.
    width_scales : sequence of float, default=(0.25, 0.5, 1.0, 2.0)
        Widths to try, as multiples of the mean distance of the rows in a view.
    penalties : sequence of float, default=(1e-3, 10**-2.5, ..., 1e3)
        Penalties to try; the search starts in the middle and follows improvements.
    coupling : sequence of float, default=(0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7)
        Values to try for eta, 0 <= eta < 1, which couples the labels through their correlation
        matrix R: the penalty ``||W||^2`` becomes ``tr(W ((1 - eta) I + eta R)^-1 W')``.  ``(0.0,)``
        disables coupling.
    virtual_examples : bool, default=True
        Whether models with virtual examples may join.  They are not tried with ``sample_weight``,
        unknown labels or Nyström features.
    n_members : int, default=12
        Number of rounds of the greedy selection, an upper bound of the number of members.
    weights : {"log_loss", "scoring"}, default="log_loss"
        Criterion of the greedy selection: the log loss of the mean log-odds, which is less noisy,
        or ``scoring``.
    calibration : {"logistic"} or None, default="logistic"
        How scores are converted to log-odds.  "logistic" fits a line per label to the held-out
        scores, with slopes >= 0 that are shrunk towards a common slope.  None uses the scores as
        log-odds; probabilities are then not calibrated.
    scoring : str or callable, default="average_precision"
        Metric to select kernels, penalties and couplings by: a name from
        :data:`imcc.metrics.METRICS`, "log_loss", or a function of labels (bool) and log-odds, both
        of shape (n_samples, n_outputs), for which greater is better.  If a ranking metric is
        undefined (with a single label), "log_loss" is used instead; see ``scoring_``.
    cv : "loo", int, splitter or iterable of (train, test), default="loo"
        What is held out: "loo" single rows, in closed form; otherwise folds, which must hold out
        every row once and take about three times as long.  With ``groups``, "loo" means five folds
        of groups.
    exact_rows : int, default=8000
        Largest number of rows with exact kernels, where the model stores all rows.  With more rows,
        kernels are replaced by Nyström features of ``n_landmarks`` rows, with a warning; this can
        lower the accuracy considerably.
    n_landmarks : int, default=1000
        Number of landmarks of the Nyström features.
    max_time : float or None, default=None
        Seconds after which the search stops; the best ensemble found until then is fitted.
    n_jobs : int or None, default=None
        Number of kernels to screen in parallel, through joblib.  None means 1, with several threads
        of the linear algebra where matrices are large.
    random_state : int, RandomState instance or None, default=None
        Controls the rows used for screening, the folds and the clusters.
    device : str or None, default=None
        Device to compute on, as torch names it: "cuda" is the GPU.  None computes where the rows
        are.
    verbose : int, default=0
        Whether to print progress and the estimated remaining time to standard error.

    Attributes
    ----------
    members_ : list of dict
        The members in descending order of weight: ``weight``, ``view``, ``kernel``,
        ``width_scale``, ``width``, ``penalty``, ``eta``, ``alpha``, ``gamma`` and ``n_clusters`` (0
        without virtual examples).  Empty if all labels are constant or all rows are equal; the
        scores are then the log-odds of the smoothed label frequencies.
    virtual_weight_ : float
        Total weight of the members with virtual examples.
    search_results_ : dict of ndarray
        All settings that were tried, one entry per trial: ``stage`` ("screen", "all rows" or
        "folds"), ``n_samples``, ``param_*`` and ``score``.  Scores of different stages are not
        comparable, since they are computed on different rows.
    selection_score_ : float
        Metric of the held-out log-odds of the ensemble.  Optimistic, since the same scores were
        used for calibration and selection.
    cross_fitted_score_ : float
        Metric of held-out log-odds whose calibration and weights were fitted on other rows (five
        folds).  Kernels and penalties were selected on all rows.
    scoring_ : str
        The metric that was used for selection.
    n_landmarks_ : int
        Number of landmarks; 0 with exact kernels.
    stopped_early_ : bool
        Whether something was skipped because of ``max_time``: kernels, virtual examples or the
        cross-fitted score.
    recipe_ : int
        Version of the search procedure.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`IMCCClassifier`.

    Warns
    -----
    UserWarning
        If there are more than ``exact_rows`` rows.

    See Also
    --------
    IMCCClassifierCV : Exact grid search for a single model with virtual examples.
    imcc.estimators.TunedThresholds : Selects a threshold per label.

    Notes
    -----
    Leave-one-out scores are exact for given views, widths and label correlations.  These are
    computed from all rows: they depend on the features of the left-out row and, for coupled
    members, on its labels.  For a label without any signal, leave-one-out is pessimistic at large
    penalties, since leaving out a row moves the mean away from it.  As calibration slopes are at
    least 0, such scores have no effect.

    The model contains the training rows (or landmarks) in every view that its members use.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import KernelEnsembleClassifier
    >>> X, Y = make_multilabel_classification(200, n_classes=4, random_state=0)
    >>> clf = KernelEnsembleClassifier(random_state=0).fit(X[:150], Y[:150])
    >>> clf.predict_proba(X[150:]).shape
    (50, 4)
    >>> sorted(clf.members_[0])
    ['alpha', 'eta', 'gamma', 'kernel', 'n_clusters', 'penalty', 'view', 'weight', 'width',
     'width_scale']
    """

    _uses_groups = True

    def __init__(
        self,
        *,
        views: str | Sequence[str] = "auto",
        kernels: Sequence[str] = KERNELS,
        width_scales: Sequence[float] = (0.25, 0.5, 1.0, 2.0),
        penalties: Sequence[float] = PENALTIES,
        coupling: Sequence[float] = ETAS,
        virtual_examples: bool = True,
        n_members: int = 12,
        weights: str = "log_loss",
        calibration: str | None = "logistic",
        scoring: str | Callable[..., float] = "average_precision",
        cv: Any = "loo",
        exact_rows: int = EXACT_ROWS,
        n_landmarks: int = N_LANDMARKS,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.kernels = kernels
        self.width_scales = width_scales
        self.penalties = penalties
        self.coupling = coupling
        self.virtual_examples = virtual_examples
        self.n_members = n_members
        self.weights = weights
        self.calibration = calibration
        self.scoring = scoring
        self.cv = cv
        self.exact_rows = exact_rows
        self.n_landmarks = n_landmarks
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None
    ) -> KernelEnsembleClassifier:
        """Search and fit the ensemble.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
            Labels coded {0, 1}, {-1, +1} or boolean; a set or list of labels per row; or one class
            per row.  NaN in a dense indicator matrix is an unknown label: each label is fitted and
            evaluated on the rows in which it is known.  Labels are then not coupled, virtual
            examples are not used, and each distinct set of known rows takes as long as a fit with
            all labels known.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, >= 0, for the fit, the calibration and the metric; rows of weight 0 are
            removed.  Widths and views ignore the weights.
        groups : array-like of shape (n_samples,), default=None
            Group of each row; rows of a group are held out together.

        Returns
        -------
        self : KernelEnsembleClassifier
            The fitted classifier.
        """
        self._fit(X, y, sample_weight, groups)
        return self

    @restore_on_failure
    def fit_held_out(
        self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None
    ) -> np.ndarray:
        """Search and fit the ensemble, and return held-out scores of the training rows.

        :class:`imcc.estimators.TunedThresholds` with ``cv="held_out"`` selects thresholds on these
        scores, without further fits.

        Parameters
        ----------
        X, y, sample_weight, groups
            As for :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Log-odds of each row from members that were fitted without the row (or its fold); NaN in
            rows of weight 0.  Calibration and weights of the members are fitted on all rows.
        """
        kept, n, fitted = self._fit(X, y, sample_weight, groups)
        base = to_numpy(fitted.model.base)
        scores = np.full((n, len(base)), np.nan)
        scores[kept] = base
        if fitted.held_out is not None:
            scores[np.ix_(kept, fitted.model.varying)] = to_numpy(fitted.held_out)
        return scores

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[np.ndarray, int, Fitted]:
        """Fit, and return the indices of the rows used, the number of all rows, and the result."""
        options = self._check_parameters()
        refuse_stream(X, y, type(self).__name__)
        X = check_features(self, X, reset=True)
        given = X
        target = encode_target(y, X.shape[0], type(self).__name__, unknown=True)
        host = small_indices(to_numpy(X))
        signs, known, weight = target.signs, target.known, None
        kept = np.arange(X.shape[0])
        folds = self._folds(host, target, groups)
        if sample_weight is not None:
            weight = check_sample_weight(sample_weight, X.shape[0])
            assert weight is not None
            kept = np.flatnonzero(weight > 0)
            host, signs, weight = host[kept], signs[kept], weight[kept]
            known = None if known is None else known[kept]
            folds = None if folds is None else restricted(folds, kept)
            if np.all(weight == 1):
                weight = None
        views = choose_views(options.views if self.views != "auto" else "auto", host)
        if is_mostly_zero(host):
            host = _as_csr(host)
        n = host.shape[0]
        if known is not None:
            self._check_known(known)
        if n > options.exact_rows:
            warnings.warn(
                f"{n} rows are more than exact_rows={options.exact_rows}: kernels are approximated "
                f"by Nyström features of {min(options.n_landmarks, n)} landmarks; set exact_rows "
                "or n_landmarks to change this",
                UserWarning,
                stacklevel=4,  # the caller of fit, which is wrapped (imcc.estimators.base)
            )
        with explained_memory_errors(f"the ensemble of {n} rows", REMEDY):
            like = on_device(np.empty((0, 1)) if is_numpy(given) else given, self.device)
            if n <= options.exact_rows:
                # With unknown labels, the kernel matrix of all rows and that of some are needed.
                n_bytes = 8.0 * (EXACT_MATRICES + (known is not None)) * n**2
                require_memory(n_bytes, like, f"the ensemble of exact kernels of {n} rows", REMEDY)
            fitted = fit_ensemble(
                host,
                asarray(signs, like),
                target.kind == "binary",
                _with_views(options, views),
                weight=weight,
                known=known,
                folds=folds,
                seed=draw_seed(self.random_state),
                say=_say if self.verbose else None,
            )
        self._remember_target(target)
        self._remember(fitted, given)
        return kept, given.shape[0], fitted

    def _check_parameters(self) -> Options:
        views = ("auto",) if self.views == "auto" else _check_names("views", self.views, VIEWS)
        if isinstance(self.cv, str) and self.cv != "loo":
            raise ValueError(
                f"cv must be 'loo', an integer, a splitter or an iterable of folds, got {self.cv!r}"
            )
        scoring = self.scoring
        if not callable(scoring):
            check_choice("scoring", scoring, CRITERIA)
        if self.calibration is not None:
            check_choice("calibration", self.calibration, ["logistic"])
        max_time = self.max_time
        etas = check_axis("coupling", self.coupling, at_least=0)
        if (etas >= 1).any():
            raise ValueError(f"coupling must be numbers below 1, got {self.coupling!r}")
        return Options(
            views=tuple(views),
            kernels=tuple(_check_names("kernels", self.kernels, KERNELS)),
            width_scales=_axis("width_scales", self.width_scales),
            penalties=_axis("penalties", self.penalties),
            etas=tuple(sorted({float(eta) for eta in etas})),
            n_members=check_count("n_members", self.n_members),
            weights=check_choice("weights", self.weights, ["log_loss", "scoring"]),
            calibrate=self.calibration is not None,
            scoring=scoring,
            virtual=bool(self.virtual_examples),
            exact_rows=check_count("exact_rows", self.exact_rows),
            n_landmarks=check_count("n_landmarks", self.n_landmarks),
            max_seconds=None if max_time is None else check_number("max_time", max_time, above=0),
            n_jobs=self.n_jobs,
        )

    def _check_known(self, known: np.ndarray) -> None:
        """Check and warn about what is unsupported or slow with unknown labels."""
        if callable(self.scoring):
            raise ValueError(
                "scoring must be a name if some labels are unknown (NaN in y), which a function "
                f"cannot ignore: use one of {', '.join(CRITERIA)}"
            )
        warn_of_patterns(len(label_patterns(known)), " for every kernel", stacklevel=4)

    def _folds(self, X: Features, target: Target, groups: Any) -> list[Fold] | None:
        cv = self.cv
        if isinstance(cv, str):
            if groups is None:
                return None
            n_groups = len(np.unique(np.asarray(groups)))
            if n_groups < 2:
                raise ValueError("groups must have at least two different values, got one")
            cv = GroupKFold(min(5, n_groups))
        folds = make_folds(cv, X, target, groups)
        check_folds(folds, X.shape[0])
        return folds

    def _remember(self, fitted: Fitted, given: Any) -> None:
        model: EnsembleModel = fitted.model
        self._model = model.moved(given)
        self.members_ = [
            {"weight": member.weight, "width": member.width, **_as_dict(member.setting)}
            for member in model.members
        ]
        self.virtual_weight_ = fitted.virtual_weight
        self.search_results_ = _table(fitted)
        self.selection_score_ = fitted.value
        self.cross_fitted_score_ = fitted.cross_fitted
        self.scoring_ = fitted.criterion
        self.n_landmarks_ = fitted.n_landmarks
        self.stopped_early_ = fitted.stopped
        self.recipe_ = RECIPE

    def _scores(self, X: Features) -> Array:
        X = check_features(self, X, reset=False)
        host = small_indices(to_numpy(X))
        with explained_memory_errors(f"scoring {X.shape[0]} rows", "score fewer rows at a time"):
            return asarray(self._model.log_odds(host), X)


_SETTING = ("view", "kernel", "width_scale", "penalty", "eta", "alpha", "gamma", "n_clusters")


def _as_dict(setting: Any) -> dict[str, Any]:
    return {name: getattr(setting, name) for name in _SETTING}


def _table(fitted: Fitted) -> dict[str, np.ndarray]:
    """Return the trials as a dict of columns."""
    trials = fitted.trials
    table = {
        "stage": np.array([trial.stage for trial in trials], dtype=object),
        "n_samples": np.array([trial.n_samples for trial in trials], dtype=int),
    }
    for name in _SETTING:
        values = [getattr(trial.setting, name) for trial in trials]
        kind = object if name in ("view", "kernel") else None
        table[f"param_{name}"] = np.array(values, dtype=kind)
    sign = -1.0 if fitted.lower_is_better else 1.0
    table["score"] = sign * np.array([trial.value for trial in trials])
    return table


def _check_names(name: str, values: Any, choices: Sequence[str]) -> list[str]:
    listed = [check_choice(name, value, choices) for value in check_list(name, values)]
    return list(dict.fromkeys(listed))


def _axis(name: str, values: Any) -> tuple[float, ...]:
    return tuple(sorted({float(value) for value in check_axis(name, values, above=0)}))


def _with_views(options: Options, views: list[str]) -> Options:
    return replace(options, views=tuple(views))


def _as_csr(X: Features) -> Features:
    return X if sp.issparse(X) else sp.csr_matrix(X)


def _say(text: str) -> None:
    print(f"imcc ensemble: {text}", file=sys.stderr, flush=True)
