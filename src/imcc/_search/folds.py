"""Folds, and the label sets that held-out scores are judged by: the same for every search."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from imcc._backend.array import is_numpy
from imcc._utils.validation import Features, Target
from imcc.metrics import METRICS, Judge


@dataclass(frozen=True)
class Fold:
    """One split of the rows."""

    train: np.ndarray
    test: np.ndarray


def make_folds(cv: Any, X: Features, target: Target, groups: Any = None) -> list[Fold]:
    """Split the rows as ``cv`` says; see :class:`imcc.IMCCClassifierCV`."""
    # A 1-D target is split by class; an indicator matrix cannot be.
    by = target.signs
    if target.kind == "binary":
        by = target.signs[:, 0]
    elif target.kind == "multiclass":
        by = target.signs.argmax(axis=1)
    splitter = check_cv(cv, by, classifier=True)
    # Splitters look at the number of rows only, and know NumPy's arrays only.
    rows = X if is_numpy(X) else np.empty((X.shape[0], 0))
    folds = [Fold(train, test) for train, test in splitter.split(rows, by, groups)]
    if not all(len(fold.train) and len(fold.test) for fold in folds):
        raise ValueError("cv gives a fold without training rows or without held-out rows")
    return folds


def renumbered(cv: Any, kept: np.ndarray | None, n_rows: int) -> Any:
    """Return ``cv`` for the rows that are left when others have been left out.

    Splits that are listed name rows by their numbers among all; a splitter or a number of folds
    splits whatever rows there are.

    Parameters
    ----------
    cv : int, splitter, iterable of (train, test) or None
    kept : ndarray of int or None
        The numbers of the rows that are left; None if it is all of them.
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
        parts = [place[np.asarray(part)] for part in split]  # numbers, or a mask
        splits.append(tuple(part[part >= 0] for part in parts))
    return splits


def check_each_once(folds: Sequence[Fold], n_rows: int) -> None:
    """Refuse folds that do not hold out each row exactly once."""
    times = np.bincount(np.concatenate([fold.test for fold in folds]), minlength=n_rows)
    if (times != 1).any():
        raise ValueError(
            "cv must hold out each row exactly once, so that each has one score: "
            f"{int((times == 0).sum())} rows are never held out, {int((times > 1).sum())} more "
            "than once"
        )


def judged_labels(signs: np.ndarray, kind: str) -> np.ndarray:
    """Return the label sets that scores are judged by.

    A binary 1-D target has one score; it is judged as the ranking of its two classes.
    """
    on = signs > 0
    return np.hstack([~on, on]) if kind == "binary" else on


def check_defined(
    metrics: Sequence[str],
    judged: np.ndarray,
    folds: Sequence[Fold],
    known: np.ndarray | None = None,
) -> None:
    """Refuse a metric that no fold has rows for, before any work is done."""
    ranking = [name for name in metrics if name in METRICS and METRICS[name].ranked_rows_only]
    parts = (
        Judge(judged[fold.test], None if known is None else known[fold.test]) for fold in folds
    )
    if ranking and not any(part.ranked.any() for part in parts):
        raise ValueError(
            f"scoring={ranking[0]!r} is undefined on every fold: each held-out row has either no "
            "label or all of them; use scoring='hamming_loss'"
        )
