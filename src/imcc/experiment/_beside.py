"""Comparison of methods with results that were computed elsewhere, without rerunning these."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from imcc._utils.files import removed_on_failure
from imcc.comparison import ScoreTable
from imcc.experiment._errors import ExperimentError, StoreError
from imcc.experiment._exchange import Merged, merge_results, read_results, sorted_results
from imcc.experiment._plan import Experiment
from imcc.experiment._records import Run, Study
from imcc.experiment._store import Store


def join_rows(
    experiment: Experiment,
    methods: Iterable[str] | str,
    rows: Iterable[str | Path] | str | Path,
    store: str | Path,
    wanted: Experiment | None = None,
) -> Merged:
    """Copy results that were computed elsewhere into a store, to compare methods with them.

    After that, ``experiment.subset(methods=methods).run(store)`` computes the results of these
    methods, and :func:`scores_beside` returns the scores of all methods on the same splits.

    Parameters
    ----------
    experiment : Experiment
        Experiment with the methods that have results and those to compute; see
        :meth:`Experiment.with_methods`.
    methods : str, or iterable of str
        Names of the methods to compute.
    rows : path-like, or iterable of path-like
        Exported CSV files, and stores.
    store : path-like
        The store; it is created if it does not exist, with ``methods`` and the methods that have
        results.
    wanted : Experiment, default=None
        The part of the experiment to compute; all of it by default.  Only its data sets are loaded,
        to compare them with those of the results.

    Returns
    -------
    Merged

    Raises
    ------
    StoreError
        If results were computed with another protocol (seed, test size, folds, metric), other
        methods of the same names or other data: only results on the same splits of the same data
        can be compared.
    """
    methods = [methods] if isinstance(methods, str) else list(methods)
    rows = [rows] if isinstance(rows, (str, os.PathLike)) else list(rows)
    found = read_results(rows)
    named = {result.key.method for result in found} | set(methods)
    part = experiment.subset(
        methods=[method.name for method in experiment.methods if method.name in named],
        sensitivity=any(isinstance(result, Study) for result in found),
    )
    path = Path(store)
    ours: list[Run | Study] = []
    if path.exists():
        with Store(path, read_only=True) as opened:
            ours = opened.results()
    # All checks come first: a store is not left behind, or with a part of the rows.
    conflicts = sorted_results(ours, found)[2]
    if conflicts:
        raise StoreError(
            f"{path} has {len(conflicts)} results with other values than "
            f"{', '.join(map(str, rows))}, such as {conflicts[0]}: use another store"
        )
    computed = experiment if wanted is None else wanted
    _check_data([*ours, *found], computed.subset(methods=methods, sensitivity=False), path)
    with removed_on_failure(path, "-wal", "-shm"), Store.create(path, part) as opened:
        return merge_results(opened, found)


def _check_data(known: list[Run | Study], wanted: Experiment, path: Path) -> None:
    """Check that the data of the tasks to compute are those of the existing results."""
    fingerprints = {result.key.dataset: result.data_fingerprint for result in known}
    done = {result.key for result in known}
    missing = {task.dataset.name for task in wanted.tasks() if task.key not in done}
    for dataset in wanted.datasets:
        if dataset.name not in fingerprints or dataset.name not in missing:
            continue
        data = dataset.load_table() if dataset.is_table else dataset.load()
        if data.fingerprint() != fingerprints[dataset.name]:
            raise StoreError(
                f"the data of {dataset.name!r} differ from those that the rows for {path} "
                "were computed on, so their splits differ, too: only rows of the same splits can "
                "be compared. Leave out the data set, or recompute the rows of the other methods"
            )


def scores_beside(
    store: Store, methods: Sequence[str] | str, metric: str, selection: str | None = None
) -> ScoreTable:
    """Return the scores of given methods, and of the other methods on the same splits.

    Parameters
    ----------
    store : Store
        The store.
    methods : str, or sequence of str
        Names of methods; the table has the data sets and repetitions that all of them have.
    metric, selection
        As for :meth:`Store.scores`.

    Returns
    -------
    imcc.comparison.ScoreTable
        ``methods`` come first, followed by the other methods with at least one of these repetitions
        on every data set.  Use ``compare(table, missing="drop_repetitions")`` to compare them on
        the splits that all methods have.

    Raises
    ------
    ExperimentError
        If no split has a score for all of ``methods``.
    """
    methods = [methods] if isinstance(methods, str) else list(methods)
    table = store.scores(metric, selection)
    chosen = table.select(methods=list(methods))
    shared = ~np.isnan(chosen.values).any(axis=1)
    if not shared.any():
        raise ExperimentError(
            f"{', '.join(methods)}: no split in {store.path} has a value of {metric} for all of "
            "these methods"
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
