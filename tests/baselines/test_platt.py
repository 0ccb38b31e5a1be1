"""Platt's sigmoid."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.svm import SVC

from imcc.baselines._platt import fit_sigmoid, held_out_margins


def made_up(seed, n=300, slope=1.7, offset=-0.6):
    rng = np.random.default_rng(seed)
    margins = 2 * rng.normal(size=n) + 1
    return margins, rng.random(n) < expit(slope * margins + offset)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_is_the_most_likely_sigmoid(scale):
    margins, on = made_up(0)
    P = on.sum()
    targets = np.where(on, (P + 1) / (P + 2), 1 / (len(on) - P + 2))

    def loss(w):
        z = w[0] * margins + w[1]
        return np.sum(np.logaddexp(0, z) - targets * z)

    best = minimize(loss, [0.0, 0.0], tol=1e-12).x
    found = fit_sigmoid(scale * margins, on)
    np.testing.assert_allclose([found.slope * scale, found.offset], best, rtol=1e-4)


def test_finds_what_made_the_labels():
    found = fit_sigmoid(*made_up(1, n=20000))
    np.testing.assert_allclose(found, (1.7, -0.6), atol=0.08)


def test_separated_classes_have_a_finite_slope():
    margins = np.r_[np.full(20, -1.0), np.full(20, 1.0)]
    found = fit_sigmoid(margins, margins > 0)
    np.testing.assert_allclose(expit(found.slope + found.offset), 21 / 22, rtol=1e-6)


@pytest.mark.parametrize("margins", [np.zeros(30), -np.arange(30.0)], ids=["flat", "wrong way"])
def test_margins_that_say_nothing_leave_the_prior(margins):
    on = np.arange(30) >= 24
    assert fit_sigmoid(margins, on) == (0.0, pytest.approx(np.log(7 / 25)))


def test_held_out_margins_come_from_machines_that_have_not_seen_the_row():
    rng = np.random.default_rng(0)
    X, on = rng.normal(size=(23, 2)), rng.random(23) < 0.4
    seen = []

    def train(rows, labels):
        seen.append({tuple(row) for row in rows})
        assert labels.any()
        assert not labels.all()
        mine = len(seen) - 1

        def margins(new):
            assert not seen[mine] & {tuple(row) for row in new}
            return SVC(kernel="linear").fit(rows, labels).decision_function(new)

        return margins

    margins = held_out_margins(train, X, on, 0)
    assert len(seen) == 5
    assert np.isfinite(margins).all()
    few = np.arange(23) < 2
    seen.clear()
    assert np.isfinite(held_out_margins(train, X, few, 0)).all()
    assert len(seen) == 2
    assert held_out_margins(train, X, np.arange(23) < 1, 0) is None


def test_the_seed_shuffles_the_folds():
    margins, on = made_up(2, n=60)
    X = margins[:, np.newaxis]

    def train(rows, labels):
        return lambda new: np.full(len(new), rows.mean())

    one, same, other = (held_out_margins(train, X, on, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
