"""The rows of studies: whole or not there, added as runs finish, not computed again."""

import operator
import time
from typing import NamedTuple

import pytest

from imcc_paper import _rows


class Run(NamedTuple):
    data: str
    split: int


COLUMNS = ("data", "split", "stage", "score")


def measure(run, device):
    if run.data == "bad":
        raise RuntimeError(f"broken on {device}")
    return [{**run._asdict(), "stage": stage, "score": 0.1} for stage in ("a", "b")]


def read(path):
    return _rows.read_rows(path, ("data", "stage"), ("split",))


def finished(rows):
    return _rows.finished(rows, lambda row: Run(row["data"], row["split"]), "stage", ("a", "b"))


def test_rows_come_back_and_one_that_was_cut_off_counts_as_none(tmp_path):
    file = tmp_path / "rows.csv"
    assert read(file) == []
    first, second = measure(Run("x", 0), None), measure(Run("y, z", 1), None)
    _rows.add_rows(file, COLUMNS, first)
    _rows.add_rows(file, COLUMNS, second)
    assert read(file) == [*first, *second]
    assert file.read_text().count("data,") == 1
    whole = file.read_text()
    for cut in range(1, len(whole.splitlines()[-1]) + 1):
        file.write_text(whole[:-cut])  # killed while it wrote
        assert read(file) == [*first, second[0]]
        assert finished(read(file)) == {Run("x", 0)}
        _rows.add_rows(file, COLUMNS, second)
        assert read(file) == [*first, second[0], *second]


def test_runs_are_kept_as_they_finish_and_failures_counted(tmp_path, capsys):
    file = tmp_path / "rows.csv"
    failures = _rows.run_all(
        measure,
        [_rows.Queue([Run("x", 0), Run("bad", 0), Run("z", 0)], 1, "cuda"), _rows.Queue([])],
        lambda rows: _rows.add_rows(file, COLUMNS, rows),
        name=lambda run: f"run {run.data}",
        outcome=lambda rows: f"{len(rows)} rows",
    )
    assert failures == 1
    assert finished(read(file)) == {Run("x", 0), Run("z", 0)}
    text = capsys.readouterr().err
    assert "RuntimeError: broken on cuda" in text
    assert "[1/3] run x: 2 rows\n" in text
    assert "[2/3] run bad: failed\n" in text
    assert "the time is over" not in text


def test_queues_are_computed_in_processes_side_by_side():
    # A function that processes can import: the run's entry at the place that is named as device.
    here, there = [{"here": [1], "there": [2]}] * 3, [{"there": [3]}, {}]
    queues = [_rows.Queue(here, 2, "here"), _rows.Queue(there, 1, "there")]
    found = list(_rows.computed(operator.getitem, queues))
    assert sorted(str(future.exception() or future.result()) for _, future in found) == [
        "'there'",  # the KeyError of the last
        *("[1]", "[1]", "[1]", "[3]"),
    ]
    assert [run for run, _ in found if run in there] == there  # in their order


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_run_is_begun_after_the_end(capsys, jobs):
    queue = _rows.Queue([Run("x", 0)] * 3, jobs)
    assert list(_rows.computed(measure, [queue], time.monotonic() - 1)) == []
    nothing = {"name": str, "outcome": str, "seconds": 0}
    assert _rows.run_all(measure, [queue], pytest.fail, **nothing) == 0
    assert "3 runs are left" in capsys.readouterr().err
