"""The rows of studies: whole or not there, added as runs finish, not computed again."""

import operator
from typing import NamedTuple

import pytest

from imcc_paper import _rows


class Run(NamedTuple):
    data: str
    split: int


COLUMNS = ("data", "split", "stage", "score")


def measure(run):
    return [{**run._asdict(), "stage": stage, "score": 0.1} for stage in ("a", "b")]


def read(path):
    return _rows.read_rows(path, ("data", "stage"), ("split",))


def finished(rows):
    return _rows.finished(
        rows, lambda row: Run(row["data"], row["split"]), "stage", lambda run: ("a", "b")
    )


def test_rows_come_back_and_one_that_was_cut_off_counts_as_none(tmp_path):
    file = tmp_path / "rows.csv"
    assert read(file) == []
    first, second = measure(Run("x", 0)), measure(Run("y, z", 1))
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


# A function that other processes can import: the entry of a run.
entry = operator.itemgetter("rows")


@pytest.mark.parametrize("jobs", [1, 2])
def test_runs_are_kept_as_they_finish_and_failures_counted(tmp_path, capsys, jobs):
    file = tmp_path / "rows.csv"
    runs = [{"data": name, "rows": measure(Run(name, 0))} for name in ("x", "z")]
    failures = _rows.run_all(
        entry,
        [runs[0], {"data": "bad"}, runs[1]],
        lambda rows: _rows.add_rows(file, COLUMNS, rows),
        name=lambda run: f"run {run['data']}",
        outcome=lambda rows: f"{len(rows)} rows",
        jobs=jobs,
    )
    assert failures == 1
    assert finished(read(file)) == {Run("x", 0), Run("z", 0)}
    text = capsys.readouterr().err
    assert "KeyError: 'rows'" in text
    assert "/3] run x: 2 rows\n" in text
    assert "/3] run bad: failed\n" in text
    assert "the time is over" not in text


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_run_is_begun_after_the_end(capsys, jobs):
    words = {"name": str, "outcome": str, "jobs": jobs, "seconds": 0}
    assert _rows.run_all(entry, [{"rows": []}] * 3, pytest.fail, **words) == 0
    assert "3 runs are left" in capsys.readouterr().err
