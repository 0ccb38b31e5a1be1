"""Experiments: comparison of methods on data sets over repeated splits.

An :class:`Experiment` describes the tasks, :func:`run` computes those that are missing in a
:class:`Store`, and :meth:`Store.scores` returns the tables of scores for :mod:`imcc.comparison`.
"""

from imcc.experiment._errors import ExperimentError, StoreError
from imcc.experiment._plan import Experiment, load_experiment
from imcc.experiment._published import Cell, compare_with_published
from imcc.experiment._results import Failure, Run, TaskKey
from imcc.experiment._runner import Summary, remaining_seconds, run
from imcc.experiment._scores import ALL_METRICS, LABEL_RANGES
from imcc.experiment._store import EACH, Store
from imcc.experiment._task import run_task

__all__ = [
    "ALL_METRICS",
    "EACH",
    "LABEL_RANGES",
    "Cell",
    "Experiment",
    "ExperimentError",
    "Failure",
    "Run",
    "Store",
    "StoreError",
    "Summary",
    "TaskKey",
    "compare_with_published",
    "load_experiment",
    "remaining_seconds",
    "run",
    "run_task",
]
