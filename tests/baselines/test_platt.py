"""Platt's sigmoid."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from imcc.baselines._platt import calibration_folds, fit_sigmoid


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


def test_folds_leave_out_every_row_once_and_train_on_both_classes():
    on = np.random.default_rng(0).random(23) < 0.4
    folds = calibration_folds(on, 0)
    assert len(folds) == 5
    np.testing.assert_array_equal(np.sort(np.concatenate([out for _, out in folds])), np.arange(23))
    for inside, outside in folds:
        np.testing.assert_array_equal(np.union1d(inside, outside), np.arange(23))
        assert not np.intersect1d(inside, outside).size
        assert on[inside].any()
        assert not on[inside].all()
        assert (np.diff(inside) > 0).all()
    assert len(calibration_folds(np.arange(23) < 2, 0)) == 2
    assert calibration_folds(np.arange(23) < 1, 0) == []
    assert calibration_folds(np.zeros(23, bool), 0) == []


def test_the_seed_shuffles_the_folds():
    on = np.random.default_rng(2).random(60) < 0.4
    one, same, other = ([out.tolist() for _, out in calibration_folds(on, s)] for s in (0, 0, 1))
    assert one == same
    assert one != other
