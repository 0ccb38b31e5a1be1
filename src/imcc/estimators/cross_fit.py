"""Cross-fitted scores of any classifier, and what is fitted to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted

from imcc._array.array import to_numpy
from imcc._math.search.folds import Fold, check_each_once, make_folds, renumbered
from imcc._utils.errors import InvalidArgumentError, InvalidTypeError
from imcc._utils.progress import part
from imcc._utils.validation import (
    Target,
    check_choice,
    check_count,
    check_sample_weight,
    encode_target,
    label_sets,
)
from imcc._utils.wrappers import best_setting, fit_with

#: The default threshold of a label, by the method that scores it.
DEFAULT_THRESHOLDS = {"decision_function": 0.0, "predict_proba": 0.5}
# Rows whose scores of all labels are held at a time.
_TOP_ROWS = 1024


def scoring_method(estimator: Any) -> str:
    """Return the name of the method that scores labels.

    Parameters
    ----------
    estimator : classifier

    Returns
    -------
    {"decision_function", "predict_proba"}
        The first of the two that the classifier has.

    Raises
    ------
    TypeError
        If the classifier has neither.
    """
    for method in DEFAULT_THRESHOLDS:
        if hasattr(estimator, method):
            return method
    raise InvalidTypeError(
        "estimator",
        f"must have scores of labels: {type(estimator).__name__} has neither decision_function nor "
        "predict_proba",
    )


def deciding_method(estimator: Any) -> str:
    """Return the method whose values thresholds are compared with: probabilities if there are."""
    has_chances = hasattr(estimator, "predict_proba")
    return "predict_proba" if has_chances else scoring_method(estimator)


def label_scores(
    estimator: Any, X: Any, n_labels: int | None = None, *, method: str | None = None
) -> np.ndarray:
    """Return the scores of a fitted classifier as a matrix with one column per label.

    Parameters
    ----------
    estimator : fitted classifier
        Of imcc, or any multi-label or binary classifier of scikit-learn.  The scores are those of
        ``decision_function`` or, without one, the probabilities of ``predict_proba``, in any of the
        shapes that scikit-learn uses.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        Rows to score.
    n_labels : int or None, default=None
        Number of labels; 1 for a target of two classes, of which the second one is scored.  None
        returns all scores that the classifier has.
    method : {"decision_function", "predict_proba"}, default=None
        The method that scores; None means the first of the two that the classifier has.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Score of each label.

    See Also
    --------
    cross_fit_scores : Scores of held-out rows.
    """
    method = scoring_method(estimator) if method is None else method
    found = getattr(estimator, method)(X)
    if isinstance(found, list):  # one array per label
        classes = estimator.classes_
        scores = np.column_stack([_of_label(p, c) for p, c in zip(found, classes, strict=True)])
    else:
        scores = np.asarray(to_numpy(found))
        scores = scores[:, np.newaxis] if scores.ndim == 1 else scores
    if n_labels == 1 and scores.shape[1] == 2:  # the probabilities of both classes
        scores = scores[:, 1:]
    if n_labels is not None and scores.shape[1] != n_labels:
        raise ValueError(
            f"{type(estimator).__name__} gives {scores.shape[1]} scores per row for {n_labels} "
            "label(s): a class may be missing from its training rows"
        )
    return scores


def top_labels(estimator: Any, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best labels of each row, without a matrix of the scores of all labels.

    Rows are scored in blocks, of which only the best labels are kept.

    Parameters
    ----------
    estimator : fitted classifier
        Of imcc, a pipeline around one, or any classifier of scikit-learn.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        Rows to score; a data frame or a pyarrow table for a classifier of tables.
    k : int
        Number of labels per row; all of them if there are fewer.

    Returns
    -------
    labels : ndarray of int, shape (n_samples, k)
        The numbers of the labels (or of the classes of a 1-D target), best first; of equal ones,
        the first.
    values : ndarray of shape (n_samples, k)
        Their probabilities, or the scores of a classifier without ``predict_proba``.

    See Also
    --------
    imcc.TableClassifier.predict_tags : The names of the labels of the rows of a table.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import KernelEnsembleClassifier
    >>> from imcc.estimators import top_labels
    >>> X, Y = make_multilabel_classification(120, n_classes=8, random_state=0)
    >>> clf = KernelEnsembleClassifier(views=("raw",), random_state=0).fit(X[:100], Y[:100])
    >>> labels, values = top_labels(clf, X[100:], 3)
    >>> labels.shape, values.shape
    ((20, 3), (20, 3))
    """
    check_count("k", k)
    method = deciding_method(estimator)
    if not (hasattr(X, "shape") or isinstance(X, list)):
        raise InvalidArgumentError(
            "X", f"must be an array, a matrix, a list of rows or a table, not {type(X).__name__}"
        )
    n, parts = len(X) if isinstance(X, list) else X.shape[0], []
    for start in range(0, max(n, 1), _TOP_ROWS):
        stop = min(start + _TOP_ROWS, n)
        if hasattr(X, "slice"):  # a table of pyarrow, or a frame of polars
            rows = X.slice(start, stop - start)
        else:
            rows = X.iloc[start:stop] if hasattr(X, "iloc") else X[start:stop]
        parts.append(highest(label_scores(estimator, rows, method=method), k))
    labels, values = zip(*parts, strict=True)
    return np.concatenate(labels), np.concatenate(values)


def highest(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the k highest scores of each row, highest first, and the scores."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return best, np.take_along_axis(scores, best, axis=1)


def _of_label(probabilities: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the probability of a label, even if it was constant in the training rows."""
    if probabilities.ndim == 1:
        return probabilities
    if probabilities.shape[1] == 2:
        return probabilities[:, 1]
    return np.full(len(probabilities), float(np.ravel(classes)[0] == 1))


def cross_fit_scores(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    groups: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    method: str | None = None,
) -> np.ndarray:
    """Score each row with a model that was fitted without it.

    Parameters
    ----------
    estimator : classifier
        Cloned for each fold.  To use the setting that a search has selected, instead of searching
        again in each fold, pass its ``best_estimator_``.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        Rows to score.
    y : array-like of shape (n_samples, n_labels) or (n_samples,)
        Labels in one of the forms that ``fit`` of the estimator accepts.
    cv : int, splitter or iterable of (train, test), default=5
        As for :class:`imcc.IMCCClassifierCV`.  Each row must be held out exactly once.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, as for :meth:`imcc.IMCCClassifierCV.fit`; also passed to the estimator if
        it holds out rows itself.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights, passed to ``fit`` of the estimator.
    n_jobs : int or None, default=None
        Number of folds to compute in parallel, through joblib.
    method : {"decision_function", "predict_proba"}, default=None
        As for :func:`label_scores`.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Scores, as :func:`label_scores` returns them.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import IMCCClassifier
    >>> from imcc.estimators import cross_fit_scores
    >>> X, Y = make_multilabel_classification(60, n_classes=3, random_state=0)
    >>> cross_fit_scores(IMCCClassifier(n_clusters=4, random_state=0), X, Y, cv=3).shape
    (60, 3)
    """
    X, y = indexable(X, y)
    target = encode_target(y, _num_samples(X), "cross_fit_scores", unknown=True)
    if label_sets(y) is not None:
        y = (target.signs > 0).astype(np.int64)
    folds = make_folds(cv, X, target, groups)
    n_rows, n_labels = target.signs.shape
    check_each_once(folds, n_rows)
    found = Parallel(n_jobs=n_jobs)(
        delayed(_held_out)(
            clone(estimator), X, y, fold, n_labels, sample_weight, groups, (i, len(folds)), method
        )
        for i, fold in enumerate(folds)
    )
    scores = np.empty((n_rows, n_labels))
    for fold, of_fold in zip(folds, found, strict=True):
        scores[fold.test] = of_fold
    return scores


def _held_out(
    estimator: Any,
    X: Any,
    y: Any,
    fold: Fold,
    n_labels: int,
    sample_weight: Any,
    groups: Any,
    number: tuple[int, int],
    method: str | None,
) -> np.ndarray:
    i, n_folds = number
    with part(i, [1.0] * n_folds, f"fold {i + 1} of {n_folds}"):
        fit_with(
            estimator,
            _safe_indexing(X, fold.train),
            _safe_indexing(y, fold.train),
            sample_weight=_part(sample_weight, fold.train),
            groups=_part(groups, fold.train),
        )
        return label_scores(estimator, _safe_indexing(X, fold.test), n_labels, method=method)


def _part(values: Any, rows: np.ndarray | None) -> Any:
    return values if values is None or rows is None else _safe_indexing(values, rows)


class CrossFitMixin(MetaEstimatorMixin):
    """Mixin for classifiers around another classifier that are fitted to its held-out scores.

    Subclasses have the parameters ``estimator``, ``cv`` and ``n_jobs``.
    """

    _uses_groups = True
    #: The words that ``cv`` may be.
    _cv_words: tuple[str, ...] = ("prefit",)
    #: Whether the target may have more than two classes.
    _multiclass = True

    def _fit_estimator(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, method: str | None = None
    ) -> tuple[Target, np.ndarray, np.ndarray | None]:
        """Fit the classifier to all rows, and score each row by one that was fitted without it.

        Rows of weight zero are removed, and sets of labels are converted to an indicator matrix, so
        that folds in which a label does not occur have a column for it.  ``method`` is that of
        :func:`label_scores`.

        Returns
        -------
        target : Target
        scores : ndarray of shape (n_samples, n_labels)
        sample_weight : ndarray of shape (n_samples,) or None
        """
        word = check_choice("cv", self.cv, self._cv_words) if isinstance(self.cv, str) else ""
        if groups is not None and word == "prefit":
            raise InvalidArgumentError(
                "groups", "would have no effect with cv='prefit', which holds out no rows: omit it"
            )
        n_rows = _num_samples(X)
        X, y, target, weights, kept = training_rows(
            X, y, sample_weight, type(self).__name__, multiclass=self._multiclass
        )
        self._used = None if kept is None else (kept, n_rows)
        groups, cv = _part(groups, kept), renumbered(self.cv, kept, n_rows)
        given = {"sample_weight": weights, "groups": groups}
        if word == "prefit":
            check_is_fitted(self.estimator)
            check_same_classes(self.estimator, target)
            self.estimator_ = self.estimator
            scores = label_scores(self.estimator_, X, target.signs.shape[1], method=method)
        elif word == "held_out":
            if not hasattr(self.estimator, "fit_held_out"):
                raise InvalidArgumentError(
                    "cv",
                    f"'held_out' needs a classifier with fit_held_out, which "
                    f"{type(self.estimator).__name__} does not have: pass a number of folds",
                )
            self.estimator_ = clone(self.estimator)
            given = {name: value for name, value in given.items() if value is not None}
            scores = self.estimator_.fit_held_out(X, y, **given)
            scores = expit(scores) if method == "predict_proba" else scores
        else:
            # A fold takes about as long as the first fit, but not if that is a search.
            shares = (8.0, 1.0) if hasattr(self.estimator, "refit") else (1.0, 4.0)
            with part(0, shares):
                self.estimator_ = fit_with(clone(self.estimator), X, y, **given)
            best = best_setting(self.estimator_)
            with part(1, shares, "scoring held-out folds"):
                more = {"cv": cv, "n_jobs": self.n_jobs, "method": method}
                scores = cross_fit_scores(best, X, y, **more, **given)
        copy_features(self.estimator_, self)
        return target, scores, weights

    # The rows of positive weight, of how many; None if all.
    _used: tuple[np.ndarray, int] | None
    # Parameters of subclasses.
    estimator: Any
    cv: Any
    n_jobs: int | None


def training_rows(
    X: Any, y: Any, sample_weight: Any, name: str, *, multiclass: bool
) -> tuple[Any, Any, Target, np.ndarray | None, np.ndarray | None]:
    """Check labels and weights, and remove the rows of weight zero.

    Sets of labels become an indicator matrix, so that parts of the rows in which a label does not
    occur have a column for it.  ``multiclass`` says whether more than two classes are allowed.

    Returns
    -------
    X, y
        The remaining rows and labels.
    target : Target
        The encoded labels.
    sample_weight : ndarray of shape (n_samples,) or None
    kept : ndarray of int or None
        Indices of the remaining rows; None if no row was removed.
    """
    n_rows = _num_samples(X)
    target = encode_target(y, n_rows, name, unknown=True)
    if target.kind == "multiclass" and not multiclass:
        raise InvalidArgumentError(
            "y",
            "has more than two classes. Only binary classification is supported. The type of the "
            "target is multiclass, where the class with the highest score is predicted without "
            "thresholds; pass an indicator matrix or a vector of two classes",
        )
    weights, kept = check_sample_weight(sample_weight, n_rows), None
    X, y = indexable(X, y)
    if weights is not None and not weights.all():
        kept = np.flatnonzero(weights)
        X, y, weights = _part(X, kept), _part(y, kept), weights[kept]
        target = encode_target(y, len(kept), name, unknown=True)
    if label_sets(y) is not None:
        y = (target.signs > 0).astype(np.int64)
    return X, y, target, weights, kept


def copy_features(fitted: Any, wrapper: Any) -> None:
    """Give a wrapper the number and names of the features of its fitted classifier."""
    for name in ("n_features_in_", "feature_names_in_"):
        wrapper.__dict__.pop(name, None)  # of an earlier fit
        if hasattr(fitted, name):
            setattr(wrapper, name, getattr(fitted, name))


def check_same_classes(fitted: Any, target: Target) -> None:
    """Raise an error if a 1-D target has other classes than a model."""
    if target.kind == "multilabel":
        return
    known = np.ravel(fitted.classes_)
    if not np.array_equal(known, target.classes):
        raise ValueError(
            f"y must have the classes that the model was trained with: the model has "
            f"{known.tolist()}, y has {target.classes.tolist()}"
        )
