"""Folds, and the labels for the metrics of held-out rows, common to all searches."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, check_cv

from imcc._array.array import is_numpy
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import Features, Target
from imcc.metrics import METRICS

_IGNORED = "The groups parameter is ignored"


@dataclass(frozen=True)
class Fold:
    """Indices of the training and held-out rows of a split."""

    train: np.ndarray
    test: np.ndarray


def make_folds(cv: Any, X: Features, target: Target, groups: Any = None) -> list[Fold]:
    """Split the rows according to ``cv``; see :class:`imcc.IMCCClassifierCV`.

    With groups, a number of folds means folds of whole groups; groups that would be ignored are an
    error.
    """
    if groups is not None and (cv is None or isinstance(cv, numbers.Integral)):
        cv = GroupKFold(5 if cv is None else int(cv))
    elif groups is not None and not hasattr(cv, "split"):
        raise InvalidArgumentError(
            "groups", "would have no effect, because cv lists the folds: leave them out"
        )
    # A 1-D target can be stratified by class; an indicator matrix cannot.
    by = target.signs
    if target.kind == "binary":
        by = target.signs[:, 0]
    elif target.kind == "multiclass":
        by = target.signs.argmax(axis=1)
    splitter = check_cv(cv, by, classifier=True)
    # Splitters only use the number of rows, and only support NumPy arrays.
    rows = X if is_numpy(X) else np.empty((X.shape[0], 0))
    with warnings.catch_warnings():
        # scikit-learn only warns of that.
        warnings.filterwarnings("error", _IGNORED)
        try:
            folds = [Fold(train, test) for train, test in splitter.split(rows, by, groups)]
        except UserWarning as warning:
            if not str(warning).startswith(_IGNORED):
                raise
            raise InvalidArgumentError(
                "groups",
                f"would have no effect, because cv={cv} ignores them: pass a number of folds, or a "
                "splitter such as GroupKFold, as cv",
            ) from warning
    if not all(len(fold.train) and len(fold.test) for fold in folds):
        raise ValueError("cv must not give a fold without training rows or without held-out rows")
    return folds


def renumbered(cv: Any, kept: np.ndarray | None, n_rows: int) -> Any:
    """Return ``cv`` for the remaining rows after others were removed.

    An iterable of splits contains indices of all rows, which are converted; a splitter or a number
    of folds is returned unchanged.

    Parameters
    ----------
    cv : int, splitter, iterable of (train, test) or None
    kept : ndarray of int or None
        Indices of the remaining rows; None if no row was removed.
    n_rows : int
        Number of all rows.
    """
    if kept is None or cv is None or isinstance(cv, (numbers.Integral, str)):
        return cv
    if hasattr(cv, "split"):
        return cv
    place = np.full(n_rows, -1)
    place[kept] = np.arange(len(kept))
    splits = []
    for split in cv:
        parts = [place[np.asarray(part)] for part in split]  # indices or a mask
        splits.append(tuple(part[part >= 0] for part in parts))
    return splits


def check_each_once(folds: Sequence[Fold], n_rows: int) -> None:
    """Raise an error if the folds do not hold out each row exactly once."""
    times = np.bincount(np.concatenate([fold.test for fold in folds]), minlength=n_rows)
    if (times != 1).any():
        raise ValueError(
            "cv must hold out each row exactly once, but "
            f"{int((times == 0).sum())} rows are never held out and {int((times > 1).sum())} more "
            "than once"
        )


def evaluated_labels(signs: np.ndarray, kind: str) -> np.ndarray:
    """Return the labels for the metrics.

    A binary 1-D target has one score; the metrics use the ranking of its two classes.
    """
    on = signs > 0
    return np.hstack([~on, on]) if kind == "binary" else on


def check_defined(metrics: Sequence[str], target: Target, folds: Sequence[Fold]) -> None:
    """Raise an error if a metric is undefined on all folds, before the search starts."""
    ranking = [name for name in metrics if name in METRICS and METRICS[name].ranked_rows_only]
    on = evaluated_labels(target.signs, target.kind)
    n_on = on.sum(axis=1)
    n_known = on.shape[1] if target.known is None else target.known.sum(axis=1)
    ranked = (n_on > 0) & (n_on < n_known)
    if ranking and not any(ranked[fold.test].any() for fold in folds):
        raise ValueError(
            f"scoring={ranking[0]!r} is undefined on every fold, because each row has either no "
            "label or all labels; use scoring='hamming_loss'"
        )
