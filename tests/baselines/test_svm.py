"""Machines from one kernel matrix: the same as libsvm's from the rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from imcc._utils.validation import draw_seed
from imcc.baselines import LIFT, BinaryRelevanceSVM, EnsembleClassifierChains
from imcc.baselines._svm import KernelRows, linear_gram
from tests.naive import baselines as naive

FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])


@pytest.fixture(scope="module")
def wide():
    """150 rows of 60 features, mostly zero; labels from half of the rows to one and none."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(190, 60)) * (rng.random((190, 60)) < 0.3)
    noise = rng.normal(size=(190, 6))
    Y = X @ rng.normal(size=(60, 6)) + noise > [0.0, 2.0, 4.0, 5.0, 1.0, 0.0]
    Y[:, 4:] = False
    Y[3, 4] = True  # one row; the last label is never on
    return X[:150], Y[:150], X[150:], Y[150:]


@pytest.fixture(params=["gram", "rows"])
def path(request, config):
    """Both ways to train: from the kernel matrix, and from the rows where it is too large."""
    if request.param == "rows":
        config(gram_bytes=0)
    return request.param


@FORMS
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_machines_are_libsvms(wide, form, C, path):
    X, Y, *_ = wide
    rows = KernelRows(form(X))
    assert (rows._gram is None) == (path == "rows")
    inside = np.flatnonzero(np.arange(150) % 5 != 2)
    for on in Y.T[:4]:
        for part in (None, inside):
            chosen = np.arange(150) if part is None else part
            found = rows.train(on, C, part)
            theirs = SVC(kernel="linear", C=C).fit(X[chosen], on[chosen])
            weights = rows.coef([found])[0]
            expected = X @ theirs.coef_[0] + theirs.intercept_[0]
            np.testing.assert_allclose(rows.margins([found])[:, 0], expected, atol=1e-3)
            ours, libsvms = (
                naive.svm_objective(X[chosen], on[chosen], w, b, C)
                for w, b in (
                    (weights, found.intercept),
                    (theirs.coef_[0], theirs.intercept_[0]),
                )
            )
            np.testing.assert_allclose(ours, libsvms, rtol=1e-4)


@FORMS
@pytest.mark.parametrize("scores", ["margin", "probability"])
def test_scores_are_those_of_one_libsvm_per_label_and_fold(wide, form, scores, path):
    X, Y, X_new, _ = wide
    ours = BinaryRelevanceSVM(scores=scores, random_state=7).fit(form(X), Y)
    slow = naive.brsvm(X, Y, X_new, scores=scores, seed=draw_seed(7))
    np.testing.assert_allclose(ours.decision_function(form(X_new)), slow, atol=1e-3)


@FORMS
def test_chains_are_those_with_a_new_matrix_for_each_link(wide, form, path):
    X, Y, X_new, _ = wide
    one = {"n_chains": 1, "sample_fraction": 1.0, "scores": "margin"}
    clf = EnsembleClassifierChains(**one, random_state=0).fit(form(X), Y[:, :4])
    slow = naive.chain_margins(X, Y[:, :4], clf.chains_[0].order, X_new)
    np.testing.assert_allclose(clf.decision_function(form(X_new)), slow, atol=1e-3)
    assert not np.triu(clf.chains_[0].coef[:, 60:]).any()


def test_many_labels_are_trained_in_several_parts(wide):
    """More labels than are calibrated at once: each as if it were alone."""
    X, Y, X_new, _ = wide
    many = np.tile(Y[:, :3], (1, 12))
    scores = BinaryRelevanceSVM(random_state=0).fit(X, many).decision_function(X_new)
    alone = BinaryRelevanceSVM(random_state=0).fit(X, Y[:, :3]).decision_function(X_new)
    np.testing.assert_allclose(scores, np.tile(alone, (1, 12)), rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        BinaryRelevanceSVM(random_state=0),
        EnsembleClassifierChains(4, random_state=0),
        LIFT(random_state=0, ratio=0.4),
    ],
    ids=str,
)
def test_scores_do_not_depend_on_jobs_or_threads(wide, model):
    X, Y, X_new, _ = wide

    def scores(n_jobs, threads):
        with threadpool_limits(threads), parallel_config("threading"):
            fitted = model.set_params(n_jobs=n_jobs).fit(X, Y)
        with threadpool_limits(1):
            return fitted.decision_function(X_new)

    one = scores(1, 1)
    np.testing.assert_array_equal(scores(2, 1), one)
    np.testing.assert_array_equal(scores(1, 2), one)


def test_the_matrix_is_that_of_all_inner_products(wide):
    X, *_ = wide
    np.testing.assert_allclose(linear_gram(X), X @ X.T, atol=1e-12)
    np.testing.assert_allclose(linear_gram(sp.csr_matrix(X)), X @ X.T, atol=1e-12)


@FORMS
@pytest.mark.parametrize("model", [BinaryRelevanceSVM(), EnsembleClassifierChains()], ids=str)
def test_a_fit_that_fails_leaves_the_model_as_it_was(wide, form, model):
    X, Y, X_new, _ = wide
    clf = model.fit(X, Y)
    before = clf.decision_function(X_new)
    X = X.copy()
    X[17, 3] = 1e200
    with pytest.raises(ValueError, match="values that are too large"):
        clf.fit(form(X), Y)
    with pytest.raises(ValueError, match=r"squared norm of row 17 .* overflows"):
        linear_gram(form(X))
    np.testing.assert_array_equal(clf.decision_function(X_new), before)


def test_support_vectors_numbered_in_another_way_are_an_error(wide, monkeypatch):
    X, Y, *_ = wide
    inside = np.arange(40, 150)
    fit = SVC.fit

    def other(self, *arguments, **options):  # as another version of scikit-learn might
        fit(self, *arguments, **options)
        self.support_ = (self.support_ + 1) % len(inside)
        return self

    monkeypatch.setattr(SVC, "fit", other)
    with pytest.raises(RuntimeError, match="numbers support vectors"):
        KernelRows(X).train(Y[:, 0], 1.0, inside)
