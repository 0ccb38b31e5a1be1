"""Scorers of scikit-learn on given scores, without fitting an estimator.

A scorer is called with an estimator, rows and labels.  Here the estimator only returns the given
scores of the held-out rows, and the predictions from them.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    fbeta_score,
    get_scorer,
    get_scorer_names,
    jaccard_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

from imcc._array.array import Array, asarray, namespace, to_numpy
from imcc._utils.validation import Target, check_choice
from imcc.metrics import METRICS, LabelMetrics

Scorer = Callable[[Any, Any, Any], float]
# With average="macro", these are means over labels of a metric of a single label.
_BY_LABEL = (
    average_precision_score,
    f1_score,
    fbeta_score,
    jaccard_score,
    precision_score,
    recall_score,
    roc_auc_score,
)


@dataclass(frozen=True)
class Scoring:
    """The metrics of a search.

    Attributes
    ----------
    names : list of str
        Names from :data:`imcc.metrics.METRICS` or ``scorers``.
    decides : str or None
        The metric that selects the setting; None if no setting is selected.
    scorers : dict of str to scorer
        The metrics that are not in ``METRICS``, for which greater is better.
    """

    names: list[str]
    decides: str | None
    scorers: dict[str, Scorer]


def greater_is_better(name: str) -> bool:
    """Return whether larger values of a metric or scorer are better."""
    return name not in METRICS or METRICS[name].greater_is_better


def check_scoring(scoring: Any, refit: Any) -> Scoring:
    """Check the parameters ``scoring`` and ``refit`` and return the metrics.

    Parameters
    ----------
    scoring : str, callable, sequence of str, or mapping of str to str or callable
    refit : bool or str
    """
    if isinstance(scoring, str) or callable(scoring):
        name = scoring if isinstance(scoring, str) else "score"
        if not isinstance(refit, bool) and refit != name:
            raise ValueError(f"refit must be True or False with one metric, got {refit!r}")
        return Scoring([name], name, _resolve({name: scoring}))
    names = list(scoring)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"scoring must contain at least one metric, each once; got {scoring!r}")
    found = _resolve(scoring if isinstance(scoring, Mapping) else {name: name for name in names})
    if refit is not False and refit not in names:
        raise ValueError(
            "refit must be the name of the metric in scoring that selects the best setting, or "
            f"False; got {refit!r}, and scoring is {names}"
        )
    return Scoring(names, refit or None, found)


def _resolve(named: Mapping[str, Any]) -> dict[str, Scorer]:
    """Return the scorers among the metrics; names of METRICS take precedence."""
    found: dict[str, Scorer] = {}
    for name, given in named.items():
        if callable(given):
            if name in METRICS:
                raise ValueError(
                    f"scoring: {name!r} is the name of a metric of imcc; use another name"
                )
            found[name] = given
        elif given in METRICS and given == name:
            continue
        else:
            check_choice("scoring", given, [*METRICS, *get_scorer_names()])
            if given in METRICS:
                raise ValueError(f"scoring: {given!r} must keep its name, got {name!r}")
            found[name] = get_scorer(given)
    return found


def _decided(scores: np.ndarray, classes: np.ndarray, kind: str) -> np.ndarray:
    """Return the predictions for scores of shape (n_samples, n_outputs)."""
    if kind == "multilabel":
        return (scores >= 0).astype(np.int64)
    if kind == "binary":
        return classes[np.where(scores[:, 0] >= 0, len(classes) - 1, 0)]
    return classes[scores.argmax(axis=1)]


class GivenScores(ClassifierMixin, BaseEstimator):
    """A classifier that returns given scores, whatever rows it is called with."""

    def __init__(self, scores: np.ndarray, classes: np.ndarray, kind: str) -> None:
        self.scores = scores
        self.classes = classes
        self.kind = kind
        self.classes_ = classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores."""
        return self.scores[:, 0] if self.kind == "binary" else self.scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions from the scores."""
        return _decided(self.scores, self.classes, self.kind)


class ScorerMetrics:
    """Computes metrics and scorers of many score matrices.

    Parameters
    ----------
    metrics : LabelMetrics
        Computes the metrics of ``METRICS``.
    scorers : mapping of str to scorer
    target : Target
    rows : ndarray of int
        The held-out rows of the target.
    weights : ndarray of shape (n_samples,), default=None
        Weights of the held-out rows, for scorers that accept ``sample_weight``.
    """

    def __init__(
        self,
        metrics: LabelMetrics,
        scorers: Mapping[str, Scorer],
        target: Target,
        rows: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> None:
        self.n_labels = metrics.n_labels
        self._metrics = metrics
        self._scorers = scorers
        self._weights = weights
        self._kind, self._classes = target.kind, target.classes
        # The true labels in the form that scorers expect.
        self._y = _decided(target.signs[rows], target.classes, target.kind)
        self._known = None if target.known is None else target.known[rows]

    def entries(self) -> int:
        """Return the approximate number of entries needed for one setting."""
        return self._metrics.entries()

    def means(self, scores: Array, names: Sequence[str]) -> Array:
        """Return the metrics of each setting, shape (n_metrics, n_settings).

        Parameters
        ----------
        scores : array of shape (n_labels, n_settings, n_samples)
        names : sequence of str
        """
        xp = namespace(scores)
        ours = [name for name in names if name not in self._scorers]
        rows: dict[str, Array] = {}
        if ours:
            means = self._metrics.means(scores, ours)
            rows = {name: means[i, :] for i, name in enumerate(ours)}
        on_host = to_numpy(scores)
        # A binary 1-D target has two labels here, of which the second has its score.
        on_host = on_host[-1:] if self._kind == "binary" else on_host
        for name in self._scorers:
            values = [self._score(name, on_host[:, k, :].T) for k in range(on_host.shape[1])]
            rows[name] = asarray(np.array(values, dtype=np.float64), scores)
        return xp.stack([rows[name] for name in names])

    def _score(self, name: str, scores: np.ndarray) -> float:
        if not np.isfinite(scores).all():
            return np.nan  # raises an error later, with the setting
        scorer = self._scorers[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)  # one per setting
            try:
                if self._known is not None:
                    return self._mean_over_labels(scorer, scores, self._known)
                estimator = GivenScores(np.ascontiguousarray(scores), self._classes, self._kind)
                return _call(scorer, estimator, self._y, self._weights)
            except (AttributeError, ValueError) as error:
                raise ValueError(
                    f"scoring={name!r} cannot be computed from labels, scores and predictions: "
                    f"{error}"
                ) from error

    def _mean_over_labels(self, scorer: Scorer, scores: np.ndarray, known: np.ndarray) -> float:
        """Return the mean over labels of the scorer on the rows in which they are known.

        Labels that are unknown in all rows are ignored.
        """
        found = []
        for j in np.flatnonzero(known.any(axis=0)):
            rows = np.flatnonzero(known[:, j])
            # A single column would be treated as two classes, so the column is used twice, which
            # does not change the mean.
            twice = np.ix_(rows, [j, j])
            estimator = GivenScores(scores[twice], np.arange(2), "multilabel")
            weights = None if self._weights is None else self._weights[rows]
            found.append(_call(scorer, estimator, self._y[twice], weights))
        return float(np.mean(found)) if found else np.nan


def _call(scorer: Scorer, estimator: GivenScores, y: np.ndarray, weights: Any) -> float:
    """Call a scorer with given scores."""
    options = {}
    if weights is not None and takes_weights(scorer):
        options = {"sample_weight": weights}
    return float(scorer(estimator, np.empty((len(y), 0)), y, **options))


def is_mean_over_labels(scorer: Any) -> bool:
    """Whether a scorer is known to be a mean over labels of a metric of a single label.

    These are metrics of scikit-learn with ``average="macro"``.
    """
    function, options = getattr(scorer, "_score_func", None), getattr(scorer, "_kwargs", {})
    if function not in _BY_LABEL or options.get("labels") is not None:
        return False
    default = inspect.signature(function).parameters["average"].default
    return bool(options.get("average", default) == "macro")


def takes_weights(scorer: Any) -> bool:
    """Whether a scorer, or the metric of a scikit-learn scorer, accepts ``sample_weight``."""
    function = getattr(scorer, "_score_func", scorer)
    return "sample_weight" in inspect.signature(function).parameters


def check_scorers(scorers: Mapping[str, Scorer], target: Target) -> None:
    """Raise an error for scorers that do not support the labels, before the search starts."""
    for name, scorer in scorers.items():
        if target.known is not None and not is_mean_over_labels(scorer):
            raise ValueError(
                f"scoring={name!r} is not supported with unknown labels (NaN in y), because it is "
                "not a mean over labels; use 'f1_macro', 'roc_auc' or one of "
                f"{', '.join(METRICS)}"
            )
    no_metrics = LabelMetrics(np.zeros((1, 1), dtype=bool))
    computed = ScorerMetrics(no_metrics, scorers, target, np.arange(len(target.signs)))
    for name in scorers:
        computed._score(name, np.zeros(target.signs.shape))
