"""BinaryRelevanceSVM."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from imcc.baselines import BinaryRelevanceSVM


@pytest.mark.parametrize("C", [0.1, 1.0])
@pytest.mark.parametrize(("form", "within"), [(np.asarray, 1e-9), (sp.csr_matrix, 2e-3)])
def test_equals_one_vs_rest(small_problem, C, form, within):
    X, Y, X_new, _ = small_problem
    ours = BinaryRelevanceSVM(C, scores="margin").fit(form(X), Y)
    theirs = OneVsRestClassifier(SVC(kernel="linear", C=C)).fit(X, Y)
    np.testing.assert_allclose(
        ours.decision_function(form(X_new)), theirs.decision_function(X_new), atol=within
    )
    np.testing.assert_array_equal(ours.predict(X_new), theirs.predict(X_new))


def test_probabilities_rescale_the_margins_of_each_label(small_problem):
    X, Y, X_new, Y_new = small_problem
    margins, scores = (
        BinaryRelevanceSVM(scores=scores, random_state=0).fit(X, Y).decision_function(X_new)
        for scores in ("margin", "probability")
    )
    for margin, score in zip(margins.T, scores.T, strict=True):
        slope, offset = np.polyfit(margin, score, 1)
        assert slope > -1e-9
        np.testing.assert_allclose(slope * margin + offset, score, atol=1e-8)
    # They are probabilities: on average as high as labels are frequent.
    assert abs(expit(scores).mean() - Y_new.mean()) < 0.1


def test_constant_labels_have_the_log_odds_of_their_share(small_problem):
    X, Y, X_new, _ = small_problem
    Y = np.column_stack([Y, np.zeros(90), np.ones(90)])
    scores = BinaryRelevanceSVM(random_state=0).fit(X, Y).decision_function(X_new)
    np.testing.assert_allclose(scores[:, 4:], np.log([[1 / 91, 91]] * 40))
    margins = BinaryRelevanceSVM(scores="margin").fit(X, Y).decision_function(X_new)
    np.testing.assert_array_equal(margins[:, 4:], [[-1.0, 1.0]] * 40)


def test_random_state_and_n_jobs(small_problem):
    X, Y, X_new, _ = small_problem

    def scores(**parameters):
        return BinaryRelevanceSVM(**parameters).fit(X, Y).decision_function(X_new)

    one = scores(random_state=0)
    np.testing.assert_array_equal(scores(random_state=0, n_jobs=2), one)
    assert not np.allclose(scores(random_state=1), one)


def test_n_jobs_reaches_joblib(small_problem, n_jobs_used):
    X, Y, *_ = small_problem
    BinaryRelevanceSVM(n_jobs=3, scores="margin").fit(X, Y)
    assert n_jobs_used == {3}


def test_no_support_vectors_are_kept(small_problem):
    X, Y, *_ = small_problem
    clf = BinaryRelevanceSVM(random_state=0).fit(X, Y)
    assert sum(v.nbytes for v in vars(clf).values() if isinstance(v, np.ndarray)) < 500
