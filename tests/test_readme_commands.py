"""The commands of the README's first screen, run as a user would: here, and freshly installed."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell")


def commands():
    """What stands between the markers, which the README must have."""
    text = (ROOT / "README.md").read_text("utf-8")
    marked = re.search(r"<!-- first-screen-commands -->(.*?)<!-- end", text, re.S)
    block = re.search(r"```sh\n(.*?)```", marked[1], re.S)[1]
    lines = [line.partition("  #")[0].strip() for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", "pip "))]


def run_commands(folder, environment, function=""):
    def shell(command):
        done = subprocess.run(
            ["bash", "-c", function + command],
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=900,
            env=environment,
        )
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    lines = commands()
    assert [line.split()[1] for line in lines[:2]] == ["datasets", "tune"]
    for line in lines:
        shown = shell(line)
        files = re.findall(r"(?:-o|--html) (\S+)", line)
        assert shown or files
        for file in files:
            assert (folder / file).stat().st_size > 100
    model = re.search(r"-o (\S+\.skops)", "\n".join(lines))[1]
    shell("imcc datasets example other.csv --rows 300 --seed 1")
    found = json.loads(shell(f"imcc evaluate {model} other.csv --json"))
    # A careful pipeline by hand has about 0.8; what this began with had 0.17 to 0.49.
    assert found["macro_f1"] > 0.75, found["macro_f1"]
    # Everything that `all` brings for tables is there.
    shell(f"imcc predict {model} other.csv --top 3 -o other.parquet")
    assert (folder / "other.parquet").stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("CI") == "true", reason="the next test does the same, and more")
def test_the_commands_of_the_readme(tmp_path):
    for package in ("click", "rich", "pandas", "pyarrow", "skops"):
        pytest.importorskip(package)
    environment = {**os.environ, "COLUMNS": "100"}
    run_commands(tmp_path, environment, f'imcc() {{ "{sys.executable}" -m imcc "$@"; }}\n')


@pytest.mark.slow
def test_the_commands_of_the_readme_in_a_bare_environment(tmp_path):
    """With what ``pip install '.[all]'`` brings, and nothing else."""
    bare = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
        and not name.startswith(("COV_", "COVERAGE", "PYTEST"))
    }
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True, env=bare)
    program = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin")
    # A copy: building leaves nothing behind in the checkout, and reads no more than it needs.
    source = tmp_path / "source"
    source.mkdir()
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    # Compiled when it is imported: most of it never is.
    install = [program / "python", "-m", "pip", "install", "--quiet", "--no-compile"]
    done = subprocess.run(
        [*install, f"{source}[all]"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=1200,
        env=bare,
    )
    if done.returncode and os.environ.get("CI") != "true":
        last = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        pytest.skip(f"the package cannot be installed here: {last}")
    assert done.returncode == 0, done.stderr
    work = tmp_path / "work"
    work.mkdir()
    run_commands(work, {**bare, "PATH": f"{program}{os.pathsep}{bare['PATH']}", "COLUMNS": "100"})
