"""Bars on a terminal, plain lines elsewhere, and results on standard output only."""

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

from imcc._utils.config import config_context
from imcc._utils.progress import part, progress_reported_to, report_progress
from imcc.cli._progress import shown_progress, working
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
def lines():
    """A line for every report."""
    with config_context(progress_after=0.0, progress_every=0.0):
        yield


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


def test_lines_say_how_far_it_is_where_there_is_no_terminal(pets, tmp_path, imcc, lines):
    start = ("tune", pets / "train.csv", *NAMED, "-o", tmp_path / "m.skops", "--json")
    done = imcc(*start, "--set", "views=raw")
    assert imcc(*start, *one_setting(), "--force", "--quiet").stderr == ""
    assert json.loads(done.stdout)["file"] == str(tmp_path / "m.skops")
    assert not CONTROL.search(done.stderr)
    found = [line for line in done.stderr.splitlines() if line.startswith("tuning")]
    for stage in ("screening", "fitting"):
        assert any(stage in line for line in found), stage
    form = r"tuning: .*: (\d+)% done(, about [\d.]+ s left)?"
    shares = [int(re.fullmatch(form, line)[1]) for line in found[:-1]]
    assert shares == sorted(shares)
    assert len(shares) > 10
    assert re.fullmatch(r"tuning: 100% done in .*", found[-1])


COMMANDS = {
    "tune": ("tune", "TRAIN", *NAMED, "-o", "OUT", *one_setting(), "--calibrate"),
    "predict": ("predict", "MODEL", "NEW"),
    "evaluate": ("evaluate", "MODEL", "TEST"),
    "inspect": ("inspect", "MODEL", "TEST", "--html", "PAGE"),
    "describe": ("datasets", "describe", "TRAIN"),
    "convert": ("datasets", "convert", "TRAIN", *NAMED, "CSV"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_how_far_it_is(imcc, pets, tmp_path, name, lines):
    files = {key: pets / f"{key.lower()}.csv" for key in ("TRAIN", "NEW", "TEST")}
    files |= {"MODEL": pets / "model.skops", "OUT": tmp_path / "o.skops"}
    files |= {"CSV": tmp_path / "o.csv", "PAGE": tmp_path / "o.html"}
    said = imcc(*(files.get(word, word) for word in COMMANDS[name])).stderr
    assert re.search(r"^\w.*: \d+% done", said, re.M), said
    assert "100% done" in said
    assert not CONTROL.search(said)


def test_the_estimate_follows_from_the_work_that_is_done(capsys, clock, lines):
    with working("sleeping"):
        clock.now = 0.05
        report_progress(1, 1000, "the first")  # says nothing about the rest
        clock.now = 2.0
        report_progress(1, 4, "the second")
        clock.now = 8.0
        report_progress(1, 1, "much is left")  # whatever is reported
    assert capsys.readouterr().err.splitlines() == [
        "sleeping: the first: 0% done",
        "sleeping: the second: 25% done, about 6.0 s left",
        "sleeping: much is left: 99% done, about 0.1 s left",
        "sleeping: 100% done in 8.0 s",
    ]


def test_lines_come_now_and_then(capsys, clock):
    with config_context(progress_after=10.0, progress_every=30.0), working("sleeping"):
        for second in range(60):
            clock.now = float(second)
            report_progress(second, 100)
    said = capsys.readouterr().err.splitlines()
    assert [re.search(r"\d+%", line)[0] for line in said] == ["10%", "40%", "100%"]


def test_a_limit_on_the_time_counts(capsys, clock, lines):
    with working("x", max_time=4.0):
        clock.now = 2.0
        report_progress(1, 100)
    assert capsys.readouterr().err.startswith("x: 50% done, about 2.0 s left\n")


def test_parts_add_up_and_bars_do_not_go_back(capsys, lines):
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
    with working("counting"):
        report_progress(1, 2)
        report_progress(1, 4)
    assert re.findall(r"(\d+)%", capsys.readouterr().err) == ["50", "50", "100"]


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
