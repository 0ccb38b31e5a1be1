"""Experiments: comparison of methods on data sets over repeated splits.

An :class:`Experiment` describes the tasks, :func:`run` computes those that are missing in a
:class:`Store`, and :meth:`Store.scores` returns the tables of scores for :mod:`imcc.comparison`.
"""

from imcc.experiment._beside import join_rows, scores_beside
from imcc.experiment._errors import ExperimentError, StoreError
from imcc.experiment._estimate import remaining_seconds
from imcc.experiment._exchange import Merged, export, merge
from imcc.experiment._methods import NAMED, Method
from imcc.experiment._plan import (
    SCORES,
    SENSITIVITY,
    Experiment,
    Protocol,
    Task,
    TaskKey,
)
from imcc.experiment._published import VERDICTS, Cell, PublishedComparison, compare_with_published
from imcc.experiment._records import UNSEARCHED, Failure, Run, Selection, Study
from imcc.experiment._runner import Progress, Summary, run
from imcc.experiment._scores import ALL_METRICS, LABEL_RANGES, greater_is_better
from imcc.experiment._shipped import list_experiments, load_experiment, load_methods
from imcc.experiment._sources import DatasetSpec
from imcc.experiment._store import EACH, Store
from imcc.experiment._task import run_task

__all__ = [
    "ALL_METRICS",
    "EACH",
    "LABEL_RANGES",
    "NAMED",
    "SCORES",
    "SENSITIVITY",
    "UNSEARCHED",
    "VERDICTS",
    "Cell",
    "DatasetSpec",
    "Experiment",
    "ExperimentError",
    "Failure",
    "Merged",
    "Method",
    "Progress",
    "Protocol",
    "PublishedComparison",
    "Run",
    "Selection",
    "Store",
    "StoreError",
    "Study",
    "Summary",
    "Task",
    "TaskKey",
    "compare_with_published",
    "export",
    "greater_is_better",
    "join_rows",
    "list_experiments",
    "load_experiment",
    "load_methods",
    "merge",
    "remaining_seconds",
    "run",
    "run_task",
    "scores_beside",
]
