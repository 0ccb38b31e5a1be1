"""The benchmark's own checks, on the CPU through torch."""

import numpy as np
import pytest

from benchmarks import gpu, gpu_stream
from benchmarks._measured import Measurements
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

    def timed(call):
        asked.append(call())
        return {"seconds": 2.0, "peak_gib": 3.0}

    found = Measurements(device="a processor")
    gpu_stream.add_stream(chunks, 30, "cpu", timed, found)
    learned, given = (np.sort(clf.landmarks_, axis=0) for clf in asked)
    np.testing.assert_allclose(given, learned, atol=1e-12)
    assert found.of("stream", "data") == {"rows": 1500, "components": 30}
    limits = [found.of("stream", f"{name} limit") for name in ("transfer", "arithmetic")]
    assert limits[0]["gb_per_pass"] == 1500 * (100 * 8 + 20) / 1e9
    for case in gpu_stream.FITS:
        values = found.of("stream", case)
        shares = [values["of_transfer_limit"], values["of_arithmetic_limit"]]
        assert shares == pytest.approx([limit["seconds"] / 2 for limit in limits], rel=1e-4)
    text = gpu_stream.stream_blocks(found)
    assert text["gpu-stream"].startswith("| 1,500 x 100, 20 labels, 64 clusters | time |")
    assert [line.count("| 2.0 s |") for line in text["gpu-stream"].splitlines()[2:]] == [1, 1]
    assert found.of("stream", "kernel of the landmarks")["summed_first"] == 1
    assert "is not reached" not in text["gpu-limits"]
    original = gpu_stream.IMCCClassifier.decision_function
    monkeypatch.setattr(
        gpu_stream.IMCCClassifier,
        "decision_function",
        lambda self, rows: original(self, rows) + (1e-6 if self.device else 0.0),
    )
    assert gpu.check_stream(chunks, 30, "cpu")[-1][1] > gpu.SAME


def test_memory_and_times_are_measured_on_any_device(monkeypatch):
    backend("torch")
    monkeypatch.setattr(gpu, "peak_gib", lambda device: 2**-7)
    monkeypatch.setattr(gpu, "total_gib", lambda device: 139.2)
    found = Measurements(device="a processor")
    gpu.add_memory(200, "cpu", found)
    assert found.of("memory", "auto")["matrices"] == pytest.approx(2**23 / (8 * 200**2), rel=1e-4)
    table = gpu.memory_table(found).splitlines()
    assert table[0].endswith("| n x n matrices (measured, n = 200) | largest n in 139 GiB |")
    assert table[-1].endswith("(1 - 1/k)² | 62,000 (5 folds) |")
