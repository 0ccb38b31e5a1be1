"""EnsembleClassifierChains."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.multioutput import ClassifierChain
from sklearn.svm import SVC

from imcc.baselines import EnsembleClassifierChains, ecc
from tests.calls import recorded_calls

ONE = {"n_chains": 1, "sample_fraction": 1.0, "scores": "margin"}


@pytest.mark.parametrize("C", [0.2, 1.0])
def test_one_chain_is_scikit_learns(small_problem, C):
    X, Y, X_new, _ = small_problem
    ours = EnsembleClassifierChains(**ONE, C=C, random_state=0).fit(X, Y)
    theirs = ClassifierChain(SVC(kernel="linear", C=C), order=ours.chains_[0].order).fit(X, Y)
    np.testing.assert_allclose(
        ours.decision_function(X_new), theirs.decision_function(X_new), atol=1e-8
    )
    np.testing.assert_array_equal(ours.predict(X_new), theirs.predict(X_new))


def test_scores_are_averages_over_chains_with_their_own_order_and_rows(small_problem):
    X, Y, X_new, _ = small_problem
    clf = EnsembleClassifierChains(5, scores="margin", random_state=0).fit(X, Y)
    assert len({tuple(chain.order) for chain in clf.chains_}) > 1
    mean = np.mean([chain.margins(X_new) for chain in clf.chains_], axis=0)
    np.testing.assert_allclose(clf.decision_function(X_new), mean)
    assert len(EnsembleClassifierChains(random_state=0).fit(X, Y).chains_) == 10


def test_chains_see_their_share_of_the_rows(small_problem):
    X, Y, *_ = small_problem
    with recorded_calls(ecc.train_chain) as calls:
        EnsembleClassifierChains(4, random_state=0).fit(X, Y)
    samples = [call.arguments["rows"] for call in calls]
    assert [len(rows) for rows in samples] == [60] * 4
    assert all(len(np.unique(rows)) == 60 for rows in samples)
    assert len({tuple(rows) for rows in samples}) == 4
    with recorded_calls(ecc.train_chain) as calls:
        EnsembleClassifierChains(1, sample_fraction=0.2, random_state=0).fit(X, Y)
    assert len(calls[0].arguments["rows"]) == 18


def test_probabilities_rescale_the_averaged_margins(small_problem):
    X, Y, X_new, _ = small_problem
    clf = EnsembleClassifierChains(5, random_state=0).fit(X, Y)
    margins = (
        EnsembleClassifierChains(5, scores="margin", random_state=0)
        .fit(X, Y)
        .decision_function(X_new)
    )
    slopes, offsets = np.transpose(clf.sigmoids_)
    assert (slopes > 0).all()
    np.testing.assert_allclose(clf.decision_function(X_new), slopes * margins + offsets)


def test_random_state_and_n_jobs(small_problem):
    X, Y, X_new, _ = small_problem

    def scores(**parameters):
        clf = EnsembleClassifierChains(4, **parameters).fit(X, Y)
        return clf.decision_function(X_new)

    one = scores(random_state=0)
    np.testing.assert_array_equal(scores(random_state=0, n_jobs=2), one)
    assert not np.allclose(scores(random_state=1), one)


@pytest.mark.parametrize(("form", "copies"), [(np.asarray, 6), (sp.csr_matrix, 20)])
def test_x_is_not_copied_for_each_of_many_labels(form, copies):
    """As many labels as corel5k has: the peak stays at a few copies of X.

    The sparse X is so small that the labels are most of the memory.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1500)) * (rng.random((40, 1500)) < 0.1)
    Y = (rng.random((40, 374)) < 0.3).astype(int)
    rows = form(X)
    size = rows.nbytes if isinstance(rows, np.ndarray) else rows.data.nbytes + rows.indices.nbytes
    clf = EnsembleClassifierChains(**ONE, random_state=0)
    clf.fit(rows[:, :5], Y[:, :2])  # imports
    tracemalloc.start()
    clf.fit(rows, Y)
    peak = tracemalloc.get_traced_memory()[1] - clf.chains_[0].coef.nbytes
    tracemalloc.stop()
    assert peak < copies * size


def test_n_jobs_reaches_joblib(small_problem, n_jobs_used):
    X, Y, *_ = small_problem
    EnsembleClassifierChains(2, scores="margin", n_jobs=3).fit(X, Y)
    assert n_jobs_used == {3}
