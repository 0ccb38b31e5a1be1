"""On the paper's own files: duplicate rows, sparse rows, and numbers like the paper's."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc.metrics import evaluate
from imcc.virtual import assign_rows
from tests.conftest import FixedClusters

pytestmark = [pytest.mark.data, pytest.mark.slow]

# Table 3 of the paper, IMCC: average precision and its standard deviation.
PAPER = {"cal500": (0.505, 0.005), "enron": (0.704, 0.013), "medical": (0.912, 0.012)}


def load(mirror, name):
    mat = scipy.io.loadmat(mirror / "imcc-authors" / f"{name}.mat")

    def table(key):
        value = mat[key]
        return (value.toarray() if sp.issparse(value) else value).astype(np.float64)

    X, X_new, Y, Y_new = (
        table(f"{part}_{kind}") for kind in ("data", "target") for part in ("train", "test")
    )
    if len(Y) != len(X):
        Y, Y_new = Y.T, Y_new.T
    return X, Y > 0, X_new, Y_new > 0


@pytest.mark.parametrize("name", ["genbase", "cal500", "medical"])
@pytest.mark.parametrize(
    "weights", [(1.0, 1.0, 0.1), (1e3, 1e-3, 1e-3), (1e3, 1e-3, 1e3), (1e-3, 1e3, 10.0)], ids=str
)
@pytest.mark.parametrize("span", ["train", "augmented"])
def test_cholesky_and_spectral_agree(mirror, name, weights, span):
    """Also where most rows occur twice (genbase: 457 of 662)."""
    X, Y, X_new, _ = load(mirror, name)
    alpha, beta, gamma = weights
    scores = [
        IMCCClassifier(32, alpha, beta, gamma, span=span, solver=solver, random_state=0)
        .fit(X, Y)
        .decision_function(X_new)
        for solver in ("cholesky", "spectral")
    ]
    np.testing.assert_allclose(*scores, atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_sparse_rows_give_the_dense_result(mirror, kernel):
    X, Y, X_new, _ = load(mirror, "medical")
    labels = assign_rows(X, 16, None, 0)[:, 0]
    clf = IMCCClassifier(kernel=kernel, clusterer=FixedClusters(labels))
    dense = clf.fit(X, Y).decision_function(X_new)
    sparse = clf.fit(sp.csr_matrix(X), Y).decision_function(sp.csr_matrix(X_new))
    np.testing.assert_allclose(sparse, dense, atol=1e-8)


@pytest.mark.parametrize("name", PAPER)
def test_average_precision_is_like_the_papers(mirror, name):
    X, Y, X_new, Y_new = load(mirror, name)
    search = IMCCClassifierCV(random_state=0, n_clusters=(8, 32), alphas=(0.01, 1.0)).fit(X, Y)
    found = evaluate(Y_new, search.decision_function(X_new))["average_precision"]
    mean, deviation = PAPER[name]
    assert found > mean - 3 * deviation
