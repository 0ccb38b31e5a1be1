"""TreeCorrectedClassifier: a classifier, corrected by boosted trees as far as that helps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, ShuffleSplit
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from imcc._array.array import asarray, take_rows, to_numpy
from imcc._utils import progress
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import (
    check_count,
    check_features,
    check_number,
    check_sample_weight,
    draw_seed,
    encode_target,
)
from imcc.estimators.base import LogOddsClassifierMixin, restore_on_failure
from imcc.tables._trees import Trees, boost

N_FOLDS = 5
# Labels that fewer rows have, or lack, are left as they are.
_MIN_SUPPORT = 10
# Standard errors by which trees must lower the log loss.
_ERRORS = 2.0
_WEIGHTS = np.linspace(0.0, 1.0, 11)


class TreeCorrectedClassifier(LogOddsClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Classifier whose log-odds are corrected by boosted trees, if that lowers the log loss.

    Kernel models are smooth: a label that changes at a threshold of a number, or only if two
    conditions hold, takes them many rows to learn.  Trees find thresholds, but do not use the words
    of a text well.  Here, the trees of a label use some of the features and the held-out log-odds
    :math:`z` of all labels, and add to its log-odds:

    .. math:: f(x) = z(x) + w \sum_t t(x_S, z(x))

    by gradient boosting that starts at :math:`z`.  The weight :math:`w`, shared by all labels, is
    the one of 0, 0.1, ..., 1 with the lowest log loss on rows that the trees were not fitted on, in
    five folds.  It is 0 if that does not lower the log loss by more than twice its standard error;
    the scores are then those of ``estimator``.

    Parameters
    ----------
    estimator : classifier
        A classifier with a method ``fit_held_out`` that returns held-out log-odds of the training
        rows, such as :class:`imcc.KernelEnsembleClassifier`.
    features : sequence of int or None, default=None
        Indices of the features that the trees use, as a dense matrix; None means all.
    n_trees : int, default=60
        Number of trees per label, of depth 3.
    learning_rate : float, default=0.05
        Factor of the contribution of each tree.
    min_samples_leaf : int, default=5
        Minimum number of rows in a leaf.
    max_features : int, default=64
        Number of features considered per split, drawn at random if there are more.
    max_samples : int, default=2000
        Number of rows that each tree is grown on, drawn at random if there are more.
    n_jobs : int or None, default=None
        Number of labels fitted at the same time, in threads.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds, and of the rows and features that are drawn.

    Attributes
    ----------
    estimator_ : classifier
        The classifier, fitted on all rows.
    weight_ : float
        Weight of the trees; 0 if they do not help.
    trees_ : dict of int to Trees
        The trees per label, for labels that have trees.
    log_losses_ : tuple of two float
        Mean log loss on held-out rows before and after the correction.  The weight was chosen on
        the same rows.  NaN if no trees were tried.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Notes
    -----
    The held-out log-odds of a row are computed without its labels, but those of the other rows,
    which the trees of its fold are fitted on, are computed with them, as in all stacked models.

    If the trees do not help in the first fold, the other folds are skipped.  No trees are tried if
    the classifier stopped early because of ``max_time``.

    Where a label is unknown (NaN in ``y``), its log-odds are those of a model that never saw this
    label of the row.  If they nevertheless said something about the other labels, it would be what
    the log-odds of new rows do not say.  With unknown labels, everything is therefore fitted once
    more on four fifths of the rows, and there are trees only if this lowers the log loss of the
    other fifth.

    References
    ----------
    .. [1] J. H. Friedman. "Greedy function approximation: a gradient boosting machine." Annals of
       Statistics 29, 2001.
    .. [2] D. H. Wolpert. "Stacked generalization." Neural Networks 5, 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from imcc import KernelEnsembleClassifier
    >>> from imcc.tables import TreeCorrectedClassifier
    >>> X = np.random.RandomState(0).randn(300, 8)
    >>> Y = np.column_stack([(X[:, 0] > 0.5) & (X[:, 1] > -0.5), X[:, 2] > 0]).astype(int)
    >>> ensemble = KernelEnsembleClassifier(random_state=0)
    >>> model = TreeCorrectedClassifier(ensemble, random_state=0).fit(X[:200], Y[:200])
    >>> model.weight_ > 0
    True
    >>> bool(model.score(X[200:], Y[200:]) > model.estimator_.score(X[200:], Y[200:]))
    True
    """

    _uses_groups = True

    def __init__(
        self,
        estimator: Any,
        *,
        features: Sequence[int] | None = None,
        n_trees: int = 60,
        learning_rate: float = 0.05,
        min_samples_leaf: int = 5,
        max_features: int = 64,
        max_samples: int = 2000,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.features = features
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.max_samples = max_samples
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None
    ) -> TreeCorrectedClassifier:
        """Fit the classifier and the trees that correct it.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
            Labels, in any form that the classifier accepts; NaN is an unknown label.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; rows of weight 0 are ignored.
        groups : array-like of shape (n_samples,), optional
            Rows of the same group are held out together.

        Returns
        -------
        self : TreeCorrectedClassifier
        """
        self.fit_held_out(X, y, sample_weight=sample_weight, groups=groups)
        return self

    @restore_on_failure
    def fit_held_out(
        self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None
    ) -> np.ndarray:
        """Fit as :meth:`fit` does, and return the held-out log-odds of the training rows.

        Parameters
        ----------
        X, y, sample_weight, groups
            As for :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            NaN in rows of weight 0.
        """
        return self._fit_held_out(X, y, sample_weight, groups, confirm=True)

    def _fit_held_out(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, confirm: bool
    ) -> np.ndarray:
        """Fit; with unknown labels, ``confirm`` trees on rows that were not used."""
        for name in ("n_trees", "min_samples_leaf", "max_features", "max_samples"):
            check_count(name, getattr(self, name))
        check_number("learning_rate", self.learning_rate, above=0)
        if not hasattr(self.estimator, "fit_held_out"):
            raise InvalidArgumentError(
                "estimator",
                f"must have fit_held_out, which {type(self.estimator).__name__} does not have: use "
                "KernelEnsembleClassifier",
            )
        rows = check_features(self, X, reset=True)
        self._check_columns(rows.shape[1])
        target = encode_target(y, rows.shape[0], type(self).__name__, unknown=True)
        more: dict[str, Any] = {} if groups is None else {"groups": groups}
        if sample_weight is not None:
            more["sample_weight"] = check_sample_weight(sample_weight, rows.shape[0])
        self.estimator_ = clone(self.estimator)
        shares = self._shares(
            rows.shape[0], rows.shape[1], target.signs.shape[1], target.known is not None
        )
        with progress.part(0, shares):
            held = np.array(self.estimator_.fit_held_out(X, y, **more))
        self._remember_target(target)
        kept = np.flatnonzero(np.isfinite(held).all(axis=1))
        weight = None if sample_weight is None else more["sample_weight"][kept]
        known = None if target.known is None else target.known[kept]
        own_groups = None if groups is None else np.asarray(groups)[kept]
        signs = to_numpy(target.signs)[kept]
        seen = self._seen(rows, held)[kept]
        work = _Boosting(seen, held[kept], signs > 0, known, weight, self._settings())
        part = np.zeros(signs.shape)
        if not getattr(self.estimator_, "stopped_early_", False):
            with progress.part(1, shares, "correcting by trees"):
                part = work.held_out(own_groups, self.n_jobs)
        self.weight_, self.log_losses_ = work.choose(part)
        if self.weight_ > 0 and known is not None and confirm:
            with progress.part(2, shares, "checking the trees on held-out rows"):
                own = take_rows(rows, kept)
                if not self._helps_new_rows(own, signs, known, weight, own_groups):
                    self.weight_, self.log_losses_ = 0.0, (self.log_losses_[0],) * 2
        self.trees_ = {}
        if self.weight_ > 0:
            with progress.part(3, shares, "correcting by trees"):
                self.trees_ = work.fit(self.n_jobs)
        if self.weight_ > 0:
            held[kept] += self.weight_ * part
        return held

    def correction(self, X: Any) -> np.ndarray:
        """Return what the trees add to the log-odds, per row and label.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        return self._correction(check_features(self, X, reset=False), self._before(X))

    def _scores(self, X: Any) -> Any:
        before = self._before(X)
        if not self.trees_:
            return before
        found = to_numpy(before) + self._correction(check_features(self, X, reset=False), before)
        return asarray(found, before)

    def _helps_new_rows(
        self,
        rows: Any,
        signs: np.ndarray,
        known: np.ndarray,
        weight: np.ndarray | None,
        groups: np.ndarray | None,
    ) -> bool:
        """Return whether trees lower the log loss of a fifth of the rows, fitted on the others."""
        splitter: Any = ShuffleSplit if groups is None else GroupShuffleSplit
        splits = splitter(1, test_size=1 / N_FOLDS, random_state=draw_seed(self.random_state))
        train, test = next(splits.split(signs, groups=groups))
        if not known[train].any(axis=0).all():
            return False  # there would be a label to learn from no row
        again = clone(self)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the fit on all rows
            again._fit_held_out(
                take_rows(rows, train),
                np.where(known[train], signs[train] > 0, np.nan),
                None if weight is None else weight[train],
                None if groups is None else groups[train],
                confirm=False,
            )
        new, y = take_rows(rows, test), signs[test]  # 0 where unknown, which changes no loss
        before, after = (
            np.logaddexp(0, -y * to_numpy(scores(new))).sum(axis=1)
            for scores in (again._before, again._scores)
        )
        share = None if weight is None else weight[test]
        return bool(np.average(before - after, weights=share) > 0)

    def _before(self, X: Any) -> Any:
        """Return the log-odds of the classifier, as a matrix."""
        return self.estimator_._scores(X)

    def _correction(self, rows: Any, before: Any) -> np.ndarray:
        scores = to_numpy(before)
        out = np.zeros(scores.shape)
        if self.trees_:
            seen = self._seen(rows, scores)
            for j, trees in self.trees_.items():
                out[:, j] = self.weight_ * trees.sums(seen)
        return out

    def _seen(self, rows: Any, scores: np.ndarray) -> np.ndarray:
        """Return what trees look at: some features, and the log-odds of all labels."""
        host = to_numpy(rows)
        if self.features is not None:
            host = host[:, np.asarray(self.features, dtype=np.int64)]
        host = host.toarray() if sp.issparse(host) else host
        return np.ascontiguousarray(np.hstack([host, scores]), dtype=np.float32)

    def _check_columns(self, count: int) -> None:
        if self.features is None:
            return
        chosen = np.asarray(self.features)
        if chosen.ndim != 1 or (len(chosen) and chosen.dtype.kind not in "iu"):
            raise InvalidArgumentError("features", f"must be numbers of features, got {chosen!r}")
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < count:
            raise InvalidArgumentError("features", f"must be from 0 to {count - 1}, got {chosen}")

    def _shares(self, n: int, n_features: int, n_labels: int, unknown: bool) -> Sequence[float]:
        """Return about how long the parts of a fit take: classifier, folds, the check, trees."""
        seen = n_features if self.features is None else len(self.features)
        cells = min(n, self.max_samples) * min(seen + n_labels, self.max_features)
        trees = n_labels * self.n_trees * (6e-4 + 3e-8 * cells)
        classifier = 1e-3 * n**1.4 + 1e-9 * n**3
        check = 0.6 * (classifier + 6 * trees) if unknown else 0.0
        return classifier, N_FOLDS * trees, check, trees

    def _settings(self) -> dict[str, Any]:
        return {
            "n_trees": self.n_trees,
            "rate": self.learning_rate,
            "min_leaf": self.min_samples_leaf,
            "most_features": self.max_features,
            "most_rows": self.max_samples,
            "seed": draw_seed(self.random_state),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


class _Boosting:
    """The trees of all labels: on folds, and on all rows.

    Parameters
    ----------
    seen : ndarray of float32, shape (n_samples, n_seen)
    start : ndarray of shape (n_samples, n_labels)
        Held-out log-odds.
    on : ndarray of bool, shape (n_samples, n_labels)
    known : ndarray of bool, shape (n_samples, n_labels), or None
    weight : ndarray of shape (n_samples,) or None
    settings : dict
        For :func:`boost`.
    """

    def __init__(
        self,
        seen: np.ndarray,
        start: np.ndarray,
        on: np.ndarray,
        known: np.ndarray | None,
        weight: np.ndarray | None,
        settings: dict[str, Any],
    ) -> None:
        self.seen, self.start, self.on = seen, start, on
        self.known, self.weight, self.settings = known, weight, settings
        there = np.ones_like(on) if known is None else known
        counts = np.minimum((on & there).sum(axis=0), (~on & there).sum(axis=0))
        self.labels = np.flatnonzero(counts >= _MIN_SUPPORT).tolist()

    def held_out(self, groups: np.ndarray | None, n_jobs: int | None) -> np.ndarray:
        """Return what trees of the other folds add; zeros if they do not help in the first one."""
        part = np.zeros(self.start.shape)
        n_groups = len(self.seen) if groups is None else len(np.unique(groups))
        if not self.labels or n_groups < 2 * N_FOLDS:
            return part
        splitter: Any = KFold(N_FOLDS, shuffle=True, random_state=self.settings["seed"])
        if groups is not None:
            splitter = GroupKFold(N_FOLDS)
        for number, (train, test) in enumerate(splitter.split(self.seen, groups=groups)):
            for j, trees in self._boost(train, n_jobs).items():
                part[test, j] = trees.sums(self.seen[test])
            if number == 0 and self.best(part, test) == 0:
                return np.zeros(self.start.shape)
            progress.report_progress(number + 1, N_FOLDS)
        return part

    def fit(self, n_jobs: int | None) -> dict[int, Trees]:
        """Return the trees of all rows."""
        return self._boost(np.arange(len(self.seen)), n_jobs)

    def choose(self, part: np.ndarray) -> tuple[float, tuple[float, float]]:
        """Return the weight of the trees, and the log loss before and after."""
        everything = np.arange(len(self.seen))
        if not part.any():
            return 0.0, (np.nan, np.nan)
        best = self.best(part, everything)
        before = self.losses(part, everything, 0.0)
        gain = before - self.losses(part, everything, best)
        v = np.ones(len(gain)) if self.weight is None else self.weight
        mean = float(np.average(gain, weights=v))
        # Of a weighted mean of independent rows.
        error = float(np.sqrt(np.sum(v**2 * (gain - mean) ** 2)) / v.sum())
        best = best if mean > _ERRORS * error else 0.0
        first = float(np.average(before, weights=v))
        return best, (first, first - mean if best else first)

    def best(self, part: np.ndarray, rows: np.ndarray) -> float:
        """Return the weight with the lowest log loss of some rows, the smallest if several have."""
        v = None if self.weight is None else self.weight[rows]
        means = [np.average(self.losses(part, rows, w), weights=v) for w in _WEIGHTS]
        return float(_WEIGHTS[int(np.argmin(means))])

    def losses(self, part: np.ndarray, rows: np.ndarray, weight: float) -> np.ndarray:
        """Return the mean log loss of the labels in each of some rows; 0 for those not known."""
        where = np.ix_(rows, np.asarray(self.labels))
        f = self.start[where] + weight * part[where]
        found = np.logaddexp(0.0, np.where(self.on[where], -f, f))
        return np.mean(found if self.known is None else found * self.known[where], axis=1)

    def _boost(self, rows: np.ndarray, n_jobs: int | None) -> dict[int, Trees]:
        found = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(self._boost_label)(rows, j) for j in self.labels
        )
        return {j: trees for j, trees in zip(self.labels, found, strict=True) if trees is not None}

    def _boost_label(self, rows: np.ndarray, j: int) -> Trees | None:
        if self.known is not None:
            rows = rows[self.known[rows, j]]
        if not len(rows):
            return None
        return boost(
            self.seen[rows],
            self.on[rows, j],
            self.start[rows, j],
            weight=None if self.weight is None else self.weight[rows],
            **self.settings,
        )
