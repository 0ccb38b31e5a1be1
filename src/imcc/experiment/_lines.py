"""Results as lines of CSV and Parquet files, and back."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from imcc._utils.optional import require
from imcc.experiment._errors import StoreError
from imcc.experiment._plan import SCORES, SENSITIVITY, TaskKey
from imcc.experiment._records import UNSEARCHED, Run, Selection, Study
from imcc.experiment._scores import ALL_METRICS
from imcc.metrics import METRICS

_KEY = ("dataset", "method", "repetition")
_WHOLE = (
    *("repetition", "seed", "n_train", "n_test", "n_features", "n_labels", "n_rows"),
    "peak_memory",
)
_OR_NONE = ("peak_memory", "cv_score")
_SECONDS = ("fit_seconds", "search_seconds", "predict_seconds", "cpu_seconds")
_JSON = ("setting", "warnings", "environment")
_MARKS = ("fingerprint", "data_fingerprint", "finished")
_TEXT = ("dataset", "method", "selection", *_MARKS)
_OF_RUN = (
    *("seed", "n_train", "n_test", "n_features", "n_labels", *_SECONDS, "peak_memory"),
    *("warnings", "environment", *_MARKS),
)
#: One line for each setting that a run chose.
RUN_COLUMNS = (*_KEY, "selection", "cv_score", *ALL_METRICS, "setting", *_OF_RUN)
_OF_STUDY = ("seed", "n_rows", "fit_seconds", "cpu_seconds", "warnings", "environment", *_MARKS)
_AXES = ("alpha", "beta", "gamma", "n_clusters")
_VALUES = tuple(f"{moment}_{metric}" for metric in METRICS for moment in ("mean", "std"))
#: One line for each setting of a study; what is the same for all is said in the first one only,
#: since a study has thousands.
STUDY_COLUMNS = (*_KEY, *_AXES, *_VALUES, *_OF_STUDY)

Line = dict[str, Any]


def run_lines(run: Run) -> Iterator[Line]:
    """Return a line for each setting that a run chose."""
    common = {name: getattr(run, name) for name in _OF_RUN}
    for chosen in run.selections:
        yield {
            **dict(zip(_KEY, run.key[1:], strict=True)),
            "selection": chosen.selection,
            "cv_score": chosen.cv_score,
            **chosen.metrics,
            "setting": chosen.setting,
            **common,
        }


def study_lines(study: Study) -> Iterator[Line]:
    """Return a line for each setting of a study."""
    common = {name: getattr(study, name) for name in _OF_STUDY}
    for place in np.ndindex(study.mean.shape[1:]):
        values = [
            float(table[(study.metrics.index(metric), *place)])
            for metric in METRICS
            for table in (study.mean, study.std)
        ]
        yield {
            **dict(zip(_KEY, study.key[1:], strict=True)),
            **{name: study.axes[name][i] for name, i in zip(_AXES, place, strict=True)},
            **dict(zip(_VALUES, values, strict=True)),
            **common,
        }
        common = dict.fromkeys(_OF_STUDY)


def as_csv(columns: tuple[str, ...], lines: Iterable[Line]) -> bytes:
    """Return lines as CSV; numbers keep every digit."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, columns)
    writer.writeheader()
    for line in lines:
        writer.writerow({name: _as_text(name, line[name]) for name in columns})
    return file.getvalue().encode()


def _as_text(name: str, value: Any) -> Any:
    if _is_missing(value):
        return ""
    if name in _JSON or isinstance(value, (list, tuple)):
        return json.dumps(value)
    return repr(value) if isinstance(value, float) else value  # repr gives every digit


def as_parquet(columns: tuple[str, ...], lines: Iterable[Line]) -> bytes:
    """Return lines as Parquet."""
    pyarrow = require("pyarrow", "parquet", "Writing Parquet")
    parquet = require("pyarrow.parquet", "parquet", "Writing Parquet")
    table: dict[str, list[Any]] = {name: [] for name in columns}
    for line in lines:
        for name in columns:
            value = line[name]
            as_json = name in (*_JSON, "n_clusters")
            table[name].append(
                None if _is_missing(value) else json.dumps(value) if as_json else value
            )
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(table), file)
    return file.getvalue()


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


# From lines to results.


def read_results(path: Path) -> list[Run | Study]:
    """Return the results in an exported file; an error names the line that is not as it was."""
    if not path.exists():
        raise StoreError(f"there is no file {path}")
    lines = _read_csv(path) if path.suffix == ".csv" else _read_parquet(path)
    try:
        numbered = list(enumerate(lines, start=2 if path.suffix == ".csv" else 1))
    except (csv.Error, UnicodeDecodeError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    if not numbered:
        return []
    columns = set(numbered[0][1])
    for expected, assemble in ((RUN_COLUMNS, _as_runs), (STUDY_COLUMNS, _as_studies)):
        if set(expected) <= columns:
            typed = [_typed(line, expected, path, number) for number, line in numbered]
            return assemble(typed, path)
    missing = sorted(set(RUN_COLUMNS) - columns)
    raise StoreError(
        f"{path} is not an export of results: it lacks the columns {', '.join(missing)}"
    )


def _read_csv(path: Path) -> Iterator[Line]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file, strict=True)


def _read_parquet(path: Path) -> list[Line]:
    parquet = require("pyarrow.parquet", "parquet", "Reading Parquet")
    try:
        return list(parquet.read_table(path).to_pylist())
    except (OSError, ValueError) as error:  # pyarrow's own errors are of these kinds
        raise StoreError(f"{path} cannot be read as Parquet: {error}") from error


def _typed(line: Line, columns: tuple[str, ...], path: Path, number: int) -> Line:
    """Return a line with its values as they were before they were written."""
    typed: Line = {}
    once = columns == STUDY_COLUMNS  # said in the first line of a study, empty in the others
    for name in columns:
        value = line[name]
        try:
            if value in (None, "") and (name in _OR_NONE or (once and name in _OF_STUDY)):
                typed[name] = None
            elif name in (*_JSON, "n_clusters"):
                typed[name] = json.loads(value)
            elif name in _TEXT:
                if not isinstance(value, str) or not value:
                    raise ValueError("no text")
                typed[name] = value
            elif name in _WHOLE:
                typed[name] = int(value)
            else:
                typed[name] = math.nan if value in (None, "") else float(value)
        except (TypeError, ValueError) as error:
            raise StoreError(
                f"{path}, line {number}: {name} is {value!r}, which is not what an export has there"
            ) from error
    return typed


def _as_runs(lines: list[Line], path: Path) -> list[Run | Study]:
    runs: list[Run | Study] = []
    for key, group in _grouped(lines, SCORES):
        selections = [
            Selection(
                line["selection"],
                line["setting"],
                line["cv_score"],
                {metric: line[metric] for metric in ALL_METRICS},
            )
            for line in group
        ]
        names = [chosen.selection for chosen in selections]
        if len(set(names)) < len(names):
            raise StoreError(f"{path} has the result {key} twice")
        if set(names) not in ({UNSEARCHED}, set(METRICS)):
            raise StoreError(f"{path} has a part of the result {key} only: {', '.join(names)}")
        fields = {name: group[0][name] for name in _OF_RUN}
        fields["warnings"] = tuple(fields["warnings"])
        runs.append(Run(key=key, selections=tuple(selections), **fields))
    return runs


def _as_studies(lines: list[Line], path: Path) -> list[Run | Study]:
    studies: list[Run | Study] = []
    for key, group in _grouped(lines, SENSITIVITY):
        axes = {name: _distinct(line[name] for line in group) for name in _AXES}
        shape = tuple(len(values) for values in axes.values())
        if len(group) != np.prod(shape):
            raise StoreError(
                f"{path} has {len(group)} lines of the study {key}, its grid has "
                f"{int(np.prod(shape))}"
            )
        fields = {name: group[0][name] for name in _OF_STUDY}
        if None in fields.values():
            raise StoreError(f"{path} lacks the first line of the study {key}")
        fields["warnings"] = tuple(fields["warnings"])
        # Lines are in the order in which they were written, through the axes.
        mean, std = (
            np.array(
                [[line[f"{moment}_{metric}"] for line in group] for metric in METRICS]
            ).reshape(len(METRICS), *shape)
            for moment in ("mean", "std")
        )
        metrics = tuple(METRICS)
        studies.append(Study(key=key, axes=axes, metrics=metrics, mean=mean, std=std, **fields))
    return studies


def _grouped(lines: list[Line], kind: str) -> Iterator[tuple[TaskKey, list[Line]]]:
    groups: dict[TaskKey, list[Line]] = {}
    for line in lines:
        key = (kind, line["dataset"], line["method"], line["repetition"])
        groups.setdefault(key, []).append(line)
    yield from groups.items()


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(tuple(v) if isinstance(v, list) else v for v in values))
