"""The benchmark's own checks, on the CPU through torch."""

import numpy as np

from benchmarks import gpu
from tests.backends import backend


def test_it_checks_and_would_notice(monkeypatch):
    backend("torch")
    X, Y = gpu.made_up(560, 6, 3)
    lines = gpu.check_fits(X, Y, "cpu") + gpu.check_search(X[:60], Y[:60], "cpu", (3,))
    lines += gpu.check_arrays(X, Y, "cpu")[:3]
    assert len(lines) == 6 + 5 + 3
    assert all(line.endswith("| same |") for line in lines)
    original = gpu.IMCCClassifier.decision_function
    monkeypatch.setattr(
        gpu.IMCCClassifier,
        "decision_function",
        lambda self, rows: original(self, rows) + (1e-6 if self.device else 0.0),
    )
    assert all("NOT THE SAME" in line for line in gpu.check_fits(X, Y, "cpu"))


def test_made_up_labels_are_of_both_kinds():
    _, Y = gpu.made_up(200, 100, 20)
    assert np.all((Y.mean(axis=0) > 0.05) & (Y.mean(axis=0) < 0.6))
