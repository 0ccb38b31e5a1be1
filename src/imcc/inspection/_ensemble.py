"""The members of a :class:`imcc.KernelEnsembleClassifier` and the parts of its scores.

The score of a label is the mean log-odds of the members, ``sum_m w_m (s_m f_m(x) + o_m)``, with
weights w, calibration slopes s and offsets o.  Most members are kernel models, ``f_m(x) = sum_i
k_m(x, x_i) c_mi + b_m``, so the score is a sum over training rows ::

    sum_i [sum_m w_m s_m k_m(x, x_i) c_mi]  +  sum_m w_m (s_m b_m + o_m)

as well as a sum over members.  Both are exact.  What linear members and trees add is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from imcc._array.array import to_numpy
from imcc._math.ensemble.members import Gram
from imcc._math.ensemble.model import Member, centered
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import Features
from imcc._utils.wrappers import innermost
from imcc.estimators.kernel_ensemble import KernelEnsembleClassifier, small_indices
from imcc.inspection._results import names_of_labels
from imcc.inspection._unwrap import inner_thresholds, row_transform


class EnsembleParts:
    """A fitted ensemble, possibly inside a wrapper, and the parts of its scores.

    Parameters
    ----------
    model : KernelEnsembleClassifier or a wrapper around one
    label_names : sequence of str, default=None
    """

    def __init__(self, model: Any, label_names: Sequence[str] | None = None) -> None:
        self.classifier: KernelEnsembleClassifier = innermost(model)
        check_is_fitted(self.classifier)
        count = int(self.classifier._model.base.shape[0])
        self.label_names = names_of_labels(self.classifier, count, label_names)
        self.transform = row_transform(model, self.classifier)
        self.thresholds = inner_thresholds(model, count)

    def _correction(self, row: Features, j: int) -> float:
        """Return what trees add to the log-odds of a label."""
        model = self.classifier._model
        rows = centered(small_indices(row), model.center)
        return float(model.added_by_trees(rows, to_numpy(model.before_trees(rows)))[0, j])

    def score(self, row: Features, j: int) -> float:
        """Return the log-odds of a label."""
        return float(to_numpy(self.classifier._model.log_odds(small_indices(row)))[0, j])

    def parts(self, row: Features, j: int, by: str) -> Any:
        """Return constant, weights, values and names; see :class:`Explanation`."""
        if by not in ("support", "members"):
            raise InvalidArgumentError(
                "by",
                f"{by!r} is not available for an ensemble of kernel models: use by='support' "
                "(contributions of similar training rows), by='members' or explain_columns",
            )
        column, correction = self._column(j), self._correction(row, j)
        if column is None:
            # The score of a constant label is given by its base rate.
            return _at(self.classifier._model.base, j) + correction, {}, {}, {}
        if by == "members":
            members = self.classifier._model.members
            odds = np.array([self._log_odds(one, row, column) for one in members])
            shares = np.array([one.weight for one in members])
            names = {"member": [member_name(one) for one in self.classifier.members_]}
            return correction, {"member": shares}, {"member": odds}, names
        constant, weights, values, names = self._support(row, column)
        return constant + correction, weights, values, names

    def _column(self, j: int) -> int | None:
        """Return the column of a label in the members' coefficients; None for a constant label."""
        model = self.classifier._model
        at = np.flatnonzero(model.varying == j)
        return int(at[0]) if len(at) and model.members else None

    def _support(self, row: Features, column: int) -> Any:
        """Sum the contributions of each training row (or landmark) over the kernel members."""
        members = self.classifier._model.members
        kernels = [one for one in members if one.key[1] != "linear"]
        constant = sum(
            one.weight * self._log_odds(one, row, column)
            for one in members
            if one.key[1] == "linear"
        )
        if not kernels:
            return constant, {}, {}, {}
        similarity: Any = 0.0
        contribution: Any = 0.0
        for one in kernels:
            slope, offset = _at(one.slope, column), _at(one.offset, column)
            k = self._values(one, row)
            similarity = similarity + one.weight * k
            contribution = contribution + one.weight * slope * k * self._coef(one, column)
            constant += one.weight * (slope * _at(one.intercept, column) + offset)
        # A row with similarity 0 contributes nothing.
        value = np.divide(
            contribution, similarity, out=np.zeros_like(contribution), where=similarity != 0
        )
        kind = "row" if self.classifier.n_landmarks_ == 0 else "landmark"
        names = {} if kind == "row" else {kind: [f"landmark {i}" for i in range(len(value))]}
        return constant, {kind: similarity}, {kind: value}, names

    def _log_odds(self, member: Member, row: Features, column: int) -> float:
        score = float(self._values(member, row) @ self._coef(member, column))
        score += _at(member.intercept, column)
        return _at(member.slope, column) * score + _at(member.offset, column)

    def _coef(self, member: Member, column: int) -> np.ndarray:
        return np.asarray(to_numpy(member.coef), dtype=np.float64)[:, column]

    def _values(self, member: Member, row: Features) -> np.ndarray:
        """Return what the coefficients of a member are multiplied by.

        The kernel values of a row and the anchors, or the features of a linear model.
        """
        model = self.classifier._model
        space = model.spaces[model.keys.index(member.key)]
        moved = space.transform(centered(small_indices(row), model.center))
        if member.key[1] == "linear":
            return np.asarray(moved.toarray() if sp.issparse(moved) else moved)[0]
        anchors = space.transform(model.anchors)
        return np.asarray(Gram(member.key[1], member.width, anchors).values(moved, anchors))[0]


def is_ensemble(model: Any) -> bool:
    """Return whether a model is a KernelEnsembleClassifier or a wrapper around one."""
    return isinstance(innermost(model), KernelEnsembleClassifier)


def member_name(member: dict[str, Any]) -> str:
    """Return a short description of an entry of ``members_``.

    >>> member_name({"view": "tfidf", "kernel": "rbf", "width_scale": 0.5, "penalty": 1.0,
    ...              "coupling": 0.4})
    'tfidf rbf x 0.5, penalty 1, coupling 0.4'
    """
    name = f"{member['view']} {member['kernel']}"
    if member["width_scale"]:
        name += f" x {member['width_scale']:g}"
    name += f", penalty {member['penalty']:.3g}"
    if member["coupling"]:
        name += f", coupling {member['coupling']:g}"
    return name


def _at(values: Any, column: int) -> float:
    return float(to_numpy(values)[column])
