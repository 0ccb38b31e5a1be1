"""The comparison with other libraries runs what an environment has, and hands the scores back."""

import numpy as np

from benchmarks import other_libraries


def test_a_method_is_run_on_the_rows_of_a_file(tmp_path):
    rng = np.random.default_rng(0)
    X, X_test = rng.normal(size=(60, 4)), rng.normal(size=(20, 4))
    Y = (X[:, :3] > 0).astype(int)
    np.savez(tmp_path / "rows.npz", X=X, Y=Y, X_test=X_test)
    assert {"imcc KernelEnsembleClassifier", "imcc IMCCClassifier"} <= set(
        other_libraries.available()
    )
    other_libraries.run(tmp_path / "rows.npz", "imcc IMCCClassifier")
    out = np.load(tmp_path / "rows.out.npz")
    assert out["scores"].shape == (20, 3)
    assert ((out["scores"] > 0) == (X_test[:, :3] > 0)).mean() > 0.8
    assert out["seconds"].min() >= 0
