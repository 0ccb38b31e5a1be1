"""The Bayesian signed-rank test and the sizes of differences, beside slow and obvious twins."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from imcc.comparison import (
    ScoreTable,
    bayesian_control,
    bayesian_signed_rank,
    compare,
    effect_control,
    effect_size,
    wilcoxon_p,
)
from tests.naive import comparison as naive


class TestBayesianSignedRank:
    @pytest.mark.parametrize("rope", [0.0, 0.4, 3.0])
    @pytest.mark.parametrize("strength", [0.5, 2.0])
    def test_equal_to_the_sums_over_all_pairs(self, rope, strength):
        for seed in range(4):
            differences = np.random.default_rng(seed).normal(0.4, 1, size=3 + seed)
            alpha = [strength, *np.ones(len(differences))]
            weights = np.random.RandomState(seed).dirichlet(alpha, size=60)
            found = bayesian_signed_rank(
                differences, rope=rope, prior_strength=strength, n_samples=60, random_state=seed
            )
            expected = naive.signed_rank_posterior(differences, rope, weights)
            np.testing.assert_allclose(
                (found.less, found.equivalent, found.greater), expected, atol=1e-12
            )

    def test_draws_in_parts_are_the_same(self, config):
        differences = np.random.default_rng(0).normal(0.2, 1, size=9)
        whole = bayesian_signed_rank(differences, n_samples=500)
        config(draw_entries=70)
        assert bayesian_signed_rank(differences, n_samples=500) == whole

    def test_one_difference_has_a_known_answer(self):
        # The average of the difference with itself and with the prior's 0 are above the region:
        # 1 - w0^2 > w0^2, where w0 is a Beta(1/2, 1).
        found = bayesian_signed_rank([1.0], n_samples=200_000)
        exact = stats.beta.cdf(math.sqrt(0.5), 0.5, 1)
        assert found.greater == pytest.approx(exact, abs=0.005)
        assert found.less == 0

    def test_mirrored(self):
        differences = np.random.default_rng(3).normal(0.01, 0.02, size=12)
        found, other = (bayesian_signed_rank(sign * differences) for sign in (1, -1))
        assert (found.less, found.equivalent) == pytest.approx((other.greater, other.equivalent))
        assert found.less + found.equivalent + found.greater == pytest.approx(1)

    def test_a_wider_region_holds_more(self):
        differences = np.random.default_rng(3).normal(0.01, 0.01, size=12)
        shares = [
            bayesian_signed_rank(differences, rope=r).equivalent for r in (0, 0.005, 0.01, 0.1)
        ]
        assert shares == sorted(shares)
        assert shares[0] < 0.05
        assert shares[-1] == 1

    def test_the_seed_counts(self):
        differences = np.random.default_rng(3).normal(0.01, 0.02, size=8)
        runs = [bayesian_signed_rank(differences, random_state=seed) for seed in (0, 0, 1)]
        assert runs[0] == runs[1]
        assert runs[0] != runs[2]
        assert runs[0].greater == pytest.approx(runs[2].greater, abs=0.02)

    def test_rounding_decides_nothing(self):
        # 0.8 - 0.79 is 0.010000000000000009.
        values = [[0.8, 0.79], [0.7, 0.69], [0.6, 0.59]]
        exact = bayesian_control(values, 0, greater_is_better=True, decimals=12)
        assert exact.equivalent[1] == 1

    def test_the_control(self):
        values = np.random.default_rng(5).normal(size=(10, 4)) * 0.02
        by_control = bayesian_control(values, 2, greater_is_better=False, rope=0.003)
        for j in (0, 1, 3):
            alone = bayesian_signed_rank(values[:, j] - values[:, 2], rope=0.003)
            assert (by_control.better[j], by_control.equivalent[j], by_control.worse[j]) == (
                alone.greater,
                alone.equivalent,
                alone.less,
            )
        assert (by_control.better[2], by_control.equivalent[2], by_control.worse[2]) == (0, 1, 0)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"differences": []}, "at least one number"),
            ({"differences": [np.nan]}, "at least one number"),
            ({"rope": -0.1}, "rope must be a finite number >= 0"),
            ({"prior_strength": 0}, "prior_strength must be a finite number > 0"),
            ({"n_samples": 0}, "n_samples must be an integer >= 1"),
        ],
    )
    def test_wrong_arguments(self, arguments, message):
        arguments = {"differences": [1.0], **arguments}
        with pytest.raises(ValueError, match=message):
            bayesian_signed_rank(arguments.pop("differences"), **arguments)

    def test_a_control_that_is_not_there(self):
        for function in (bayesian_control, effect_control):
            with pytest.raises(ValueError, match="index from 0 to 1"):
                function([[1, 2], [3, 4]], 2, greater_is_better=True)


class TestEffectSize:
    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=8, unique=True))
    def test_equal_to_the_twins(self, whole):
        values = [v + 0.001 * i**3 for i, v in enumerate(whole)]  # no ties
        found = effect_size(values)
        median, ends = naive.hodges_lehmann(values, 0.95)
        assert found.median == pytest.approx(median)
        assert found.median_interval == pytest.approx(ends)
        if any(values):
            assert found.rank_biserial == pytest.approx(naive.rank_biserial(values))

    def test_the_mean_is_that_of_a_t_test(self):
        values = np.random.default_rng(0).normal(1, 2, size=11)
        found = effect_size(values, level=0.9)
        ends = stats.ttest_1samp(values, 0).confidence_interval(0.9)
        assert found.mean_interval == pytest.approx((ends.low, ends.high))
        assert found.mean == pytest.approx(values.mean())
        assert found.level == 0.9

    @pytest.mark.parametrize(("n", "known"), [(5, False), (6, True)])
    def test_too_few_rows_know_nothing(self, n, known):
        ends = effect_size(np.arange(1.0, n + 1)).median_interval
        assert np.isfinite(ends).all() == known
        # Where every sign is the same, the interval leaves out 0 as soon as Wilcoxon's test can.
        assert (wilcoxon_p(np.arange(1.0, n + 1)) < 0.05) == known

    def test_one_row(self):
        found = effect_size([2.0])
        assert (found.mean, found.median, found.rank_biserial) == (2, 2, 1)
        assert found.mean_interval == (-math.inf, math.inf)

    def test_many_rows_by_the_normal_distribution(self):
        values = np.random.default_rng(1).normal(size=201)
        ends = effect_size(values).median_interval
        counted = effect_size(values[:200]).median_interval
        np.testing.assert_allclose(ends, counted, atol=0.02)

    def test_ties_and_zeros(self):
        assert effect_size([0, 0, 0]).rank_biserial == 0
        assert effect_size([0, 1, -1]).rank_biserial == 0
        noise = [0.3 - 0.2, 0.1 - 0.2]  # of equal size, but for the last bit
        assert effect_size(noise, decimals=12).rank_biserial == 0
        assert effect_size(noise).rank_biserial != 0

    def test_the_control(self):
        values = np.random.default_rng(5).normal(size=(10, 3))
        found = effect_control(values, 1, greater_is_better=False, level=0.8)
        alone = effect_size(values[:, 0] - values[:, 1], level=0.8)
        assert (found.mean[0], found.median[0]) == (alone.mean, alone.median)
        assert tuple(found.mean_interval[0]) == alone.mean_interval
        assert tuple(found.median_interval[0]) == alone.median_interval
        assert found.rank_biserial[0] == alone.rank_biserial
        assert found.mean[1] == 0
        assert not found.mean_interval[1].any()


def table(values):
    values = np.asarray(values, dtype=float)
    names = [f"d{i}" for i in range(len(values))], [f"m{j}" for j in range(values.shape[1])]
    return ScoreTable("one_error", False, *map(tuple, names), values[:, :, np.newaxis])


class TestInAComparison:
    def test_both_are_there(self):
        values = np.random.default_rng(2).normal(0.5, 0.05, size=(9, 3))
        found = compare(table(values), control="m1", rope=0.002, alpha=0.1)
        assert found.bayesian.rope == 0.002
        assert found.effects.level == 0.9
        expected = bayesian_control(values, 1, greater_is_better=False, rope=0.002)
        np.testing.assert_array_equal(found.bayesian.better, expected.better)
        np.testing.assert_allclose(found.effects.mean, (values - values[:, [1]]).mean(axis=0))
        plain = found.to_dict()
        assert plain["bayesian"]["better"] == found.bayesian.better.tolist()
        assert len(plain["effects"]["median_interval"]) == 3

    @pytest.mark.parametrize(
        ("values", "control", "reason"),
        [
            ([[1, 2], [3, 4]], None, "no control"),
            ([[1, 2]], "m0", "two rows"),
            ([[1], [2]], "m0", "two methods"),
        ],
    )
    def test_or_the_reason(self, values, control, reason):
        found = compare(table(values), control=control)
        assert found.bayesian is None
        assert found.effects is None
        assert reason in found.reasons["bayesian"]
        assert reason in found.reasons["effects"]
