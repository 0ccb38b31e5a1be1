"""Options that would do nothing are refused, and the message names them."""

import re

import click
import pytest

from tests.cli.conftest import LABELS
from tests.cli.test_model_commands import commands

NAMED = ("--labels", ",".join(LABELS))


def flat(text):
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize(
    "words",
    [
        "inspect MODEL --nearest 3",
        "inspect MODEL --background-rows 9",
        "inspect MODEL --evaluations 99",
        "inspect MODEL --columns 4",
        "inspect MODEL --seed 1",
        "inspect MODEL --delimiter ;",
        "inspect MODEL NEW --row 0 --by support --nearest 3",
        "inspect MODEL NEW --row 0 --by support --seed 3",
        "predict MODEL NEW --to json --raw-csv",
        "predict MODEL NEW --to csv --json",
        "predict MODEL NEW --json -o OUT.csv",
        "predict MODEL NEW --to csv -o OUT.parquet",
        "predict MODEL NEW --labels happy",
        "predict MODEL NEW --member x",
        "evaluate MODEL TEST --calibration platt",
        "evaluate MODEL TEST --resamples 0 --seed 1",
        "evaluate MODEL TEST --label-prefix h",
        "fit TRAIN NAMED -o OUT.skops --folds 3",
        "fit TRAIN NAMED -o OUT.skops --folds 3 --thresholds none",
        "fit TRAIN NAMED -o OUT.skops --separator ;",
        "tune TRAIN NAMED -o OUT.skops --raw-csv",
        "tune TRAIN NAMED -o OUT.skops --calibrate",
        "datasets describe TRAIN --draw-labels 3",
        "datasets describe TRAIN --separator ;",
        "compare none.sqlite --published p.csv --rope 0.1",
        "compare none.sqlite --published p.csv --control imcc",
        "report none.sqlite --tables latex --rope 0.1",
        "report none.sqlite --tables latex --published p.csv",
        "report none.sqlite --tables latex --alpha 0.1",
        "report none.sqlite --figures svg --rope 0.1",
        "report none.sqlite --figures svg --force",
        "report none.sqlite -o - --force",
        "experiment run quick --dask local -j 2 -o OUT.sqlite",
    ],
)
def test_an_option_that_would_do_nothing_is_refused(imcc, pets, tmp_path, words):
    files = {
        "MODEL": pets / "model.skops",
        "NEW": pets / "new.csv",
        "TEST": pets / "test.csv",
        "TRAIN": pets / "train.csv",
    }
    arguments = []
    for word in words.split():
        if word == "NAMED":
            arguments += NAMED
        elif word.startswith("OUT"):
            arguments.append(tmp_path / word)
        else:
            arguments.append(files.get(word, word))
    said = flat(imcc(*arguments, code=2).stderr)
    # The last option that needs another one, by name.
    flags = [word for word in words.split() if word.startswith("-") and word not in ("-", "-o")]
    aliases = {"-j": "--jobs"}
    assert any(aliases.get(flag, flag) in said for flag in flags[-2:]), said
    assert list(tmp_path.glob("OUT*")) == []


def test_the_same_options_act_where_they_belong(imcc, pets, tmp_path):
    imcc("predict", pets / "model.skops", pets / "new.csv", "--raw-csv")
    imcc("predict", pets / "model.skops", pets / "new.csv", "--to", "json", "--json")
    imcc("evaluate", pets / "model.skops", pets / "test.csv", "--calibration", "platt", "--json")
    out = tmp_path / "m.skops"
    start = ("fit", pets / "train.csv", *NAMED, "--clusters", 4, "-o", out)
    imcc(*start, "--folds", 3, "--thresholds", "f1")


def test_no_two_options_of_a_command_have_one_name():
    for path, command in commands():
        flags = [flag for p in command.params if isinstance(p, click.Option) for flag in p.opts]
        assert len(flags) == len(set(flags)), path
