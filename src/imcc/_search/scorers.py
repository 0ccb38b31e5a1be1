"""scikit-learn's scorers on scores that are known already, without an estimator to fit.

A scorer is called with an estimator, rows and the truth.  Here the estimator is one that has only
the scores of the held-out rows, and what is predicted from them.
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
from sklearn.metrics import get_scorer, get_scorer_names

from imcc._backend.array import Array, asarray, namespace, to_numpy
from imcc._search.judges import BatchJudge
from imcc._utils.validation import Target, check_choice
from imcc.metrics import METRICS, Judge

Scorer = Callable[[Any, Any, Any], float]


@dataclass(frozen=True)
class Scoring:
    """What settings are judged by.

    Attributes
    ----------
    names : list of str
        Of :data:`imcc.metrics.METRICS`, or of ``scorers``.
    decides : str or None
        The one that chooses the setting; None if nothing is to be chosen.
    scorers : dict of str to scorer
        Those that are not of ``METRICS``; of all of them more is better.
    """

    names: list[str]
    decides: str | None
    scorers: dict[str, Scorer]


def greater_is_better(name: str) -> bool:
    """Return the direction of a metric of ours, or of a scorer."""
    return name not in METRICS or METRICS[name].greater_is_better


def check_scoring(scoring: Any, refit: Any, *, scorers: bool = False) -> Scoring:
    """Return what settings are judged by, checked.

    Parameters
    ----------
    scoring : str, callable, sequence of str, or mapping of str to str or callable
    refit : bool or str
    scorers : bool
        Whether scikit-learn's scorers are allowed besides our metrics.
    """
    if isinstance(scoring, str) or (scorers and callable(scoring)):
        name = scoring if isinstance(scoring, str) else "score"
        if not isinstance(refit, bool) and refit != name:
            raise ValueError(f"refit must be True or False with one metric, got {refit!r}")
        return Scoring([name], name, _resolve({name: scoring}, scorers))
    named = dict(scoring) if isinstance(scoring, Mapping) else {name: name for name in scoring}
    if not named or (not isinstance(scoring, Mapping) and len(named) < len(list(scoring))):
        raise ValueError(f"scoring must name different metrics, at least one; got {scoring!r}")
    found = _resolve(named, scorers)
    names = list(named)
    if refit is not False and refit not in names:
        raise ValueError(
            f"refit must name the metric of scoring that decides, or be False; got {refit!r} "
            f"where scoring is {names}"
        )
    return Scoring(names, refit or None, found)


def _resolve(named: Mapping[str, Any], scorers: bool) -> dict[str, Scorer]:
    """Return the scorers among the metrics; our own names come first."""
    found: dict[str, Scorer] = {}
    for name, given in named.items():
        if callable(given) and scorers:
            if name in METRICS:
                raise ValueError(f"scoring: {name!r} is a metric of ours; use another name")
            found[name] = given
        elif given in METRICS and given == name:
            continue
        else:
            check_choice("scoring", given, [*METRICS, *(get_scorer_names() if scorers else [])])
            if given in METRICS:
                raise ValueError(f"scoring: {given!r} must keep its name, got {name!r}")
            found[name] = get_scorer(given)
    return found


@dataclass(frozen=True)
class Truth:
    """The labels as the user gave them, for scorers.

    Attributes
    ----------
    y : ndarray of shape (n_samples, n_labels) or (n_samples,)
        {0, 1} indicators, or the classes of a 1-D target.
    classes : ndarray
    kind : {"multilabel", "binary", "multiclass"}
    """

    y: np.ndarray
    classes: np.ndarray
    kind: str

    def rows(self, indices: np.ndarray) -> Truth:
        """Return the truth of some rows."""
        return Truth(self.y[indices], self.classes, self.kind)

    @classmethod
    def of(cls, target: Target) -> Truth:
        """Read it off an encoded target."""
        return cls(_decided(target.signs, target.classes, target.kind), target.classes, target.kind)


def _decided(scores: np.ndarray, classes: np.ndarray, kind: str) -> np.ndarray:
    """Return what is predicted for scores of shape (n_samples, n_outputs)."""
    if kind == "multilabel":
        return (scores >= 0).astype(np.int64)
    if kind == "binary":
        return classes[np.where(scores[:, 0] >= 0, len(classes) - 1, 0)]
    return classes[scores.argmax(axis=1)]


class KnownScores(ClassifierMixin, BaseEstimator):
    """A classifier that knows the scores of the held-out rows, whichever rows it is given."""

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
        """Return what the scores predict."""
        return _decided(self.scores, self.classes, self.kind)


class ScorerJudge:
    """Judges scores by our metrics and by scorers.

    Parameters
    ----------
    judge : Judge or BatchJudge
        For our metrics.
    scorers : mapping of str to scorer
    truth : Truth
        Of the held-out rows.
    weights : ndarray of shape (n_samples,), optional
        Of the held-out rows, for scorers that take ``sample_weight``.
    """

    def __init__(
        self,
        judge: Judge | BatchJudge,
        scorers: Mapping[str, Scorer],
        truth: Truth,
        weights: np.ndarray | None = None,
    ) -> None:
        self.judge = judge
        self._weights = weights
        self.n_labels = judge.n_labels
        self._scorers = scorers
        self._truth = truth

    def entries(self) -> int:
        """Return about how many entries judging one setting makes."""
        return 1 if isinstance(self.judge, Judge) else self.judge.entries()

    def means(self, scores: Array, names: Sequence[str]) -> Array:
        """Return the metrics of each setting, shape (n_metrics, n_settings).

        Parameters
        ----------
        scores : array of shape (n_labels, n_settings, n_samples)
        names : sequence of str
        """
        xp = namespace(scores)
        ours = [name for name in names if name not in self._scorers]
        of_ours = self.judge.means(scores, ours) if ours else None
        known = {} if of_ours is None else {name: of_ours[i, :] for i, name in enumerate(ours)}
        on_host = to_numpy(scores)
        # A binary 1-D target is judged as two labels, of which the second is its score.
        on_host = on_host[-1:] if self._truth.kind == "binary" else on_host
        rows = []
        for name in names:
            if name in known:
                rows.append(known[name])
                continue
            values = [self._score(name, on_host[:, k, :].T) for k in range(on_host.shape[1])]
            rows.append(asarray(np.array(values, dtype=np.float64), scores))
        return xp.stack(rows)

    def _score(self, name: str, scores: np.ndarray) -> float:
        if not np.isfinite(scores).all():
            return np.nan  # refused later, with the name of the setting
        truth = self._truth
        estimator = KnownScores(np.ascontiguousarray(scores), truth.classes, truth.kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)  # thousands, all alike
            try:
                scorer, options = self._scorers[name], {}
                if self._weights is not None and takes_weights(scorer):
                    options = {"sample_weight": self._weights}
                return float(scorer(estimator, np.empty((len(scores), 0)), truth.y, **options))
            except (AttributeError, ValueError) as error:
                raise ValueError(
                    f"scoring={name!r} cannot be computed from labels, scores and predictions: "
                    f"{error}"
                ) from error


def takes_weights(scorer: Any) -> bool:
    """Whether a scorer takes ``sample_weight``: one of scikit-learn's where its metric does."""
    function = getattr(scorer, "_score_func", scorer)
    return "sample_weight" in inspect.signature(function).parameters


def check_scorers(scorers: Mapping[str, Scorer], truth: Truth, n_outputs: int) -> None:
    """Refuse scorers that cannot judge such labels, before any work is done."""
    judge = ScorerJudge(Judge(np.zeros((1, 1), dtype=bool)), scorers, truth)
    scores = np.zeros((len(truth.y), n_outputs))
    for name in scorers:
        judge._score(name, scores)
