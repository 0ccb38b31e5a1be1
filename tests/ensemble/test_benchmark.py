"""The script behind the ensemble's numbers measures what it says."""

import numpy as np

from benchmarks import ensemble
from imcc._ensemble.held_out import Labels, Ridge
from imcc._ensemble.model import distances, make_kernel
from imcc._ensemble.spectrum import Spectrum
from imcc._ensemble.views import fit_view


def test_the_gap_of_a_given_width_is_that_of_views_and_widths_only(small_problem):
    """Without coupling only view and width see the left-out row: the scores hardly change."""
    X, Y, *_ = small_problem
    X, Y = X[:40], Y[:40]
    Y = Y[:, np.ptp(Y, axis=0) > 0]
    signs = 2.0 * (Y > 0) - 1
    exact = ensemble.leave_out_all(X, signs, 0.0, "raw", "rbf")
    rows = fit_view("raw", X).transform(X)
    kernel, base = make_kernel("rbf"), distances("rbf", rows)
    K = kernel.finish(base, kernel.mean_distance(base))
    ours = Ridge(Spectrum.of_kernel(K), Labels.of(signs)).leave_one_out(1.0)
    assert 0 < np.abs(ours - exact).mean() < 0.01
    coupled = ensemble.leave_out_all(X, signs, 0.7, "raw", "rbf")
    assert np.abs(coupled - exact).max() > 0.01


def test_progress_is_read_from_what_a_fit_reports(small_problem):
    X, Y, *_ = small_problem
    model = ensemble.KernelEnsembleClassifier(
        views=("raw",), width_scales=(1.0,), virtual_examples=False, random_state=0
    )
    lines, (clock, cores) = ensemble.progress_lines(model, X[:50], Y[:50])
    shares = [share for share, _, _ in lines]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert 0 < lines[0][1] < lines[-1][1] <= clock
    assert 0 < lines[-1][2] <= cores


def test_a_fit_is_timed(small_problem):
    X, Y, *_ = small_problem
    model = ensemble.KernelEnsembleClassifier(
        views=("raw",), width_scales=(1.0,), virtual_examples=False, random_state=0
    )
    clock, cores = ensemble.timed(model, X[:50], Y[:50])
    assert clock > 0
    assert cores > 0
    assert model.members_
