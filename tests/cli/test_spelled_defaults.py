"""An option whose default is spelled out is the same as one that is not given."""

import json

import click
import numpy as np
import pytest
from sklearn.base import BaseEstimator

from imcc.datasets import read, write
from imcc.estimators.imcc_cv import GRIDS, IMCCClassifierCV
from imcc.persistence import load_model
from imcc.tables import write_example
from tests.cli.conftest import LABELS
from tests.cli.test_model_commands import commands
from tests.report.synthetic import make_store

NAMED = f"--labels {','.join(LABELS)}"
# The commands: files that are made below are in capitals.  What takes long is stopped where the
# library begins, and the calls are compared.
LINES = {
    "tune": [
        f"tune TRAIN.csv {NAMED} -o OUT",
        "tune TRAIN.arff -o OUT",
        "tune TRAIN.arff -o OUT --thresholds f1",
        f"tune TRAIN.csv {NAMED} -o OUT --method imcc",
        f"tune TRAIN.csv {NAMED} -o OUT --method imcc --thresholds f1 --calibrate",
        "tune TRAIN.arff -o OUT --method imcc --kernel-search",
    ],
    "fit": [
        f"fit TRAIN.csv {NAMED} -o OUT",
        "fit TRAIN.arff -o OUT",
        f"fit TRAIN.csv {NAMED} -o OUT --thresholds f1",
        "fit TRAIN.arff -o OUT --calibrate",
    ],
    "inspect": [
        "inspect MODEL --json",
        "inspect MODEL NEW.csv --row 3 --json",
        "inspect MODEL NEW.csv --row 3 --by support --json",
    ],
    "predict": ["predict MODEL NEW.csv", "predict MODEL NEW.csv --scores"],
    "evaluate": [
        "evaluate MODEL TEST.csv --json --resamples 0",
        "evaluate MODEL TEST.csv --json --resamples 500",
        "evaluate MODEL TEST.csv",
    ],
    "datasets convert": ["datasets convert TRAIN.arff OUT.csv --json --force"],
    "datasets describe": [
        f"datasets describe TRAIN.csv {NAMED} --json",
        f"datasets describe TRAIN.parquet {NAMED} --json",
        "datasets describe TRAIN.arff",
        "datasets describe TRAIN.svm --json",
        "datasets describe yeast --json",
    ],
    "datasets example": ["datasets example OUT.csv --json --force"],
    "datasets fetch": ["datasets fetch scene --json"],
    "datasets list": ["datasets list --json"],
    "datasets schema": [
        f"datasets schema TRAIN.csv {NAMED}",
        f"datasets schema TRAIN.parquet {NAMED}",
    ],
    "experiment resume": ["experiment resume STORE", "experiment resume STORE --dask local"],
    "experiment run": ["experiment run quick"],
    "compare": ["compare STORE --json", "compare STORE --published PUBLISHED --json"],
    "report": ["report SMALL -o OUT.html", "report SMALL --tables markdown -o -"],
    "demo": ["demo"],
}
# How to write a default that is not a value of click's, and where it is the default.
SPELLED = {
    ("tune", "--thresholds"): {0: "--thresholds f1", 1: "--thresholds none"},
    ("tune", "--folds"): dict.fromkeys((2, 3, 4, 5), "--folds 5"),
    ("tune", "--method"): dict.fromkeys((0, 1, 2), "--method kernel_ensemble"),
    **{
        ("tune", flag): dict.fromkeys((3, 4), f"{flag} {','.join(map(str, values))}")
        for flag, values in (
            ("--alphas", GRIDS["default"]["alphas"]),
            ("--betas", GRIDS["default"]["betas"]),
            ("--gammas", GRIDS["default"]["gammas"]),
            ("--clusters", GRIDS["default"]["n_clusters"]),
            ("--width-scales", GRIDS["default"]["width_scales"]),
        )
    },
    ("fit", "--thresholds"): {0: "--thresholds none", 1: "--thresholds none"},
    ("predict", "--output"): {0: "-o -", 1: "-o -"},
    ("predict", "--to"): {0: "--to csv", 1: "--to csv"},
    ("inspect", "--by"): {0: "--by columns", 1: "--by columns"},
    ("evaluate", "--resamples"): {1: "--resamples 500", 2: "--resamples 500"},
    ("compare", "--control"): {0: "--control imcc"},
    ("compare", "--metric"): {0: "--metric all", 1: "--metric all"},
    ("report", "--control"): {0: "--control imcc"},
    ("experiment run", "--store"): {0: "-o quick.sqlite"},
}
# Defaults that depend on the data or the machine, and have no word.
NO_WORD = {
    *("--transpose-labels", "--max-bytes", "--separator", "--width", "--background", "--label"),
    *("--calibration", "--threads", "--isolate", "--device", "--rows", "--selection", "--title"),
}
STOPPED = ("tune", "fit", "experiment", "demo")
STOPPED += ("datasets fetch",)
OUTPUTS = {("datasets schema", "--output"), ("report", "--output")}


def defaults():
    """Yield the line, and the words that spell out a default, for every option that has one."""
    for path, command in commands():
        name = " ".join(path)
        for option in command.params:
            flag = max(option.opts, key=len)
            spelled = SPELLED.get((name, flag))
            if spelled is None and (words := in_words(option)) is not None:
                spelled = dict.fromkeys(range(len(LINES[name])), words)
            for number, words in (spelled or {}).items():
                yield pytest.param(name, number, words, id=f"{LINES[name][number]} {words}")


def in_words(option):
    """Return a default of click as it is typed; None if there is none, or no way to type it."""
    default = getattr(option, "default", None)
    if not isinstance(option, click.Option) or not isinstance(default, (str, int, float)):
        return None
    flag = max(option.opts, key=len)
    if option.is_flag:  # a flag without an opposite cannot be typed as False
        return (flag if default else option.secondary_opts[0]) if option.secondary_opts else None
    return f"{flag} {default}"


class Stopped(click.ClickException):
    """What is raised instead of computing."""


@pytest.fixture(scope="module")
def files(pets, tmp_path_factory):
    folder = tmp_path_factory.mktemp("spelled")
    data = read(pets / "train.csv", labels=list(LABELS))
    for suffix in ("arff", "svm", "parquet"):
        write(data, folder / f"train.{suffix}")
    published = folder / "published.csv"
    published.write_text(
        "metric,dataset,method,mean,std,n\naverage_precision,yeast,imcc,0.77,0.01,10\n"
    )
    small = {"n_repeats": 1, "metrics": ("average_precision",)}
    return {
        "TRAIN.csv": pets / "train.csv",
        **{f"TRAIN.{suffix}": folder / f"train.{suffix}" for suffix in ("arff", "svm", "parquet")},
        "TEST.csv": pets / "test.csv",
        "NEW.csv": pets / "new.csv",
        "MODEL": pets / "model.skops",
        "PUBLISHED": published,
        "STORE": make_store(folder / "store.sqlite", ("yeast", "scene")),
        "SMALL": make_store(folder / "small.sqlite", ("yeast",), **small),
    }


@pytest.fixture
def calls(monkeypatch):
    """Stop at what takes long, and collect what it was called with."""
    found = []

    def stop(*arguments, **named):
        found.append(told([*arguments, named]))
        raise Stopped("stopped")

    for name in (
        "imcc.tables.TableClassifier.fit",
        "imcc.calibration.TunedThresholds.fit",
        "imcc.calibration.MultilabelCalibrator.fit",
        "imcc.estimators.KernelEnsembleClassifier.fit",
        "imcc.estimators.IMCCClassifierCV.fit",
        "imcc.estimators.IMCCClassifier.fit",
        "imcc.experiment.run",
        "imcc.datasets.fetch_datasets",
    ):
        monkeypatch.setattr(name, stop)
    return found


def told(value):
    """Return what an argument is, so that equal ones are equal."""
    if isinstance(value, BaseEstimator):
        parameters = value.get_params(deep=False)
        if isinstance(value, IMCCClassifierCV):  # None means the values of the grid
            parameters |= {axis: value._axis(axis) for axis in GRIDS["default"]}
        return type(value).__name__, told(parameters)
    if isinstance(value, dict):
        # Reports of progress are functions, which differ from call to call.
        return {name: told(part) for name, part in value.items() if name != "progress"}
    if isinstance(value, (list, tuple)):
        return [told(part) for part in value]
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "to_pydict"):
        return value.to_pydict()
    return value.to_dict() if hasattr(value, "to_dict") else str(value)


def outcome(imcc, files, folder, line):
    """Return what a command prints, and the file that it writes."""
    texts = {name: folder / name.lower() for name in ("OUT.csv", "OUT.html")}
    out = {"OUT": folder / "out.skops", **texts}
    words = [(files | out).get(word, word) for word in line.split()]
    printed = imcc(*words, code=1 if line.startswith(STOPPED) else 0).stdout
    return printed, [file.read_text("utf-8") for file in texts.values() if file.exists()]


@pytest.mark.parametrize(("name", "number", "spelled"), list(defaults()))
def test_a_default_can_be_spelled_out(
    imcc, files, calls, tmp_path, monkeypatch, name, number, spelled
):
    monkeypatch.chdir(tmp_path)
    line = LINES[name][number]
    expected = outcome(imcc, files, tmp_path, line)
    assert outcome(imcc, files, tmp_path, f"{line} {spelled}") == expected
    assert len(calls) == (2 if line.startswith(STOPPED) else 0)
    assert calls[:1] == calls[1:]


def test_every_command_is_here():
    with_defaults = {p.values[0] for p in defaults()}
    assert with_defaults == set(LINES)
    assert len(list(defaults())) > 150


def test_every_default_that_help_names_is_here():
    for path, command in commands():
        for option in command.params:
            flag, name = max(option.opts, key=len), " ".join(path)
            if "[default:" in (getattr(option, "help", "") or ""):
                assert (name, flag) in {*SPELLED, *OUTPUTS} or flag in NO_WORD, (name, flag)


def test_the_default_thresholds_of_a_table_spelled_out(imcc, tmp_path):
    """The example table, from the file to the predictions: trees and thresholds are the same."""
    write_example(tmp_path / "t.csv", 60, 0)
    labels = "complaint,refund,upgrade,senior,remote,praise"
    start = ("tune", tmp_path / "t.csv", "--labels", labels, "--drop", "message", "--json")
    shown = []
    for options in ((), ("--thresholds", "f1")):
        found = imcc(*start, "-o", tmp_path / "m.skops", "--force", *options).stdout
        shown.append(json.loads(found) | {"created": None})
        model = load_model(tmp_path / "m.skops")
        assert type(model.estimator_[-1].estimator_).__name__ == "TreeCorrectedClassifier"
    assert shown[0] == shown[1]
