"""The results store: rows in, rows and score tables out."""

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
    FREQUENCIES,
    check_in_place,
    connect,
    errors_in_words,
    identity,
    transaction,
)
from imcc.experiment._errors import StoreError
from imcc.experiment._methods import Method
from imcc.experiment._plan import SCORES, SENSITIVITY, Experiment, TaskKey, merged_description
from imcc.experiment._records import (
    RUN_FIELDS,
    STUDY_FIELDS,
    UNSEARCHED,
    Failure,
    Outcome,
    Run,
    Selection,
    Study,
)
from imcc.experiment._scores import ALL_METRICS, LABEL_RANGES, greater_is_better
from imcc.metrics import METRICS

#: A selection: every metric with the setting that this metric chose.
EACH = "each"

_RUN_COLUMNS = tuple(RUN_FIELDS)
_STUDY_COLUMNS = ("axes", "metrics", "mean", "std", *STUDY_FIELDS)
_KEY_COLUMNS = TaskKey._fields
_OF_KEY = "kind = ? AND dataset = ? AND method = ? AND repetition = ?"


class Store:
    """The results of one experiment in one SQLite file.

    A row is written the moment it exists, as a whole or not at all; several processes may read
    and write.  Opened with :meth:`open` or :meth:`create`.

    Parameters
    ----------
    path : path
        The file.
    read_only : bool, default=False
        Open without writing anything, whatever folder it is in.

    Attributes
    ----------
    path : Path
    experiment : Experiment
        What the store holds the results of.

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
        """Make a store for an experiment; if there is one already, let the experiment join it.

        A store that exists keeps all it has.  The experiment may have more data sets, methods or
        repetitions, or fewer, than the store knows of, but where both have the same they must
        mean the same.

        Nothing that the experiment names is imported here, but for our own methods: an experiment
        with others must be resolved (:meth:`Experiment.resolve`).
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
                    description = merged_description(json.loads(found[0]), description, str(path))
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
        """Return the keys of the tasks that are done."""
        rows = self._query(
            "SELECT kind, dataset, method, repetition FROM runs UNION ALL "
            "SELECT kind, dataset, method, repetition FROM studies"
        )
        return {TaskKey(*row) for row in rows}

    def missing(self) -> list[TaskKey]:
        """Return the keys of the experiment's tasks that are not done."""
        done = self.keys()
        return [task.key for task in self.experiment.tasks() if task.key not in done]

    def runs(self) -> list[Run]:
        """Return all rows, by data set, method and repetition."""
        environments = self._environments()
        frequencies = self._frequencies()
        selections: dict[int, list[Selection]] = {}
        columns = ", ".join(ALL_METRICS)
        for run, name, setting, cv_score, *values in self._query(
            f"SELECT run, selection, setting, cv_score, {columns} FROM selections "
            "ORDER BY run, position"
        ):
            metrics = {
                metric: math.nan if value is None else value
                for metric, value in zip(ALL_METRICS, values, strict=True)
            }
            by_frequency = frequencies.get((run, name), {})
            selection = Selection(name, json.loads(setting), cv_score, metrics, by_frequency)
            selections.setdefault(run, []).append(selection)
        rows = self._query(
            f"SELECT id, {', '.join((*_KEY_COLUMNS, *_RUN_COLUMNS))} FROM runs "
            "ORDER BY dataset, method, repetition"
        )
        found = []
        for number, kind, dataset, method, repetition, *values in rows:
            fields = dict(zip(_RUN_COLUMNS, values, strict=True))
            fields["warnings"] = tuple(json.loads(fields["warnings"]))
            fields["environment"] = environments[fields["environment"]]
            fields["selections"] = tuple(selections.get(number, ()))
            found.append(Run(key=TaskKey(kind, dataset, method, repetition), **fields))
        return found

    def data_fingerprints(self) -> dict[str, str]:
        """Return the hash of the data of each data set that has rows."""
        rows = self._query(
            "SELECT dataset, data_fingerprint FROM runs UNION "
            "SELECT dataset, data_fingerprint FROM studies"
        )
        return dict(rows)

    def studies(self) -> list[Study]:
        """Return all sensitivity studies, by data set."""
        environments = self._environments()
        found = []
        for kind, dataset, method, repetition, *values in self._query(
            f"SELECT {', '.join((*_KEY_COLUMNS, *_STUDY_COLUMNS))} FROM studies ORDER BY dataset"
        ):
            fields = dict(zip(_STUDY_COLUMNS, values, strict=True))
            fields["axes"] = json.loads(fields["axes"])
            fields["metrics"] = tuple(json.loads(fields["metrics"]))
            shape = (len(fields["metrics"]), *(len(axis) for axis in fields["axes"].values()))
            for name in ("mean", "std"):
                fields[name] = np.frombuffer(fields[name], dtype="<f8").reshape(shape)
            fields["warnings"] = tuple(json.loads(fields["warnings"]))
            fields["environment"] = environments[fields["environment"]]
            found.append(Study(key=TaskKey(kind, dataset, method, repetition), **fields))
        return found

    def results(self) -> list[Run | Study]:
        """Return runs and studies."""
        return [*self.runs(), *self.studies()]

    def failures(self) -> list[Failure]:
        """Return the tasks that failed when they were last tried."""
        rows = self._query(
            f"SELECT {', '.join(_KEY_COLUMNS)}, error, traceback, seconds, environment, finished "
            "FROM failures ORDER BY dataset, method, repetition"
        )
        return [
            Failure(TaskKey(*row[:4]), row[4], row[5], row[6], json.loads(row[7]), row[8])
            for row in rows
        ]

    def running(self) -> list[TaskKey]:
        """Return the keys of the tasks that living runners are computing."""
        rows = self._query(
            f"SELECT {', '.join(_KEY_COLUMNS)}, machine, pid, started, heartbeat "
            "FROM claims JOIN runners ON runner = runners.id ORDER BY since"
        )
        return [TaskKey(*row[:4]) for row in rows if is_alive(*row[4:])]

    def scores(self, metric: str, selection: str | None = None) -> ScoreTable:
        """Return one metric of all runs.

        Parameters
        ----------
        metric : str
            One of the five or ``micro_f1``, ``macro_f1``, ``subset_accuracy``, ``macro_auc``; or a
            range of ``LABEL_RANGES``, for the average precision of the labels of that frequency.
        selection : str or None
            Which setting of a method that searches: the one chosen by a metric, named here; that
            chosen by ``metric`` itself (``"each"``; by the experiment's metric, if a search cannot
            choose by this one); by default the one chosen by the experiment's metric.  Methods
            without a search have one setting only.

        Returns
        -------
        ScoreTable
            NaN where a run is missing, or has no record of the metric.
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
        source = "selections" if metric in ALL_METRICS else "frequencies"
        rows = []
        if source == "selections" or self._has_frequencies():
            rows = self._query(
                f"SELECT dataset, method, repetition, {metric} FROM runs JOIN {source} ON run = id "
                "WHERE kind = ? AND selection IN (?, ?)",
                (SCORES, selection, UNSEARCHED),
            )
        for dataset, method, repetition, value in rows:
            place = datasets.index(dataset), methods.index(method), repetition
            values[place] = np.nan if value is None else value
        return ScoreTable(metric, greater_is_better(metric), datasets, methods, values)

    # What comes in.

    def check_in_place(self) -> None:
        """Raise an error if the store was deleted or replaced since it was opened."""
        check_in_place(self.path, self._identity)

    def add(self, outcome: Outcome) -> bool:
        """Write what a task gave; return whether it was new.

        An existing result is kept: the first one counts.  A failure never replaces a result, and
        is removed when the task succeeds.
        """
        return bool(self.add_all([outcome]))

    def add_all(self, outcomes: Iterable[Outcome]) -> int:
        """Write many results, all or none; return how many were new."""
        new = 0
        self.check_in_place()
        with errors_in_words(self.path):
            with transaction(self._connection):
                for outcome in outcomes:
                    new += self._insert(outcome)
                    self._connection.execute(f"DELETE FROM claims WHERE {_OF_KEY}", outcome.key)
            # The write-ahead log is moved into the file, so that a copy of the file is
            # complete at any time.
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.check_in_place()
        return new

    def add_frequencies(self, runs: Iterable[Run]) -> int:
        """Add the record by the frequency of labels to rows that have none; return to how many.

        Rows of before there was such a record get it from runs with the same numbers.
        """
        new = 0
        self.check_in_place()
        known = self._frequencies()
        with errors_in_words(self.path), transaction(self._connection):
            for run in runs:
                found = self._connection.execute(
                    f"SELECT id FROM runs WHERE {_OF_KEY}", run.key
                ).fetchone()
                missing = [
                    chosen
                    for chosen in run.selections
                    if found and (found[0], chosen.selection) not in known
                ]
                for chosen in missing:
                    self._insert_frequencies(found[0], chosen)
                new += any(chosen.by_frequency for chosen in missing)
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
        """Make sure that all rows of a data set were computed on the same data."""
        for table in ("runs", "studies"):
            found = self._connection.execute(
                f"SELECT data_fingerprint FROM {table} WHERE dataset = ? LIMIT 1",
                (outcome.key[1],),
            ).fetchone()
            if found and found[0] != outcome.data_fingerprint:
                raise StoreError(
                    f"the data of {outcome.key[1]!r} are not those of the rows in {self.path}: has "
                    "its file changed? Give the new data a new name, or begin a new store"
                )

    def _insert_run(self, run: Run) -> None:
        fields = {name: getattr(run, name) for name in _RUN_COLUMNS}
        fields["warnings"] = json.dumps(run.warnings)
        fields["environment"] = self._remember(run.environment)
        number = self._insert_row("runs", run.key, fields)
        columns = ", ".join(ALL_METRICS)
        marks = ", ".join("?" * (5 + len(ALL_METRICS)))
        for position, chosen in enumerate(run.selections):
            # SQLite has no NaN: an undefined metric is NULL.
            values = [_or_none(chosen.metrics[metric]) for metric in ALL_METRICS]
            self._connection.execute(
                f"INSERT INTO selections (run, position, selection, setting, cv_score, {columns}) "
                f"VALUES ({marks})",
                (
                    *(number, position, chosen.selection, json.dumps(to_plain(chosen.setting))),
                    *(chosen.cv_score, *values),
                ),
            )
            self._insert_frequencies(number, chosen)

    def _insert_frequencies(self, run: int, chosen: Selection) -> None:
        if not chosen.by_frequency:
            return
        self._connection.execute(FREQUENCIES)
        means = [chosen.by_frequency.get(name) for name in LABEL_RANGES]
        self._connection.execute(
            f"INSERT INTO frequencies (run, selection, {', '.join(LABEL_RANGES)}) "
            f"VALUES (?, ?, {', '.join('?' * len(means))})",
            (run, chosen.selection, *means),
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
        return {name: json.loads(content) for name, content in rows}

    def _has_frequencies(self) -> bool:
        return bool(self._query("SELECT 1 FROM sqlite_master WHERE name = 'frequencies'"))

    def _frequencies(self) -> dict[tuple[int, str], dict[str, float]]:
        """Return the records by the frequency of labels, by run and selection."""
        if not self._has_frequencies():
            return {}
        rows = self._query(f"SELECT run, selection, {', '.join(LABEL_RANGES)} FROM frequencies")
        return {
            (run, selection): {
                name: value
                for name, value in zip(LABEL_RANGES, values, strict=True)
                if value is not None
            }
            for run, selection, *values in rows
        }

    def _described(self) -> Experiment:
        rows = self._query("SELECT value FROM meta WHERE name = 'experiment'")
        if not rows:
            raise StoreError(f"{self.path} is empty: the run that made it was stopped at once")
        # Nothing is imported: rows can be looked at where the methods are not installed, and
        # whoever made the file does not decide what runs here.
        try:
            plain = json.loads(rows[0][0])
            plain["methods"] = {
                name: Method.from_dict(name, method) for name, method in plain["methods"].items()
            }
            return Experiment.from_dict(plain, str(self.path))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreError(
                f"{self.path}: the description of the experiment makes no sense ({error})"
            ) from error

    def _query(self, statement: str, values: Iterable[Any] = ()) -> list[Any]:
        with errors_in_words(self.path):
            return self._connection.execute(statement, tuple(values)).fetchall()


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
