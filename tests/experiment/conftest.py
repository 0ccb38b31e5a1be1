import os
from pathlib import Path

import numpy as np
import pytest

from imcc.datasets import Dataset
from imcc.experiment import Experiment

# Not under "tests.": other processes may find another package of that name first.
DICE = "imcc_test_methods.Dice"
ALLOW = ["imcc_test_methods"]


@pytest.fixture(autouse=True)
def importable_methods(monkeypatch):
    """Let this process and those that it starts import the methods above."""
    folder = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", folder, prepend=os.pathsep)


@pytest.fixture
def pets():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    Y = (X @ rng.normal(size=(4, 3)) + rng.normal(size=(60, 3)) > 0.3).astype(int)
    return Dataset(X, Y, name="pets")


@pytest.fixture
def pets_file(pets, tmp_path):
    """The same in a file, so that other processes can read it."""
    from imcc.datasets import write

    path = tmp_path / "pets.npz"
    write(pets, path)
    return path


@pytest.fixture
def small(pets_file):
    """Two methods, one of which searches, three repetitions."""
    return Experiment(
        {"pets": pets_file},
        {"dice": DICE, "grid": {"estimator": DICE, "grid": {"strength": [0.5, 1.0, 2.0]}}},
        n_repeats=3,
        cv=3,
        name="small",
        allow=ALLOW,
    ).resolve()
