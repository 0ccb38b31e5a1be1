"""The results in the repository belong to the experiment that comes with the package."""

import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.reproduce import PAGE, page
from imcc.experiment import Store, load_experiment, merge
from imcc.published import compare_with_published

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "paper.sqlite"
    with Store.create(path, load_experiment("paper")) as opened:
        merge(opened, [RESULTS / "paper.csv", RESULTS / "paper.sensitivity.csv"])
        yield opened


def test_the_first_rows_are_complete(store):
    """Three splits of every method but kernel ridge, and MAHR on bibtex."""
    table = store.scores("average_precision")
    has = np.isfinite(table.values)
    for method in ("brsvm", "ecc", "llsf", "jfsc", "lift", "extra_trees"):
        assert has[:, table.methods.index(method), :3].all(), method
    for method in ("imcc", "kernel_ensemble"):
        assert has[:, table.methods.index(method)].any(axis=1).all(), method
    assert [study.key[1] for study in store.studies()] == ["enron", "genbase", "yeast"]


@pytest.mark.parametrize(
    ("selection", "expected"), [("average_precision", (66, 3, 6)), ("each", (63, 12, 0))]
)
def test_the_verdicts_are_those_of_the_readme(store, selection, expected):
    counts = compare_with_published(store, selection).counts(method="imcc")
    assert (counts["reproduced"], counts["better"], counts["worse"]) == expected
    row = f"| {expected[0]} | {expected[1]} | {expected[2]} |"
    assert row in (RESULTS / "README.md").read_text()


def test_the_page_is_what_the_rows_give():
    assert PAGE.read_text("utf-8") == page(), "run make reproduce"


def test_numbers_of_the_readme_are_those_of_the_page():
    """The README repeats lines of the page about the reproduction."""
    readme = (RESULTS.parent / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (?:imcc|kernel_ridge|extra_trees|brsvm|lift) \| .*\|$", readme, re.M)
    assert len(rows) == 5
    assert set(rows) <= set(PAGE.read_text("utf-8").splitlines())
