"""Handling of missing runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from imcc._utils.errors import ImccError, InvalidArgumentError, Message, given
from imcc._utils.validation import check_choice
from imcc.comparison._table import ScoreTable

CHOICES = ("raise", "drop_datasets", "drop_methods", "drop_repetitions")


class MissingRunsError(ImccError, ValueError):
    """Runs are missing, and ``missing`` is "raise".

    Attributes
    ----------
    cells : list of (dataset, method, n_runs, n_expected)
        The cells with missing runs, as returned by :meth:`ScoreTable.missing`.
    metric : str
        Name of the metric.
    """

    def __init__(self, cells: list[tuple[str, str, int, int]], metric: str) -> None:
        super().__init__(cells, metric)  # the arguments that pickle passes
        self.cells = cells
        self.metric = metric

    @property
    def message(self) -> Message:
        """The missing runs, and what to do about them."""
        lines = [f"  {method} on {dataset}: {n} of {of}" for dataset, method, n, of in self.cells]
        text = "\n".join([f"{self.metric}: runs are missing in {len(lines)} cells:", *lines])
        hint = "\nadd these runs, or choose what to leave out with " + given("missing", CHOICES[1])
        return text + hint + ", 'drop_methods' or 'drop_repetitions'"

    def __str__(self) -> str:
        return str(self.message)


@dataclass(frozen=True)
class Dropped:
    """What was left out of a comparison.

    Attributes
    ----------
    datasets, methods : tuple of str
        Data sets and methods that were left out completely.
    runs : dict of str to int
        Per data set, the number of runs left out because not every method has their repetition.
    """

    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    runs: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.datasets or self.methods or self.runs)


def complete(table: ScoreTable, missing: str) -> tuple[ScoreTable, Dropped]:
    """Return a table in which all methods have the same repetitions per data set.

    Parameters
    ----------
    table : ScoreTable
        The scores.
    missing : {"raise", "drop_datasets", "drop_methods", "drop_repetitions"}
        If runs are missing: raise an error that lists them; leave out the data sets or the methods
        with missing runs (after leaving out the methods or the data sets without any run); or leave
        out the repetitions that not every method has.

    Returns
    -------
    table : ScoreTable
        A table without missing runs.
    dropped : Dropped
        What was left out.
    """
    check_choice("missing", missing, CHOICES)
    gaps = table.missing()
    if not gaps:
        return table, Dropped()
    if missing == "raise":
        raise MissingRunsError(gaps, table.metric)
    if missing == "drop_repetitions":
        return _common_repetitions(table)
    counts = table.counts
    if missing == "drop_datasets":
        kept = table.select(methods=_named(table.methods, counts.sum(axis=0) > 0))
        gappy = {dataset for dataset, *_ in kept.missing()}
        kept = kept.select(datasets=[name for name in kept.datasets if name not in gappy])
    else:
        kept = table.select(datasets=_named(table.datasets, counts.sum(axis=1) > 0))
        gappy = {method for _, method, *_ in kept.missing()}
        kept = kept.select(methods=[name for name in kept.methods if name not in gappy])
    if not kept.datasets or not kept.methods:
        raise InvalidArgumentError(
            "missing",
            f"{missing!r} leaves nothing to compare by {table.metric}: runs are missing in "
            f"{len(gaps)} of {counts.size} cells",
        )
    return kept, Dropped(
        tuple(name for name in table.datasets if name not in kept.datasets),
        tuple(name for name in table.methods if name not in kept.methods),
    )


def _common_repetitions(table: ScoreTable) -> tuple[ScoreTable, Dropped]:
    have = ~np.isnan(table.values)
    common = have.all(axis=1)
    without = [
        name for name, any_ in zip(table.datasets, common.any(axis=1), strict=True) if not any_
    ]
    if without:
        raise InvalidArgumentError(
            "missing",
            "'drop_repetitions' is not possible: no repetition is common to all methods on "
            f"{', '.join(without)}; leave out these data sets or some methods first (select)",
        )
    values = np.where(common[:, np.newaxis], table.values, np.nan)
    lost = (have & ~common[:, np.newaxis]).sum(axis=(1, 2))
    runs = {name: int(n) for name, n in zip(table.datasets, lost, strict=True) if n}
    return replace(table, values=values), Dropped(runs=runs)


def _named(names: tuple[str, ...], mask: np.ndarray) -> list[str]:
    return [name for name, wanted in zip(names, mask, strict=True) if wanted]
