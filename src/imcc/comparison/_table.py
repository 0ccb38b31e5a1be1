"""Scores of several methods on several data sets, and what is compared if runs are missing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from imcc._utils.errors import ImccError, given
from imcc.metrics import METRICS

#: With fewer data sets, Wilcoxon's test cannot be significant at the level 0.05.
FEWEST = 6


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of several methods on several data sets by one metric, per repetition.

    Attributes
    ----------
    metric : str
        Name of the metric.
    greater_is_better : bool
        Whether larger values are better.
    datasets, methods : tuple of str
        Unique names of the data sets and of the methods.
    values : ndarray of shape (n_datasets, n_methods, n_repetitions)
        The scores; NaN for a missing run.  Runs on a data set with the same repetition use the same
        split for all methods.

    Examples
    --------
    >>> from imcc.comparison import ScoreTable
    >>> runs = [("yeast", "imcc", 0, 0.77), ("yeast", "imcc", 1, 0.75), ("yeast", "ecc", 0, 0.74)]
    >>> table = ScoreTable.from_records(runs, metric="average_precision")
    >>> table.counts.tolist(), table.mean().round(3).tolist()
    ([[2, 1]], [[0.76, 0.74]])
    """

    metric: str
    greater_is_better: bool
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    values: np.ndarray

    def __post_init__(self) -> None:
        """Check the shape, the names and the values."""
        if not isinstance(self.greater_is_better, (bool, np.bool_)):
            raise TypeError(
                f"greater_is_better must be True or False, got {self.greater_is_better!r}"
            )
        values = np.array(self.values, dtype=np.float64)
        for name in ("datasets", "methods"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        if values.ndim != 3 or values.shape[:2] != (len(self.datasets), len(self.methods)):
            raise ValueError(
                "values must have the shape (n_datasets, n_methods, n_repetitions) with "
                f"{len(self.datasets)} data sets and {len(self.methods)} methods, "
                f"got {values.shape}"
            )
        if np.isinf(values).any():
            raise ValueError(f"values of {self.metric} must not be infinite; a missing run is NaN")
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    @classmethod
    def from_records(
        cls,
        records: Iterable[tuple[str, str, Any, float | None]],
        *,
        metric: str,
        greater_is_better: bool | None = None,
    ) -> ScoreTable:
        """Create a table from single runs, in the order in which data sets and methods occur.

        Parameters
        ----------
        records : iterable of (dataset, method, repetition, value)
            The runs, in any order.  A value of None or NaN is a missing run.
        metric : str
            Name of the metric.
        greater_is_better : bool, default=None
            Whether larger values are better; required unless the metric is one of
            :data:`imcc.metrics.METRICS`.

        Returns
        -------
        ScoreTable
        """
        if greater_is_better is None:
            if metric not in METRICS:
                raise ValueError(
                    f"greater_is_better must be given for {metric!r}; it is only known for "
                    f"{', '.join(METRICS)}"
                )
            greater_is_better = METRICS[metric].greater_is_better
        runs = [tuple(run) for run in records]
        rows = {name: i for i, name in enumerate(dict.fromkeys(run[0] for run in runs))}
        columns = {name: i for i, name in enumerate(dict.fromkeys(run[1] for run in runs))}
        layers = {r: i for i, r in enumerate(sorted({run[2] for run in runs}))}
        values = np.full((len(rows), len(columns), len(layers)), np.nan)
        twice = [run for run, n in Counter(run[:3] for run in runs).items() if n > 1]
        if twice:
            raise ValueError(f"records has two runs of data set, method, repetition = {twice[0]}")
        for dataset, method, repetition, value in runs:
            if value is not None:
                values[rows[dataset], columns[method], layers[repetition]] = value
        return cls(metric, bool(greater_is_better), tuple(rows), tuple(columns), values)

    @property
    def counts(self) -> np.ndarray:
        """Number of runs of each method on each data set, shape (n_datasets, n_methods)."""
        return np.count_nonzero(~np.isnan(self.values), axis=2)

    def mean(self) -> np.ndarray:
        """Return the means over the runs, shape (n_datasets, n_methods); NaN without runs."""
        with np.errstate(invalid="ignore"):  # of 0 / 0
            return np.asarray(np.nansum(self.values, axis=2) / self.counts)

    def std(self) -> np.ndarray:
        """Return the standard deviations over the runs, with divisor n - 1.

        Returns
        -------
        ndarray of shape (n_datasets, n_methods)
            NaN for fewer than two runs.
        """
        counts = self.counts
        squares = np.nansum((self.values - self.mean()[:, :, np.newaxis]) ** 2, axis=2)
        return np.where(counts > 1, np.sqrt(squares / np.maximum(counts - 1, 1)), np.nan)

    def select(
        self, datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None
    ) -> ScoreTable:
        """Return the table of a subset of the data sets and methods.

        Parameters
        ----------
        datasets, methods : sequence of str, default=None
            Names, in the order of the new table; all by default.

        Returns
        -------
        ScoreTable
        """
        rows = _positions("datasets", datasets, self.datasets)
        columns = _positions("methods", methods, self.methods)
        return ScoreTable(
            self.metric,
            self.greater_is_better,
            tuple(self.datasets[i] for i in rows),
            tuple(self.methods[j] for j in columns),
            self.values[np.ix_(rows, columns)],
        )

    def common_runs(self, methods: Sequence[str] | None = None) -> ScoreTable:
        """Return the runs of the repetitions that all of the methods have.

        The means of different methods are then over the same splits.  Data sets without common
        repetitions are left out.

        Parameters
        ----------
        methods : sequence of str, default=None
            Names of the methods; all by default.

        Returns
        -------
        ScoreTable
        """
        picked = self.select(methods=methods)
        common = ~np.isnan(picked.values).any(axis=1)
        values = np.where(common[:, np.newaxis], picked.values, np.nan)
        kept = [d for d, any_ in zip(picked.datasets, common.any(axis=1), strict=True) if any_]
        return replace(picked, values=values).select(datasets=kept)

    def differences(self, method: str, other: str) -> np.ndarray:
        """Return by how much a method is better than another one, per data set.

        Parameters
        ----------
        method, other : str
            Names of two methods.

        Returns
        -------
        ndarray of shape (n_common_datasets,)
            Differences of the means over the common repetitions, positive where ``method`` is
            better, whatever the direction of the metric.  Data sets without common repetitions are
            left out.
        """
        means = self.common_runs((method, other)).mean()
        ahead = means[:, 0] - means[:, 1]
        return ahead if self.greater_is_better else -ahead


class MissingRunsError(ImccError, ValueError):
    """Runs are missing, and ``missing`` is "raise"; the message lists the cells."""


def check_complete(table: ScoreTable) -> None:
    """Raise an error that lists the cells with missing runs, if there are any.

    These are the cells without any run, and those that lack a repetition that another method has on
    the same data set: their means would be over different splits.
    """
    expected = (~np.isnan(table.values)).any(axis=1).sum(axis=1)
    counts = table.counts
    cells = [
        f"  {table.methods[j]} on {table.datasets[i]}: {counts[i, j]} of {expected[i]}"
        for i, j in np.argwhere((counts < expected[:, np.newaxis]) | (counts == 0))
    ]
    if cells:
        raise MissingRunsError(
            "\n".join([f"{table.metric}: runs are missing in {len(cells)} cells:", *cells])
            + "\nadd these runs, or leave out what is missing with "
            + given("missing", "drop")
        )


def drop_missing(
    table: ScoreTable, control: str | None = None
) -> tuple[ScoreTable, tuple[tuple[str, str], ...]]:
    """Return the methods that can be compared, on their common runs, and what was left out.

    These are the methods with runs on all data sets.  A method that lacks data sets does not remove
    them for the others.  Only if no two methods have all data sets, the data sets that at least
    half of the methods lack are left out, which an unfinished experiment has just started; if that
    is not enough, all methods are compared on their common data sets.  Methods with few data sets
    (see :func:`few_datasets`) do not count.

    Parameters
    ----------
    table : ScoreTable
        The scores.
    control : str, default=None
        A method to compare the others with: only its runs, and those of the others on the same
        splits, are compared.

    Returns
    -------
    table : ScoreTable
        A table without missing runs; without data sets if there are no common runs.
    left_out : tuple of (str, str)
        Names of methods and data sets that were left out, and why.
    """
    whole = table
    if control is not None:
        has = ~np.isnan(table.select(methods=[control]).values)
        kept = [d for d, any_ in zip(table.datasets, has.any(axis=(1, 2)), strict=True) if any_]
        table = replace(table, values=np.where(has, table.values, np.nan)).select(datasets=kept)
    have = table.counts > 0
    begun = have.any(axis=1)
    enough = have.sum(axis=0) >= few_datasets(int(begun.sum()))
    if not enough.any():
        enough = have.any(axis=0)
    complete = enough & have[begun].all(axis=0)
    if complete.sum() < 2 <= enough.sum():
        kept = have[:, enough].mean(axis=1) > 0.5
        complete = enough & have[kept].all(axis=0)
    if complete.sum() < 2 <= enough.sum():
        complete = enough
    part = table.common_runs([m for m, c in zip(table.methods, complete, strict=True) if c])
    left_out = []
    for method, n in zip(table.methods, have.sum(axis=0).tolist(), strict=True):
        if method not in part.methods:
            where = f"runs on {n} of {begun.sum()} data sets" if n else "no runs"
            left_out.append((method, where))
    for dataset in whole.datasets:
        if dataset not in table.datasets:
            left_out.append((dataset, f"no runs of {control}"))
        elif dataset not in part.datasets:
            left_out.append((dataset, "no repetition that all of the ranked methods have"))
    n_all = int(whole.select(part.datasets, part.methods).counts.sum())
    lost = n_all - int(part.counts.sum())
    if lost:
        name = "1 run" if lost == 1 else f"{lost} runs"
        left_out.append((name, "repetitions that not all of the ranked methods have"))
    return part, tuple(left_out)


def few_datasets(n_datasets: int) -> int:
    """Return how many of the data sets a method needs to be ranked: half of them, or six."""
    return max(1, min(FEWEST, math.ceil(n_datasets / 2)))


def _names(argument: str, names: Any) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{argument} must be a sequence of names, got {names!r}")
    names = tuple(names)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{argument} must be unique, got duplicates: {', '.join(twice)}")
    return names


def _positions(argument: str, wanted: Sequence[str] | None, known: tuple[str, ...]) -> list[int]:
    if wanted is None:
        return list(range(len(known)))
    for name in _names(argument, wanted):
        if name not in known:
            raise ValueError(f"{argument} must be among {', '.join(known)}, got {name!r}")
    return [known.index(name) for name in wanted]
