"""The page about one's own method in the comparison: its file and its command."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from imcc_paper.places import DOCS, PAPER


@pytest.mark.data
@pytest.mark.slow
def test_the_page_shows_what_is_printed(tmp_path):
    """On small data sets, beside the committed rows."""
    text = (DOCS / "your_own_method.md").read_text("utf-8")
    (tmp_path / "mine.toml").write_text(re.search(r"```toml\n(.*?)```", text, re.S)[1])
    (tmp_path / "paper").symlink_to(PAPER)
    block = re.search(r"```console\n(.*?)```", text, re.S)[1]
    out = ""
    for command in re.findall(r"^\$ imcc (.*)$", block, re.M):
        done = subprocess.run(
            [sys.executable, "-m", "imcc", *shlex.split(command)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={**os.environ, "COLUMNS": "200"},
        )
        assert done.returncode == 0, done.stderr
        out += done.stdout

    def shape(printed):
        printed = re.sub(r"[-+]?\d[\d.,:+T-]*%?( s| min)?", "#", printed)
        return [re.sub(r"\s+", " ", line).strip() for line in printed.splitlines()]

    # Which methods have rows changes with every row that is added.
    shown = [line for line in shape(block) if line and not line.startswith(("...", "$"))]
    assert len(shown) == 7
    assert re.search(r"^ +imcc +brsvm ", out, re.M)
    found = shape(out)
    missing = [line for line in shown if line not in found]
    assert not missing, out
