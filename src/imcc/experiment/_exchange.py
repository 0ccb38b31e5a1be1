"""Rows as CSV and Parquet files, out of a store and into one: how machines exchange results."""

from __future__ import annotations

import csv
import itertools
import json
import math
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from imcc.datasets._optional import require
from imcc.experiment._errors import StoreError
from imcc.experiment._plan import SCORES, SENSITIVITY, TaskKey
from imcc.experiment._records import UNSEARCHED, Run, Selection, Study
from imcc.experiment._scores import ALL_METRICS
from imcc.experiment._store import Store
from imcc.metrics import METRICS

_KEY = ("dataset", "method", "repetition")
_WHOLE = ("repetition", "seed", "n_train", "n_test", "n_features", "n_labels", "n_rows")
_WHOLE_OR_NONE = ("peak_memory",)
_SECONDS = ("fit_seconds", "search_seconds", "predict_seconds", "cpu_seconds")
_JSON = ("setting", "warnings", "environment")
_TEXT = ("fingerprint", "data_fingerprint", "finished")
_OF_RUN = (
    *("seed", "n_train", "n_test", "n_features", "n_labels", *_SECONDS, "peak_memory"),
    *("warnings", "environment", *_TEXT),
)
#: One line for each setting that a run chose.
RUN_COLUMNS = (*_KEY, "selection", "cv_score", *ALL_METRICS, "setting", *_OF_RUN)
_OF_STUDY = ("seed", "n_rows", "fit_seconds", "cpu_seconds", "warnings", "environment", *_TEXT)
_AXES = ("alpha", "beta", "gamma", "n_clusters")
#: One line for each setting and metric of a study.
STUDY_COLUMNS = (*_KEY, "metric", *_AXES, "mean", "std", *_OF_STUDY)

Line = dict[str, Any]


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
        (path, RUN_COLUMNS, (line for run in store.runs() for line in _run_lines(run)))
    ]
    if studies := store.studies():
        beside = path.with_name(f"{path.stem}.sensitivity{path.suffix}")
        studied = (line for study in studies for line in _study_lines(study))
        pieces.append((beside, STUDY_COLUMNS, studied))
    for target, _, _ in pieces:
        if target.exists() and not overwrite:
            raise StoreError(f"{target} exists already: give another name, or overwrite=True")
    for target, columns, lines in pieces:
        with _replacing(target) as temporary:
            (_write_csv if kind == ".csv" else _write_parquet)(temporary, columns, lines)
    return [target for target, _, _ in pieces]


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
    for source in sources:
        found += _read(Path(source))
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


# From results to lines.


def _run_lines(run: Run) -> Iterator[Line]:
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


def _study_lines(study: Study) -> Iterator[Line]:
    common = {name: getattr(study, name) for name in _OF_STUDY}
    for (i, metric), setting in itertools.product(
        enumerate(study.metrics), itertools.product(*map(enumerate, study.axes.values()))
    ):
        place = (i, *(number for number, _ in setting))
        yield {
            **dict(zip(_KEY, study.key[1:], strict=True)),
            "metric": metric,
            **dict(zip(_AXES, (value for _, value in setting), strict=True)),
            "mean": float(study.mean[place]),
            "std": float(study.std[place]),
            **common,
        }


def _write_csv(path: Path, columns: tuple[str, ...], lines: Iterable[Line]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for line in lines:
            writer.writerow({name: _as_text(name, line[name]) for name in columns})


def _as_text(name: str, value: Any) -> Any:
    if name in _JSON or isinstance(value, (list, tuple)):
        return json.dumps(value)
    # repr gives every digit that matters.
    return "" if _is_missing(value) else repr(value) if isinstance(value, float) else value


def _write_parquet(path: Path, columns: tuple[str, ...], lines: Iterable[Line]) -> None:
    pyarrow = require("pyarrow", "report", "Writing Parquet")
    parquet = require("pyarrow.parquet", "report", "Writing Parquet")
    table: dict[str, list[Any]] = {name: [] for name in columns}
    for line in lines:
        for name in columns:
            value = line[name]
            as_json = name in _JSON or (name == "n_clusters" and columns == STUDY_COLUMNS)
            table[name].append(
                json.dumps(value) if as_json else None if _is_missing(value) else value
            )
    parquet.write_table(pyarrow.table(table), path)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


# From lines to results.


def _read(path: Path) -> list[Run | Study]:
    if not path.exists():
        raise StoreError(f"there is no file {path}")
    if path.suffix not in (".csv", ".parquet"):
        with Store(path, read_only=True) as other:
            return other.results()
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
    parquet = require("pyarrow.parquet", "report", "Reading Parquet")
    try:
        return list(parquet.read_table(path).to_pylist())
    except (OSError, ValueError) as error:  # pyarrow's own errors are of these kinds
        raise StoreError(f"{path} cannot be read as Parquet: {error}") from error


def _typed(line: Line, columns: tuple[str, ...], path: Path, number: int) -> Line:
    """Return a line with its values as they were before they were written."""
    typed: Line = {}
    for name in columns:
        value = line[name]
        try:
            if name in _JSON or (name == "n_clusters" and isinstance(value, str)):
                typed[name] = json.loads(value)
            elif name in _TEXT or name in ("dataset", "method", "selection", "metric"):
                if not isinstance(value, str) or not value:
                    raise ValueError("no text")
                typed[name] = value
            elif name in _WHOLE:
                typed[name] = int(value)
            elif name in _WHOLE_OR_NONE:
                typed[name] = None if value in (None, "") else int(value)
            elif name == "cv_score":
                typed[name] = None if value in (None, "") else float(value)
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
        metrics = tuple(dict.fromkeys(line["metric"] for line in group))
        axes = {name: _distinct(line[name] for line in group) for name in _AXES}
        shape = (len(metrics), *(len(values) for values in axes.values()))
        if len(group) != np.prod(shape):
            raise StoreError(
                f"{path} has {len(group)} lines of the study {key}, its grid has "
                f"{int(np.prod(shape))}"
            )
        fields = {name: group[0][name] for name in _OF_STUDY}
        fields["warnings"] = tuple(fields["warnings"])
        # Lines are in the order in which they were written: metric, then the axes.
        mean, std = (
            np.array([line[name] for line in group]).reshape(shape) for name in ("mean", "std")
        )
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


def _kind(path: Path) -> str:
    if path.suffix not in (".csv", ".parquet"):
        raise StoreError(f"results are exported to .csv or .parquet files, not to {path.name}")
    return path.suffix


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Give a file to write to, which takes its name only when it is complete."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error}") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())  # mkstemp makes it readable for its owner only
        temporary.replace(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    present = os.umask(0)
    os.umask(present)
    return present
