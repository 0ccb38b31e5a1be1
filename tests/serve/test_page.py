"""What the page about serving shows is what a server answers."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "saving_and_serving.md"


@pytest.mark.slow
def test_the_page_is_true(serve, tmp_path):
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    make, row, wrong = blocks
    commands = re.findall(r"^\$ imcc (.*)$", make, re.M)
    for command in commands[:2]:
        done = [sys.executable, "-m", "imcc", *command.split()]
        subprocess.run(done, cwd=tmp_path, env=os.environ, check=True, capture_output=True)
    assert commands[2] == "serve model.skops"
    server = serve(tmp_path / "model.skops")
    record, answer = re.fullmatch(
        r"\$ cat row.json\n(.*)\n\$ curl [^\n]*\n(.*)\n", row, re.S
    ).groups()
    (shown,) = json.loads(answer)["predictions"]
    (found,) = server.ask(json.loads(record))["predictions"]
    assert found["labels"] == shown["labels"]
    assert found["probabilities"] == pytest.approx(shown["probabilities"], abs=0.02)
    with pytest.raises(OSError, match="422") as caught:
        server.ask(json.loads(record.replace("41", '"old"')))
    assert json.load(caught.value) == json.loads(wrong.splitlines()[1])
