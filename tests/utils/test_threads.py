"""Threads: limited by the size of matrices and by what the process may use; restored afterwards."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification
from threadpoolctl import threadpool_limits

from imcc import IMCCClassifierCV, KernelEnsembleClassifier
from imcc._array import device
from imcc._array.device import limited_threads, n_cores, one_thread


def in_use():
    """Return the threads of BLAS and of OpenMP, but not of libraries that were loaded later."""
    return {pool["num_threads"] for pool in device._controller().info()}


@pytest.fixture
def cores(monkeypatch):
    """Set how many cores the process may use, and let the libraries use eight."""
    with threadpool_limits(8):
        yield lambda count: monkeypatch.setattr(device, "n_cores", lambda: count)


def test_as_many_threads_as_the_rows_are_worth(cores, config):
    cores(6)
    for size, expected in {1: 1, 1999: 1, 2000: 2, 4500: 4, 100_000: 6}.items():
        with limited_threads(size):
            assert in_use() == {expected}
        assert in_use() == {8}
    config(thread_rows=10)
    with limited_threads(40):
        assert in_use() == {4}
    cores(1)
    with limited_threads(100_000):
        assert in_use() == {1}


def test_limits_are_nested_and_restored_after_an_error():
    with threadpool_limits(3):
        with one_thread(), limited_threads(10**9):
            assert in_use() == {1}
        with pytest.raises(RuntimeError), one_thread():
            raise RuntimeError
        assert in_use() == {3}
        # What the user allows is not exceeded.
        with limited_threads(10**9):
            assert max(in_use()) <= min(3, n_cores())
        assert in_use() == {3}


def test_limits_of_several_python_threads_leave_the_numbers_as_they_were():
    """Whoever ends last: nobody may restore the limit of another thread."""
    entered, may_end = threading.Event(), threading.Event()

    def other():
        with one_thread():
            entered.set()
            assert may_end.wait(60)

    with threadpool_limits(3):
        first = threading.Thread(target=other)
        first.start()
        assert entered.wait(60)
        with one_thread():  # begins inside of the other, ends after it
            may_end.set()
            first.join()
        assert in_use() == {3}


PROGRAM = """
from unittest import mock
import numpy as np, scipy.linalg
from threadpoolctl import threadpool_info
from imcc import IMCCClassifier, IMCCClassifierCV, KernelEnsembleClassifier
from imcc._math.ensemble import ridge

def watched(decompose):
    def call(*args, **options):
        used.update(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return decompose(*args, **options)
    return call

X = np.random.default_rng(0).normal(size=(90, 5))
for model in (
    KernelEnsembleClassifier(views=("raw",)),
    IMCCClassifierCV(width_scales=[1.0], betas=[1.0], cv=3),
    IMCCClassifier(3, solver="spectral"),
):
    used = set()
    with (
        mock.patch("scipy.linalg.eigh", watched(scipy.linalg.eigh)),
        mock.patch("imcc._math.ensemble.ridge.cholesky", watched(ridge.cholesky)),
    ):
        model.fit(X, X[:, :2] > 0)
    print(sorted(used))
"""


def test_small_decompositions_have_one_thread():
    """In a process of its own, whose libraries may use two threads."""
    several = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env={**os.environ, **several},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.splitlines() == ["[1]"] * 3


def test_threads_change_nothing_but_rounding(config):
    X, Y = make_multilabel_classification(60, n_features=8, n_classes=4, random_state=3)
    models = (
        KernelEnsembleClassifier(views=("raw",), random_state=0),
        IMCCClassifierCV(
            alphas=[1.0], betas=[0.1, 1.0], gammas=[0.1], n_clusters=[4], random_state=0
        ),
    )
    for model in models:
        limited = model.fit(X, Y).decision_function(X)
        config(thread_rows=1)
        with threadpool_limits(2):
            free = model.fit(X, Y).decision_function(X)
        config(thread_rows=1000)
        np.testing.assert_allclose(limited, free, atol=1e-6)
