"""The commands on the page about the command line do what the page says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "command_line.md"


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
def test_the_page_is_true(tmp_path, monkeypatch):
    pytest.importorskip("click")
    monkeypatch.delenv("IMCC_DATA_MIRROR", raising=False)
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
            found, expected = shape(done.stdout + done.stderr), shape(printed)
            # Which labels and rows come first may change with the last digits.
            assert len(found) == len(expected), (command, done.stdout)
            assert found[0] == expected[0]
        seen += 1
    assert seen == 11
