"""The committed rows of the sensitivity are complete, and the program computes such rows."""

import csv

import numpy as np

from imcc.datasets import Dataset
from imcc.metrics import METRICS
from imcc_paper import sensitivity
from imcc_paper.places import RESULTS


def test_the_committed_rows_have_every_setting():
    with (RESULTS / "sensitivity.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    axes = ("alpha", "beta", "gamma", "n_clusters")
    settings = {(line["dataset"], *(float(line[axis]) for axis in axes)) for line in lines}
    grid = len(sensitivity.WEIGHTS) ** 3 * len(sensitivity.CLUSTERS)
    assert len(lines) == len(settings) == grid * len(sensitivity.DATASETS)
    assert {line["dataset"] for line in lines} == set(sensitivity.DATASETS)
    assert all(0 <= float(line[name]) <= 1 for line in lines for name in sensitivity.VALUES)


def test_rows(monkeypatch):
    monkeypatch.setattr(sensitivity, "WEIGHTS", [0.1, 1.0])
    monkeypatch.setattr(sensitivity, "CLUSTERS", [2, 3])
    rng = np.random.default_rng(0)
    data = Dataset(rng.normal(size=(60, 4)), rng.random((60, 3)) < 0.4, name="toy")
    found = list(sensitivity.rows(data))
    assert len(found) == 2**3 * 2
    assert all(tuple(row) == sensitivity.COLUMNS for row in found)
    assert len({row["mean_average_precision"] for row in found}) > 4
    assert set(METRICS) == {name.partition("_")[2] for name in sensitivity.VALUES}
