"""Methods beside rows that were computed elsewhere: the others are not run again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from imcc.comparison import ScoreTable
from imcc.experiment._errors import ExperimentError, StoreError
from imcc.experiment._exchange import Merged, merge_results, read_results
from imcc.experiment._plan import Experiment
from imcc.experiment._records import Study
from imcc.experiment._store import Store


def join_rows(
    experiment: Experiment,
    methods: Iterable[str],
    rows: Iterable[str | Path],
    store: str | Path,
    wanted: Experiment | None = None,
) -> Merged:
    """Put rows that were computed elsewhere into a store, to compare some methods with them.

    Afterwards ``experiment.subset(methods=methods).run(store)`` computes the rows of these methods,
    and :func:`scores_beside` gives the scores of all on the same splits.

    Parameters
    ----------
    experiment : Experiment
        With the methods that have rows, and those that are to be computed; see
        :meth:`Experiment.with_methods`.
    methods : iterable of str
        The names of those to be computed.
    rows : iterable of paths
        Exported CSV and Parquet files, and stores.
    store : path
        Created if it does not exist.  It knows the methods that have rows, and ``methods``.
    wanted : Experiment, optional
        The part that is to be computed, if it is not all of ``experiment``: only its data sets are
        loaded, to compare them with those of the rows.

    Returns
    -------
    Merged

    Raises
    ------
    StoreError
        If rows are of another protocol (seed, part of the rows held out, folds, metric), of other
        methods with these names, or of other data than those that would be loaded here: only
        rows of the same splits of the same data can be compared.
    """
    methods, rows = list(methods), list(rows)
    found = read_results(rows)
    named = {result.key.method for result in found} | set(methods)
    part = experiment.subset(
        methods=[method.name for method in experiment.methods if method.name in named],
        sensitivity=any(isinstance(result, Study) for result in found),
    )
    with Store.create(store, part) as opened:
        merged = merge_results(opened, found)
        if merged.conflicts:
            raise StoreError(
                f"{opened.path} has {len(merged.conflicts)} results with other numbers than "
                f"{', '.join(map(str, rows))}, such as {merged.conflicts[0]}: use another store"
            )
        computed = experiment if wanted is None else wanted
        _check_data(opened, computed.subset(methods=methods, sensitivity=False))
    return merged


def _check_data(store: Store, wanted: Experiment) -> None:
    """Compare the data of the tasks to be computed with those of the rows, before computing."""
    known, done = store.data_fingerprints(), store.keys()
    missing = {task.dataset.name for task in wanted.tasks() if task.key not in done}
    for dataset in wanted.datasets:
        if dataset.name not in known or dataset.name not in missing:
            continue
        data = dataset.load_table() if dataset.is_table else dataset.load()
        if data.fingerprint() != known[dataset.name]:
            raise StoreError(
                f"the data of {dataset.name!r} here are not those that the rows in {store.path} "
                "were computed on, so that their splits differ, too: only rows of the same splits "
                "can be compared. Leave the data set out, or compute the rows of the others anew"
            )


def scores_beside(
    store: Store, methods: Sequence[str], metric: str, selection: str | None = None
) -> ScoreTable:
    """Return the scores of some methods, and of others on the same splits.

    Parameters
    ----------
    store : Store
    methods : sequence of str
        Their data sets and repetitions are kept, as far as all of them have these.
    metric, selection
        As for :meth:`Store.scores`.

    Returns
    -------
    ScoreTable
        ``methods`` come first; then the others that have a run of these on every one of the data
        sets.  ``compare(table, missing="drop_repetitions")`` compares them, on each data set over
        the splits that all of them have.
    """
    table = store.scores(metric, selection)
    chosen = table.select(methods=list(methods))
    shared = ~np.isnan(chosen.values).any(axis=1)
    if not shared.any():
        raise ExperimentError(
            f"{', '.join(methods)}: no split in {store.path} has a value of {metric} for all"
        )
    masked = replace(table, values=np.where(shared[:, np.newaxis], table.values, np.nan))
    kept = shared.any(axis=1)
    everywhere = (masked.counts[kept] > 0).all(axis=0)
    others = [
        name
        for name, has_all in zip(table.methods, everywhere, strict=True)
        if has_all and name not in methods
    ]
    datasets = [name for name, any_ in zip(table.datasets, kept, strict=True) if any_]
    return masked.select(datasets=datasets, methods=[*methods, *others])
