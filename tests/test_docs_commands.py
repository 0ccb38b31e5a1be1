"""The commands on the page about the command line do what the page says."""

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "command_line.md"


def shape(text):
    """Leave out what may differ between versions and machines: numbers, and how they are padded."""
    text = re.sub(r"[-+]?\d[\d.,:+T-]*%?", "#", text)
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines() if line.strip()]


def session():
    """Yield every command on the page with what it prints."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text("utf-8"), re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, printed = part.partition("\n")
            yield command, printed


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell")
def test_the_page_is_true(tmp_path):
    pytest.importorskip("click")
    function = f'imcc() {{ "{sys.executable}" -m imcc "$@"; }}\n'
    seen = 0
    for command, printed in session():
        done = subprocess.run(
            ["bash", "-c", function + command],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=300,
            env={**os.environ, "COLUMNS": "88"},
        )
        assert done.returncode == 0, (command, done.stderr)
        if printed and "inspect" not in command:
            # On a busy machine, progress is shown where the page has none.
            said = re.sub(r"^.*% done.*\n", "", done.stderr, flags=re.M)
            found, expected = shape(done.stdout + said), shape(printed)
            # Which labels and rows come first may change with the last digits.
            assert len(found) == len(expected), (command, done.stdout)
            assert found[0] == expected[0]
        seen += 1
    assert seen == 10


def first_model():
    """Yield the commands of the first page: the table to try, and all of its shell blocks."""
    text = (DOCS / "first_model.md").read_text("utf-8")
    yield re.search(r"`(imcc datasets example [^`]+)`", text)[1]
    for block in re.findall(r"```sh\n(.*?)```", text, re.S):
        for line in block.splitlines():
            if command := line.partition("  #")[0].strip():
                yield command


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell")
def test_the_commands_of_the_first_page(tmp_path):
    for package in ("click", "rich", "pandas", "pyarrow", "skops"):
        pytest.importorskip(package)
    function = f'imcc() {{ "{sys.executable}" -m imcc "$@"; }}\n'
    shown = {}
    for command in first_model():
        done = subprocess.run(
            ["bash", "-c", function + command],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=600,
            env={**os.environ, "COLUMNS": "100"},
        )
        assert done.returncode == 0, (command, done.stderr)
        shown[command.split()[1] if "datasets" not in command else command.split()[2]] = done.stdout
        for file in re.findall(r"-o (\S+)", command):
            assert (tmp_path / file).stat().st_size > 1000, command
    assert list(shown) == ["example", "describe", "tune", "predict"]
    text = (DOCS / "first_model.md").read_text("utf-8")
    labels = re.search(r"imcc tune .*--labels (\S+)", text)[1].split(",")
    # What the columns are, and what becomes of them.
    heading = shown["describe"].splitlines()[1].split("  ")
    found = [words.strip() for words in heading if words]
    assert found == ["column", "kind", "missing", "examples", "what becomes of it"]
    assert "An ensemble of " in shown["tune"]
    with open(tmp_path / "probabilities.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    with open(tmp_path / "customers.csv", newline="", encoding="utf-8") as file:
        given = list(csv.reader(file))
    assert rows[0] == ["ticket", *labels]
    assert [row[0] for row in rows[1:]] == [row[0] for row in given[1:]]
    assert all(0 < float(cell) < 1 for row in rows[1:] for cell in row[1:])
