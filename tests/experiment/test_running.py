import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from imcc.comparison import compare
from imcc.datasets import read, write
from imcc.experiment import (
    Experiment,
    ExperimentError,
    Failure,
    Store,
    StoreError,
    _claims,
    remaining_seconds,
    run,
    run_task,
)
from imcc.experiment._claims import Claims, is_alive, machine
from tests.experiment.conftest import ALLOW, DICE


def test_the_same_rows_come_out_of_any_process(small, tmp_path):
    """Also those of a method that draws from the global generators."""
    draws = {"estimator": "imcc_test_methods.Rude", "params": {"how": "draw"}}
    experiment = small.with_methods({"draws": draws}).resolve()
    tasks = [run_task(task, 1) for task in experiment.tasks()]
    expected = sorted((run.key, run.seed, run.selections) for run in tasks)
    path = tmp_path / "two.sqlite"
    summary = run(experiment, path, n_jobs=2)
    assert (summary.n_computed, summary.failures, summary.n_missing) == (9, [], 0)
    with Store(path, read_only=True) as store:
        assert [(run.key, run.seed, run.selections) for run in store.runs()] == expected


def test_a_failing_method_does_not_stop_the_others(pets_file, tmp_path):
    mended = tmp_path / "mended"
    experiment = Experiment(
        {"pets": pets_file},
        {"good": DICE, "bad": {"estimator": DICE, "params": {"fails": True, "dies": str(mended)}}},
        n_repeats=2,
        allow=ALLOW,
    )
    store = tmp_path / "x.sqlite"
    summary = run(experiment, store, isolate=False)
    assert summary.n_computed == 2
    assert [f.key.method for f in summary.failures] == ["bad", "bad"]
    assert summary.n_missing == 2
    mended.touch()  # whatever was wrong is put right, and the next run tries again
    summary = run(experiment, store, isolate=False)
    assert (summary.n_computed, summary.failures, summary.n_missing) == (2, [], 0)
    with Store(store) as opened:
        assert opened.failures() == []


def test_what_is_there_is_not_computed_again(small, pets_file, tmp_path):
    log = tmp_path / "log"
    experiment = Experiment(
        {"pets": pets_file},
        {"dice": {"estimator": DICE, "params": {"log": str(log)}}},
        n_repeats=3,
        allow=ALLOW,
    )
    run(experiment, tmp_path / "x.sqlite", isolate=False)
    assert run(experiment, tmp_path / "x.sqlite").n_computed == 0
    assert len(log.read_text().splitlines()) == 3
    larger = Experiment.from_dict(experiment.resolve().to_dict() | {"n_repeats": 5}, allow=ALLOW)
    assert larger.run(tmp_path / "x.sqlite", isolate=False).n_computed == 2


def test_progress_is_reported(small, tmp_path):
    told = []
    run(small, tmp_path / "x.sqlite", isolate=False, progress=told.append)
    ended = [p for p in told if p.last is not None]
    assert [p.n_done for p in ended] == [1, 2, 3, 4, 5, 6]
    assert all(p.n_tasks == 6 for p in told)
    assert ended[-1].remaining == 0
    assert ended[0].remaining > 0
    assert any(p.running for p in told)
    assert told[0].remaining is None


@pytest.mark.parametrize(
    "options",
    [{"n_jobs": 0}, {"timeout": 0}, {"budget": -1}, {"timeout": "soon"}],
)
def test_wrong_options_are_refused(small, tmp_path, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        run(small, tmp_path / "x.sqlite", **options)
    assert not (tmp_path / "x.sqlite").exists()


@pytest.mark.parametrize("n_done", [2, 6])  # 6 is the very end
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_store_that_disappears_stops_the_run(small, tmp_path, how, n_done):
    path, other = tmp_path / "x.sqlite", tmp_path / "other.sqlite"
    Store.create(other, small).close()

    def make_trouble(progress):
        if progress.n_done == n_done and other.exists():
            if how == "deleted":
                path.unlink()
                other.unlink()
            else:
                other.replace(path)

    with pytest.raises(StoreError, match=f"was {how}"):
        run(small, path, isolate=False, progress=make_trouble)


def test_long_tasks_begin_first(pets_file, tmp_path):
    methods = {
        name: {"estimator": DICE, "params": {"delay": delay}}
        for name, delay in (("quick", 0.0), ("slow", 0.3), ("middle", 0.1))
    }
    experiment = Experiment(pets_file, methods, n_repeats=2, allow=ALLOW)
    run(experiment.subset(n_repeats=1), tmp_path / "x.sqlite", isolate=False)
    told = []
    run(experiment, tmp_path / "x.sqlite", isolate=False, progress=told.append)
    assert [p.last.key.method for p in told if p.last] == ["slow", "middle", "quick"]
    assert 0.3 < told[0].remaining < 5  # known from the rows that were there


def test_only_the_own_method_is_computed_beside_the_rows_of_others(small, pets_file, tmp_path):
    run(small, tmp_path / "theirs.sqlite", isolate=False)
    with Store(tmp_path / "theirs.sqlite") as theirs:
        exported = theirs.export(tmp_path / "rows.csv")
    log = tmp_path / "log"
    own = {"estimator": DICE, "params": {"strength": 3.0, "log": str(log)}}
    mine = small.with_methods({"mine": own}).resolve()
    path = tmp_path / "mine.sqlite"
    with Store.create(path, mine) as store:
        assert store.merge(exported) == 6
    summary = mine.subset(methods=["mine"], n_repeats=2).run(path, isolate=False)
    assert (summary.n_computed, summary.failures) == (2, [])
    assert len(log.read_text().splitlines()) == 2
    with Store(path) as store:
        assert len({(run.key.repetition, run.seed) for run in store.runs()}) == 3
        found = compare(store.scores("coverage"), control="mine", missing="drop")
    assert found.counts.tolist() == [[2, 2, 2]]  # of the three splits of the others
    # Other data are refused in the first task, before it is fitted.
    data = read(pets_file)
    X = np.array(data.X)
    X[0, 0] += 1e-6
    write(replace(data, X=X), pets_file, overwrite=True)
    summary = mine.subset(methods=["mine"]).run(path, isolate=False)
    assert "the data of 'pets' differ" in summary.failures[0].error
    assert len(log.read_text().splitlines()) == 2
    with pytest.raises(ExperimentError, match="already has dice: use another name"):
        small.with_methods({"dice": "imcc"})


# Claims.


@pytest.fixture
def store(small, tmp_path):
    with Store.create(tmp_path / "x.sqlite", small) as opened:
        yield opened


def test_no_task_is_claimed_twice(store, small):
    wanted = [task.key for task in small.tasks()]
    with Claims(store) as a, Claims(store) as b:
        taken = [claims.claim(wanted) for _ in range(4) for claims in (a, b)]
        assert taken == [*wanted, None, None]
        assert sorted(store.running()) == sorted(wanted)
        a.release()
        assert set(store.running()) == set(wanted[1::2])  # those of b
        assert b.claim(wanted) == wanted[0]
    assert store.running() == []
    with Claims(store) as c:  # those of a and b ended with them
        assert c.claim(wanted) == wanted[0]


def test_an_attempt_without_an_outcome_keeps_the_failure_before_it(store, small):
    key = small.tasks()[0].key
    failure = Failure(key, "it went wrong", "", 1.0, "2026-01-01T00:00:00+00:00")
    store.add(failure)
    with Claims(store) as claims:
        assert claims.claim([key]) == key
    assert store.failures() == [failure]


def test_the_dead_lose_their_claims(store, small):
    wanted = [small.tasks()[0].key]
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", lambda: child.pid)
        dead = Claims(store)
    with Claims(store) as living:
        assert dead.claim(wanted)
        assert store.running() == []
        assert living.claim(wanted) == wanted[0]
        assert store.running() == wanted


@pytest.mark.parametrize(
    ("place", "seconds", "alive"),
    [("elsewhere", 5, True), ("elsewhere", 125, False), (None, 5, True), (None, 125, False)],
)
def test_silence_is_death(place, seconds, alive):
    runner = json.dumps(["id", place or machine(), os.getpid()])
    assert is_alive(runner, time.time() - seconds) == alive


def test_a_runner_gives_signs_of_life(store, small, monkeypatch):
    monkeypatch.setattr(_claims, "_HEARTBEAT_SECONDS", 0.05)
    with Claims(store) as claims:
        claims.claim([small.tasks()[0].key])

        def last():
            return store._connection.execute("SELECT at FROM claims").fetchone()[0]

        before, deadline = last(), time.time() + 10
        while last() == before and time.time() < deadline:
            time.sleep(0.02)
        assert last() > before


# Estimates.


def test_estimates_learn_from_what_was_done():
    def key(dataset, method, repetition=0):
        return (dataset, method, repetition)

    assert remaining_seconds({}, [key("a", "x")], {}, 1) is None
    done = {key("a", "x"): 4.0, key("a", "x", 1): 6.0}
    assert remaining_seconds(done, [key("a", "x", 2)] * 2, {}, 1) == pytest.approx(10)
    assert remaining_seconds(done, [key("a", "x", 2)] * 4, {}, 2) == pytest.approx(10)
    assert remaining_seconds(done, [], {key("a", "x", 2): 2.0}, 1) == pytest.approx(3)
    assert remaining_seconds(done, [], {key("a", "x", 2): 9.0}, 1) == 0
    # Never less than the longest task.
    assert remaining_seconds(done, [key("a", "x", 2)], {}, 8) == pytest.approx(5)
