"""The benchmark's own checks, on the CPU through torch."""

import numpy as np
import pytest

from imcc_paper import gpu
from imcc_paper._measured import Measurements


def test_it_checks_and_would_notice(monkeypatch):
    pytest.importorskip("torch")
    X, Y = gpu.made_up(540, 6, 3)
    lines = gpu.check_fits(X, Y, "cpu") + gpu.check_search(X[:60], Y[:60], "cpu", (3,))
    lines += gpu.check_arrays(X, Y, "cpu")[:1]
    assert len(lines) == 6 + 5 + 1
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


def test_the_stream_is_checked(monkeypatch):
    pytest.importorskip("torch")
    chunks = gpu.made_chunks(1500, 400)
    assert [len(X) for X, _ in chunks] == [400, 400, 400, 300]
    assert all(line.endswith("| same |") for line in gpu.check_stream(chunks, 30, "cpu"))
    original = gpu.IMCCClassifier.decision_function
    monkeypatch.setattr(
        gpu.IMCCClassifier,
        "decision_function",
        lambda self, rows: original(self, rows) + (1e-6 if self.device else 0.0),
    )
    assert "NOT THE SAME" in gpu.check_stream(chunks, 30, "cpu")[-1]


def test_memory_and_times_are_measured_on_any_device(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(gpu, "peak_gib", lambda device: 2**-7)
    found = Measurements(device="a processor")
    gpu.add_memory(200, "cpu", found)
    assert found.of("memory", "auto")["matrices"] == pytest.approx(2**23 / (8 * 200**2), rel=1e-4)
    assert gpu.memory_table(found).splitlines()[0] == "| what | n x n matrices, n = 200 |"
