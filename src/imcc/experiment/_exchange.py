"""Export of the results of a store, and merging of results into a store.

Exported files are CSV, with one row per run and chosen setting.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from imcc._utils.errors import given
from imcc._utils.files import write_whole
from imcc._utils.plain import to_plain
from imcc._utils.progress import report_progress
from imcc._utils.text import defused
from imcc.experiment._database import parsed
from imcc.experiment._errors import StoreError
from imcc.experiment._plan import SCORES, SENSITIVITY, TaskKey
from imcc.experiment._records import (
    AXES,
    RUN_FIELDS,
    STUDY_FIELDS,
    Run,
    Selection,
    Study,
    check_selections,
)
from imcc.experiment._scores import ALL_METRICS, LABEL_RANGES
from imcc.experiment._store import Store
from imcc.metrics import METRICS

_KEY = TaskKey._fields[1:]
_VALUES = tuple(f"{moment}_{metric}" for metric in METRICS for moment in ("mean", "std"))
#: Columns of runs, with one row per chosen setting.
RUN_COLUMNS = (*_KEY, "selection", "cv_score", *ALL_METRICS, *LABEL_RANGES, "setting", *RUN_FIELDS)
#: Columns of studies, with one row per setting.  As a study has thousands of rows, values that are
#: the same for all of them are only in the first one.
STUDY_COLUMNS = (*_KEY, *AXES, *_VALUES, *STUDY_FIELDS)

_TYPES = RUN_FIELDS | STUDY_FIELDS
_TEXT = ("dataset", "method", "selection", *(n for n, kind in _TYPES.items() if kind == "str"))
_WHOLE = ("repetition", *(n for n, kind in _TYPES.items() if kind.startswith("int")))
_OR_NONE = ("cv_score", *(n for n, kind in _TYPES.items() if kind.endswith("None")))
_JSON = {"setting": dict, "warnings": list, "environment": dict}

Line = dict[str, Any]


@dataclass
class Merged:
    """Summary of a merge.

    Attributes
    ----------
    n_new : int
        Number of results that were added.
    n_known : int
        Number of results that the store already had, with the same values.
    conflicts : list of TaskKey
        Results that the store already had, with different values; those of the store were kept.
    """

    n_new: int = 0
    n_known: int = 0
    conflicts: list[TaskKey] = field(default_factory=list)


def export(
    store: Store, path: str | Path, *, overwrite: bool = False, defuse: bool = True
) -> list[Path]:
    """Write the results of a store to a CSV file.

    Parameters
    ----------
    store : Store
        The store.
    path : path-like
        File to write.  Sensitivity studies are written to a second file next to it,
        ``NAME.sensitivity.csv``.
    overwrite : bool, default=False
        Whether to overwrite existing files.
    defuse : bool, default=True
        Whether text that a spreadsheet would interpret as a formula (it begins with ``=``, ``+``,
        ``-``, ``@``, a tab or a carriage return) is prefixed with an apostrophe, which
        :func:`merge` removes.  Numbers are never changed.

    Returns
    -------
    list of pathlib.Path
        The files that were written.

    Raises
    ------
    StoreError
        If a file already exists and ``overwrite`` is False.
    """
    path = Path(path)
    if path.suffix != ".csv":
        raise StoreError(f"results can only be exported to .csv, not to {path.name}")
    runs = store.runs()
    pieces: list[tuple[Path, tuple[str, ...], Iterable[Line]]] = [
        (path, RUN_COLUMNS, (line for run in runs for line in _run_lines(run)))
    ]
    if studies := store.studies():
        beside = path.with_name(f"{path.stem}.sensitivity{path.suffix}")
        studied = (line for study in studies for line in _study_lines(study))
        pieces.append((beside, STUDY_COLUMNS, studied))
    for target, _, _ in pieces:
        if target.exists() and not overwrite:
            raise StoreError(
                f"{target} already exists: choose another name, or " + given("overwrite", True)
            )
    return [
        write_whole(target, _as_csv(columns, lines, defuse)) for target, columns, lines in pieces
    ]


def merge(store: Store, sources: Iterable[str | Path] | str | Path) -> Merged:
    """Add results that were computed elsewhere to a store.

    Parameters
    ----------
    store : Store
        The store to which results are added.
    sources : path-like, or iterable of path-like
        Exported CSV files, and other stores, of the same experiment: with the same
        splits and the same definitions of the methods.

    Returns
    -------
    Merged

    Raises
    ------
    StoreError
        If a source is invalid or of another experiment; nothing is added then.
    """
    return merge_results(store, read_results(sources))


def read_results(sources: Iterable[str | Path] | str | Path) -> list[Run | Study]:
    """Return the results in exported CSV files, and in stores."""
    found: list[Run | Study] = []
    if isinstance(sources, (str, os.PathLike)):
        sources = [sources]  # not the letters of its name
    paths = [Path(source) for source in sources]
    for number, path in enumerate(paths):
        report_progress(number, len(paths), f"reading {path.name}")
        if path.suffix == ".csv":
            found += _read_results(path)
            continue
        with Store(path, read_only=True) as other:
            found += other.results()
    return found


def merge_results(store: Store, found: list[Run | Study]) -> Merged:
    """Add all results to a store, or none if one of them is invalid; see :func:`merge`."""
    _check_belongs(store, found)
    new, known, conflicts = sorted_results(store.results(), found)
    return Merged(store.add_all(new), len(known), conflicts)


def sorted_results(
    ours: list[Run | Study], found: list[Run | Study]
) -> tuple[list[Run | Study], list[Run | Study], list[TaskKey]]:
    """Return which results are new, which are known, and the keys of those with other numbers."""
    there = {result.key: result for result in ours}
    new: list[Run | Study] = []
    known: list[Run | Study] = []
    conflicts: list[TaskKey] = []
    for result in found:
        other = there.setdefault(result.key, result)
        if other is result:
            new.append(result)
        elif _same_numbers(other, result):
            known.append(result)
        else:
            conflicts.append(result.key)
    return new, known, conflicts


def _check_belongs(store: Store, found: list[Run | Study]) -> None:
    tasks = {task.key: task for task in store.experiment.tasks()}
    for result in found:
        task = tasks.get(result.key)
        if task is None:
            raise StoreError(
                f"the experiment in {store.path} has no task {result.key}: first run a larger "
                "experiment (more data sets, methods or repetitions) into the store"
            )
        if task.fingerprint != result.fingerprint:
            raise StoreError(
                f"the result {result.key} was computed with another protocol, or another method of "
                f"that name, than in {store.path}: only rows of the same splits and settings can "
                "be compared"
            )


def _same_numbers(a: Run | Study, b: Run | Study) -> bool:
    """Return whether results are equal up to rounding differences between processors."""
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
    """Yield one line per chosen setting of a run."""
    common = {name: getattr(run, name) for name in RUN_FIELDS}
    for chosen in run.selections:
        yield {
            **dict(zip(_KEY, run.key[1:], strict=True)),
            "selection": chosen.selection,
            "cv_score": chosen.cv_score,
            **chosen.metrics,
            "setting": chosen.setting,
            **common,
            **dict.fromkeys(LABEL_RANGES),
            **chosen.by_frequency,
        }


def _study_lines(study: Study) -> Iterator[Line]:
    """Yield one line per setting of a study."""
    common = {name: getattr(study, name) for name in STUDY_FIELDS}
    for place in np.ndindex(study.mean.shape[1:]):
        values = [
            float(table[(study.metrics.index(metric), *place)])
            for metric in METRICS
            for table in (study.mean, study.std)
        ]
        yield {
            **dict(zip(_KEY, study.key[1:], strict=True)),
            **{name: study.axes[name][i] for name, i in zip(AXES, place, strict=True)},
            **dict(zip(_VALUES, values, strict=True)),
            **common,
        }
        common = dict.fromkeys(STUDY_FIELDS)


def _as_csv(columns: tuple[str, ...], lines: Iterable[Line], defuse: bool) -> bytes:
    """Return lines as CSV, with numbers in full precision."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, columns)
    writer.writeheader()
    for line in lines:
        cells = {name: _as_text(name, line[name]) for name in columns}
        if defuse:
            cells |= {name: _defused(cells[name]) for name in _TEXT if name in cells}
        writer.writerow(cells)
    return file.getvalue().encode()


def _defused(text: str) -> object:
    # Text that begins with an apostrophe gets another one, so that reading only removes what was
    # added.
    return f"'{text}" if text.startswith("'") else defused(text)


def _fused(text: str) -> str:
    """Undo :func:`_defused`."""
    if text.startswith("'") and _defused(text[1:]) == text:
        return text[1:]
    return text


def _as_text(name: str, value: Any) -> Any:
    if _is_missing(value):
        return ""
    if name in _JSON or isinstance(value, (list, tuple)):
        return json.dumps(to_plain(value))
    return repr(value) if isinstance(value, float) else value  # repr has full precision


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


# From lines to results.


def _read_results(path: Path) -> list[Run | Study]:
    """Return the results in an exported file; an error names the invalid line."""
    if not path.exists():
        raise StoreError(f"there is no file {path}")
    numbered = _read_csv(path)
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


def _read_csv(path: Path) -> list[tuple[int, Line]]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file, strict=True)
        try:
            return [(reader.line_num, line) for line in reader]
        except (csv.Error, UnicodeDecodeError) as error:
            raise StoreError(f"{path} cannot be read at line {reader.line_num}: {error}") from error


def _typed(line: Line, columns: tuple[str, ...], path: Path, number: int) -> Line:
    """Return a line with its values converted to their original types."""
    typed: Line = {}
    once = columns == STUDY_COLUMNS  # given in the first line of a study, empty in the others
    for name in columns:
        value = line[name]
        try:
            if value in (None, "") and (name in _OR_NONE or (once and name in STUDY_FIELDS)):
                typed[name] = None
            elif name in _JSON:
                typed[name] = parsed(value, _JSON[name])
            elif name == "n_clusters":  # of one clustering, or of several
                counts = parsed(value, (int, list))
                typed[name] = tuple(map(int, counts)) if isinstance(counts, list) else counts
            elif name in _TEXT:
                if not isinstance(value, str) or not value:
                    raise ValueError("no text")
                typed[name] = _fused(value)
            elif name in _WHOLE:
                typed[name] = int(value)
            else:
                typed[name] = math.nan if value in (None, "") else float(value)
        except (OverflowError, RecursionError, TypeError, ValueError) as error:
            shown = str(value)[:50]
            raise StoreError(f"{path}, line {number}: invalid value {shown!r} of {name}") from error
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
                {r: line[r] for r in LABEL_RANGES if not math.isnan(line[r])},
            )
            for line in group
        ]
        try:
            check_selections([chosen.selection for chosen in selections])
        except ValueError as error:
            raise StoreError(f"{path}, {key}: {error}, some of them missing or twice") from error
        fields = {name: group[0][name] for name in RUN_FIELDS}
        fields["warnings"] = tuple(fields["warnings"])
        runs.append(Run(key=key, selections=tuple(selections), **fields))
    return runs


def _as_studies(lines: list[Line], path: Path) -> list[Run | Study]:
    studies: list[Run | Study] = []
    for key, group in _grouped(lines, SENSITIVITY):
        axes = {name: list(dict.fromkeys(line[name] for line in group)) for name in AXES}
        shape = tuple(len(values) for values in axes.values())
        if len(group) != math.prod(shape):
            raise StoreError(
                f"{path} has {len(group)} lines of the study {key}, but its grid has "
                f"{math.prod(shape)} settings"
            )
        fields = {name: group[0][name] for name in STUDY_FIELDS}
        if None in fields.values():
            raise StoreError(f"{path} lacks the first line of the study {key}")
        fields["warnings"] = tuple(fields["warnings"])
        # Lines are in the order of the axes.
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
        key = TaskKey(kind, line["dataset"], line["method"], line["repetition"])
        groups.setdefault(key, []).append(line)
    yield from groups.items()
