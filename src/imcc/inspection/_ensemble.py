"""The members of a :class:`imcc.KernelEnsembleClassifier` and the parts of its scores.

The score of a label is the mean log-odds of the members, ``sum_m w_m (s_m f_m(x) + o_m)``, with
weights w, calibration slopes s and offsets o.  Each member is a kernel model, ``f_m(x) = sum_i
k_m(x, x_i) c_mi + b_m``, so the score is a sum over training rows ::

    sum_i [sum_m w_m s_m k_m(x, x_i) c_mi]  +  sum_m w_m (s_m b_m + o_m)

as well as a sum over members.  Both are exact.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from imcc._array.array import to_numpy
from imcc._math.ensemble.model import Member, distances, make_kernel, small_indices
from imcc._utils.errors import InvalidArgumentError, InvalidTypeError
from imcc._utils.optional import require
from imcc._utils.validation import Features
from imcc._utils.wrappers import first_with, innermost
from imcc.estimators.kernel_ensemble import KernelEnsembleClassifier
from imcc.inspection._diagnostics_figures import save_figure
from imcc.inspection._names import names_of_labels
from imcc.inspection._unwrap import row_transform, score_thresholds

# Views are distinguished by colour and lightness, kernels by hatching.
_COLOURS = {
    "raw": "#1f3b66",
    "standard": "#5b9bd5",
    "ranks": "#e08214",
    "root": "#b2abd2",
    "unit": "#5b9bd5",
    "tfidf": "#e08214",
}


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

    def score(self, row: Features, j: int, member: int | None = None) -> float:
        """Return the log-odds of a label by the ensemble, or by one of its members."""
        model = self.classifier._model
        column = self._column(j)
        if member is None or column is None:
            found = float(to_numpy(model.log_odds(small_indices(row)))[0, j])
            return found if member is not None else found + self._correction(row, j)
        self._check_member(member)
        return self._log_odds(model.members[member], row, column)

    def parts(self, row: Features, j: int, by: str, member: int | None = None) -> Any:
        """Return constant, weights, values and names; see :class:`Explanation`."""
        if by not in ("support", "members"):
            raise InvalidArgumentError(
                "by",
                f"{by!r} is not available for an ensemble of kernel models: use by='support' "
                "(contributions of similar training rows), by='members' or explain_columns",
            )
        members, column = self.classifier._model.members, self._column(j)
        if column is None:
            # The score of a constant label is given by its base rate.
            return _at(self.classifier._model.base, j), {}, {}, {}
        if by == "members":
            if member is not None:
                raise InvalidArgumentError("member", "can only be used with by='support'")
            odds = np.array([self._log_odds(one, row, column) for one in members])
            shares = np.array([one.weight for one in members])
            constant, names = self._correction(row, j), {"member": self.member_names}
            return constant, {"member": shares}, {"member": odds}, names
        if member is not None:
            self._check_member(member)
            return self._support(row, column, member)
        constant, *parts = self._support(row, column, None)
        return constant + self._correction(row, j), *parts

    def _column(self, j: int) -> int | None:
        """Return the column of a label in the members' coefficients; None for a constant label."""
        model = self.classifier._model
        at = np.flatnonzero(model.varying == j)
        return int(at[0]) if len(at) and model.members else None

    @property
    def member_names(self) -> list[str]:
        """A short description of each member."""
        return [member_name(member) for member in self.classifier.members_]

    def _support(self, row: Features, column: int, member: int | None) -> Any:
        """Sum the contributions of each training row (or landmark) over the members."""
        members = self.classifier._model.members
        chosen = [(one, one.weight) for one in members]
        if member is not None:
            chosen = [(members[member], 1.0)]
        similarity: Any = 0.0
        contribution: Any = 0.0
        constant = 0.0
        for one, share in chosen:
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

    def _check_member(self, member: int) -> None:
        count = len(self.classifier._model.members)
        if not 0 <= member < count:
            raise InvalidArgumentError(
                "member", f"must be an index from 0 to {count - 1}, got {member}"
            )


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


def draw_members(
    model: Any, path: str | os.PathLike[str] | None = None, *, ax: Any = None
) -> Path | Any:
    """Plot the weights of the members of an ensemble.

    Parameters
    ----------
    model : KernelEnsembleClassifier, or a wrapper around one
        The fitted model.
    path : path-like, default=None
        File to write, ``.png``, ``.svg`` or ``.pdf``.
    ax : matplotlib.axes.Axes, default=None
        Axes to plot into, instead of writing a file.

    Returns
    -------
    pathlib.Path or matplotlib.axes.Axes
        The file, or the axes if no path is given.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import KernelEnsembleClassifier
    >>> from imcc.inspection import draw_members
    >>> X, Y = make_multilabel_classification(60, n_classes=3, random_state=0)
    >>> clf = KernelEnsembleClassifier(views=["raw", "ranks"], random_state=0).fit(X, Y)
    >>> draw_members(clf).get_xlabel()
    'weight'
    """
    if path is not None and ax is not None:
        raise ValueError("pass either path or ax, not both")
    inside = innermost(model)
    if not isinstance(inside, KernelEnsembleClassifier):
        raise InvalidTypeError(
            "model",
            f"must be a KernelEnsembleClassifier, or contain one inside TunedThresholds, a table "
            f"classifier or a pipeline: {type(inside).__name__} has no members",
        )
    check_is_fitted(inside)
    members = inside.members_
    if ax is None:
        figures = require("matplotlib.figure", "a picture")
        height = 1.2 + 0.32 * max(len(members), 2)
        figure = figures.Figure(figsize=(7.5, height), layout="constrained", dpi=150)
        ax = figure.add_subplot()
    places = np.arange(len(members))
    for place, member in zip(places, members, strict=True):
        hatch = {"rbf": "", "laplacian": "///"}[member["kernel"]]
        ax.barh(
            place,
            member["weight"],
            height=0.75,
            color=_COLOURS[member["view"]],
            edgecolor="white",
            hatch=hatch,
        )
    ax.set_yticks(places, [member_name(member) for member in members], fontsize=8)
    ax.set_ylim(max(len(members), 1) - 0.5, -0.5)
    ax.set_xlim(left=0)
    ax.set_xlabel("weight", fontsize=8)
    ax.tick_params(axis="x", labelsize=8)
    ax.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    title = f"Weights of the {len(members)} members" if members else "No members: base rates only"
    ax.set_title(title, fontsize=10, loc="left")
    return ax if path is None else save_figure(ax.figure, path)
