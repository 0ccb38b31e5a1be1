"""Views: learned from the training rows, sparse or dense, and what they are meant to do."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm, rankdata

from imcc._math.ensemble.views import DENSE_VIEWS, SPARSE_VIEWS, choose_views, fit_view


def rows(n=40, d=5, seed=0):
    return np.random.RandomState(seed).gamma(2.0, size=(n, d))


def test_standard():
    X = rows()
    X[:, 2] = 7.0
    seen = fit_view("standard", X).transform(X)
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(seen.std(axis=0)[[0, 1, 3, 4]], 1)
    assert (seen[:, 2] == 0).all()


def test_ranks_are_normal_scores_with_ties_in_the_middle():
    X = np.round(2 * rows()) / 2  # in single precision, as training rows are kept
    seen = fit_view("ranks", X).transform(X)
    expected = norm.ppf((rankdata(X, axis=0) - 0.5) / len(X))
    np.testing.assert_allclose(seen, expected - expected.mean(axis=0), atol=1e-12)


def test_ranks_of_new_rows_are_monotone_and_bounded():
    X = rows(n=3000, d=1)
    view = fit_view("ranks", X)
    new = np.linspace(-5, 50, 500)[:, None]
    seen = view.transform(new)[:, 0]
    assert (np.diff(seen) >= 0).all()
    assert np.isfinite(seen).all()
    assert len(view.knots) == 250


def test_root_moves_columns_to_start_at_zero():
    X = rows() - 3
    view = fit_view("root", X)
    new = np.vstack([X, X.min(axis=0) - 1])
    expected = np.sqrt(np.maximum(new - X.min(axis=0), 0))
    np.testing.assert_allclose(view.transform(new), expected - expected[:-1].mean(axis=0))


@pytest.mark.parametrize("name", SPARSE_VIEWS)
def test_sparse_and_dense_rows_agree(name):
    X = np.where(rows() > 2.5, rows(), 0.0)
    X[3] = 0  # a row without anything
    a = fit_view(name, X).transform(X)
    b = fit_view(name, sp.csr_matrix(X)).transform(sp.csr_matrix(X))
    assert sp.issparse(b)
    shift = X.mean(axis=0) if name == "raw" else 0
    np.testing.assert_allclose(a + shift, b.toarray(), atol=1e-12)


def test_tfidf_counts_rows_and_has_unit_length():
    X = np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    view = fit_view("tfidf", X)
    np.testing.assert_allclose(view.factor, np.log(4 / np.array([4, 3, 2])) + 1)
    np.testing.assert_allclose(np.linalg.norm(view.transform(X), axis=1), 1)


def test_views_are_chosen_by_the_share_of_zeros():
    X = rows()
    assert tuple(choose_views("auto", X)) == DENSE_VIEWS
    assert tuple(choose_views("auto", sp.csr_matrix(X))) == DENSE_VIEWS
    assert tuple(choose_views("auto", sp.csr_matrix(np.eye(40)))) == SPARSE_VIEWS
    assert choose_views(("raw",), X) == ["raw"]
