"""Write the model files that every later version must read: python tests/data/make_models.py.

Run it only when the format changes before a release.  After a release these files are never written
again; a version that writes other files adds new ones beside them.
"""

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc.baselines import (
    LIFT,
    LLSF,
    MAHR,
    BinaryRelevanceSVM,
    EnsembleClassifierChains,
    KernelRidgeBaseline,
)
from imcc.calibration import TunedThresholds
from imcc.datasets import Dataset
from imcc.persistence import save_model

FOLDER = Path(__file__).parent / "models"


def problem():
    """Return 24 rows of 4 features, most of them zero, and 3 labels."""
    rng = np.random.default_rng(0)
    X = np.round(rng.random((24, 4)) * (rng.random((24, 4)) < 0.6), 3)
    Y = (X[:, :3] + X[:, 1:] + 0.2 * rng.random((24, 3)) > 0.9).astype(int)
    return X, Y


def models():
    """Return the models, and whether they are fitted on sparse rows."""
    plain = {"n_clusters": 3, "random_state": 0}
    search = IMCCClassifierCV([1.0], [0.1, 1.0], [0.1], [3], cv=2, random_state=0)
    return {
        "rbf-sparse": (IMCCClassifier(**plain), True),
        "linear": (IMCCClassifier(**plain, kernel="linear"), False),
        "nystroem-sparse": (
            IMCCClassifier(**plain, approximation="nystroem", n_components=5, landmarks="random"),
            True,
        ),
        "fourier": (IMCCClassifier(**plain, approximation="fourier", n_components=6), False),
        "search": (search, False),
        "thresholds-pipeline": (
            TunedThresholds(make_pipeline(MaxAbsScaler(), IMCCClassifier(**plain)), cv=2),
            True,
        ),
        "kernel-ridge": (KernelRidgeBaseline(betas=[0.1, 1.0], cv=2), True),
        "brsvm": (BinaryRelevanceSVM(random_state=0), False),
        "ecc": (EnsembleClassifierChains(n_chains=2, random_state=0), False),
        "mahr": (MAHR(n_rounds=4), False),
        "lift": (LIFT(random_state=0), False),
        "llsf": (LLSF(), False),
    }


def main() -> None:
    """Write the files, and the scores that the models give."""
    X, Y = problem()
    scores = {}
    FOLDER.mkdir(exist_ok=True)
    for name, (model, is_sparse) in models().items():
        rows = sp.csr_array(X) if is_sparse else X
        data = Dataset(rows, Y, ["a", "b", "c", "d"], ["p", "q", "r"], "small")
        model.fit(rows, Y)
        save_model(model, FOLDER / f"{name}.skops", data, notes="for the tests")
        scores[name] = model.decision_function(rows)
    np.savez(FOLDER / "scores.npz", **scores)


if __name__ == "__main__":
    main()
