"""Bars on a terminal, plain lines elsewhere, and results on standard output only."""

import json
import os
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from imcc._utils.config import config_context
from imcc._utils.progress import part, progress_reported_to, report_progress
from imcc.cli._progress import working
from tests.cli.conftest import LABELS, NAMED, make_data, one_setting

pty = pytest.importorskip("pty")
CONTROL = re.compile(r"\x1b|[\x00-\x08\x0b-\x1f]")


def at_a_terminal(*arguments, **environment):
    """Run a command with standard error on a terminal; return its output and what was shown."""
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
    try:
        done = subprocess.run(
            [sys.executable, "-m", "imcc", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=theirs,
            timeout=120,
            env={**os.environ, "COLUMNS": "100", "TERM": "xterm-256color", **environment},
        )
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)
    text = shown.decode()
    assert done.returncode == 0, text
    return done.stdout.decode(), text


def test_tune_shows_a_bar_with_an_estimate_on_a_terminal(pets, tmp_path):
    out, shown = at_a_terminal(
        "tune", pets / "train.csv", *NAMED, "-o", tmp_path / "m.skops", "--json"
    )
    assert json.loads(out)["file"] == str(tmp_path / "m.skops")
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert "\x1b[" in shown
    assert "tuning: " in plain
    assert re.search(r"[━╸╺] +\d+%", plain)
    assert re.search(r"about [\d.]+ s left", plain)


def test_an_experiment_shows_its_tasks_on_a_terminal(pets, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'name = "mine"\nn_repeats = 2\nmethods = ["extra_trees"]\n'
        f'[[datasets]]\nname = "pets"\npath = "{pets / "train.csv"}"\n'
        f"labels = {json.dumps(LABELS)}\n"
    )
    _, shown = at_a_terminal("experiment", "run", plan, "-o", tmp_path / "x.sqlite")
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert re.search(r"mine: \d of 2 done", plain)
    assert "pets, extra_trees, split 2 done in" in plain


def test_lines_say_how_far_it_is_where_there_is_no_terminal(pets, tmp_path, imcc):
    start = ("tune", pets / "train.csv", *NAMED, "-o", tmp_path / "m.skops", "--json")
    quick = (*start, *one_setting(), "--force")
    with config_context(progress_after=0.0, progress_every=0.0):
        done = imcc(*start)
        assert imcc(*quick, "--quiet").stderr == ""
        assert "100% done" in imcc(*quick).stderr
    assert json.loads(done.stdout)["file"] == str(tmp_path / "m.skops")
    assert not CONTROL.search(done.stderr)
    lines = done.stderr.splitlines()
    for stage in ("screening", "fitting"):
        found = [line for line in lines if line.startswith("tuning") and stage in line]
        assert found, stage
    assert re.fullmatch(r"tuning: .*: \d+% done(, about [\d.]+ s left)?", found[0])
    shares = [int(m[1]) for m in map(re.compile(r"^tuning.*: (\d+)% done").match, lines) if m]
    assert shares == sorted(shares)
    assert len(shares) > 20
    assert shares[-1] == 100
    # By default a quick command says nothing.
    assert imcc(*quick).stderr == ""


COMMANDS = {
    "tune": ("tune", "TRAIN", *NAMED, "-o", "OUT", *one_setting(), "--calibrate"),
    "predict": ("predict", "MODEL", "NEW"),
    "evaluate": ("evaluate", "MODEL", "TEST"),
    "inspect": ("inspect", "MODEL", "NEW", "--row", "0", "--data", "TRAIN"),
    "describe": ("datasets", "describe", "TRAIN"),
    "convert": ("datasets", "convert", "TRAIN", *NAMED, "CSV"),
    "describe a data set": ("datasets", "describe", "SVM"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_how_far_it_is(imcc, pets, tmp_path, name):
    files = {key: pets / f"{key.lower()}.csv" for key in ("TRAIN", "NEW", "TEST")}
    files |= {"MODEL": pets / "model.skops", "OUT": tmp_path / "o.skops"}
    files["CSV"] = tmp_path / "o.csv"
    (tmp_path / "o.svm").write_text("0 1:2\n1 2:1\n")
    files["SVM"] = tmp_path / "o.svm"
    words = [files.get(word, word) for word in COMMANDS[name]]
    with config_context(progress_after=0.0, progress_every=0.0):
        said = imcc(*words).stderr
    assert re.search(r"^\w.*: \d+% done", said, re.M), said
    assert "100% done" in said
    assert not CONTROL.search(said)


def test_the_estimate_follows_from_the_work_that_is_done(capsys):
    with (
        config_context(progress_after=0.0, progress_every=0.0),
        working("sleeping"),
    ):
        time.sleep(0.2)
        report_progress(1, 4, "the first")
    # A quarter took 0.2 seconds: the rest takes 0.6.
    said = capsys.readouterr().err
    first, last = said.splitlines()
    assert re.fullmatch(r"sleeping: the first: 25% done, about 0\.[6-9] s left", first)
    assert re.fullmatch(r"sleeping: 100% done in 0\.[2-4] s", last)


def test_nothing_is_promised_too_early_or_too_late(capsys):
    with config_context(progress_after=0.0, progress_every=0.0), working("sleeping"):
        time.sleep(0.05)
        report_progress(1, 1000, "the first")  # says nothing about the rest
        report_progress(1, 1, "much is left")  # whatever is reported
    early, late, last = capsys.readouterr().err.splitlines()
    assert early == "sleeping: the first: 0% done"
    assert late.startswith("sleeping: much is left: 99% done, about 0.")
    assert "100% done" in last


def test_a_limit_on_the_time_counts(capsys):
    with config_context(progress_after=0.0, progress_every=0.0), working("x", max_time=0.4):
        time.sleep(0.2)
        report_progress(1, 100)
    share, left = re.match(r"x: (\d+)% done, about ([\d.]+) s", capsys.readouterr().err).groups()
    assert 45 <= int(share) <= 90
    assert 0 < float(left) <= 0.3


def test_parts_add_up_and_bars_do_not_go_back(capsys):
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
    with (
        config_context(progress_after=0.0, progress_every=0.0),
        working("counting"),
    ):
        report_progress(1, 2)
        report_progress(1, 4)
    assert re.findall(r"(\d+)%", capsys.readouterr().err) == ["50", "50", "100"]


def test_results_are_the_same_with_a_receiver():
    from imcc import IMCCClassifierCV, KernelEnsembleClassifier
    from imcc.estimators import TunedThresholds

    data = make_data(60)
    for model in (
        IMCCClassifierCV(alphas=(1,), betas=(0.1, 1), gammas=(0.1,), n_clusters=(4,)),
        TunedThresholds(KernelEnsembleClassifier(random_state=0), cv=3),
    ):
        model.set_params(**({"random_state": 0} if hasattr(model, "random_state") else {}))
        alone = model.fit(data.X, data.Y).decision_function(data.X)
        shares = []
        with progress_reported_to(lambda share, what, shares=shares: shares.append(share)):
            heard = model.fit(data.X, data.Y).decision_function(data.X)
        np.testing.assert_array_equal(heard, alone)
        assert len(shares) > 5
        assert min(shares) >= 0
        assert max(shares) <= 1
