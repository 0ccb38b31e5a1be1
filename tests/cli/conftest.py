import csv
import io
import re

import numpy as np
import pytest

from imcc.datasets import Dataset, write

FEATURES = ("length", "weight", "colour index", "age")
LABELS = ("happy", "sad", "hungry")
NAMED = ("--labels", ",".join(LABELS))


def one_setting(n_clusters=4, beta=1, **others):
    """The options of ``imcc tune`` for one setting of the paper's method."""
    values = {"alphas": 1, "gammas": 0.1, "width_scales": 1, "kernels": "rbf", **others}
    values |= {"n_clusters": n_clusters, "betas": beta}
    return (
        "--model",
        "imcc",
        *(w for pair in values.items() for w in ("--set", "=".join(map(str, pair)))),
    )


def table(text):
    return list(csv.reader(io.StringIO(text)))


def flat(text):
    return re.sub(r"\s+", " ", text)


def inside(group):
    """The commands of a group by name; none of a command that is no group."""
    if not hasattr(group, "list_commands"):
        return {}
    import click

    context = click.Context(group)
    return {name: group.get_command(context, name) for name in group.list_commands(context)}


def commands(group=None, path=()):
    """Yield the path and the command of every command."""
    from imcc.cli._app import app

    group = group or app
    yield path, group
    for name, command in inside(group).items():
        yield from commands(command, (*path, name))


@pytest.fixture(autouse=True)
def steady(monkeypatch):
    """The same width everywhere, and no remarks about progress on a slow machine."""
    from imcc._utils.config import config_context

    monkeypatch.setenv("COLUMNS", "120")
    with config_context(progress_after=1e9):
        yield


def invoke(*arguments, code=0, stdin=None):
    """Run a command in this process: quick."""
    from click.testing import CliRunner

    from imcc.cli._app import app

    try:
        runner = CliRunner(mix_stderr=False)
    except TypeError:  # click 8.2 and later always keep the two apart
        runner = CliRunner()
    result = runner.invoke(app, [str(a) for a in arguments], input=stdin)
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def imcc():
    """Run a command in this process: quick."""
    return invoke


def make_data(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4)).round(3)
    Y = (X[:, :3] + 0.6 * rng.normal(size=(n_rows, 3)) > [0, 0.5, 1.0]).astype(int)
    return Dataset(X, Y, FEATURES, LABELS, "pets")


@pytest.fixture(scope="session")
def pets(tmp_path_factory):
    """A folder with train.csv, test.csv, new.csv (no labels) and a fitted model.skops."""
    folder = tmp_path_factory.mktemp("pets")
    data = make_data(160)
    write(data[:120], folder / "train.csv")
    write(data[120:], folder / "test.csv")
    lines = (folder / "test.csv").read_text().splitlines()
    (folder / "new.csv").write_text("\n".join(",".join(x.split(",")[:4]) for x in lines) + "\n")
    invoke("tune", folder / "train.csv", *NAMED, *one_setting(6), "-o", folder / "model.skops")
    return folder
