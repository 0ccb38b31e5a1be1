"""What is left to compute, how long it takes, and that a run can be stopped and continued."""

import pytest

from imcc.experiment import Store, TaskKey
from imcc_paper import reproduce_full
from imcc_paper.reproduction import rows


@pytest.fixture(scope="module")
def committed():
    return reproduce_full.committed()


def test_the_estimate_is_that_of_known_cells(committed):
    """Where all of a cell's splits but one are done, the cell's mean time is the estimate."""
    runs = [r for r in committed if r.key[:2] == ("image", "brsvm")]
    mean = sum(run.seconds for run in runs) / len(runs)
    tasks = [task.key for task in rows.plan("paper").tasks()]
    done = [key for key in tasks if key != TaskKey("image", "brsvm", 9)]
    found = reproduce_full.estimate("paper", done, committed)
    assert (found.n_tasks, found.n_left) == (len(tasks), 1)
    assert found.seconds == pytest.approx(mean)
    assert found.guessed == ()


def test_the_device_counts(committed):
    tasks = [task.key for task in rows.plan("paper").tasks()]
    done = [key for key in tasks if key[:2] != ("image", "imcc")]
    cpu, gpu = (
        reproduce_full.estimate("paper", done, committed, device=device).seconds
        for device in (None, "cuda")
    )
    assert gpu < cpu
    many = reproduce_full.estimate("paper", [], committed, jobs=4)
    one = reproduce_full.estimate("paper", [], committed)
    assert many.seconds == pytest.approx(one.seconds / 4)


def test_what_is_a_guess_is_named(committed):
    known = [row for row in committed if row.key.dataset != "flags" and row.key.method != "lift"]
    found = reproduce_full.estimate("outside", [], known)
    assert {"lift", "flags"} <= set(found.guessed)


def test_continuing_begins_with_the_committed_rows(tmp_path):
    assert reproduce_full.begin(tmp_path, "outside", with_committed=False) == set()
    found = reproduce_full.begin(tmp_path, "outside", with_committed=True)
    (tmp_path / "again").mkdir()
    with rows.opened(tmp_path / "again", "outside") as store:
        assert found == set(store.keys())


def test_only_the_estimate(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(reproduce_full, "_imcc", pytest.fail)
    assert reproduce_full.main(["--estimate", "-o", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    for name in reproduce_full.EXPERIMENTS:
        n = len(rows.plan(name).tasks())
        assert f"{name}: {n} of {n} tasks are left, about " in text
    assert "altogether about " in text


@pytest.mark.slow
def test_out_of_time_leaves_what_there_is(tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce_full, "EXPERIMENTS", ("outside",))
    code = reproduce_full.main(["--continue", "-o", str(tmp_path), "--for", "0s", "--quiet"])
    assert code == 75
    with Store(tmp_path / "outside.sqlite", read_only=True) as store:
        assert store.keys()
    assert (tmp_path / "outside.csv").stat().st_size > 1000
