"""Decomposition of a score into contributions that add up to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._array.array import to_numpy
from imcc._math.maps import IdentityMap, KernelMap
from imcc._math.models import KernelModel, LinearModel, Setting
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.text import printable
from imcc._utils.validation import Features, check_choice, check_count
from imcc.inspection._ensemble import EnsembleParts, is_ensemble
from imcc.inspection._evidence import feature_evidence, kernel_evidence
from imcc.inspection._results import Result, as_text, label_index
from imcc.inspection._unwrap import unwrap

EXPLANATIONS = ("evidence", "support", "features", "members")
# A function that gives the weights of training rows and centres in the score of a row.
Weigh = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
# Tolerance of the difference between the sum of the contributions and the score, relative to the
# score: the fit may be less accurate than the eigendecomposition.
_AGREEMENT = 1e-6


@dataclass(frozen=True)
class Part:
    """One contribution: ``contribution = weight * value``.

    Attributes
    ----------
    kind : {"row", "center", "feature", "landmark", "member"}
    index : int
        Index of the training row, cluster, feature, landmark or member.
    name : str
        "row 3", "cluster 5", or the name of a feature or member.
    weight, value : float
        See :class:`Explanation`.
    contribution : float
    """

    kind: str
    index: int
    name: str
    weight: float
    value: float
    contribution: float


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """A score as a sum: ``score = constant + sum of weights * values``.

    =========  ====================================  ====================================  =========
    by         weight                                value                                 constant
    =========  ====================================  ====================================  =========
    evidence   influence of a row or cluster         its label, -1 or +1, or soft label    0
    support    its similarity k(x, x_i)              its coefficient                       intercept
    features   x_j minus the mean of training rows   its coefficient                       the mean
                                                                                           row's
                                                                                           score
    members    its weight in the ensemble            its log-odds                          0
    =========  ====================================  ====================================  =========

    For an ensemble explained by support, the weight of a row is its mean similarity over the
    members, the value is its contribution divided by the weight, including calibration, and the
    constant is the sum of the members' constants.

    Attributes
    ----------
    label : str
        Name of the label.
    by : {"evidence", "support", "features", "members"}
        Kind of decomposition.
    score : float
        Score of the model.
    threshold : float
        The label is predicted if the score is at least this value.
    constant : float
        The part of the score that does not depend on rows, features or members.
    weights, values : dict of str to ndarray
        Weights and values per kind of part ("row", "center", "feature", "landmark", "member").
    names : dict of str to sequence of str
        Names of features, landmarks and members; rows and clusters are numbered.
    """

    label: str
    by: str
    score: float
    threshold: float
    constant: float
    weights: dict[str, np.ndarray]
    values: dict[str, np.ndarray]
    names: dict[str, Sequence[str]]

    def contributions(self, kind: str) -> np.ndarray:
        """Return the contributions of one kind of part.

        Parameters
        ----------
        kind : str
            A key of ``weights``.

        Returns
        -------
        ndarray
        """
        return self.weights[kind] * self.values[kind]

    def totals(self) -> dict[str, float]:
        """Return the sum of the contributions per kind, and the constant.

        Returns
        -------
        dict of str to float
            The values add up to the score.
        """
        sums = {kind: float(self.contributions(kind).sum()) for kind in self.weights}
        return {**sums, "constant": self.constant}

    def top(self, count: int) -> list[Part]:
        """Return the contributions with the largest absolute values.

        Parameters
        ----------
        count : int
            Maximum number of contributions.

        Returns
        -------
        list of Part
        """
        check_count("count", count)
        every = [
            (-abs(float(c)), order, kind, i)
            for order, kind in enumerate(self.weights)
            for i, c in enumerate(self.contributions(kind))
        ]
        return [self._part(kind, i) for _, _, kind, i in sorted(every)[:count]]

    def _part(self, kind: str, i: int) -> Part:
        word = {"row": "row", "center": "cluster"}.get(kind)
        name = f"{word} {i}" if word else str(self.names[kind][i])
        weight, value = float(self.weights[kind][i]), float(self.values[kind][i])
        return Part(kind, i, name, weight, value, weight * value)

    def _title(self) -> str:
        predicted = "predicted" if self.score >= self.threshold else "not predicted"
        return (
            f"Explanation of {printable(self.label)} by {self.by}: score {self.score:.3f}, "
            f"{predicted} (from {self.threshold:.3f} on)"
        )

    def rest(self, parts: Sequence[Part]) -> list[tuple[str, float]]:
        """Return what the score has besides some parts: the sum of the others, and the constant.

        Parameters
        ----------
        parts : sequence of Part
            For example the result of :meth:`top`.

        Returns
        -------
        list of (str, float)
            Names and contributions; together with the parts they add up to the score.
        """
        count = sum(len(weights) for weights in self.weights.values()) - len(parts)
        others = sum(self.totals().values()) - self.constant - sum(p.contribution for p in parts)
        rest = [(f"{count:,} others together", others)] if count else []
        constants = {"support": "intercept", "features": "the mean row"}
        if self.by in constants:
            rest.append((constants[self.by], self.constant))
        elif self.constant:
            rest.append(("constant", self.constant))
        return rest

    def __repr__(self) -> str:
        parts = self.top(7)
        rest, nan = self.rest(parts), float("nan")
        table: dict[str, list[Any]] = {
            "part": [p.name for p in parts] + [name for name, _ in rest],
            "weight": [p.weight for p in parts] + [nan] * len(rest),
            "value": [p.value for p in parts] + [nan] * len(rest),
            "contribution": [p.contribution for p in parts] + [size for _, size in rest],
        }
        return as_text(self._title(), table)

    def _table(self) -> dict[str, list[Any]]:
        parts = self.top(max(1, sum(len(weights) for weights in self.weights.values())))
        names = ("kind", "index", "name", "weight", "value", "contribution")
        return {name: [getattr(part, name) for part in parts] for name in names}


class Explainer:
    """Decompose scores of one model; computations shared by all rows are done once.

    Parameters
    ----------
    model : IMCCClassifier, KernelEnsembleClassifier, TunedThresholds, a search or a pipeline
        A fitted model that is or contains an IMCCClassifier or a KernelEnsembleClassifier.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features), default=None
        Training rows; needed for ``by="evidence"`` with a linear model, which does not store them.
    Y : array-like of shape (n_samples, n_labels) or (n_samples,), default=None
        Training labels; needed for ``by="evidence"``.
    label_names : sequence of str, default=None
        Names of the labels; by default those stored by the model.

    Attributes
    ----------
    label_names : tuple of str
        Names of the labels.

    See Also
    --------
    explain : Decompose a single score.

    Notes
    -----
    ``by="evidence"`` needs one eigendecomposition of the kernel matrix (or of the Gram matrix of
    the features), which takes a few times as long as fitting; each row then takes one
    matrix-vector product.
    """

    def __init__(
        self, model: Any, X: Any = None, Y: Any = None, *, label_names: Sequence[str] | None = None
    ) -> None:
        self._parts: _ImccParts | EnsembleParts
        if is_ensemble(model):
            self._parts = EnsembleParts(model, label_names)
        else:
            self._parts = _ImccParts(model, X, Y, label_names)
        self.label_names = self._parts.label_names

    def explain(self, x: Any, label: int | str, by: str | None = None) -> Explanation:
        """Decompose the score of one label of one row; parameters as for :func:`explain`.

        Returns
        -------
        Explanation
        """
        if by is None:
            by = "support" if isinstance(self._parts, EnsembleParts) else "evidence"
        check_choice("by", by, EXPLANATIONS)
        j = label_index(self.label_names, label)
        row = _one_row(x, self._parts.transform)
        score = self._parts.score(row, j)
        constant, weights, values, names = self._parts.parts(row, j, by)
        found = Explanation(
            label=self.label_names[j],
            by=by,
            score=score,
            threshold=float(self._parts.thresholds[j]),
            constant=constant,
            weights=weights,
            values=values,
            names=names,
        )
        total = sum(found.totals().values())
        if abs(total - score) > _AGREEMENT * max(1.0, abs(score)):
            raise InvalidArgumentError(
                "model",
                f"has the score {score:g}, but the contributions add up to {total:g}: X and Y are "
                "not its training data, or its parameters were changed after fit",
            )
        return found


def _one_row(x: Any, transform: Callable[[Any], Features]) -> Features:
    x = to_numpy(x)
    if not hasattr(x, "columns") and not sp.issparse(x) and np.ndim(x) == 1:
        x = np.asarray(x)[np.newaxis]
    row = transform(x)
    if row.shape[0] != 1:
        raise InvalidArgumentError("x", f"must be one row, got {row.shape[0]} rows")
    return row.astype(np.float64)


class _ImccParts:
    """A fitted IMCCClassifier, possibly inside a wrapper, and the parts of its scores."""

    def __init__(self, model: Any, X: Any, Y: Any, label_names: Sequence[str] | None) -> None:
        self._inside = unwrap(model)
        self.label_names = self._inside.names_of_labels(label_names)
        self.transform, self.thresholds = self._inside.transform, self._inside.thresholds
        self._X, self._Y = X, Y
        # The labels as -1 and +1, and the function that gives the weights, when they are needed.
        self._evidence_of: tuple[np.ndarray, Weigh] | None = None

    def score(self, row: Features, j: int) -> float:
        """Return the score of a label."""
        return float(self._inside.classifier._model.scores(row)[0, j])

    def parts(self, row: Features, j: int, by: str) -> Any:
        """Return constant, weights, values and names; see :class:`Explanation`."""
        if by == "members":
            raise InvalidArgumentError(
                "by",
                "'members' is for the members of a KernelEnsembleClassifier, which this model is "
                "not: use " + self._other_ways(),
            )
        way = {"evidence": self._evidence, "support": self._support, "features": self._features}
        return way[by](row, j)

    def _support(self, row: Features, j: int) -> Any:
        model = self._inside.classifier._model
        if not isinstance(model, KernelModel):
            raise InvalidArgumentError(
                "by",
                "'support' needs a model that stores training rows or landmarks, unlike models "
                "with a linear kernel or Fourier features: use " + self._other_ways(),
            )
        moved = _moved(row, model.origin)
        # The rows of a Nyström model are its landmarks, not the training rows.
        kind = "landmark" if self._inside.classifier.approximation == "nystroem" else "row"
        names = {kind: [f"landmark {i}" for i in range(model.rows.shape[0])]}
        weights = {kind: _similarities(model, moved, model.rows)}
        values = {kind: model.coef[:, j]}
        return float(model.intercept[j]), weights, values, names if kind == "landmark" else {}

    def _features(self, row: Features, j: int) -> Any:
        clf = self._inside.classifier
        model = clf._model
        if not isinstance(model, LinearModel):
            raise InvalidArgumentError(
                "by", "'features' needs kernel='linear': use " + self._other_ways()
            )
        # The mean of the training rows is the mean of the centres, weighted by their sizes.
        mean = clf.cluster_sizes_ @ clf.cluster_centers_ / clf.cluster_sizes_.sum()
        dense = (row.toarray() if sp.issparse(row) else row)[0]
        constant = float(model.coef[j] @ mean + model.intercept[j])
        names = self._inside.names_of_features()
        return constant, {"feature": dense - mean}, {"feature": model.coef[j]}, {"feature": names}

    def _evidence(self, row: Features, j: int) -> Any:
        if self._evidence_of is None:
            self._evidence_of = self._inside.training_signs(self._Y), self._prepare()
        signs, weigh = self._evidence_of
        of_rows, of_centers = weigh(row)
        values = {"row": signs[:, j], "center": self._inside.classifier.soft_labels_[:, j]}
        return 0.0, {"row": of_rows[0], "center": of_centers[0]}, values, {}

    def _other_ways(self) -> str:
        """Return the decompositions that the model has, for messages."""
        clf = self._inside.classifier
        ways = ["by='evidence'"] if hasattr(clf, "assignment_") else []
        ways += ["by='support'"] if isinstance(clf._model, KernelModel) else []
        ways += ["by='features'"] if isinstance(clf._model, LinearModel) else []
        return " or ".join([*ways, "explain_columns"])

    def _prepare(self) -> Weigh:
        """Compute the decomposition; return a function that gives the weights for a row."""
        clf, virtual = self._inside.classifier, self._inside.virtual
        model = clf._model
        setting = Setting(float(clf.alpha), float(clf.beta), float(clf.gamma))
        if isinstance(model, KernelModel):
            return _prepare_kernel(model, virtual, setting)
        rows = self._inside.training_rows(self._X)
        if rows is None:
            raise InvalidArgumentError(
                "X", "is needed: a linear model does not store its training rows"
            )
        return _prepare_linear(rows, virtual, setting)


def _prepare_kernel(model: KernelModel, virtual: Any, setting: Setting) -> Weigh:
    rows = model.rows.astype(np.float64)
    centers = _moved(virtual.centers, model.origin)

    def values(a: Features, b: Features | None = None) -> np.ndarray:
        base = model.kernel.base(a) if b is None else model.kernel.base(a, b)
        return model.kernel.finish(base, model.width)

    kernel_map = KernelMap.fit(values(rows))
    problem = kernel_evidence(kernel_map, values(centers, rows), virtual, setting)

    def weigh(row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moved = _moved(row, model.origin)
        return problem.weights(kernel_map.transform(values(moved, rows)))

    return weigh


def _prepare_linear(rows: Features, virtual: Any, setting: Setting) -> Weigh:
    feature_map = IdentityMap.fit(rows)
    psi = feature_map.transform(rows)
    psi_centers = feature_map.transform(virtual.centers)
    if psi.shape[1] < psi.shape[0]:
        dense = psi.toarray() if sp.issparse(psi) else psi
        problem, vectors = feature_evidence(dense, psi_centers, virtual, setting)
        return lambda row: problem.weights(_dense(feature_map.transform(row)) @ vectors)
    kernel_map = KernelMap.fit(_dense(psi @ psi.T))
    wide = kernel_evidence(kernel_map, _dense(psi_centers @ psi.T), virtual, setting)
    return lambda row: wide.weights(
        kernel_map.transform(_dense(feature_map.transform(row) @ psi.T))
    )


def _dense(matrix: Any) -> np.ndarray:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix)


def _moved(rows: Features, origin: np.ndarray | None) -> Features:
    return rows if origin is None else rows - origin.astype(np.float64)


def _similarities(model: KernelModel, row: Features, others: Features) -> np.ndarray:
    base = model.kernel.base(row, others.astype(np.float64))
    return model.kernel.finish(base, model.width)[0]


def explain(
    model: Any,
    x: Any,
    label: int | str,
    *,
    by: str | None = None,
    X: Any = None,
    Y: Any = None,
    label_names: Sequence[str] | None = None,
) -> Explanation:
    """Decompose the score of one label of one row into contributions that add up to it.

    Parameters
    ----------
    model : IMCCClassifier, KernelEnsembleClassifier, TunedThresholds, a search or a pipeline
        A fitted model that is or contains an IMCCClassifier or a KernelEnsembleClassifier.
    x : array-like of shape (n_features,), or one row of a data frame or sparse matrix
        The row to explain.
    label : int or str
        Index or name of the label.
    by : {"evidence", "support", "features", "members"}, default=None
        Kind of decomposition; by default "support" for an ensemble, otherwise "evidence".

        - "evidence": the score is a weighted mean of the labels of all training rows and the soft
          labels of all virtual examples.  The weights sum to one; some may be negative.  It shows
          how the score would change if a label were different.  Not for approximations, streams,
          sample weights and unknown labels.
        - "support": similarity times coefficient of each training row, for kernel models; of each
          landmark with ``approximation="nystroem"``.
        - "features": coefficient times the difference between the row and the mean row, for the
          linear kernel.
        - "members": weight times log-odds of each member of an ensemble.
    X, Y : array-like, default=None
        The training data.  ``by="evidence"`` needs Y and, if the model is linear, X.
    label_names : sequence of str, default=None
        Names of the labels; by default those stored by the model.

    Returns
    -------
    Explanation
        With ``score``, ``threshold``, ``constant``, and the arrays ``weights`` and ``values`` per
        kind of part, whose products are ``contributions(kind)``; ``top(count)`` has the largest
        contributions and ``totals()`` their sums; ``to_frame()`` and ``to_dict()``.

    Raises
    ------
    ValueError
        If X or Y are not the training data of the model, or the model does not have this kind of
        decomposition; :func:`explain_columns` is for every model.

    See Also
    --------
    Explainer : Decompose several scores of one model efficiently.
    explain_columns : Decompose scores by the columns of a table, for any model.
    draw_explanation : Plot the result.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import IMCCClassifier
    >>> from imcc.inspection import explain
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> clf = IMCCClassifier(n_clusters=4, random_state=0).fit(X[:80], Y[:80])
    >>> found = explain(clf, X[90], 0, Y=Y[:80])
    >>> gap = sum(found.totals().values()) - clf.decision_function(X[90:91])[0, 0]
    >>> bool(abs(gap) < 1e-10)
    True
    >>> [part.kind for part in found.top(2)]
    ['row', 'row']
    >>> round(float(found.weights["row"].sum() + found.weights["center"].sum()), 6)
    1.0
    """
    return Explainer(model, X, Y, label_names=label_names).explain(x, label, by)
