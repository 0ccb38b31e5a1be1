"""Tasks that end or block their process, stores that disappear, and runs that end in time."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from imcc.experiment import Experiment, Store, StoreError, run, run_task
from imcc.experiment._task import choose_threads
from imcc.experiment._workers import ProcessExecutor, WorkerDiedError
from tests.experiment.conftest import ALLOW, DICE

RUDE = "imcc_test_methods.Rude"


def rude(pets_file, *hows, good=1, log="", **options):
    methods = {how: {"estimator": RUDE, "params": {"how": how, "log": str(log)}} for how in hows}
    methods |= {f"good{i}": DICE for i in range(good)}
    return Experiment(pets_file, methods, **{"n_repeats": 1, "allow": ALLOW} | options)


def is_gone(pid, seconds=20):
    deadline = time.time() + seconds
    while time.time() < deadline:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_methods_that_end_the_process_are_failures(pets_file, tmp_path):
    path = tmp_path / "x.sqlite"
    said = {"sys.exit": "called sys.exit(3)", "os._exit": "exit code 0", "segfault": "SIGSEGV"}
    experiment = rude(pets_file, *said, "print")  # what is printed is not taken for a result
    summary = run(experiment, path)
    errors = {failure.key.method: failure.error for failure in summary.failures}
    assert errors.keys() == said.keys()
    assert all(said[how] in error for how, error in errors.items())
    assert (summary.n_computed, summary.n_missing) == (2, 3)
    with Store(path) as store:
        assert store.running() == []
        assert {failure.key.method for failure in store.failures()} == said.keys()


def test_a_method_that_hangs_is_ended(pets_file, tmp_path):
    log = tmp_path / "log"
    experiment = rude(pets_file, "hang with a child", log=log)
    summary = run(experiment, tmp_path / "x.sqlite", timeout=3)
    assert summary.n_computed == 1
    assert "longer than the timeout of 3 s" in summary.failures[0].error
    assert all(is_gone(pid) for pid in log.read_text().split())


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")
def test_killing_the_runner_leaves_no_workers_behind(pets_file, tmp_path):
    program = f"""
import sys
from imcc.experiment import Experiment, run
method = {{"estimator": {RUDE!r}, "params": {{"how": "hang with a child", "log": sys.argv[2]}}}}
experiment = Experiment(sys.argv[1], {{"m": method}}, n_repeats=1, allow={ALLOW!r})
run(experiment, sys.argv[3])
"""
    log = tmp_path / "log"
    arguments = [pets_file, log, tmp_path / "x.sqlite"]
    runner = subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)])
    deadline = time.time() + 60
    while not (log.exists() and len(log.read_text().split()) == 2) and time.time() < deadline:
        time.sleep(0.05)
    pids = log.read_text().split()
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    assert all(is_gone(pid) for pid in pids)


class Source(str):
    """The source of data, which notices when it is sent to another process."""

    sent = False

    def __reduce__(self):
        self.sent = True
        return str, ("elsewhere",)


@pytest.mark.parametrize(
    ("method", "options", "elsewhere"),
    [
        ("sklearn.neighbors.KNeighborsClassifier", {}, True),
        ("sklearn.neighbors.KNeighborsClassifier", {"isolate": False}, False),
        ("kernel_ridge", {}, False),
        ("kernel_ridge", {"isolate": False, "timeout": 60}, True),  # only a process can be stopped
    ],
)
def test_ours_are_computed_here_and_others_are_not(pets, tmp_path, method, options, elsewhere):
    data = replace(pets, source=Source("here"))
    experiment = Experiment(data, {"m": method}, n_repeats=1)
    assert run(experiment, tmp_path / "x.sqlite", **options).n_computed == 1
    assert data.source.sent == elsewhere


def test_workers_are_used_again_and_replaced_when_they_die():
    executor = ProcessExecutor(1)
    try:
        pids = [call_and_wait(executor, os.getpid) for _ in range(2)]
        assert pids[0] == pids[1] != os.getpid()
        with pytest.raises(WorkerDiedError, match="exit code 5"):
            call_and_wait(executor, os._exit, 5)
        assert call_and_wait(executor, os.getpid) != pids[0]
        with pytest.raises(WorkerDiedError, match="ZeroDivisionError"):
            call_and_wait(executor, divmod, 1, 0)
        stuck = executor.submit(time.sleep, 600)
        assert executor.wait(0.2) == []
        executor.stop(stuck)
        assert call_and_wait(executor, abs, -1) == 1
    finally:
        executor.close()


def call_and_wait(executor, function, *arguments):
    call = executor.submit(function, *arguments)
    assert executor.wait(60) == [call]
    return call.result()


# Stores that disappear.


@pytest.mark.parametrize("n_done", [2, 6])  # 6 is the very end
@pytest.mark.parametrize("how", ["deleted", "replaced", "replaced by a store"])
def test_a_store_that_disappears_stops_the_run(small, tmp_path, how, n_done):
    path = tmp_path / "x.sqlite"
    other = tmp_path / "other.sqlite"
    Store.create(other, small).close()

    def make_trouble(progress):
        if progress.n_done == n_done and other.exists():
            if how == "deleted":
                path.unlink()
                other.unlink()
            else:
                if how == "replaced":
                    other.write_bytes(b"something else")
                os.replace(other, path)

    with pytest.raises(StoreError, match=f"was {how.split()[0]}"):
        run(small, path, isolate=False, progress=make_trouble)


# Random numbers and threads.


def test_global_generators_are_seeded_for_each_task(pets_file):
    experiment = rude(pets_file, "draw", good=0, n_repeats=2).resolve()
    first, second = experiment.tasks()
    random.seed(1)
    np.random.seed(1)
    one = run_task(first, 1)
    before = random.random(), np.random.rand()
    again = run_task(first, 1)
    assert one.selections == again.selections
    assert run_task(second, 1).selections != one.selections
    random.seed(1)
    np.random.seed(1)
    assert before == (random.random(), np.random.rand())


class Sized:
    def __init__(self, n_rows, n_features, n_labels):
        self.n_rows, self.n_features, self.n_labels = n_rows, n_features, n_labels


def test_small_tasks_get_one_thread(pets):
    assert choose_threads(Sized(2417, 103, 14), 8) == 1
    assert choose_threads(Sized(5000, 462, 26), 8) == 8
    assert choose_threads(Sized(5000, 462, 26), None) is None
    task = Experiment(pets, "kernel_ridge", n_repeats=1).tasks()[0]
    assert run_task(task, available=2).environment["threads"] == 1
    assert run_task(task, 2).environment["threads"] == 2
    assert run_task(task, 2).selections == run_task(task, 1).selections


# Time.


@pytest.mark.slow
def test_a_run_ends_when_its_time_is_over_and_goes_on_later(pets_file, tmp_path):
    slow = {"estimator": DICE, "params": {"delay": 0.3}}
    experiment = Experiment(pets_file, {"slow": slow}, n_repeats=40, allow=ALLOW)
    path = tmp_path / "x.sqlite"
    summary = run(experiment, path, budget=0)
    assert (summary.n_computed, summary.n_out_of_time) == (0, 40)
    start = time.perf_counter()
    summary = run(experiment, path, budget=10)  # with time to start a process on a busy machine
    assert time.perf_counter() - start < 18
    assert 0 < summary.n_computed < 40
    assert summary.n_out_of_time == summary.n_missing == 40 - summary.n_computed
    assert summary.failures == []
    with Store(path) as store:
        assert store.running() == []
    done = summary.n_computed
    summary = run(experiment.subset(n_repeats=done + 1), path)
    assert (summary.n_computed, summary.n_missing, summary.n_out_of_time) == (1, 0, 0)


@pytest.mark.slow
def test_what_is_expected_to_take_too_long_does_not_begin(pets_file, tmp_path):
    log = tmp_path / "log"
    methods = {
        "slow": {"estimator": DICE, "params": {"delay": 2.0, "log": str(log)}},
        "quick": DICE,
    }
    experiment = Experiment(pets_file, methods, n_repeats=1, allow=ALLOW)
    path = tmp_path / "x.sqlite"
    run(experiment, path)
    more = Experiment(pets_file, methods, n_repeats=3, allow=ALLOW)
    summary = run(more, path, budget=1.9)
    assert len(log.read_text().split()) == 1
    assert summary.n_out_of_time >= 2


@pytest.mark.slow
def test_long_tasks_begin_first(pets_file, tmp_path):
    methods = {
        name: {"estimator": DICE, "params": {"delay": delay}}
        for name, delay in (("quick", 0.0), ("slow", 0.5), ("middle", 0.2))
    }
    experiment = Experiment(pets_file, methods, n_repeats=1, allow=ALLOW)
    run(experiment, tmp_path / "x.sqlite", isolate=False)
    order = []
    more = Experiment(pets_file, methods, n_repeats=2, allow=ALLOW)
    first = []
    run(
        more,
        tmp_path / "x.sqlite",
        isolate=False,
        progress=lambda p: order.append(p.last.key.method) if p.last else first.append(p.remaining),
    )
    assert order == ["slow", "middle", "quick"]
    assert 0.6 < first[0] < 5  # known from the rows that were there


@pytest.mark.parametrize("options", [{"timeout": 0}, {"budget": -1}, {"timeout": "soon"}])
def test_wrong_times_are_refused(small, tmp_path, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        run(small, tmp_path / "x.sqlite", **options)
    assert not (tmp_path / "x.sqlite").exists()
