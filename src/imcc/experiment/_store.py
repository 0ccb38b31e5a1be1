"""The store of results: an SQLite file with one row per task that was started.

A row is "done" with a result, "failed" with an error, or "running" with a claim of a runner; its
content is JSON.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from imcc._utils.files import write_whole
from imcc._utils.progress import report_progress
from imcc._utils.validation import check_choice
from imcc.comparison import ScoreTable
from imcc.experiment._claims import is_alive
from imcc.experiment._database import (
    APPLICATION,
    FORMAT,
    TABLES,
    check,
    connect,
    damage_in_words,
    errors_in_words,
    identity,
    layout,
    transaction,
)
from imcc.experiment._errors import StoreError
from imcc.experiment._plan import Experiment
from imcc.experiment._results import (
    CSV_HEAD,
    UNSEARCHED,
    Failure,
    Run,
    TaskKey,
    make_failure,
    make_run,
    parsed,
    read_csv,
    to_csv,
    to_json,
)
from imcc.experiment._scores import ALL_METRICS, LABEL_RANGES, greater_is_better
from imcc.metrics import METRICS

#: Value of ``selection``: every metric is reported for the setting chosen by this metric.
EACH = "each"

_OF_KEY = "dataset = ? AND method = ? AND repetition = ?"


class Store:
    """Results of an experiment in an SQLite file.

    Results are written atomically as soon as they are computed; several processes may read and
    write at the same time.  The constructor opens an existing store; use :meth:`create` for a new
    one.  A store is a context manager that closes the file.

    Parameters
    ----------
    path : path-like
        The file.
    read_only : bool, default=False
        Whether to open the file without writing; also possible without write permission.

    Attributes
    ----------
    path : pathlib.Path
        The file.
    experiment : Experiment
        The experiment.

    Raises
    ------
    StoreError
        If the file does not exist or is not a store.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from imcc.experiment import Experiment, Store
    >>> experiment = Experiment("yeast", "extra_trees", n_repeats=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Store.create(pathlib.Path(folder) / "mine.sqlite", experiment) as store:
    ...         len(store.missing())
    2
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise StoreError(f"there is no results store {self.path}")
        self._connection = connect(self.path, read_only=read_only)
        self._parsed: dict[TaskKey, Run] = {}  # results never change
        try:
            with errors_in_words(self.path), transaction(self._connection, "BEGIN"):
                check(self._connection, self.path)
            self._identity = identity(self.path)
            rows = self._query("SELECT description FROM experiment")
            self.experiment = _described(rows, self.path)
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def create(cls, path: str | Path, experiment: Experiment) -> Store:
        """Create a store for an experiment, or add the experiment to an existing store.

        Existing results are kept.  The experiment may have more or fewer data sets, methods and
        repetitions than the store; those that both have must have the same definitions.

        Methods that are not resolved (:meth:`Experiment.resolve`) are imported.

        Parameters
        ----------
        path : path-like
            The file.
        experiment : Experiment
            The experiment.

        Returns
        -------
        Store

        Raises
        ------
        StoreError
            If the existing store has another protocol or other methods of the same names.
        """
        path = Path(path)
        if not path.parent.is_dir():
            raise StoreError(f"there is no folder {path.parent} for the store {path.name}")
        if not experiment.is_resolved:
            experiment = experiment.resolve()
        with (
            closing(connect(path, create=True)) as connection,
            errors_in_words(path),
            transaction(connection),
        ):
            if layout(connection) or connection.execute("PRAGMA application_id").fetchone()[0]:
                check(connection, path)
                rows = connection.execute("SELECT description FROM experiment").fetchall()
                experiment = _described(rows, path).joined(experiment, str(path))
            else:
                for statement in TABLES:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("DELETE FROM experiment")
            connection.execute(
                "INSERT INTO experiment VALUES (?)", (json.dumps(experiment.to_dict()),)
            )
        return cls(path)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {str(self.path)!r}: {self.experiment!r}>"

    # Contents.

    def keys(self) -> set[TaskKey]:
        """Return the keys of the tasks with results.

        Returns
        -------
        set of TaskKey
        """
        rows = self._query("SELECT dataset, method, repetition FROM tasks WHERE state = 'done'")
        return {TaskKey(*row) for row in rows}

    def missing(self) -> list[TaskKey]:
        """Return the keys of the tasks of the experiment without results.

        Returns
        -------
        list of TaskKey
        """
        done = self.keys()
        return [task.key for task in self.experiment.tasks() if task.key not in done]

    def runs(self) -> list[Run]:
        """Return all runs, sorted by data set, method and repetition.

        Returns
        -------
        list of Run
        """
        rows = self._contents("done")
        with damage_in_words(self.path):
            for key, content in rows:
                if key not in self._parsed:
                    self._parsed[key] = make_run(key, parsed(content, dict))
        return [self._parsed[key] for key, _ in rows]

    def failures(self) -> list[Failure]:
        """Return the tasks whose last attempt failed.

        Returns
        -------
        list of Failure
        """
        with damage_in_words(self.path):
            return [
                make_failure(key, parsed(content, dict))
                for key, content in self._contents("failed")
            ]

    def running(self) -> list[TaskKey]:
        """Return the keys of the tasks that are currently being computed."""
        rows = self._query(
            "SELECT dataset, method, repetition, content, at FROM tasks WHERE state = 'running'"
        )
        with damage_in_words(self.path):
            return [TaskKey(*row[:3]) for row in rows if is_alive(*row[3:])]

    def scores(self, metric: str, selection: str | None = None) -> ScoreTable:
        """Return the scores of all runs by a metric.

        Parameters
        ----------
        metric : str
            One of :data:`imcc.experiment.ALL_METRICS`, or of ``LABEL_RANGES`` for the average
            precision of the labels of that frequency.
        selection : str or None, default=None
            Name of the metric by which the setting of a method with a search was chosen; by default
            that of the experiment.  ``"each"`` means the setting chosen by ``metric`` itself, or by
            the experiment's metric if ``metric`` is not one of the five that searches use.  Methods
            without a search have only one setting.

        Returns
        -------
        imcc.comparison.ScoreTable
            NaN for missing runs, and for runs without a record of the metric.
        """
        check_choice("metric", metric, [*ALL_METRICS, *LABEL_RANGES])
        scoring = self.experiment.protocol.scoring
        selection = scoring if selection is None else selection
        check_choice("selection", selection, [*METRICS, EACH])
        if selection == EACH:
            selection = metric if metric in METRICS else scoring
        datasets = tuple(dataset.name for dataset in self.experiment.datasets)
        methods = tuple(method.name for method in self.experiment.methods)
        values = np.full((len(datasets), len(methods), self.experiment.n_repeats), np.nan)
        runs = self.runs()
        with damage_in_words(self.path):
            for run in runs:
                place = datasets.index(run.key.dataset), methods.index(run.key.method)
                for chosen in run.selections:
                    if chosen.selection in (selection, UNSEARCHED):
                        found = chosen.metrics | chosen.by_frequency
                        values[(*place, run.key.repetition)] = found.get(metric, math.nan)
        return ScoreTable(metric, greater_is_better(metric), datasets, methods, values)

    # Writing.

    def add(self, *outcomes: Run | Failure) -> int:
        """Add the outcomes of tasks in one transaction.

        An existing result is kept.  A failure never replaces a result, and is removed when the task
        succeeds.

        Parameters
        ----------
        *outcomes : Run or Failure
            The outcomes.

        Returns
        -------
        int
            Number of outcomes that were added.

        Raises
        ------
        StoreError
            If the data of a data set differ from those of existing results; nothing is added.
        """
        self.check_in_place()
        fingerprints: dict[str, str] = {}
        new = 0
        with self.writing() as connection:
            for outcome in outcomes:
                if connection.execute(
                    f"SELECT 1 FROM tasks WHERE {_OF_KEY} AND state = 'done'", outcome.key
                ).fetchone():
                    continue
                if isinstance(outcome, Run):
                    self._check_data(outcome, fingerprints)
                state = "done" if isinstance(outcome, Run) else "failed"
                connection.execute(
                    "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?, ?)",
                    (*outcome.key, state, to_json(outcome), time.time()),
                )
                new += 1
        self.check_in_place()
        return new

    def _check_data(self, run: Run, fingerprints: dict[str, str]) -> None:
        """Check that all results of a data set were computed on the same data."""
        dataset = run.key.dataset
        if dataset not in fingerprints:
            found = self._query(
                "SELECT content FROM tasks WHERE dataset = ? AND state = 'done' LIMIT 1", (dataset,)
            )
            with damage_in_words(self.path):
                known = parsed(found[0][0], dict)["data_fingerprint"] if found else None
            fingerprints[dataset] = known or run.data_fingerprint
        if run.data_fingerprint != fingerprints[dataset]:
            raise StoreError(
                f"the data of {dataset!r} differ from those of the rows in {self.path}: has the "
                "file changed? Use another name for the new data, or a new store"
            )

    def merge(self, *sources: str | Path) -> int:
        """Add results that were computed elsewhere: all of them, or none.

        Parameters
        ----------
        *sources : path-like
            Exported CSV files, and other stores, of the same experiment: with the same splits and
            the same definitions of the methods.

        Returns
        -------
        int
            Number of results that the store did not have.

        Raises
        ------
        StoreError
            If a source is invalid or of another experiment, if the store has a result with other
            values (up to rounding differences between processors), or if the data differ.
        """
        tasks = {task.key: task for task in self.experiment.tasks()}
        known = {run.key: run for run in self.runs()}
        new: list[Run] = []
        for number, source in enumerate(sources):
            path = Path(source)
            report_progress(number, len(sources), f"reading {path.name}")
            for run in _read_runs(path):
                if run.key not in tasks:
                    raise StoreError(
                        f"the experiment in {self.path} has no task {run.key}, of which {path} has "
                        "a result: first run a larger experiment (more data sets, methods or "
                        "repetitions) into the store"
                    )
                if tasks[run.key].fingerprint != run.fingerprint:
                    raise StoreError(
                        f"the result {run.key} in {path} was computed with another protocol, or "
                        f"another method of that name, than in {self.path}: only rows of the same "
                        "splits and settings can be compared"
                    )
                other = known.setdefault(run.key, run)
                if other is run:
                    new.append(run)
                elif not _same_numbers(run, other):
                    raise StoreError(
                        f"{self.path} has a result of {run.key} with other values than {path}: use "
                        "another store"
                    )
        return self.add(*new)

    def export(self, path: str | Path) -> Path:
        """Write the results to a CSV file, with one line per run and chosen setting.

        Parameters
        ----------
        path : path-like
            The file; an existing export is overwritten.  Text that a spreadsheet would interpret
            as a formula (it begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return) is
            prefixed with an apostrophe, which :meth:`merge` removes.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        StoreError
            If the file already exists and is something else.
        """
        path = Path(path)
        if path.suffix != ".csv":
            raise StoreError(f"results can only be exported to .csv, not to {path.name}")
        if path.exists():
            with path.open("rb") as file:
                if not file.read(len(CSV_HEAD)) == CSV_HEAD.encode():
                    raise StoreError(
                        f"{path} already exists and is not an export of results: choose another "
                        "name, or delete it"
                    )
        return write_whole(path, to_csv(self.runs()))

    def check_in_place(self) -> None:
        """Raise a StoreError if the file was deleted or replaced since it was opened.

        SQLite continues to write to a deleted file, so that rows would be lost.
        """
        found = identity(self.path)
        if found != self._identity:
            what = "was deleted" if found is None else "was replaced by another file"
            raise StoreError(
                f"{self.path} {what} while it was in use. Nothing more is written; rows computed "
                "after that are lost"
            )

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction: all changes are stored, or none."""
        with errors_in_words(self.path), transaction(self._connection):
            yield self._connection

    def _contents(self, state: str) -> list[tuple[TaskKey, str]]:
        rows = self._query(
            "SELECT dataset, method, repetition, content FROM tasks WHERE state = ? "
            "ORDER BY dataset, method, repetition",
            (state,),
        )
        return [(TaskKey(*key), content) for *key, content in rows]

    def _query(self, statement: str, values: Iterable[Any] = ()) -> list[Any]:
        with errors_in_words(self.path):
            return self._connection.execute(statement, tuple(values)).fetchall()


def _read_runs(path: Path) -> list[Run]:
    if path.suffix == ".csv":
        return read_csv(path)
    with Store(path, read_only=True) as other:
        return other.runs()


def _same_numbers(a: Run, b: Run) -> bool:
    ours, theirs = ([list(chosen.metrics.values()) for chosen in run.selections] for run in (a, b))
    return len(ours) == len(theirs) and bool(
        np.allclose(ours, theirs, rtol=1e-6, atol=1e-9, equal_nan=True)
    )


def _described(rows: list[tuple[str]], path: Path) -> Experiment:
    """Return the experiment of a store.

    Nothing is imported: results can be read without the methods being installed, and a file must
    not determine which code is run.
    """
    with damage_in_words(path):
        return Experiment.from_dict(parsed(rows[0][0], dict), str(path))
