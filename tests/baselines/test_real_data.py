"""On the paper's own files: numbers like the paper's."""

import numpy as np
import pytest
import scipy.sparse as sp

from imcc.baselines import (
    JFSC,
    JFSCCV,
    LIFT,
    LLSF,
    LLSFCV,
    MAHR,
    BinaryRelevanceSVM,
    EnsembleClassifierChains,
    UnboundedError,
)
from imcc.datasets import load_dataset, paper_splits
from imcc.metrics import evaluate

pytestmark = [
    pytest.mark.data,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SEARCH = {"budget": 15, "halving": True, "max_iter": 100, "random_state": 0}
# Average precision in the paper's Table 3: yeast, medical.
PAPER = [
    (BinaryRelevanceSVM(random_state=0), 0.762, 0.841),
    (EnsembleClassifierChains(random_state=0), 0.756, 0.852),
    (MAHR(), 0.745, 0.892),
    (LLSFCV(**SEARCH), 0.617, 0.908),
    (JFSCCV(**SEARCH), 0.762, 0.899),
    (LIFT(random_state=0), 0.766, 0.848),
]


def divide(name):
    """Return (X, Y, X_new, Y_new): the last fifth is for testing, as in the authors' files."""
    data = load_dataset(name)
    n = data.n_rows - data.n_rows // 5
    return data.X[:n], data.Y[:n], data.X[n:], data.Y[n:]


@pytest.mark.parametrize(("name", "column"), [("yeast", 1), ("medical", 2)])
@pytest.mark.parametrize("row", PAPER, ids=lambda row: type(row[0]).__name__)
def test_average_precision_is_like_the_papers(name, column, row):
    X, Y, X_new, Y_new = divide(name)
    found = evaluate(Y_new, row[0].fit(X, Y).decision_function(X_new))["average_precision"]
    assert found > row[column] - 0.03


def test_boosting_makes_two_rounds_a_feature():
    X, Y, *_ = divide("yeast")
    assert MAHR().fit(X, Y).n_iter_ == 206


def test_probabilities_rank_labels_better_than_margins():
    """Where labels are very unlike in frequency, margins cannot be compared across them."""
    X, Y, X_new, Y_new = divide("medical")
    found = [
        evaluate(Y_new, clf.fit(X, Y).decision_function(X_new))["ranking_loss"]
        for clf in (BinaryRelevanceSVM(random_state=0), BinaryRelevanceSVM(scores="margin"))
    ]
    assert found[0] < found[1]


@pytest.mark.parametrize("clf", [MAHR(n_rounds=50), LLSF(max_iter=50)], ids=str)
def test_sparse_rows_give_the_dense_result(clf):
    X, Y, X_new, _ = divide("medical")
    dense = clf.fit(X, Y).decision_function(X_new)
    sparse = clf.fit(sp.csr_matrix(X), Y).decision_function(sp.csr_matrix(X_new))
    np.testing.assert_allclose(sparse, dense, atol=1e-6)


def test_where_jfsc_is_unbounded_the_authors_program_has_stopped_early():
    """The first 50 iterations look like a model; the objective falls for ever all the same."""
    data = load_dataset("medical")
    train, test = next(iter(paper_splits(data, 1)))
    setting = {"alpha": 2**-6, "beta": 2**-2, "gamma": 2**-3, "fit_intercept": False}

    def precision(**options):
        clf = JFSC(**setting, **options).fit(data.X[train], data.Y[train])
        found = evaluate(data.Y[test], clf.decision_function(data.X[test]))
        return found["average_precision"], clf.n_iter_

    assert precision(max_iter=50)[0] == pytest.approx(0.875, abs=0.005)
    with pytest.raises(UnboundedError):
        precision(max_iter=1000)
    scaled, n_iter = precision(unit_rows=True, max_iter=1000)
    assert scaled == pytest.approx(0.877, abs=0.005)
    assert n_iter < 1000
