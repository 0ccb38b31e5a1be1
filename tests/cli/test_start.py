"""Help and completion are there at once: nothing that computes is imported for them."""

import json
import os
import re
import subprocess
import sys

import pytest

import imcc
from imcc.cli import _choices as choices
from imcc.cli._app import CONTENTS, app
from tests.cli.test_model_commands import commands
from tests.writers import write

HEAVY = ("numpy", "scipy", "sklearn", "pandas", "joblib", "matplotlib", "pyarrow", "skops")


def loaded(program, *arguments, **environment):
    """Run a program; return which heavy packages it has imported, and what it printed."""
    ending = "\nimport json, sys; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program + ending, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return {name for name in json.loads(done.stderr.splitlines()[-1]) if name in HEAVY}, done.stdout


RUN = """
import sys
from imcc.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""


HELP = f"""
import contextlib, io, json, sys
from imcc.cli import main
shown = {{}}
for path in json.loads(sys.argv[1]):
    sys.argv = ["imcc", *path, "--help"]
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        try:
            main()
        except SystemExit as end:
            assert not end.code, end.code
    heavy = [name for name in {HEAVY!r} if name in sys.modules]
    assert not heavy, (path, heavy)
    shown[" ".join(path)] = text.getvalue()
print(json.dumps(shown))
"""


def test_help_imports_nothing_heavy():
    """One process for all commands: the first one that imports something is named."""
    paths = [path for path, _ in commands()]
    heavy, text = loaded(HELP, json.dumps(paths))
    shown = json.loads(text)
    assert list(shown) == [" ".join(path) for path in paths]
    assert [path for path, said in shown.items() if "Usage: imcc" not in said] == []
    assert len(set(shown.values())) == len(paths)
    assert heavy == set()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("imcc pre", "predict"),
        ("imcc tune --metric ", "coverage"),
        ("imcc tune ye", "yeast"),
    ],
)
def test_completion_imports_nothing_heavy(words, expected):
    there = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    heavy, text = loaded(RUN, _IMCC_COMPLETE="bash_complete", **there)
    assert expected in text
    assert heavy == set()


def test_the_version_imports_nothing_heavy():
    heavy, text = loaded(RUN, "--version")
    assert text == f"imcc, version {imcc.__version__}\n"
    assert heavy == set()


def test_import_imcc_imports_nothing_heavy():
    heavy, _ = loaded("import imcc; dir(imcc); imcc.__version__")
    assert heavy == set()
    heavy, _ = loaded("import imcc; imcc.metrics")
    assert "sklearn" in heavy
    assert not heavy & {"matplotlib", "skops"}


def test_every_name_of_the_package_is_there():
    assert [name for name in dir(imcc) if not hasattr(imcc, name)] == []
    assert sorted(imcc.__all__) == sorted(set(dir(imcc)) - {"__version__"})
    assert not hasattr(imcc, "nothing")


def test_the_summaries_are_the_commands_own():
    for path, command in commands():
        if len(path) == 1:
            (summary,) = (part[path[0]][1] for part in CONTENTS.values() if path[0] in part)
            own = command.get_short_help_str(limit=200).removesuffix(".")
            assert own == summary.removesuffix("."), path
            assert "..." not in summary, path


def test_the_root_lists_every_command(imcc):
    text = imcc("--help").stdout
    assert [name for name in app.places if f"\n  {name} " not in text] == []


def test_a_misspelt_command_is_answered_with_the_right_one(imcc):
    for word in ("tuen", "fit", "train"):
        assert "Did you mean 'tune'?" in imcc(word, "table.csv", code=2).stderr
    assert "Did you mean" not in imcc("frobnicate", code=2).stderr


def offered(function, *arguments, **wrong):
    """The words that a function says it takes, when it is given another."""
    with pytest.raises(ValueError, match=r"one of|these are written") as caught:
        function(*arguments, **wrong)
    listed = re.split(r"one of|these are written:", str(caught.value))[-1].split(", got")[0]
    return tuple(word.strip(" '") for word in listed.split(","))


def test_the_choices_are_those_of_the_packages(pets, tmp_path):
    import imcc
    from imcc._math.thresholds import CRITERIA

    data, labels = imcc.datasets, ["happy", "sad", "hungry"]
    train = data.read(pets / "train.csv", labels=labels)
    assert tuple(imcc.metrics.METRICS) == choices.METRICS
    assert tuple(imcc.experiment.ALL_METRICS) == choices.ALL_METRICS
    assert tuple(CRITERIA) == choices.CRITERIA
    assert choices.EACH == imcc.experiment.EACH
    assert choices.dataset_names() == tuple(data.list_datasets())
    assert offered(data.read, pets / "train.csv", format="?") == choices.FORMATS
    write(train, tmp_path / "t.arff")
    assert offered(data.read, tmp_path / "t.arff", nominal="?") == choices.NOMINAL
    (tmp_path / "t.svm").write_text("0 1:2\n")
    assert offered(data.read, tmp_path / "t.svm", index_base="?") == choices.INDEX_BASES
    assert choices.DEFAULT_DATASET in choices.dataset_names()
