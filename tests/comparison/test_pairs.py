"""Tests of two methods: against twins, SciPy and known answers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from imcc.comparison import bayesian_signed_rank, effect_size, holm, wilcoxon_p
from tests.naive import comparison as naive


@given(hnp.arrays(np.int64, st.integers(1, 10), elements=st.integers(-6, 6)).map(lambda d: d / 4))
@settings(max_examples=150, deadline=None)
def test_wilcoxon_equals_the_twin_with_ties_and_zeros(differences):
    assert wilcoxon_p(differences) == pytest.approx(naive.wilcoxon_p(differences.tolist()))


@pytest.mark.parametrize("n", [6, 30, 50])
def test_wilcoxon_equals_scipy(n):
    differences = np.random.default_rng(n).normal(size=n) + 0.2
    assert wilcoxon_p(differences) == pytest.approx(
        stats.wilcoxon(differences, method="exact").pvalue
    )


@pytest.mark.parametrize("step", [None, 0.5])
def test_wilcoxon_of_many_differences_is_normal(step):
    # SciPy takes the normal distribution for more than 50 differences.
    differences = np.random.default_rng(3).normal(size=400) + 0.1
    if step:
        differences = np.round(differences / step) * step
    assert wilcoxon_p(differences) == pytest.approx(stats.wilcoxon(differences).pvalue)
    # Where counting ends, both ways agree.
    counted, normal = (wilcoxon_p(np.resize(differences, n)) for n in (200, 201))
    assert counted == pytest.approx(stats.wilcoxon(differences[:200]).pvalue, rel=0.1)
    assert normal == pytest.approx(counted, rel=0.4)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_equals_the_twin(p):
    np.testing.assert_allclose(holm(p), naive.holm(p))


def test_holm_refuses_what_is_no_p():
    for p in ([0.1, 1.2], [[0.1]], [np.nan]):
        with pytest.raises(ValueError, match="p must be"):
            holm(p)


def test_the_interval_is_that_of_a_t_test():
    values = np.random.default_rng(0).normal(1, 2, size=11)
    size = effect_size(values, level=0.9)
    ends = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert size.mean_interval == pytest.approx((ends.low, ends.high))
    assert size.mean == pytest.approx(values.mean())
    assert effect_size([2.0]) == (2, (-math.inf, math.inf))


class TestBayesianSignedRank:
    @pytest.mark.parametrize("rope", [0.0, 0.4, 3.0])
    @pytest.mark.parametrize("n", [3, 6])
    def test_equal_to_the_sums_over_all_pairs(self, rope, n):
        differences = np.random.default_rng(n).normal(0.4, 1, size=n)
        weights = np.random.RandomState(0).dirichlet([0.5, *np.ones(n)], size=50_000)
        expected = naive.signed_rank_posterior(differences, rope, weights)
        np.testing.assert_allclose(
            bayesian_signed_rank(differences, rope=rope), expected, atol=1e-4
        )

    def test_draws_in_parts_are_the_same(self, config):
        differences = np.random.default_rng(0).normal(0.2, 1, size=9)
        whole = bayesian_signed_rank(differences)
        config(draw_entries=7000)
        assert bayesian_signed_rank(differences) == pytest.approx(whole)

    def test_one_difference_has_a_known_answer(self):
        # The average of the difference with itself and with the prior's 0 are above the region:
        # 1 - w0^2 > w0^2, where w0 is a Beta(1/2, 1).
        result = bayesian_signed_rank([1.0])
        exact = stats.beta.cdf(math.sqrt(0.5), 0.5, 1)
        assert result.better == pytest.approx(exact, abs=0.01)
        assert result.worse == 0

    def test_mirrored(self):
        differences = np.random.default_rng(3).normal(0.01, 0.02, size=12)
        result, other = (bayesian_signed_rank(sign * differences) for sign in (1, -1))
        assert result == pytest.approx((other.worse, other.equivalent, other.better))
        assert sum(result) == pytest.approx(1)

    def test_a_wider_region_holds_more(self):
        differences = np.random.default_rng(3).normal(0.01, 0.01, size=12)
        shares = [
            bayesian_signed_rank(differences, rope=r).equivalent for r in (0, 0.005, 0.01, 0.1)
        ]
        assert shares == sorted(shares)
        assert shares[0] < 0.05
        assert shares[-1] == 1


@pytest.mark.parametrize("test", [wilcoxon_p, effect_size, bayesian_signed_rank])
@pytest.mark.parametrize("differences", [[], [np.nan], [[1.0]]])
def test_wrong_differences(test, differences):
    with pytest.raises(ValueError, match="differences"):
        test(differences)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="rope"):
        bayesian_signed_rank([1.0], rope=-0.1)
    with pytest.raises(ValueError, match="level"):
        effect_size([1.0], level=1)
