"""KernelEnsembleClassifier: a calibrated ensemble of kernel models, selected by leave-one-out."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from imcc._array.array import Array, asarray, is_numpy, to_numpy
from imcc._array.device import (
    block_entries,
    explained_memory_errors,
    free_bytes,
    host_bytes,
    n_threads,
    on_device,
    require_memory,
)
from imcc._math.ensemble.members import Labels
from imcc._math.ensemble.model import EnsembleModel
from imcc._math.ensemble.plan import (
    FEWEST_LANDMARKS,
    PATIENT_ROWS,
    Plan,
    make_plan,
    rows_within,
)
from imcc._math.ensemble.search import RECIPE, Fitted, Options, fit_ensemble
from imcc._math.ensemble.selection import CRITERIA
from imcc._math.ensemble.views import VIEWS, choose_views, is_mostly_zero
from imcc._math.fitting import warn_of_patterns
from imcc._math.search.grid import check_list
from imcc._math.solver import label_patterns
from imcc._math.stream.sources import refuse_stream
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import (
    Features,
    check_choice,
    check_features,
    check_number,
    check_sample_weight,
    check_switch,
    draw_seed,
    encode_target,
)
from imcc.estimators.base import LogOddsClassifierMixin, restore_on_failure

REMEDY = "use fewer rows, or a larger max_memory"
# Share of the memory that is there to use by default; the rest is for the other arrays of a user.
_SHARE = 0.8


class KernelEnsembleClassifier(LogOddsClassifierMixin, BaseEstimator):
    r"""Multi-label ensemble of calibrated kernel models, selected by exact leave-one-out.

    ``fit(X, y)`` needs no parameters to be chosen.  It compares kernels of several widths on
    several views of the features (raw, standardised, ranks, ...) on a part of the rows, and fits
    the best ones to all rows.  One Cholesky factor gives a model and the exact leave-one-out
    scores of all rows.  The scores are converted to log-odds per label, and a greedy selection
    finds the members and weights whose mean log-odds have the lowest log loss.  Linear logistic
    models of words, and boosted trees, join where that lowers the held-out log loss clearly.

    Parameters
    ----------
    views : "auto" or sequence of str, default="auto"
        Views of the features: "raw", "tfidf", "standard", "ranks" and "root".  "auto" means the
        first two if more than 80 % of the entries are 0, and otherwise the other three; sparse
        rows are then converted to dense ones, as "standard", "ranks" and "root" always do.
    scoring : str or callable, default="average_precision"
        Metric to select kernels and penalties by: a name from :data:`imcc.metrics.METRICS`,
        "log_loss", or a function of labels (bool) and log-odds, both of shape (n_samples,
        n_outputs), for which greater is better.  If a ranking metric is undefined (with a single
        label), "log_loss" is used instead; see ``scoring_``.
    linear : bool, default=True
        Whether linear models may join, for rows that are mostly zero and have at least 300
        columns.
    trees : bool, default=True
        Whether boosted trees may join, for up to 100 labels, the most frequent ones.
    unknown : {"exact", "mean"}, default="exact"
        How members are fitted if some labels are unknown (NaN in y).  "exact" fits each label to
        the rows in which it is known; each distinct set of known rows needs factors of its own for
        every member.  "mean" replaces unknown labels by the mean of the label and needs one factor
        per member, for labels with many different sets.  Calibration, selection and metrics use
        the known labels either way.
    max_memory : float or None, default=None
        Bytes that the fit may use.  None means 80 % of the memory of this machine or control group,
        or of the free memory of the device.  Kernels are exact if a matrix of n x n numbers in
        float32 fits; otherwise they are approximated with as many landmarks as fit, with a warning.
        With None, they are also approximated for more than 45,000 rows, unless there is a device,
        with as many landmarks as take about as long as exact kernels of 45,000 rows.
    max_time : float or None, default=None
        Seconds after which the search stops; the best ensemble found until then is fitted.  On a
        CPU, kernels that would take longer than half of it are approximated, as for `max_memory`.
    keep_held_out : bool, default=True
        Whether to keep ``held_out_proba_`` and ``held_out_labels_``, which are saved with the
        model (5 bytes per row and label), for up to 20 million entries.
    random_state : int, RandomState instance or None, default=None
        Controls the rows used for screening, landmarks and folds.
    device : str or None, default=None
        Device to compute on, as torch names it: "cuda" is the GPU.  None computes where the rows
        are.
    verbose : int, default=0
        Whether to print the plan, the progress and the estimated remaining time to standard error.

    Attributes
    ----------
    members_ : list of dict
        The members in descending order of weight: ``weight``, ``view``, ``kernel`` ("rbf",
        "laplacian", "linear" or "trees"), ``width_scale``, ``width``, ``penalty`` and
        ``coupling``.  The view of trees is "columns"; for labels without trees, the other members
        have all the weight.  Empty if all labels are constant or all rows are equal; the scores are
        then the log-odds of the smoothed label frequencies.
    search_results_ : dict of ndarray
        All settings that were tried, one entry per trial: ``n_samples``, ``param_*`` and
        ``score``.  Scores of different numbers of rows are not comparable.
    held_out_score_ : float
        Metric of the held-out log-odds of the ensemble: those of each row by members that were
        fitted without it.  Slightly optimistic, since the same scores were used for calibration
        and selection.
    held_out_proba_ : ndarray of float32, shape (n_samples, n_outputs)
        Probabilities of each training row by members that were fitted without it (or its group);
        NaN in rows of weight 0.  As optimistic as ``held_out_score_``.  Only with
        ``keep_held_out``.
    held_out_labels_ : ndarray of int8, shape (n_samples, n_outputs)
        The labels of these rows: 1, 0, or -1 where unknown.  Only with ``keep_held_out``.
    scoring_ : str
        The metric that was used for selection.
    n_trees_ : int
        Number of trees; 0 if they did not help.
    precision_ : {"float64", "float32"}
        Precision of the factors; the coefficients are those of float64 either way.
    n_landmarks_ : int
        Number of landmarks; 0 with exact kernels.
    planned_bytes_ : float
        Memory that the fit was expected to need, which ``verbose=1`` prints before it begins.
    stopped_early_ : bool
        Whether something was skipped because of ``max_time``.
    recipe_ : int
        Version of the search procedure.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`IMCCClassifier`.

    Warns
    -----
    UserWarning
        If kernels are approximated.

    See Also
    --------
    IMCCClassifierCV : Exact grid search for a single model with virtual examples.
    imcc.estimators.TunedThresholds : Selects a threshold per label.

    Notes
    -----
    Leave-one-out scores are exact for given views and widths.  These are computed from all rows:
    they depend on the features of the left-out row, not on its labels.  Coupled members also use
    the correlations of the labels, of which the left-out row is a part.  For a label without any
    signal, leave-one-out is pessimistic at large penalties, since leaving out a row moves the mean
    away from it.  As calibration slopes are at least 0, such scores have no effect.

    The model contains the training rows (or landmarks) in float32.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import KernelEnsembleClassifier
    >>> X, Y = make_multilabel_classification(200, n_classes=4, random_state=0)
    >>> clf = KernelEnsembleClassifier(random_state=0).fit(X[:150], Y[:150])
    >>> clf.predict_proba(X[150:]).shape
    (50, 4)
    >>> sorted(clf.members_[0])
    ['coupling', 'kernel', 'penalty', 'view', 'weight', 'width', 'width_scale']
    """

    _uses_groups = True

    def __init__(
        self,
        *,
        views: str | Sequence[str] = "auto",
        scoring: str | Callable[..., float] = "average_precision",
        linear: bool = True,
        trees: bool = True,
        unknown: str = "exact",
        max_memory: float | None = None,
        max_time: float | None = None,
        keep_held_out: bool = True,
        random_state: Any = None,
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.scoring = scoring
        self.linear = linear
        self.trees = trees
        self.unknown = unknown
        self.max_memory = max_memory
        self.max_time = max_time
        self.keep_held_out = keep_held_out
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
            per row.  NaN in a dense indicator matrix is an unknown label, see ``unknown``; the
            screening replaces unknown labels by means.
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
            Log-odds of each row from members that were fitted without the row (or its group); NaN
            in rows of weight 0.  Calibration and weights of the members are fitted on all rows.
        """
        return self._fit(X, y, sample_weight, groups)

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> np.ndarray:
        """Fit, and return the held-out log-odds of all rows."""
        self._check_parameters()
        refuse_stream(X, y, type(self).__name__)
        X = check_features(self, X, reset=True)
        given = X
        target = encode_target(y, X.shape[0], type(self).__name__, unknown=True)
        # Dense, but small: solvers convert the labels that they work on.
        target = replace(target, signs=target.signs.astype(np.int8))
        host, weight = small_indices(to_numpy(X)), None
        kept: Any = slice(None)
        if sample_weight is not None:
            weight = check_sample_weight(sample_weight, X.shape[0])
            assert weight is not None
            kept = np.flatnonzero(weight > 0)
            host, weight = host[kept], weight[kept]
            weight = None if np.all(weight == 1) else weight
        views = choose_views(self.views, host)
        if is_mostly_zero(host):
            host = host if sp.issparse(host) else sp.csr_matrix(host)
        elif sp.issparse(host):
            host = host.toarray()
        known = None if target.known is None else target.known[kept]
        if known is not None:
            self._check_known(known)
        like = on_device(np.empty((0, 1)) if is_numpy(given) else given, self.device)
        plan = self._plan(host, target.signs.shape[1], like)
        with explained_memory_errors(f"the ensemble of {host.shape[0]} rows", REMEDY):
            signs = asarray(target.signs[kept], like, "float32")
            fitted = fit_ensemble(
                host,
                Labels(signs, known, weight, _group_numbers(groups, X.shape[0], kept)),
                Options(
                    views=views,
                    scoring=self.scoring,
                    binary=target.kind == "binary",
                    linear=self.linear,
                    exact=self.unknown == "exact",
                    trees=self.trees,
                    max_seconds=self.max_time,
                    seed=draw_seed(self.random_state),
                    plan=plan,
                    threads=n_threads(),
                    say=_say if self.verbose else None,
                ),
            )
        self._remember_target(target)
        self._remember(fitted, plan, given)
        scores = _held_out(fitted, kept, given.shape[0])
        self._keep_held_out(scores, target, self.keep_held_out)
        return scores

    def _check_parameters(self) -> None:
        if self.views != "auto":
            for view in check_list("views", self.views):
                check_choice("views", view, VIEWS)
        if not callable(self.scoring):
            check_choice("scoring", self.scoring, CRITERIA)
        for name in ("linear", "trees"):
            check_switch(name, getattr(self, name))
        for name in ("max_memory", "max_time"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), above=0)

    def _plan(self, X: Features, n_labels: int, like: Array) -> Plan:
        """Decide whether kernels are exact, and refuse what does not fit, before it is tried."""
        there = host_bytes() if is_numpy(like) else free_bytes(like)
        available = _SHARE * there if self.max_memory is None else float(self.max_memory)
        n = X.shape[0]
        most_rows, limit = math.inf, ""
        if is_numpy(like) and self.max_memory is None:
            most_rows, limit = PATIENT_ROWS, "take long (max_memory allows them)"
        if is_numpy(like) and self.max_time is not None:
            # The first member is fitted in any case, after the screening.
            within = rows_within(self.max_time / 2)
            most_rows, limit = min((most_rows, limit), (within, "take too long (max_time)"))
        sizes = (X, n_labels, available, self.trees)
        plan = make_plan(*sizes, most_rows, block_entries(like))
        if plan.n_landmarks:
            if plan.n_landmarks < min(FEWEST_LANDMARKS, n):
                raise MemoryError(
                    f"the ensemble of {n} rows has room for {plan.n_landmarks} landmarks in "
                    f"{available / 2**30:.3g} GiB: {REMEDY}, or IMCCClassifier with an "
                    "approximation, which can be fitted on a stream"
                )
            if make_plan(*sizes, device_entries=block_entries(like)).n_landmarks:
                limit = f"need more than {available / 2**30:.3g} GiB (max_memory)"
            warnings.warn(
                f"kernels of {n} rows are approximated by {plan.n_landmarks} landmarks: exact ones "
                f"{limit}",
                UserWarning,
                stacklevel=5,  # the caller of fit, which is wrapped (imcc.estimators.base)
            )
        require_memory(plan.n_bytes, like, f"the ensemble of {n} rows", REMEDY)
        if self.verbose:
            kind = f"{plan.n_landmarks} landmarks" if plan.n_landmarks else "exact kernels"
            _say(f"{n} rows: {kind}, {plan.precision}, at most {plan.n_bytes / 2**30:.2g} GiB")
        return plan

    def _check_known(self, known: np.ndarray) -> None:
        """Check and warn about what is unsupported or slow with unknown labels."""
        if callable(self.scoring):
            raise ValueError(
                "scoring must be a name if some labels are unknown (NaN in y), which a function "
                f"cannot ignore: use one of {', '.join(CRITERIA)}"
            )
        check_choice("unknown", self.unknown, ["exact", "mean"])
        if self.unknown == "exact":
            remedy = ", and unknown='mean' takes as long as without unknown labels"
            warn_of_patterns(len(label_patterns(known)), " for every member", 4, remedy)

    def _remember(self, fitted: Fitted, plan: Plan, given: Any) -> None:
        self._model = fitted.model.moved(given)
        self.members_ = _members(fitted.model)
        self.search_results_ = _table(fitted)
        self.held_out_score_ = fitted.score
        self.scoring_ = fitted.criterion
        trees = fitted.model.trees
        self.n_trees_ = 0 if trees is None else len(trees.trees.output)
        self.precision_ = plan.precision
        self.n_landmarks_ = plan.n_landmarks
        self.planned_bytes_ = plan.n_bytes
        self.stopped_early_ = fitted.stopped
        self.recipe_ = RECIPE

    def _scores(self, X: Features) -> Array:
        X = check_features(self, X, reset=False)
        host = small_indices(to_numpy(X))
        with explained_memory_errors(f"scoring {X.shape[0]} rows", "score fewer rows at a time"):
            return asarray(self._model.log_odds(host), X)


def _members(model: EnsembleModel) -> list[dict[str, Any]]:
    """Return what ``members_`` says of a model."""
    found = [
        {"weight": member.weight, **member.setting, "width": member.width}
        for member in model.members
    ]
    if model.trees is not None:
        share = model.trees.share
        found = [{**other, "weight": other["weight"] * (1 - share)} for other in found]
        setting = {"view": "columns", "kernel": "trees", "width_scale": 0.0, "penalty": 0.0}
        found.append({"weight": share, **setting, "coupling": 0.0, "width": 0.0})
    return sorted(found, key=lambda member: -member["weight"])


def _held_out(fitted: Fitted, kept: Any, n: int) -> np.ndarray:
    """Return the held-out log-odds of n rows, of which some were kept."""
    base = to_numpy(fitted.model.base)
    scores = np.full((n, len(base)), np.nan)
    scores[kept] = base
    if fitted.held_out is not None:
        scores[np.ix_(np.arange(n)[kept], fitted.model.varying)] = to_numpy(fitted.held_out)
    return scores


def small_indices(X: Features) -> Features:
    """Return sparse rows with 32-bit indices, which scikit-learn's functions need, if they fit."""
    if not sp.issparse(X) or X.indices.dtype == np.int32:
        return X
    if max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return sp.csr_matrix(parts, shape=X.shape)


def _group_numbers(groups: Any, n: int, kept: Any) -> np.ndarray | None:
    """Return a number per row for its group."""
    if groups is None:
        return None
    values, numbers = np.unique(np.asarray(groups), return_inverse=True)
    if len(numbers) != n:
        raise InvalidArgumentError(
            "groups", f"must have one value per row, {n}, got {len(numbers)}"
        )
    if len(np.unique(numbers[kept])) < 2:
        raise InvalidArgumentError("groups", f"must have at least two values, got {values[:2]}")
    return numbers[kept]


def _table(fitted: Fitted) -> dict[str, np.ndarray]:
    """Return the trials as a dict of columns."""
    trials = fitted.trials
    table = {
        "n_samples": np.array([trial.n_samples for trial in trials], dtype=int),
        "param_view": np.array([trial.kernel.view for trial in trials], dtype=object),
        "param_kernel": np.array([trial.kernel.kernel for trial in trials], dtype=object),
        "param_width_scale": np.array([trial.kernel.width_scale for trial in trials]),
        "param_penalty": np.array([trial.penalty for trial in trials]),
        "param_coupling": np.array([trial.coupling for trial in trials]),
    }
    sign = -1.0 if fitted.lower_is_better else 1.0
    table["score"] = sign * np.array([trial.score for trial in trials])
    return table


def _say(text: str) -> None:
    print(f"imcc ensemble: {text}", file=sys.stderr, flush=True)
