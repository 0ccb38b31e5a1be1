import numpy as np
import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """The problems are small: threads would only get in each other's way."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def small_problem():
    """Rows in clumps with dependent labels, and new rows: (X, Y in {0, 1}, X_new, Y_new)."""
    rng = np.random.default_rng(7)
    middles = rng.normal(size=(6, 5)) * 2
    X = middles[rng.integers(6, size=130)] + rng.normal(size=(130, 5))
    Y = (X @ rng.normal(size=(5, 4)) + 1.5 * rng.normal(size=(130, 4)) > 0.4).astype(int)
    return X[:90], Y[:90], X[90:], Y[90:]
