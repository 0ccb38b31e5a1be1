"""The members of a :class:`imcc.KernelEnsembleClassifier` and the parts of its scores.

The score of a label is the mean log-odds of the members, ``sum_m w_m (s_m f_m(x) + o_m)``, with
weights w, calibration slopes s and offsets o.  Each member is a kernel model, ``f_m(x) = sum_i
k_m(x, x_i) c_mi + b_m``, so the score is a sum over training rows ::

    sum_i [sum_m w_m s_m k_m(x, x_i) c_mi]  +  sum_m w_m (s_m b_m + o_m)

as well as a sum over members.  Both are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from imcc._array.array import to_numpy
from imcc._math.ensemble.model import Member, distances, make_kernel, small_indices
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import Features
from imcc._utils.wrappers import first_with, innermost
from imcc.estimators.kernel_ensemble import KernelEnsembleClassifier
from imcc.inspection._results import names_of_labels
from imcc.inspection._unwrap import row_transform, score_thresholds


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
        self.thresholds = score_thresholds(model, count)
        # Trees may add to what the members say (imcc.tables.TreeCorrectedClassifier).
        self._corrected = first_with(model, "correction")

    def _correction(self, row: Features, j: int) -> float:
        if self._corrected is None:
            return 0.0
        return float(self._corrected.correction(row)[0, j])

    def score(self, row: Features, j: int) -> float:
        """Return the log-odds of a label."""
        found = to_numpy(self.classifier._model.log_odds(small_indices(row)))
        return float(found[0, j]) + self._correction(row, j)

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
        """Sum the contributions of each training row (or landmark) over the members."""
        similarity: Any = 0.0
        contribution: Any = 0.0
        constant = 0.0
        for one in self.classifier._model.members:
            share = one.weight
            slope, offset = _at(one.slope, column), _at(one.offset, column)
            k = self._similarities(one, row)
            coef = np.asarray(to_numpy(one.coef), dtype=np.float64)[:, column]
            similarity = similarity + share * k
            contribution = contribution + share * slope * k * coef
            constant += share * (slope * _at(one.intercept, column) + offset)
        # A row with similarity 0 contributes nothing.
        value = np.divide(
            contribution, similarity, out=np.zeros_like(contribution), where=similarity != 0
        )
        kind = "row" if self.classifier.n_landmarks_ == 0 else "landmark"
        names = {} if kind == "row" else {kind: [f"landmark {i}" for i in range(len(value))]}
        return constant, {kind: similarity}, {kind: value}, names

    def _log_odds(self, member: Member, row: Features, column: int) -> float:
        coef = np.asarray(to_numpy(member.coef), dtype=np.float64)[:, column]
        score = float(self._similarities(member, row) @ coef) + _at(member.intercept, column)
        return _at(member.slope, column) * score + _at(member.offset, column)

    def _similarities(self, member: Member, row: Features) -> np.ndarray:
        """Return the kernel values of a row and the anchors of a member's view."""
        model, setting = self.classifier._model, member.setting
        at = [view.name for view in model.views].index(setting.view)
        anchors = to_numpy(model.anchors[at])
        moved = model.views[at].transform(small_indices(row))
        base = distances(setting.kernel, moved, anchors)
        return make_kernel(setting.kernel).finish(base, member.width)[0]


def is_ensemble(model: Any) -> bool:
    """Return whether a model is a KernelEnsembleClassifier or a wrapper around one."""
    return isinstance(innermost(model), KernelEnsembleClassifier)


def member_name(member: dict[str, Any]) -> str:
    """Return a short description of an entry of ``members_``.

    >>> member_name({"view": "tfidf", "kernel": "rbf", "width_scale": 0.5, "penalty": 1.0,
    ...              "eta": 0.2, "n_clusters": 0})
    'tfidf rbf x 0.5, penalty 1, coupling 0.2'
    """
    name = (
        f"{member['view']} {member['kernel']} x {member['width_scale']:g}, penalty "
        f"{member['penalty']:.3g}"
    )
    if member["eta"]:
        name += f", coupling {member['eta']:g}"
    if member["n_clusters"]:
        name += f", {member['n_clusters']} virtual examples"
    return name


def _at(values: Any, column: int) -> float:
    return float(to_numpy(values)[column])
