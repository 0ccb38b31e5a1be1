"""Stores and exports of earlier versions: every later one must read and resume them."""

import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from imcc.experiment import DatasetSpec, Store, TaskKey, export, merge, run
from imcc.report import write_report
from tests.data.make_store import make_data

DATA = Path(__file__).parents[1] / "data"
MISSING = TaskKey("scores", "pets", "kernel_ridge", 1)


@pytest.fixture
def store(tmp_path):
    """A copy of the store of the first format."""
    return Path(shutil.copy(DATA / "store_1.sqlite", tmp_path / "old.sqlite"))


def test_it_can_be_read(store, tmp_path):
    with Store(store, read_only=True) as opened:
        assert len(opened.runs()) == 5
        assert [study.mean.shape for study in opened.studies()] == [(5, 2, 1, 1, 2)]
        assert opened.missing() == [MISSING]
        assert [(f.key, f.error) for f in opened.failures()] == [(MISSING, "ValueError: no")]
        scores = opened.scores("average_precision")
        assert scores.methods == ("imcc", "kernel_ridge", "knn")
        assert np.isnan(scores.values).sum() == 1
        for path in export(opened, tmp_path / "store_1.csv"):
            assert path.read_text() == (DATA / path.name).read_text()
    assert "kernel_ridge" in write_report(store, tmp_path / "r.html").read_text("utf-8")


def test_its_export_can_be_merged(store):
    with Store(store) as opened:
        found = merge(opened, [DATA / "store_1.csv", DATA / "store_1.sensitivity.csv"])
    assert (found.n_new, found.n_known, found.conflicts) == (0, 6, [])


def test_it_can_be_resumed(store):
    with Store(store) as opened:
        wanted = opened.experiment
        known = opened.runs()
    wanted.datasets = [DatasetSpec("pets", data=make_data(), in_memory=True)]
    wanted.studied_datasets = wanted.datasets
    with warnings.catch_warnings():
        # Later versions may have parameters that this one did not have; they say so.
        warnings.filterwarnings("ignore", message=".*has parameters that it did not have.*")
        summary = run(wanted, store)
    assert (summary.n_computed, summary.n_missing, summary.failures) == (1, 0, [])
    with Store(store) as opened:
        assert [row for row in opened.runs() if row.key != MISSING] == known
        assert np.isfinite(opened.scores("average_precision").values).all()
