import os
import socket
import subprocess
import sys
import time

import pytest

from imcc._array.threads import n_cores
from imcc.experiment import Experiment, Store, run, run_task
from imcc.experiment import _claims as claims
from imcc.experiment._claims import Claimant, is_alive, machine, process_start
from imcc.experiment._estimate import remaining_seconds
from imcc.experiment._executors import make_executor
from tests.experiment.conftest import ALLOW, DICE

# Dask's own threads and sockets end a little after a cluster is closed.
dask_noise = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


def rows(path):
    with Store(path, read_only=True) as store:
        return [(run.key, run.seed, run.selections) for run in store.runs()]


@pytest.mark.slow
@dask_noise
def test_the_same_rows_come_out_of_all_executors(small, tmp_path):
    expected = sorted(
        (run.key, run.seed, run.selections) for run in (run_task(task, 1) for task in small.tasks())
    )
    for name, options in {
        "serial": {},
        "processes": {"n_jobs": 2},
        "dask": {"n_jobs": 2, "dask": "local"},
    }.items():
        path = tmp_path / f"{name}.sqlite"
        summary = run(small, path, threads=1, **options)
        assert (summary.n_computed, summary.failures, summary.n_missing) == (6, [], 0)
        assert rows(path) == expected


@pytest.mark.slow
@dask_noise
def test_a_running_dask_cluster_is_used_by_its_address(small, tmp_path):
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        assert run(small, tmp_path / "a.sqlite", dask=cluster.scheduler_address).n_computed == 6
        with cluster.get_client() as client:
            assert run(small, tmp_path / "b.sqlite", dask=client).n_computed == 6
            assert client.status == "running"  # a client of the user's stays open
    assert rows(tmp_path / "a.sqlite") == rows(tmp_path / "b.sqlite")


@pytest.mark.slow
@dask_noise
def test_no_scheduler_is_reported(small, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ConnectionError, match="cannot connect to a Dask scheduler"):
        run(small, tmp_path / "x.sqlite", dask=address)
    assert not (tmp_path / "x.sqlite").exists()


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
    assert [f.key[2] for f in summary.failures] == ["bad", "bad"]
    assert summary.n_missing == 2
    mended.touch()  # whatever was wrong is put right, and the next run tries again
    summary = run(experiment, store, isolate=False)
    assert (summary.n_computed, summary.failures, summary.n_missing) == (2, [], 0)
    with Store(store) as opened:
        assert opened.failures() == []


@pytest.mark.slow
def test_a_worker_that_dies_takes_only_its_own_task_with_it(pets_file, tmp_path):
    mended = tmp_path / "mended"
    methods = {f"good{i}": {"estimator": DICE, "params": {"delay": 0.2}} for i in range(4)}
    methods["deadly"] = {"estimator": DICE, "params": {"dies": str(mended)}}
    experiment = Experiment({"pets": pets_file}, methods, n_repeats=1, allow=ALLOW)
    summary = run(experiment, tmp_path / "x.sqlite", n_jobs=2)
    assert summary.n_computed == 4
    assert [f.key[2] for f in summary.failures] == ["deadly"]
    assert "died" in summary.failures[0].error
    mended.touch()
    assert run(experiment, tmp_path / "x.sqlite", n_jobs=2).n_computed == 1


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
    run(small, tmp_path / "x.sqlite", progress=told.append)
    ended = [p for p in told if p.last is not None]
    assert [p.n_done for p in ended] == [1, 2, 3, 4, 5, 6]
    assert all(p.n_tasks == 6 for p in told)
    assert ended[-1].remaining == 0
    assert ended[0].remaining > 0
    assert any(p.running for p in told)
    assert told[0].remaining is None


@pytest.mark.parametrize("options", [{"n_jobs": 0}, {"threads": 0}, {"n_jobs": 1.5}])
def test_wrong_options_are_refused(small, tmp_path, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        run(small, tmp_path / "x.sqlite", **options)


def test_all_cores_may_be_asked_for():
    executor = make_executor(-1)
    try:
        assert executor.n_workers == n_cores() <= os.cpu_count()
    finally:
        executor.close(kill=True)


# Claims.


def test_no_task_is_claimed_twice(small, tmp_path):
    Store.create(tmp_path / "x.sqlite", small).close()
    wanted = [task.key for task in small.tasks()]
    with Claimant(tmp_path / "x.sqlite") as a, Claimant(tmp_path / "x.sqlite") as b:
        taken = [claimant.claim(wanted) for _ in range(4) for claimant in (a, b)]
        assert taken == [*wanted, None, None]
        with Store(tmp_path / "x.sqlite") as store:
            assert store.running() == wanted
        a.give_back(wanted[0])
        assert b.claim(wanted) == wanted[0]
    with Claimant(tmp_path / "x.sqlite") as c:  # those of a and b ended with them
        assert c.claim(wanted) == wanted[0]


def test_the_dead_lose_their_claims(small, tmp_path, monkeypatch):
    Store.create(tmp_path / "x.sqlite", small).close()
    wanted = [task.key for task in small.tasks()][:1]
    with Claimant(tmp_path / "x.sqlite") as living, Claimant(tmp_path / "x.sqlite") as dead:
        assert dead.claim(wanted)
        assert living.claim(wanted) is None
        dead._connection.execute("UPDATE runners SET started = 'before' WHERE id = ?", (dead.id,))
        assert living.claim(wanted) == wanted[0]


def test_silence_from_another_machine_is_death(small, tmp_path):
    present = time.time()
    assert is_alive("elsewhere", 1, "", present - 5)
    assert not is_alive("elsewhere", 1, "", present - claims.SILENT_SECONDS - 1)
    assert is_alive(machine(), os.getpid(), process_start(os.getpid()), 0.0)
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    assert not is_alive(machine(), child.pid, "1", present)


def test_a_runner_gives_signs_of_life(small, tmp_path):
    Store.create(tmp_path / "x.sqlite", small).close()
    with Claimant(tmp_path / "x.sqlite", heartbeat=0.05) as claimant:

        def last():
            return claimant._connection.execute("SELECT heartbeat FROM runners").fetchone()[0]

        before, deadline = last(), time.time() + 10
        while last() == before and time.time() < deadline:
            time.sleep(0.02)
        assert last() > before


# Estimates.


def test_estimates_learn_from_what_was_done():
    def key(dataset, method, repetition=0):
        return ("scores", dataset, method, repetition)

    assert remaining_seconds({}, [key("a", "x")], {}, 1) is None
    done = {key("a", "x"): 4.0, key("a", "x", 1): 6.0}
    assert remaining_seconds(done, [key("a", "x", 2)] * 2, {}, 1) == pytest.approx(10)
    assert remaining_seconds(done, [key("a", "x", 2)] * 4, {}, 2) == pytest.approx(10)
    assert remaining_seconds(done, [], {key("a", "x", 2): 2.0}, 1) == pytest.approx(3)
    assert remaining_seconds(done, [], {key("a", "x", 2): 9.0}, 1) == 0
    # Never less than the longest task.
    assert remaining_seconds(done, [key("a", "x", 2)], {}, 8) == pytest.approx(5)
