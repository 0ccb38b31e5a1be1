"""Runs that are killed at any moment, and runs that share a store."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from imcc.experiment import Experiment, Store, run_task
from tests.experiment.conftest import ALLOW, DICE

N_REPEATS = 8


@pytest.fixture
def slow_dice(pets_file, tmp_path):
    """An experiment whose fits take some time and leave a line in a log."""
    (tmp_path / "mine.toml").write_text(
        f"""
        allow = ["imcc_test_methods"]
        n_repeats = {N_REPEATS}
        datasets = ["{pets_file}"]
        [methods.dice]
        estimator = "{DICE}"
        params = {{delay = 0.15, log = "{tmp_path / "log"}"}}
        [methods.grid]
        estimator = "{DICE}"
        grid = {{strength = [1.0, 2.0]}}
        """
    )
    return tmp_path / "mine.toml"


def start(source, store, *options):
    return subprocess.Popen(
        [sys.executable, "-m", "imcc", "experiment", "run", source, "-o", store, *options],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def expected_rows(source):
    from imcc.experiment import load_experiment

    plain = load_experiment(source).to_dict()
    plain["methods"]["dice"]["params"] = {"delay": 0.15, "log": ""}
    found = {}
    for task in Experiment.from_dict(plain, allow=ALLOW).tasks():
        run = run_task(task, 1)
        found[run.key] = (run.seed, run.selections)
    return found


def stored_rows(path):
    with Store(path, read_only=True) as store:
        runs = store.runs()
        assert len({run.key for run in runs}) == len(runs)
        return {run.key: (run.seed, run.selections) for run in runs}


@pytest.mark.slow
def test_killed_many_times_no_row_is_lost_none_twice_none_half(slow_dice, tmp_path):
    store = tmp_path / "x.sqlite"
    rng = random.Random(0)
    expected = expected_rows(slow_dice)
    before = {}
    deadline = time.time() + 600
    for attempt in range(4):
        runner = start(slow_dice, store, *(["-j", "2"] if attempt == 3 else []))
        # Most of the time from the moment when rows are written, sometimes while it starts.
        while store.exists() and not stored_or_none(store) and time.time() < deadline:
            time.sleep(0.05)
        time.sleep(rng.uniform(0.0, 1.5))
        os.killpg(runner.pid, signal.SIGKILL)
        runner.communicate()
        if store.exists() and (found := stored_or_none(store)) is not None:
            assert before.items() <= found.items()  # nothing lost
            assert found.items() <= expected.items()  # nothing half or wrong
            before = found
    last = start(slow_dice, store)
    output, errors = last.communicate(timeout=300)
    assert last.returncode == 0, errors
    assert stored_rows(store) == expected
    assert f"{2 * N_REPEATS} of {2 * N_REPEATS} results" in output


def stored_or_none(path):
    """Return the rows; None if the very making of the store was cut off."""
    from imcc.experiment import StoreError

    try:
        return stored_rows(path)
    except StoreError as error:
        if "not a results store" in str(error):
            return None
        raise


@pytest.mark.slow
def test_two_runners_share_the_work_and_do_nothing_twice(slow_dice, tmp_path):
    store = tmp_path / "x.sqlite"
    runners = [start(slow_dice, store) for _ in range(2)]
    outputs = [runner.communicate(timeout=300) for runner in runners]
    assert [runner.returncode for runner in runners] == [0, 0], outputs
    assert stored_rows(store) == expected_rows(slow_dice)
    fits = (tmp_path / "log").read_text().split()
    assert len(fits) == len(set(fits)) == N_REPEATS


@pytest.mark.slow
@pytest.mark.parametrize(("how", "jobs"), [(signal.SIGINT, "2"), (signal.SIGTERM, "1")])
def test_a_stopped_run_says_how_to_go_on(slow_dice, tmp_path, how, jobs):
    store = tmp_path / "x.sqlite"
    runner = start(slow_dice, store, "-j", jobs)
    deadline = time.time() + 120
    while not ((tmp_path / "log").exists() or time.time() > deadline):
        time.sleep(0.02)
    if how == signal.SIGINT:
        os.killpg(runner.pid, how)  # a terminal sends it to all processes
    else:
        runner.send_signal(how)
    _, errors = runner.communicate(timeout=60)
    assert runner.returncode == 130
    assert f"imcc experiment run {store}" in errors
    assert "Traceback" not in errors
    with Store(store) as opened:
        assert opened.running() == []  # its claims are given back
