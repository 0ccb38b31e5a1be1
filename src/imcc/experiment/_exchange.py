"""Results out of a store and into one: how machines exchange what they have computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from imcc._utils.files import write_whole
from imcc.experiment._errors import StoreError
from imcc.experiment._lines import (
    RUN_COLUMNS,
    STUDY_COLUMNS,
    Line,
    as_csv,
    as_parquet,
    read_results,
    run_lines,
    study_lines,
)
from imcc.experiment._plan import TaskKey
from imcc.experiment._records import Run, Study
from imcc.experiment._store import Store

_SUFFIXES = (".csv", ".parquet")


@dataclass
class Merged:
    """What a merge did.

    Attributes
    ----------
    n_new : int
        Results that the store did not have.
    n_known : int
        Results that it had, with the same numbers.
    conflicts : list of keys
        Results that it had with other numbers; the store's own were kept.
    """

    n_new: int = 0
    n_known: int = 0
    conflicts: list[TaskKey] = field(default_factory=list)


def export(store: Store, path: str | Path, *, overwrite: bool = False) -> list[Path]:
    """Write the results of a store into a CSV or Parquet file.

    Parameters
    ----------
    store : Store
    path : path
        Ends in ``.csv`` or ``.parquet``.  Sensitivity studies go into a second file beside it,
        ``NAME.sensitivity.csv``.
    overwrite : bool, default=False
        Whether files that exist may be replaced.

    Returns
    -------
    list of Path
        The files that were written.
    """
    path = Path(path)
    kind = _kind(path)
    pieces: list[tuple[Path, tuple[str, ...], Iterable[Line]]] = [
        (path, RUN_COLUMNS, (line for run in store.runs() for line in run_lines(run)))
    ]
    if studies := store.studies():
        beside = path.with_name(f"{path.stem}.sensitivity{path.suffix}")
        studied = (line for study in studies for line in study_lines(study))
        pieces.append((beside, STUDY_COLUMNS, studied))
    for target, _, _ in pieces:
        if target.exists() and not overwrite:
            raise StoreError(f"{target} exists already: give another name, or overwrite=True")
    pack = as_csv if kind == ".csv" else as_parquet
    return [write_whole(target, pack(columns, lines)) for target, columns, lines in pieces]


def merge(store: Store, sources: Iterable[str | Path]) -> Merged:
    """Take results into a store that were computed elsewhere.

    Parameters
    ----------
    store : Store
        The one that grows.
    sources : iterable of paths
        Exported CSV and Parquet files, and other stores.  They must be of the same experiment:
        the same splits, and methods that mean the same.

    Returns
    -------
    Merged
        All sources are taken, or, if one of them is not as it should be, none.
    """
    found: list[Run | Study] = []
    for path in map(Path, sources):
        if path.suffix in _SUFFIXES:
            found += read_results(path)
            continue
        with Store(path, read_only=True) as other:
            found += other.results()
    _check_belongs(store, found)
    ours = {result.key: result for result in store.results()}
    merged = Merged()
    new: dict[TaskKey, Run | Study] = {}
    for result in found:
        known = ours.get(result.key) or new.get(result.key)
        if known is None:
            new[result.key] = result
        elif _same_numbers(known, result):
            merged.n_known += 1
        else:
            merged.conflicts.append(result.key)
    merged.n_new = store.add_all(new.values())
    return merged


def _check_belongs(store: Store, found: list[Run | Study]) -> None:
    tasks = {task.key: task for task in store.experiment.tasks()}
    for result in found:
        task = tasks.get(result.key)
        if task is None:
            raise StoreError(
                f"the experiment in {store.path} has no task {result.key}: run or merge a larger "
                "experiment (more data sets, methods, repetitions) into the store first"
            )
        if task.fingerprint != result.fingerprint:
            raise StoreError(
                f"the result {result.key} was computed under another protocol, or with another "
                f"method of that name, than the experiment in {store.path} has"
            )


def _same_numbers(a: Run | Study, b: Run | Study) -> bool:
    """Compare results up to the rounding of another processor's arithmetic."""
    ours, theirs = _numbers(a), _numbers(b)
    return ours.shape == theirs.shape and bool(
        np.allclose(ours, theirs, rtol=1e-6, atol=1e-9, equal_nan=True)
    )


def _numbers(result: Run | Study) -> np.ndarray:
    if isinstance(result, Study):
        return result.mean
    return np.array([list(chosen.metrics.values()) for chosen in result.selections])


def _kind(path: Path) -> str:
    if path.suffix not in _SUFFIXES:
        raise StoreError(f"results are exported to .csv or .parquet files, not to {path.name}")
    return path.suffix
