"""On the paper's own files: duplicate rows, sparse rows, and numbers like the paper's."""

import numpy as np
import pytest
import scipy.sparse as sp

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc._math.clustering import assign_rows
from imcc.datasets import load_dataset, paper_splits
from imcc.metrics import average_precision
from tests.conftest import FixedClusters

pytestmark = [pytest.mark.data, pytest.mark.slow]

# Table 3 of the paper, IMCC: average precision.
PAPER = {"cal500": 0.505, "enron": 0.704, "medical": 0.912}


def split(name, n_splits=1):
    """Yield (X, Y, X_new, Y_new) of a data set, divided as the paper did."""
    data = load_dataset(name)
    for train, test in paper_splits(data, n_splits):
        yield data.X[train], data.Y[train], data.X[test], data.Y[test]


@pytest.mark.parametrize("name", ["genbase", "cal500", "medical"])
@pytest.mark.parametrize(
    "weights", [(1.0, 1.0, 0.1), (1e3, 1e-3, 1e-3), (1e3, 1e-3, 1e3), (1e-3, 1e3, 10.0)], ids=str
)
def test_cholesky_and_spectral_agree(name, weights):
    """Also where most rows occur twice (genbase: 457 of 662)."""
    X, Y, X_new, _ = next(split(name))
    alpha, beta, gamma = weights
    scores = [
        IMCCClassifier(32, alpha, beta, gamma, solver=solver, random_state=0)
        .fit(X, Y)
        .decision_function(X_new)
        for solver in ("cholesky", "spectral")
    ]
    np.testing.assert_allclose(*scores, atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_sparse_rows_give_the_dense_result(kernel):
    X, Y, X_new, _ = next(split("medical"))
    labels = assign_rows(X, 16, None, 0)[:, 0]
    clf = IMCCClassifier(kernel=kernel, clusterer=FixedClusters(labels))
    dense = clf.fit(X, Y).decision_function(X_new)
    sparse = clf.fit(sp.csr_matrix(X), Y).decision_function(sp.csr_matrix(X_new))
    np.testing.assert_allclose(sparse, dense, atol=1e-8)


@pytest.mark.parametrize("name", PAPER)
def test_average_precision_is_like_the_papers(name):
    found = []
    for X, Y, X_new, Y_new in split(name, n_splits=3):
        search = IMCCClassifierCV((0.01, 1.0), n_clusters=32, grid="paper", random_state=0).fit(
            X, Y
        )
        found.append(average_precision(Y_new, search.decision_function(X_new)))
    assert np.mean(found) > PAPER[name] - 0.03
