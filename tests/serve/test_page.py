"""What the page about serving shows is what a server answers."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from imcc.cli._app import app

PAGE = Path(__file__).parents[2] / "docs" / "saving_and_serving.md"


@pytest.mark.slow
def test_the_page_is_true(serve_command, tmp_path, monkeypatch):
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    make, row, wrong = blocks
    commands = re.findall(r"^\$ imcc (.*)$", make, re.M)
    monkeypatch.chdir(tmp_path)
    for command in commands[:2]:
        assert CliRunner().invoke(app, command.split()).exit_code == 0
    assert commands[2] == "serve model.skops"
    server = serve_command(tmp_path / "model.skops")
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
