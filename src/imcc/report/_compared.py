"""Comparing what is there: a store may be unfinished, and its report must still be right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from imcc.comparison import Comparison, ScoreTable, compare
from imcc.report._words import counted, joined, one_line


@dataclass(frozen=True, eq=False)
class Compared:
    """A table of scores, and the comparison of that part of it which can be compared.

    Attributes
    ----------
    scores : ScoreTable
        All of it.
    comparison : Comparison or None
        Of the data sets on which all its methods have a repetition in common.
    reason : str or None
        Why there is no comparison.
    left_out : tuple of str
        What is not in the comparison because runs are missing, in sentences.
    """

    scores: ScoreTable
    comparison: Comparison | None
    reason: str | None
    left_out: tuple[str, ...]


def compare_what_is_there(
    scores: ScoreTable,
    *,
    control: str | None = None,
    alpha: float = 0.05,
    test_size: float | None = None,
) -> Compared:
    """Compare the methods on the runs that they have in common.

    Methods without runs on more than half of the data sets are left out first, then the data sets
    on which one of the others has no repetition in common with the rest, then the repetitions
    that not all of them have.

    Parameters
    ----------
    scores : ScoreTable
        The scores; NaN where a run is missing.
    control : str, optional
        The method that the others are compared with; no control if it is left out itself.
    alpha : float
        The level of significance.
    test_size : float, optional
        As for :func:`imcc.comparison.compare`.
    """
    have = ~np.isnan(scores.values)
    begun = have.any(axis=(1, 2))
    if not begun.any():
        return Compared(scores, None, "there are no runs yet", ())
    share = have.any(axis=2)[begun].mean(axis=0)
    kept_methods = share >= 0.5
    common = have[:, kept_methods].all(axis=1).any(axis=1) & bool(kept_methods.any())
    left_out = []
    names = [one_line(m) for m, keep in zip(scores.methods, kept_methods, strict=True) if not keep]
    if names:
        left_out.append(f"{joined(names)}: no runs on more than half of the data sets")
    names = [one_line(d) for d, keep in zip(scores.datasets, common, strict=True) if not keep]
    if names:
        left_out.append(f"{joined(names)}: no repetition that all methods have")
    if not common.any():
        reason = "there is no data set on which all methods have a repetition in common"
        return Compared(scores, None, reason, tuple(left_out))
    part = scores.select(
        [d for d, keep in zip(scores.datasets, common, strict=True) if keep],
        [m for m, keep in zip(scores.methods, kept_methods, strict=True) if keep],
    )
    comparison = compare(
        part,
        control=control if control in part.methods else None,
        alpha=alpha,
        missing="drop_repetitions",
        test_size=test_size,
    )
    left_out += [
        f"{one_line(dataset)}: {counted(lost, 'run')} of repetitions that not all methods have"
        for dataset, lost in comparison.dropped.runs.items()
    ]
    return Compared(scores, comparison, None, tuple(left_out))
