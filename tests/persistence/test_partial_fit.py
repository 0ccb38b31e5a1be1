"""Models that are trained chunk by chunk: saved in between, loaded, and trained on."""

import numpy as np
import pytest
import scipy.sparse as sp

from imcc import IMCCClassifier
from imcc.persistence import load_model, save_model

pytest.importorskip("skops")
random = np.random.default_rng(0)
X = random.random((60, 4)) * (random.random((60, 4)) < 0.6)
Y = (X[:, :3] > 0.3).astype(int)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize(
    "model",
    [
        {"kernel": "linear"},
        {"approximation": "nystroem", "n_components": 8, "landmarks": "random"},
        {"approximation": "fourier", "n_components": 8},
    ],
    ids=str,
)
def test_saved_between_two_chunks(model, kind, tmp_path):
    rows = kind(X)
    clf = IMCCClassifier(4, random_state=0, **model).partial_fit(rows[:40], Y[:40])
    save_model(clf, tmp_path / "half.imcc")
    loaded = load_model(tmp_path / "half.imcc")
    np.testing.assert_array_equal(loaded.decision_function(rows), clf.decision_function(rows))
    loaded.partial_fit(rows[40:], Y[40:])
    clf.partial_fit(rows[40:], Y[40:])
    np.testing.assert_array_equal(loaded.decision_function(rows), clf.decision_function(rows))
