"""Bars on a terminal, nothing elsewhere, and results on standard output only."""

import io
import json
import os
import re
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from imcc._utils.progress import part, progress_reported_to, report_progress
from imcc.cli._progress import _Estimate, shown_progress, working
from imcc.experiment._runner import Progress
from tests.cli.conftest import NAMED, make_data, one_setting

pty = pytest.importorskip("pty")
CONTROL = re.compile(r"\x1b|[\x00-\x08\x0b-\x1f]")


class Clock:
    """A clock that tests move, so that they do not depend on the speed of the machine."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("imcc.cli._progress.perf_counter", clock)
    return clock


@pytest.fixture
def screen(monkeypatch):
    """A terminal; returns what is on it, without what controls it."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=100)
    monkeypatch.setattr("imcc.cli._progress._console", lambda: console)
    return lambda: re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.getvalue())


def test_results_and_bars_do_not_mix(pets, tmp_path):
    """In a process of its own, whose standard error is a terminal."""
    ours, theirs = pty.openpty()
    shown = bytearray()

    def gather():
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other end is closed
                return
            if not piece:
                return
            shown.extend(piece)

    reader = threading.Thread(target=gather)
    reader.start()
    arguments = ("predict", pets / "model.skops", pets / "new.csv", "--json")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "imcc", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=theirs,
            timeout=120,
            env={**os.environ, "COLUMNS": "100", "TERM": "xterm-256color"},
        )
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)
    assert done.returncode == 0, shown.decode()
    assert len(json.loads(done.stdout)) == 40
    assert b"\x1b[" in shown
    assert b"predicting" in shown


def test_a_bar_has_an_estimate(clock, screen):
    with working("sleeping"):
        clock.now = 3.0
        report_progress(1, 4, "the first")
    assert re.search(r"sleeping: the first +[━╸╺]+ +25% .*about 9.0 s left", screen())


def test_an_experiment_shows_its_tasks(screen, capsys):
    ended = SimpleNamespace(key="pets, dice, split 1", seconds=2.0)
    with shown_progress("mine", quiet=False) as show:
        show(Progress(2, 0, 0, {ended.key: 0.0}, None, None))
        report_progress(0.5, 1, "inside")
        show(Progress(2, 1, 0, {}, ended, 5.0))
    assert "mine: 1 of 2 done" in screen()
    assert " 50% " in screen()
    said = capsys.readouterr().err
    assert said == f"[1 of 2] {ended.key} done in 2.0 s, about 5.0 s left\n"


COMMANDS = {
    "tune": ("tune", "TRAIN", *NAMED, "-o", "OUT", *one_setting(), "--calibrate"),
    "predict": ("predict", "MODEL", "NEW"),
    "evaluate": ("evaluate", "MODEL", "TEST"),
    "inspect": ("inspect", "MODEL", "TEST", "--html", "PAGE"),
    "describe": ("datasets", "describe", "TRAIN"),
    "convert": ("datasets", "convert", "TRAIN", *NAMED, "CSV"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_how_far_it_is(imcc, pets, tmp_path, name, screen):
    files = {key: pets / f"{key.lower()}.csv" for key in ("TRAIN", "NEW", "TEST")}
    files |= {"MODEL": pets / "model.skops", "OUT": tmp_path / "o.skops"}
    files |= {"CSV": tmp_path / "o.csv", "PAGE": tmp_path / "o.html"}
    imcc(*(files.get(word, word) for word in COMMANDS[name]))
    assert re.search(r"\w: .* \d+% ", screen())


def test_without_a_terminal_there_is_no_progress(imcc, pets, tmp_path):
    start = ("tune", pets / "train.csv", *NAMED, "-o", tmp_path / "m.skops", "--json")
    assert imcc(*start, *one_setting()).stderr == ""


def test_the_estimate_follows_from_the_work_that_is_done(clock):
    estimate = _Estimate(None)
    clock.now = 0.05
    estimate.update(0.001)  # says nothing about the rest
    assert estimate.left is None
    clock.now = 2.0
    estimate.update(0.25)
    assert estimate.left == pytest.approx(6.0)
    clock.now = 8.0
    estimate.update(1.0)  # whatever is reported, it is not the end
    assert estimate.share == 0.99
    assert estimate.left == pytest.approx(8 / 99)
    estimate.update(0.5)
    assert estimate.share == 0.99  # it does not go back


def test_a_limit_on_the_time_counts(clock):
    estimate = _Estimate(4.0)
    clock.now = 2.0
    estimate.update(0.01)
    assert estimate.share == 0.5
    assert estimate.left == pytest.approx(2.0)


def test_parts_add_up():
    told = []
    with progress_reported_to(lambda share, what: told.append((round(share, 4), what))):
        with part(0, [1, 3], "a"):
            for k in range(2):
                with part(k, [1, 1], f"a{k}"):
                    report_progress(0.5)
        with part(1, [1, 3]):
            report_progress(2, 4, "b")
        with progress_reported_to(None):
            report_progress(0.1)
    assert [share for share, what in told if what == "a0"] == [0.0, 0.0625, 0.125]
    assert (0.625, "b") in told
    assert told[-1][0] == 1.0
    report_progress(0.5)  # discarded


def test_results_are_the_same_with_a_receiver():
    from imcc import IMCCClassifierCV

    data = make_data(60)
    model = IMCCClassifierCV(betas=(0.1, 1), gammas=(0.1,), n_clusters=(4,), random_state=0)
    alone = model.fit(data.X, data.Y).decision_function(data.X)
    shares = []
    with progress_reported_to(lambda share, what: shares.append(share)):
        heard = model.fit(data.X, data.Y).decision_function(data.X)
    np.testing.assert_array_equal(heard, alone)
    assert len(shares) > 5
    assert min(shares) >= 0
    assert max(shares) <= 1
