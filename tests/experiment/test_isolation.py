"""Tasks in processes: some end or block theirs, and the runner may be killed."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from imcc.experiment import Experiment, Store, run
from imcc.experiment._workers import Worker, WorkerDiedError
from tests.experiment.conftest import ALLOW, DICE

RUDE = "imcc_test_methods.Rude"


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


def test_methods_that_end_or_block_the_process_are_failures(pets_file, tmp_path):
    path, log = tmp_path / "x.sqlite", tmp_path / "log"
    said = {
        "sys.exit": "called sys.exit(3)",
        "os._exit": "exit code 0",
        "segfault": "SIGSEGV",
        "hang with a child": "longer than the timeout of 3 s",
    }
    # What is printed is not taken for a result.
    methods = {
        how: {"estimator": RUDE, "params": {"how": how, "log": str(log)}}
        for how in (*said, "print")
    }
    experiment = Experiment(pets_file, {**methods, "good": DICE}, n_repeats=1, allow=ALLOW)
    summary = run(experiment, path, timeout=3)
    errors = {failure.key.method: failure.error for failure in summary.failures}
    assert errors.keys() == said.keys()
    assert all(said[how] in error for how, error in errors.items())
    assert (summary.n_computed, summary.n_missing) == (2, 4)
    assert all(is_gone(pid) for pid in log.read_text().split())
    with Store(path) as store:
        assert store.running() == []
        assert {failure.key.method for failure in store.failures()} == said.keys()


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
    ],
)
def test_ours_are_computed_here_and_others_are_not(pets, tmp_path, method, options, elsewhere):
    data = replace(pets, source=Source("here"))
    experiment = Experiment(data, {"m": method}, n_repeats=1)
    assert run(experiment, tmp_path / "x.sqlite", **options).n_computed == 1
    assert data.source.sent == elsewhere


def test_a_worker_computes_one_call_after_the_other_until_it_dies():
    worker = Worker()
    try:
        pids = [worker.submit(os.getpid).result(60) for _ in range(2)]
        assert pids[0] == pids[1] != os.getpid()
        with pytest.raises(WorkerDiedError, match="ZeroDivisionError"):
            worker.submit(divmod, 1, 0).result(60)
        assert worker.is_alive()
        with pytest.raises(WorkerDiedError, match="exit code 5"):
            worker.submit(os._exit, 5).result(60)
        assert not worker.is_alive()
    finally:
        worker.close()


@pytest.mark.slow
def test_a_run_ends_when_its_time_is_over_and_goes_on_later(pets_file, tmp_path):
    slow = {"estimator": DICE, "params": {"delay": 0.3}}
    experiment = Experiment(pets_file, {"slow": slow}, n_repeats=40, allow=ALLOW)
    path = tmp_path / "x.sqlite"
    summary = run(experiment, path, budget=0)
    assert (summary.n_computed, summary.n_out_of_time) == (0, 40)
    start = time.perf_counter()
    summary = run(experiment, path, budget=8)  # with time to start a process on a busy machine
    assert time.perf_counter() - start < 16
    assert 0 < summary.n_computed < 40
    assert summary.n_out_of_time == summary.n_missing == 40 - summary.n_computed
    assert summary.failures == []
    with Store(path) as store:
        assert store.running() == []
    done = summary.n_computed
    # Known times are longer than this budget, so that nothing is begun.
    assert run(experiment, path, budget=0.2).n_computed == 0
    summary = run(experiment.subset(n_repeats=done + 1), path, isolate=False)
    assert (summary.n_computed, summary.n_missing, summary.n_out_of_time) == (1, 0, 0)
