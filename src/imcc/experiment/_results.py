"""Results of tasks, as plain values for a store and as lines of a CSV file."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from imcc._utils.plain import to_plain
from imcc._utils.text import escaped_formula
from imcc.experiment._errors import StoreError
from imcc.experiment._scores import ALL_METRICS, LABEL_RANGES
from imcc.metrics import METRICS

#: ``selection`` of a method without a search, which has only one setting.
UNSEARCHED = "none"
_MAX_DEPTH = 50  # of JSON
_LARGEST = 1e30


class TaskKey(NamedTuple):
    """Key of a task, unique in an experiment.

    Attributes
    ----------
    dataset, method : str
        Names of the data set and the method.
    repetition : int
        Index of the split, from 0.

    Examples
    --------
    >>> print(TaskKey("yeast", "imcc", 0))
    yeast, imcc, split 1
    """

    dataset: str
    method: str
    repetition: int

    def __str__(self) -> str:
        return f"{self.dataset}, {self.method}, split {self.repetition + 1}"


@dataclass(frozen=True)
class Selection:
    """A setting of a method, how it was chosen, and its metrics on the held-out rows.

    Attributes
    ----------
    selection : str
        Metric by which cross-validation chose the setting; ``"none"`` without a search.
    setting : dict
        The chosen parameters; empty without a search.
    cv_score : float or None
        Cross-validated value of that metric; None without a search.
    metrics : dict of str to float
        All metrics on the held-out rows; NaN if undefined.
    by_frequency : dict of str to float
        Mean average precision of the labels (not of the rows) per range of label frequencies, with
        the names in ``LABEL_RANGES``.  Ranges without labels are omitted; empty if it was not
        recorded.
    """

    selection: str
    setting: dict[str, Any]
    cv_score: float | None
    metrics: dict[str, float]
    by_frequency: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """The result of a task: one method on one split of one data set.

    Attributes
    ----------
    key : TaskKey
        Data set, method and repetition.
    fingerprint : str
        Hash of protocol and method.
    data_fingerprint : str
        Hash of the data.
    seed : int
        Hash of base seed, data set and repetition; determines the split, the folds and the random
        numbers of the method.
    n_train, n_test, n_features, n_labels : int
        Numbers of training rows, test rows, features and labels.
    selections : tuple of Selection
        One entry per metric that chose a setting; a single one without a search.  Each has
        ``selection`` (the metric), ``setting``, ``cv_score``, ``metrics`` and ``by_frequency``.
    fit_seconds : float
        Time of the search and of fitting the setting chosen by the experiment's metric on all
        training rows.
    search_seconds : float
        Time of the search alone.
    predict_seconds : float
        Time of scoring the held-out rows.
    cpu_seconds : float
        Processor time of the whole task, over all threads.
    peak_memory : int or None
        Increase of the peak memory of the process during the task in bytes; None if the system
        does not report it.
    warnings : tuple of str
        Warnings of the method.
    environment : dict
        Versions and hardware.
    finished : str
        Date and time, UTC.
    """

    key: TaskKey
    fingerprint: str
    data_fingerprint: str
    seed: int
    n_train: int
    n_test: int
    n_features: int
    n_labels: int
    selections: tuple[Selection, ...]
    fit_seconds: float
    search_seconds: float
    predict_seconds: float
    cpu_seconds: float
    peak_memory: int | None
    warnings: tuple[str, ...]
    environment: dict[str, Any]
    finished: str

    @property
    def seconds(self) -> float:
        """Time of training and scoring in seconds, for estimates."""
        return self.fit_seconds + self.predict_seconds


@dataclass(frozen=True)
class Failure:
    """A task that raised an error.  It is reported and retried by the next run.

    Attributes
    ----------
    key : TaskKey
        Data set, method and repetition.
    error : str
        The error message.
    traceback : str
        The traceback; may be empty.
    seconds : float
        Time until the task failed.
    finished : str
        Date and time, UTC.
    """

    key: TaskKey
    error: str
    traceback: str
    seconds: float
    finished: str


# Names and types of the fields of a run, except its key and its scores.
_RUN_FIELDS = {f.name: str(f.type) for f in fields(Run) if f.name not in ("key", "selections")}
_FAILURE_FIELDS = {f.name: str(f.type) for f in fields(Failure) if f.name != "key"}
_TYPES: dict[str, Any] = {
    "str": str,
    "int": int,
    "int | None": (int, type(None)),
    "float": (int, float),
    "tuple[str, ...]": list,
    "dict[str, Any]": dict,
}


def to_json(result: Run | Failure) -> str:
    """Return a result without its key as JSON."""
    plain = to_plain(result)
    del plain["key"]
    if isinstance(result, Run):
        plain["selections"] = [_plain_selection(chosen) for chosen in result.selections]
    return json.dumps(plain)


def _plain_selection(chosen: Selection) -> dict[str, Any]:
    """Return a selection without nesting; an undefined metric is None, as JSON has no NaN."""
    plain: dict[str, Any] = to_plain(chosen)
    scores = plain.pop("metrics") | plain.pop("by_frequency")
    return plain | scores


def parsed(text: str, kind: Any) -> Any:
    """Return the value of JSON text, which must be of a type and may not be nested deeply."""
    value = json.loads(text)
    if not isinstance(value, kind) or _depth(value) > _MAX_DEPTH:
        raise ValueError(f"{text[:50]!r} has another type, or is nested too deeply")
    return value


def _depth(value: Any) -> int:
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


def make_run(key: TaskKey, plain: Mapping[str, Any]) -> Run:
    """Return the run of plain values, which may be anything; errors are those of bad values."""
    selections = tuple(map(_make_selection, plain["selections"]))
    names = [each.selection for each in selections]
    # A run has one setting, or one that each metric has chosen.
    if sorted(names) not in ([UNSEARCHED], sorted(METRICS)):
        raise ValueError(f"the selections {', '.join(names)}: some of them are missing or twice")
    return Run(key=key, selections=selections, **_make_fields(plain, _RUN_FIELDS))


def make_failure(key: TaskKey, plain: Mapping[str, Any]) -> Failure:
    """Return the failure of plain values, as :func:`make_run`."""
    return Failure(key, **_make_fields(plain, _FAILURE_FIELDS))


def _make_fields(plain: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    made = {}
    for name, kind in types.items():
        value = plain[name]
        if not isinstance(value, _TYPES[kind]) or isinstance(value, bool):
            raise ValueError(f"{name} is {str(value)[:50]!r}")
        made[name] = _number(value, name) if kind == "float" else value
        if kind.startswith("tuple"):
            made[name] = tuple(map(str, value))
    return made


def _make_selection(plain: Mapping[str, Any]) -> Selection:
    setting, chosen_by = plain["setting"], plain["selection"]
    if not isinstance(setting, dict) or not isinstance(chosen_by, str):
        raise ValueError(f"setting is {str(setting)[:50]!r}, selection {str(chosen_by)[:50]!r}")
    cv_score = None if plain["cv_score"] is None else _number(plain["cv_score"], "cv_score")
    metrics = {
        name: math.nan if plain[name] is None else _number(plain[name], name)
        for name in ALL_METRICS
    }
    ranges = (name for name in LABEL_RANGES if plain.get(name) is not None)
    by_frequency = {name: _number(plain[name], name) for name in ranges}
    return Selection(chosen_by, setting, cv_score, metrics, by_frequency)


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < _LARGEST:
        raise ValueError(f"{name} is {str(value)[:50]!r}")
    return float(value)


# As CSV, with one line per run and chosen setting: text as it is, other values as JSON.

_TEXT = ("dataset", "method", "selection", *(n for n, kind in _RUN_FIELDS.items() if kind == "str"))
_COLUMNS = (
    *TaskKey._fields,
    *("selection", "cv_score", *ALL_METRICS, *LABEL_RANGES, "setting", *_RUN_FIELDS),
)
#: First line of an exported file, by which it is recognised.
CSV_HEAD = ",".join(_COLUMNS)


def to_csv(runs: Iterable[Run]) -> bytes:
    """Return runs as CSV, with numbers in full precision.

    Text that a spreadsheet would interpret as a formula is prefixed with an apostrophe, which
    :func:`read_csv` removes.
    """
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, _COLUMNS)
    writer.writeheader()
    for run in runs:
        common = run.key._asdict() | to_plain(run)
        for chosen in run.selections:
            values = common | _plain_selection(chosen)
            writer.writerow({name: _to_cell(name, values.get(name)) for name in _COLUMNS})
    return file.getvalue().encode("utf-8", "replace")


def _to_cell(name: str, value: Any) -> object:
    if value is None:
        return ""
    return _escaped(value) if name in _TEXT else json.dumps(value)


def _escaped(text: str) -> object:
    # Text that begins with an apostrophe gets another one, so that reading only removes what was
    # added.
    return f"'{text}" if text.startswith("'") else escaped_formula(text)


def _from_cell(name: str, cell: str) -> Any:
    if name in _TEXT:
        if not cell:
            raise ValueError("no text")
        return cell[1:] if cell.startswith("'") and _escaped(cell[1:]) == cell else cell
    value = parsed(cell, object) if cell else None
    if name == "repetition" and type(value) is not int:
        raise ValueError("no integer")
    return value


def read_csv(path: Path) -> list[Run]:
    """Return the runs in an exported file; an error names the line or the run."""
    if not path.is_file():
        raise StoreError(f"there is no file {path}")
    plain: dict[TaskKey, dict[str, Any]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file, strict=True)
        try:
            if missing := sorted(set(_COLUMNS) - set(reader.fieldnames or ())):
                raise StoreError(
                    f"{path} is not an export of results: it lacks the columns {', '.join(missing)}"
                )
            for line in reader:
                values = {}
                for name in _COLUMNS:
                    try:
                        values[name] = _from_cell(name, line[name])
                    except (RecursionError, TypeError, ValueError) as error:
                        raise StoreError(
                            f"{path}, line {reader.line_num}: invalid value "
                            f"{str(line[name])[:50]!r} of {name}"
                        ) from error
                key = TaskKey(*(values[name] for name in TaskKey._fields))
                plain.setdefault(key, {**values, "selections": []})["selections"].append(values)
        except (csv.Error, UnicodeDecodeError) as error:
            raise StoreError(f"{path} cannot be read at line {reader.line_num}: {error}") from error
    runs = []
    for key, values in plain.items():
        try:
            runs.append(make_run(key, values))
        except ValueError as error:
            raise StoreError(f"{path}, {key}: {error}") from error
    return runs
