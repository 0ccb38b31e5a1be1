"""The benchmark's own checks, on the CPU through torch."""

import numpy as np

from benchmarks import gpu, gpu_stream
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


def test_the_stream_is_checked_and_measured(monkeypatch):
    backend("torch")
    chunks = gpu.made_chunks(1500, 400)
    assert [len(X) for X, _ in chunks] == [400, 400, 400, 300]
    checks = gpu.check_stream(chunks, 30, "cpu")
    assert all(difference <= gpu.SAME for _, difference in checks)
    asked = []

    def measured(call):
        asked.append(call())
        return 2.0, [1.5, 2.0, 2.5], 3.0

    lines = gpu.stream_lines(chunks, 30, "cpu", measured)
    learned, given = (np.sort(clf.landmarks_, axis=0) for clf in asked)
    np.testing.assert_allclose(given, learned, atol=1e-12)
    assert [line.count("| 2.00 s | 1.50, 2.00, 2.50 |") for line in lines[2:4]] == [1, 1]
    assert "1,500 x 100, 20 labels, c = 64, 30 components" in lines[2]
    assert lines[-3].startswith("transfer limit: 2 passes x 0.00 GB at")
    assert "3.75 chunks of 400 rows" in lines[-2]
    assert lines[-1].endswith("turned into features after they are summed")
    original = gpu_stream.IMCCClassifier.decision_function
    monkeypatch.setattr(
        gpu_stream.IMCCClassifier,
        "decision_function",
        lambda self, rows: original(self, rows) + (1e-6 if self.device else 0.0),
    )
    assert gpu.check_stream(chunks, 30, "cpu")[-1][1] > gpu.SAME
