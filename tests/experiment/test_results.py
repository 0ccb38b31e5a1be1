"""The results in the repository belong to the experiment that comes with the package."""

from pathlib import Path

import numpy as np
import pytest

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
    values = store.scores("average_precision").select(methods=["imcc", "kernel_ridge"]).values
    assert values.shape == (15, 2, 10)
    assert np.isfinite(values[:, :, :3]).all()
    assert [study.key[1] for study in store.studies()] == ["enron", "genbase", "yeast"]


@pytest.mark.parametrize(
    ("selection", "expected"), [("average_precision", (64, 4, 7)), ("each", (59, 14, 2))]
)
def test_the_verdicts_are_those_of_the_readme(store, selection, expected):
    counts = compare_with_published(store, selection).counts(method="imcc")
    assert (counts["reproduced"], counts["better"], counts["worse"]) == expected
    row = f"| {expected[0]} | {expected[1]} | {expected[2]} |"
    assert row in (RESULTS / "README.md").read_text()
