"""The store of results."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from imcc._utils.plain import to_plain
from imcc._utils.validation import check_choice
from imcc.comparison import ScoreTable
from imcc.experiment._claims import is_alive
from imcc.experiment._database import (
    check_in_place,
    connect,
    damage_in_words,
    errors_in_words,
    identity,
    parsed,
    transaction,
)
from imcc.experiment._errors import StoreError
from imcc.experiment._joined import merged_description
from imcc.experiment._plan import SCORES, SENSITIVITY, Experiment, TaskKey
from imcc.experiment._records import (
    AXES,
    RUN_FIELDS,
    STUDY_FIELDS,
    UNSEARCHED,
    Failure,
    Outcome,
    Run,
    Selection,
    Study,
    check_selections,
)
from imcc.experiment._scores import ALL_METRICS, LABEL_RANGES, greater_is_better
from imcc.metrics import METRICS

#: Value of ``selection``: every metric is reported for the setting chosen by this metric.
EACH = "each"

_RUN_COLUMNS = tuple(RUN_FIELDS)
_STUDY_COLUMNS = ("axes", "metrics", "mean", "std", *STUDY_FIELDS)
_KEY_COLUMNS = TaskKey._fields
_OF_KEY = "kind = ? AND dataset = ? AND method = ? AND repetition = ?"


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
        self._connection = connect(self.path, read_only=read_only)
        try:
            self._identity = identity(self.path)
            self.experiment = self._described()
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def create(cls, path: str | Path, experiment: Experiment) -> Store:
        """Create a store for an experiment, or add the experiment to an existing store.

        Existing results are kept.  The experiment may have more or fewer data sets, methods and
        repetitions than the store; those that both have must have the same definitions.

        Only classes of imcc are imported: an experiment with other methods must be resolved
        (:meth:`Experiment.resolve`).

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
        experiment = experiment.resolve_ours()
        experiment.check_resolved()
        connection = connect(path, create=True)
        try:
            with errors_in_words(path), transaction(connection):
                found = connection.execute(
                    "SELECT value FROM meta WHERE name = 'experiment'"
                ).fetchone()
                description = experiment.to_dict()
                if found is not None:
                    known = _experiment(found[0], path).to_dict()
                    description = merged_description(known, description, str(path))
                connection.execute(
                    "INSERT OR REPLACE INTO meta VALUES ('experiment', ?)",
                    (json.dumps(description),),
                )
        finally:
            connection.close()
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
        rows = self._query(
            "SELECT kind, dataset, method, repetition FROM runs UNION ALL "
            "SELECT kind, dataset, method, repetition FROM studies"
        )
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
        selections: dict[int, list[Selection]] = {}
        columns = ", ".join((*ALL_METRICS, *LABEL_RANGES))
        chosen = self._query(
            f"SELECT run, selection, setting, cv_score, {columns} FROM selections "
            "ORDER BY run, position"
        )
        rows = self._query(
            f"SELECT id, {', '.join((*_KEY_COLUMNS, *_RUN_COLUMNS))} FROM runs "
            "ORDER BY dataset, method, repetition"
        )
        found = []
        with damage_in_words(self.path):
            for run, name, setting, cv_score, *values in chosen:
                scores = dict(zip((*ALL_METRICS, *LABEL_RANGES), values, strict=True))
                metrics = {
                    metric: math.nan if scores[metric] is None else scores[metric]
                    for metric in ALL_METRICS
                }
                by_frequency = {r: scores[r] for r in LABEL_RANGES if scores[r] is not None}
                selections.setdefault(run, []).append(
                    Selection(name, parsed(setting, dict), cv_score, metrics, by_frequency)
                )
            environments = self._environments()
            for number, kind, dataset, method, repetition, *values in rows:
                fields = dict(zip(_RUN_COLUMNS, values, strict=True))
                fields["warnings"] = tuple(map(str, parsed(fields["warnings"], list)))
                fields["environment"] = environments[fields["environment"]]
                fields["selections"] = tuple(selections[number])
                check_selections([each.selection for each in fields["selections"]])
                found.append(Run(key=TaskKey(kind, dataset, method, repetition), **fields))
        return found

    def data_fingerprints(self) -> dict[str, str]:
        """Return the hash of the data of each data set with results."""
        rows = self._query(
            "SELECT dataset, data_fingerprint FROM runs UNION "
            "SELECT dataset, data_fingerprint FROM studies"
        )
        return dict(rows)

    def studies(self) -> list[Study]:
        """Return all sensitivity studies, sorted by data set.

        Returns
        -------
        list of Study
        """
        rows = self._query(
            f"SELECT {', '.join((*_KEY_COLUMNS, *_STUDY_COLUMNS))} FROM studies ORDER BY dataset"
        )
        found = []
        with damage_in_words(self.path):
            environments = self._environments()
            for kind, dataset, method, repetition, *values in rows:
                fields = dict(zip(_STUDY_COLUMNS, values, strict=True))
                axes = parsed(fields["axes"], dict)
                fields["axes"] = {name: axes[name] for name in AXES}
                for name, values in fields["axes"].items():
                    if any(np.asarray(value).dtype.kind not in "if" for value in values):
                        raise ValueError(f"a study has {name} = {values}")
                fields["metrics"] = tuple(parsed(fields["metrics"], list))
                if set(fields["metrics"]) != set(METRICS):
                    raise ValueError(f"a study has the metrics {fields['metrics']}")
                shape = (len(METRICS), *(len(axis) for axis in fields["axes"].values()))
                for name in ("mean", "std"):
                    fields[name] = np.frombuffer(fields[name], dtype="<f8").reshape(shape)
                fields["warnings"] = tuple(map(str, parsed(fields["warnings"], list)))
                fields["environment"] = environments[fields["environment"]]
                found.append(Study(key=TaskKey(kind, dataset, method, repetition), **fields))
        return found

    def results(self) -> list[Run | Study]:
        """Return all runs and studies."""
        return [*self.runs(), *self.studies()]

    def failures(self) -> list[Failure]:
        """Return the tasks whose last attempt failed.

        Returns
        -------
        list of Failure
        """
        rows = self._query(
            f"SELECT {', '.join(_KEY_COLUMNS)}, error, traceback, seconds, environment, finished "
            "FROM failures ORDER BY dataset, method, repetition"
        )
        with damage_in_words(self.path):
            return [
                Failure(TaskKey(*row[:4]), row[4], row[5], row[6], parsed(row[7], dict), row[8])
                for row in rows
            ]

    def running(self) -> list[TaskKey]:
        """Return the keys of the tasks that are currently being computed."""
        rows = self._query(
            f"SELECT {', '.join(_KEY_COLUMNS)}, machine, pid, started, heartbeat "
            "FROM claims JOIN runners ON runner = runners.id ORDER BY since"
        )
        return [TaskKey(*row[:4]) for row in rows if is_alive(*row[4:])]

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
        rows = self._query(
            f"SELECT dataset, method, repetition, {metric} FROM runs JOIN selections ON run = id "
            "WHERE kind = ? AND selection IN (?, ?)",
            (SCORES, selection, UNSEARCHED),
        )
        with damage_in_words(self.path):
            for dataset, method, repetition, value in rows:
                place = datasets.index(dataset), methods.index(method), repetition
                values[place] = np.nan if value is None else value
        return ScoreTable(metric, greater_is_better(metric), datasets, methods, values)

    # Writing.

    def check_in_place(self) -> None:
        """Raise a StoreError if the file was deleted or replaced since it was opened."""
        check_in_place(self.path, self._identity)

    def add(self, outcome: Outcome) -> bool:
        """Add the outcome of a task.

        An existing result is kept.  A failure never replaces a result, and is removed when the task
        succeeds.

        Parameters
        ----------
        outcome : Run, Study or Failure
            The outcome.

        Returns
        -------
        bool
            Whether it was added.
        """
        return bool(self.add_all([outcome]))

    def add_all(self, outcomes: Iterable[Outcome]) -> int:
        """Add many outcomes in one transaction; return the number of those that were added."""
        new = 0
        self.check_in_place()
        with errors_in_words(self.path):
            with transaction(self._connection):
                for outcome in outcomes:
                    new += self._insert(outcome)
                    self._connection.execute(f"DELETE FROM claims WHERE {_OF_KEY}", outcome.key)
            # Move the write-ahead log into the file, so that a copy of the file is complete.
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.check_in_place()
        return new

    def _insert(self, outcome: Outcome) -> bool:
        if isinstance(outcome, Failure):
            return self._insert_failure(outcome)
        table = "runs" if isinstance(outcome, Run) else "studies"
        if self._connection.execute(
            f"SELECT 1 FROM {table} WHERE {_OF_KEY}", outcome.key
        ).fetchone():
            return False
        self._check_data(outcome)
        if isinstance(outcome, Run):
            self._insert_run(outcome)
        else:
            self._insert_study(outcome)
        self._connection.execute(f"DELETE FROM failures WHERE {_OF_KEY}", outcome.key)
        return True

    def _check_data(self, outcome: Run | Study) -> None:
        """Check that all results of a data set were computed on the same data."""
        for table in ("runs", "studies"):
            found = self._connection.execute(
                f"SELECT data_fingerprint FROM {table} WHERE dataset = ? LIMIT 1",
                (outcome.key[1],),
            ).fetchone()
            if found and found[0] != outcome.data_fingerprint:
                raise StoreError(
                    f"the data of {outcome.key[1]!r} differ from those of the rows in {self.path}: "
                    "has the file changed? Use another name for the new data, or a new store"
                )

    def _insert_run(self, run: Run) -> None:
        fields = {name: getattr(run, name) for name in _RUN_COLUMNS}
        fields["warnings"] = json.dumps(run.warnings)
        fields["environment"] = self._remember(run.environment)
        number = self._insert_row("runs", run.key, fields)
        columns = ", ".join((*ALL_METRICS, *LABEL_RANGES))
        marks = ", ".join("?" * (5 + len(ALL_METRICS) + len(LABEL_RANGES)))
        for position, chosen in enumerate(run.selections):
            # An undefined metric is NULL: SQLite has no NaN.
            values = [_or_none(chosen.metrics[metric]) for metric in ALL_METRICS]
            values += [chosen.by_frequency.get(name) for name in LABEL_RANGES]
            self._connection.execute(
                f"INSERT INTO selections (run, position, selection, setting, cv_score, {columns}) "
                f"VALUES ({marks})",
                (
                    *(number, position, chosen.selection, json.dumps(to_plain(chosen.setting))),
                    *(_or_none(chosen.cv_score), *values),
                ),
            )

    def _insert_study(self, study: Study) -> None:
        fields = {name: getattr(study, name) for name in _STUDY_COLUMNS}
        fields["axes"] = json.dumps(to_plain(study.axes))
        fields["metrics"] = json.dumps(study.metrics)
        fields["warnings"] = json.dumps(study.warnings)
        for name in ("mean", "std"):
            fields[name] = np.ascontiguousarray(fields[name], dtype="<f8").tobytes()
        fields["environment"] = self._remember(study.environment)
        self._insert_row("studies", study.key, fields)

    def _insert_failure(self, failure: Failure) -> bool:
        table = "studies" if failure.key[0] == SENSITIVITY else "runs"
        found = self._connection.execute(f"SELECT 1 FROM {table} WHERE {_OF_KEY}", failure.key)
        if found.fetchone():
            return False
        self._connection.execute(
            "INSERT INTO failures VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET error = excluded.error, traceback = excluded.traceback, "
            "seconds = excluded.seconds, attempts = attempts + 1, "
            "environment = excluded.environment, finished = excluded.finished, at = excluded.at",
            (
                *(*failure.key, failure.error, failure.traceback, failure.seconds),
                *(json.dumps(failure.environment), failure.finished, time.time()),
            ),
        )
        return True

    def _insert_row(self, table: str, key: TaskKey, fields: dict[str, Any]) -> int:
        names = (*_KEY_COLUMNS, *fields)
        done = self._connection.execute(
            f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
            (*key, *fields.values()),
        )
        return int(done.lastrowid or 0)

    def _remember(self, environment: dict[str, Any]) -> str:
        content = json.dumps(environment, sort_keys=True)
        name = hashlib.sha256(content.encode()).hexdigest()[:12]
        self._connection.execute(
            "INSERT OR IGNORE INTO environments VALUES (?, ?)", (name, content)
        )
        return name

    def _environments(self) -> dict[str, dict[str, Any]]:
        rows = self._query("SELECT id, content FROM environments")
        return {name: parsed(content, dict) for name, content in rows}

    def _described(self) -> Experiment:
        rows = self._query("SELECT value FROM meta WHERE name = 'experiment'")
        if not rows:
            raise StoreError(f"{self.path} is empty: the run that created it was interrupted")
        return _experiment(rows[0][0], self.path)

    def _query(self, statement: str, values: Iterable[Any] = ()) -> list[Any]:
        with errors_in_words(self.path):
            return self._connection.execute(statement, tuple(values)).fetchall()


def _experiment(description: str, path: Path) -> Experiment:
    """Return the experiment of a store.

    Nothing is imported: results can be read without the methods being installed, and a file must
    not determine which code is run.
    """
    with damage_in_words(path):
        return Experiment.from_dict(parsed(description, dict), str(path))


def _or_none(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
