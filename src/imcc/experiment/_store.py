"""The store of results: an SQLite file with one row per task that has ended.

A row is "done" with a result or "failed" with an error; its content is JSON.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from contextlib import AbstractContextManager, closing
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
    identity,
    layout,
    store_errors,
    writing,
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
_CONTENTS = (
    "SELECT dataset, method, repetition, content FROM tasks WHERE state = ? "
    "ORDER BY dataset, method, repetition"
)


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
            with store_errors(self.path), self._connection:
                self._connection.execute("BEGIN")
                check(self._connection, self.path)
            self._identity = identity(self.path)
            self.experiment = _described(self._connection, self.path)
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
        with closing(connect(path, create=True)) as connection, writing(connection, path):
            if layout(connection) or connection.execute("PRAGMA application_id").fetchone()[0]:
                check(connection, path)
                experiment = _described(connection, path).joined(experiment, str(path))
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
        rows = self._query(_CONTENTS, "done")
        with store_errors(self.path):
            for *key, content in rows:
                if (task := TaskKey(*key)) not in self._parsed:
                    self._parsed[task] = make_run(task, parsed(content, dict))
        return [self._parsed[TaskKey(*key)] for *key, _ in rows]

    def failures(self) -> list[Failure]:
        """Return the tasks whose last attempt failed.

        Returns
        -------
        list of Failure
        """
        with store_errors(self.path):
            return [
                make_failure(TaskKey(*key), parsed(content, dict))
                for *key, content in self._query(_CONTENTS, "failed")
            ]

    def running(self) -> list[TaskKey]:
        """Return the keys of the tasks that are currently being computed."""
        rows = self._query("SELECT dataset, method, repetition, runner, at FROM claims")
        with store_errors(self.path):
            return [TaskKey(*key) for *key, runner, at in rows if is_alive(runner, at)]

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
        with store_errors(self.path):
            for run in runs:
                place = datasets.index(run.key.dataset), methods.index(run.key.method)
                for chosen in run.selections:
                    if chosen.selection in (selection, UNSEARCHED):
                        scores = chosen.metrics | chosen.by_frequency
                        values[(*place, run.key.repetition)] = scores.get(metric, math.nan)
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
        new = 0
        with self.writing() as connection:
            for outcome in outcomes:
                connection.execute(f"DELETE FROM claims WHERE {_OF_KEY}", outcome.key)
                if connection.execute(
                    f"SELECT 1 FROM tasks WHERE {_OF_KEY} AND state = 'done'", outcome.key
                ).fetchone():
                    continue
                if isinstance(outcome, Run):
                    self._check_data(connection, outcome)
                state = "done" if isinstance(outcome, Run) else "failed"
                connection.execute(
                    "INSERT OR REPLACE INTO tasks (dataset, method, repetition, state, content, at)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    (*outcome.key, state, to_json(outcome), time.time()),
                )
                new += 1
        self.check_in_place()
        return new

    def _check_data(self, connection: sqlite3.Connection, run: Run) -> None:
        """Check that all results of a data set were computed on the same data."""
        known = connection.execute(
            "SELECT json_extract(content, '$.data_fingerprint') FROM tasks "
            "WHERE dataset = ? AND state = 'done' LIMIT 1",
            (run.key.dataset,),
        ).fetchone()
        if known is not None and known[0] != run.data_fingerprint:
            raise StoreError(
                f"the data of {run.key.dataset!r} differ from those of the rows in {self.path}: "
                "has the file changed? Use another name for the new data, or a new store"
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
                if file.read(len(CSV_HEAD)) != CSV_HEAD.encode():
                    raise StoreError(
                        f"{path} already exists and is not an export of results: choose another "
                        "name, or delete it"
                    )
        return write_whole(path, to_csv(self.runs()))

    def check_in_place(self) -> None:
        """Raise a StoreError if the file was deleted or replaced since it was opened.

        SQLite continues to write to a deleted file, so that rows would be lost.
        """
        present = identity(self.path)
        if present != self._identity:
            what = "was deleted" if present is None else "was replaced by another file"
            raise StoreError(
                f"{self.path} {what} while it was in use. Nothing more is written; rows computed "
                "after that are lost"
            )

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """Run a transaction: all changes are stored, or none."""
        return writing(self._connection, self.path)

    def _query(self, statement: str, *values: str) -> list[Any]:
        with store_errors(self.path):
            return self._connection.execute(statement, values).fetchall()


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


def _described(connection: sqlite3.Connection, path: Path) -> Experiment:
    """Return the experiment of a store.

    Nothing is imported: results can be read without the methods being installed, and a file must
    not determine which code is run.
    """
    with store_errors(path):
        (description,) = connection.execute("SELECT description FROM experiment").fetchone()
        return Experiment.from_dict(parsed(description, dict), str(path))
