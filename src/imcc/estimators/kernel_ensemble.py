"""KernelEnsembleClassifier: a calibrated ensemble of kernel models, chosen by leave-one-out."""

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

from imcc._backend.array import Array, asarray, is_numpy, to_numpy
from imcc._backend.device import explained_memory_errors, on_device, require_memory
from imcc._core.fitting import warn_of_patterns
from imcc._ensemble.held_out import check_folds
from imcc._ensemble.model import KERNELS, EnsembleModel, small_indices
from imcc._ensemble.patterns import patterns_of
from imcc._ensemble.records import Fitted, Options
from imcc._ensemble.rows import restricted
from imcc._ensemble.search import N_LANDMARKS, RECIPE, fit_ensemble
from imcc._ensemble.selection import CRITERIA
from imcc._ensemble.views import VIEWS, choose_views, is_mostly_zero
from imcc._search.folds import Fold, make_folds
from imcc._search.grid import check_axis, check_list
from imcc._stream.sources import refuse_stream
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
# n x n matrices of exact kernels at a time: the kernel matrix, its eigenvectors and what their
# computation needs.
EXACT_MATRICES = 6
REMEDY = "use fewer rows, or a smaller exact_rows (Nyström features above it)"


class KernelEnsembleClassifier(LogOddsClassifierMixin, BaseEstimator):
    r"""Multi-label classifier: calibrated kernel models in many views, weighted by leave-one-out.

    ``fit(X, y)`` needs no choice.  It tries kernels of several widths on several views of the
    features (as given, standardised, ranks, ...), each with many penalties.  One eigendecomposition
    per kernel gives the exact leave-one-out scores of all of them.  The scores of each model become
    log-odds, label by label, and a greedy choice weights the few models whose mean log-odds are
    best.

    Members are kernel ridge regression models, some with coupled labels.  Models with virtual
    examples (:class:`IMCCClassifier`, the method of Shu et al.) compete with them on the same folds
    and join where they help; ``virtual_weight_`` says how much weight they got.

    Parameters
    ----------
    views : "auto" or sequence of str, default="auto"
        Out of "raw", "standard", "ranks", "root" (all for dense rows), "unit" and "tfidf".  "auto"
        is the first four, or "raw", "unit" and "tfidf" where more than 80 % of the entries are 0.
    kernels : sequence of {"rbf", "laplacian"}, default=("rbf", "laplacian")
    width_scales : sequence of float, default=(0.25, 0.5, 1.0, 2.0)
        Widths to try, as multiples of the mean distance of the rows in a view.
    penalties : sequence of float, default=(1e-3, 10**-2.5, ..., 1e3)
        Penalties to try, searched from the middle uphill.
    coupling : sequence of float, default=(0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7)
        Degrees eta to try to which labels are coupled through their correlations R: the penalty
        ``||W||^2`` becomes ``tr(W ((1 - eta) I + eta R)^-1 W')``.  ``(0.0,)`` leaves them alone.
    virtual_examples : bool, default=True
        Whether models with virtual examples may join.  They never do with ``sample_weight``, with
        unknown labels or with Nyström features.
    n_members : int, default=12
        Rounds of the greedy choice, an upper bound on the number of members.
    weights : {"log_loss", "scoring"}, default="log_loss"
        What the greedy choice of members and their weights goes by: the log loss of the mean log-
        odds, which is less noisy, or what ``scoring`` says.
    calibration : {"logistic"} or None, default="logistic"
        How scores become log-odds: for each label a line, slopes at least 0 and shrunk towards
        their common slope, fitted to the held-out scores.  None takes the scores as log-odds;
        probabilities are then not calibrated.
    scoring : str or callable, default="average_precision"
        What decides between kernels, penalties and couplings: one of
        :data:`imcc.metrics.METRICS`, "log_loss", or a function of labels
        (bool) and log-odds, both of shape (n_samples, n_outputs), of which a greater value is
        better.  Where a ranking metric is undefined (one label only), "log_loss" takes its place;
        ``scoring_`` says what decided.
    cv : "loo", int, splitter or iterable of (train, test), default="loo"
        What is held out: single rows in closed form, or folds, which must hold out every row once
        and cost about three times as much.  With ``groups``, "loo" becomes five folds of groups.
    exact_rows : int, default=8000
        Up to so many rows kernels are exact, and the model keeps all rows.  Above, kernels are
        replaced by Nyström features of ``n_landmarks`` rows, with a warning.
    n_landmarks : int, default=1000
    max_time : float or None, default=None
        Seconds after which nothing more is tried; what was found by then is fitted.
    n_jobs : int or None, default=None
        Kernels screened at the same time, through joblib.  None is one, which uses all cores inside
        the linear algebra.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows that kernels are screened on, of folds and clusters.
    device : str or None, default=None
        Where to compute, as torch names it: "cuda" is the GPU.  None is where the rows are.
    verbose : int, default=0
        Whether to print progress, with the time left, to standard error.

    Attributes
    ----------
    members_ : list of dict
        The members, by falling weight: ``weight``, ``view``, ``kernel``, ``width_scale``,
        ``width``, ``penalty``, ``eta``, ``alpha``, ``gamma``, ``n_clusters`` (0 without virtual
        examples).
        Empty where all labels are constant or all rows are the same: the scores are then the log-
        odds of the smoothed base rates.
    virtual_weight_ : float
        Weight of the members with virtual examples.
    search_results_ : dict of ndarray
        Everything that was tried, one entry per trial: ``stage`` ("screen", "all rows" or "folds"),
        ``n_samples``, ``param_*`` and ``score``.  Scores of different stages are of different rows.
    selection_score_ : float
        The metric of the ensemble's held-out log-odds.  The same scores calibrated and chose it, so
        it flatters.
    cross_fitted_score_ : float
        The metric of held-out log-odds whose calibration and weights come from other rows (five
        folds).  Kernels and penalties were still chosen on all rows.
    scoring_ : str
        What decided.
    n_landmarks_ : int
        0 where kernels are exact.
    stopped_early_ : bool
        Whether ``max_time`` ran out.
    recipe_ : int
        Version of the recipe.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`IMCCClassifier`.

    Notes
    -----
    Leave-one-out scores are exact for given views, widths and label correlations, which see the
    left-out row: its features, and for coupled members its labels.  For a label without any signal
    leave-one-out is pessimistic at large penalties (the left-out row moves the mean away from
    itself); calibration slopes are at least 0, so such scores count as none.

    The model contains the training rows (or landmarks) in every view that members use.

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
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> KernelEnsembleClassifier:
        """Search and fit the ensemble.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
            Labels coded {0, 1}, {-1, +1} or boolean; or one class per row.  NaN in a table of
            labels is an unknown label: each label is learned from the rows in which it is known,
            and judged there.  Labels are then not coupled, virtual examples do not join, and each
            different set of known rows costs as much as all labels known in the same rows.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts in the fit, the calibration and the metric; rows of weight 0
            are left out.  Widths and views are those of the rows without weights.
        groups : array-like of shape (n_samples,), optional
            Rows of a group are held out together.

        Returns
        -------
        self : KernelEnsembleClassifier
        """
        self._fit(X, y, sample_weight, groups)
        return self

    @restore_on_failure
    def fit_held_out(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> np.ndarray:
        """Search and fit the ensemble, and return its held-out scores of the training rows.

        What :class:`imcc.calibration.TunedThresholds` with ``cv="held_out"`` chooses thresholds on,
        without fitting anything again.

        Parameters
        ----------
        X, y, sample_weight, groups
            As for :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Log-odds of each row by members that were fitted without it (or without its fold), as
            ``decision_function`` has them for other rows; NaN in rows of weight 0.  Calibration and
            the members' weights come from all rows.
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
        """Fit, and return the rows that were used, the number of rows, and what was found."""
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
                f"{n} rows are more than exact_rows={options.exact_rows}: kernels are replaced by "
                f"Nyström features of {min(options.n_landmarks, n)} landmarks; set exact_rows or "
                "n_landmarks to choose otherwise",
                UserWarning,
                stacklevel=4,  # the caller of fit, which is wrapped (imcc.estimators.base)
            )
        with explained_memory_errors(f"the ensemble of {n} rows", REMEDY):
            like = on_device(np.empty((0, 1)) if is_numpy(given) else given, self.device)
            if n <= options.exact_rows:
                # With unknown labels, the kernel matrix of all rows beside that of some.
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
            raise ValueError(f"cv must be 'loo', a number of folds or folds, got {self.cv!r}")
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
        """Say what cannot be done, or costs much, where some labels are unknown."""
        if callable(self.scoring):
            raise ValueError(
                "scoring must be a name where some labels are unknown (NaN in y), which a function "
                f"cannot leave out: use one of {', '.join(CRITERIA)}"
            )
        warn_of_patterns(len(list(patterns_of(known))), " for every kernel", stacklevel=4)

    def _folds(self, X: Features, target: Target, groups: Any) -> list[Fold] | None:
        cv = self.cv
        if isinstance(cv, str):
            if groups is None:
                return None
            n_groups = len(np.unique(np.asarray(groups)))
            if n_groups < 2:
                raise ValueError("groups must be of at least two different values, got one")
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
    """Return what was tried as columns."""
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
