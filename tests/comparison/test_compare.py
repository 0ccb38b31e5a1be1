"""All statistics of a comparison: against twins, other libraries and the literature."""

import json
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from imcc.comparison import ScoreTable, bayesian_signed_rank, compare, effect_size
from imcc.comparison._ranks import cliques
from tests.comparison.tables import make, random_table
from tests.naive import comparison as naive

# Demšar 2006, Table 6: AUC of C4.5, with m, with cf, with both, on 14 data sets of UCI.
AUC = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        # The article ranks by more decimals than it prints: here, cf is before both.
        [0.972, 0.981, 0.97501, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)

matrices = st.tuples(st.integers(2, 9), st.integers(2, 6)).flatmap(
    # Few different values, so that ties are common.
    lambda shape: hnp.arrays(np.float64, shape, elements=st.integers(0, 6).map(lambda i: i / 8))
)


def test_the_example_of_demsar():
    result = compare(make(AUC), control="m0")
    np.testing.assert_allclose(result.mean_ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    assert result.friedman.chi_square == pytest.approx(9.28, abs=0.005)
    assert result.friedman.f == pytest.approx(3.69, abs=0.005)
    assert result.friedman.f_df == (3, 39)
    assert result.friedman.f_critical == pytest.approx(2.85, abs=0.01)
    assert result.friedman.significant
    assert result.nemenyi.critical_difference == pytest.approx(1.25, abs=0.005)
    assert not result.nemenyi.significant.any()
    at_10 = compare(make(AUC), control="m0", alpha=0.1)
    assert at_10.nemenyi.critical_difference == pytest.approx(1.12, abs=0.005)
    assert np.argwhere(at_10.nemenyi.significant).tolist() == [[0, 1], [0, 3], [1, 0], [3, 0]]
    # The article prints 1.16 for 2.394 x 0.488 = 1.168.
    assert result.against_control.critical_difference == pytest.approx(1.168, abs=0.001)
    # Bonferroni and Dunn: only both together, by a hair; at 10 % also m.
    assert result.against_control.ranks_differ.tolist() == [False, False, False, True]
    assert at_10.against_control.critical_difference == pytest.approx(1.04, abs=0.005)
    assert at_10.against_control.ranks_differ.tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    ("k", "alpha", "q"),
    [(2, 0.05, 1.960), (4, 0.05, 2.569), (7, 0.05, 2.949), (10, 0.05, 3.164), (10, 0.10, 2.920)],
)
def test_quantiles_are_those_of_demsar_s_table(k, alpha, q):
    result = compare(random_table(10, k), alpha=alpha)
    assert result.nemenyi.critical_difference == pytest.approx(
        q * math.sqrt(k * (k + 1) / 60), abs=0.002
    )


@given(matrices, st.booleans())
@settings(max_examples=100, deadline=None)
def test_ranks_wins_and_friedman_equal_the_twins(values, greater):
    result = compare(make(values, greater=greater))
    assert result.ranks.tolist() == [naive.ranks(row, greater) for row in values.tolist()]
    means, chi, f = naive.friedman(values.tolist(), greater)
    np.testing.assert_allclose(result.mean_ranks, means)
    np.testing.assert_array_equal(result.wins, naive.wins(values.tolist(), greater))
    best = values.max(axis=1) if greater else values.min(axis=1)
    np.testing.assert_array_equal(result.n_first, (best == values.T).sum(axis=1))
    test = result.friedman
    assert test.chi_square == pytest.approx(chi, abs=1e-9)
    if f is None:
        assert test.f == math.inf
    else:
        assert test.f == pytest.approx(f)
        assert test.f_p == pytest.approx(float(stats.f.sf(f, *test.f_df)))
        assert test.significant == (test.f > test.f_critical)


@given(matrices, st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_what_must_not_matter(values, greater, random):
    """Permuted methods permute; flipped directions change nothing."""
    k = values.shape[1]
    result = compare(make(values, greater=greater))
    flipped = compare(make(-values, greater=not greater))
    np.testing.assert_array_equal(flipped.ranks, result.ranks)
    np.testing.assert_array_equal(flipped.wins, result.wins)
    order = random.sample(range(k), k)
    permuted = compare(make(values[:, order], greater=greater))
    np.testing.assert_array_equal(permuted.ranks, result.ranks[:, order])
    assert permuted.friedman == result.friedman


def test_wilcoxon_of_all_pairs_equals_the_twins():
    values = np.random.default_rng(1).normal(size=(9, 4)).round(2) + np.array([0, 0.5, 1, 3])
    pairs = list(combinations(range(4), 2))
    single = [naive.wilcoxon_p((values[:, i] - values[:, j]).round(9).tolist()) for i, j in pairs]
    test = compare(make(values)).wilcoxon
    for (i, j), p, adjusted in zip(pairs, single, naive.holm(single), strict=True):
        assert test.p[i, j] == test.p[j, i] == pytest.approx(p)
        assert test.holm_p[i, j] == test.holm_p[j, i] == pytest.approx(adjusted)
        assert test.significant[i, j] == (adjusted < 0.05)
    assert 0 < test.significant.sum() < 12


def test_wilcoxon_rounds_differences():
    values = np.array([[0.2, 0.3], [0.2, 0.1], [0.7, 0.5], [0.9, 0.6]])
    noisy = values[:, 0] - values[:, 1]
    assert len(set(np.abs(noisy[:2]))) == 2
    assert compare(make(values)).wilcoxon.p[0, 1] == naive.wilcoxon_p([-1, 1, 2, 3])


@given(hnp.arrays(float, st.integers(1, 7), elements=st.integers(0, 9)), st.integers(0, 5))
def test_cliques_equal_the_twin(ranks, critical):
    groups = cliques(ranks, critical)
    different = np.abs(ranks[:, np.newaxis] - ranks) >= critical
    assert len(set(groups)) == len(groups)
    assert {tuple(sorted(g)) for g in groups} == naive.cliques(different)
    for group in groups:
        assert sorted(ranks[list(group)]) == ranks[list(group)].tolist()


def test_against_the_control():
    table = random_table(n=12, k=4)
    result = compare(table, control="m2", alpha=0.1, rope=0.2)
    against = result.against_control
    assert against.control == 2
    others = [0, 1, 3]
    np.testing.assert_allclose(
        against.wilcoxon_p[others], naive.holm(result.wilcoxon.p[2, others].tolist())
    )
    assert against.wilcoxon_p[2] == 1
    assert (against.wilcoxon_p <= result.wilcoxon.holm_p[2]).all()
    for j in others:
        values = table.differences("m2", f"m{j}")
        mean, ends = effect_size(values, level=0.9)
        assert against.mean[j] == pytest.approx(mean)
        assert against.mean_interval[j] == pytest.approx(ends)
        chances = (against.better[j], against.equivalent[j], against.worse[j])
        assert chances == bayesian_signed_rank(values, rope=0.2)
    assert against.rope == 0.2
    assert (against.mean[2], *against.mean_interval[2]) == (0, 0, 0)
    assert (against.better[2], against.equivalent[2], against.worse[2]) == (0, 1, 0)
    # Of losses, the smaller is better.
    down = compare(make(-table.values, greater=False), control="m2", alpha=0.1, rope=0.2)
    np.testing.assert_allclose(down.against_control.mean, against.mean)
    np.testing.assert_array_equal(down.against_control.better, against.better)


def test_a_region_of_practical_equivalence_is_not_left_by_rounding():
    # 0.8 - 0.79 is 0.010000000000000009.
    result = compare(make([[0.8, 0.79], [0.7, 0.69], [0.6, 0.59]]), control="m0")
    assert result.against_control.equivalent[1] == 1


def test_means_that_differ_by_rounding_noise_tie():
    runs = [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.4, 0.1, 0.1]]
    table = make([runs, runs])
    assert len(set(table.mean()[0])) > 1
    assert compare(table).ranks.tolist() == [[2, 2, 2]] * 2


def test_to_dict_is_json():
    plain = compare(random_table(n=3, k=3), control="m0").to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["friedman"]["f_df"] == [2, 4]
    assert plain["control"] == "m0"
    alike = compare(make([[1, 2, 3]] * 3)).to_dict()
    json.dumps(alike, allow_nan=False)
    assert alike["friedman"]["f"] is None
    assert alike["stds"][0][0] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"control": "m7"}, "control.*m0, m1"),
        ({"missing": "ignore"}, "missing"),
        ({"alpha": 0}, "alpha"),
        ({"test_size": 2}, "test_size"),
        ({"rope": -1}, "rope"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        compare(random_table(), **arguments)


def test_bad_tables():
    with pytest.raises(TypeError, match="table must be a ScoreTable"):
        compare(random_table().mean())
    with pytest.raises(ValueError, match="table"):
        compare(ScoreTable("m", True, (), ("x",), np.zeros((0, 1, 1))))


class TestFew:
    def test_one_dataset(self):
        result = compare(make([[1, 2, 3]]), control="m0")
        assert result.mean_ranks.tolist() == [3, 2, 1]
        for name in ("friedman", "nemenyi", "wilcoxon", "against_control"):
            assert getattr(result, name) is None
            assert "two data sets" in result.reasons[name]
        assert result.significant_wins is None
        assert "two repetitions" in result.reasons["significant_wins"]
        assert result.wins[2, 0] == 1

    def test_one_method_and_no_control(self):
        assert "two methods" in compare(make([[1], [2]])).reasons["friedman"]
        assert "no control" in compare(make([[1, 2], [3, 4]])).reasons["against_control"]

    def test_two_methods(self):
        result = compare(make([[1, 2]] * 8), control="m1")
        assert result.friedman.f == math.inf
        assert result.friedman.f_p == pytest.approx(2.0**-7)
        assert result.nemenyi.significant[0, 1]
        assert result.wilcoxon.p[0, 1] == 2.0**-7
        # Two rows that agree on two methods say nothing: it happens every second time.
        assert compare(make([[1, 2]] * 2)).friedman.f_p == pytest.approx(0.5)

    def test_all_ties(self):
        result = compare(make([[1, 1, 1]] * 6))
        assert (result.friedman.chi_square, result.friedman.f, result.friedman.f_p) == (0, 0, 1)
        assert result.wilcoxon.p.min() == 1
        assert result.nemenyi.cliques == ((0, 1, 2),)
        assert not result.wins.any()
        assert compare(make(np.zeros((3, 2)))).wilcoxon.p.min() == 1


class TestSignificantWins:
    def test_equal_to_t_tests(self):
        table = random_table(n=10, k=3)
        wins = np.zeros((3, 3), dtype=int)
        for runs in table.values:
            for i in range(3):
                for j in range(3):
                    if i != j:
                        test = stats.ttest_rel(runs[i], runs[j])
                        wins[i, j] += test.pvalue < 0.05 and test.statistic > 0
        assert 0 < wins.sum() < 30
        np.testing.assert_array_equal(compare(table).significant_wins, wins)
        losses = make(-table.values, greater=False)
        np.testing.assert_array_equal(compare(losses).significant_wins, wins)
        assert compare(table, alpha=1e-12).significant_wins.sum() == 0

    def test_the_correction_is_nadeau_and_bengio_s(self):
        differences = np.array([0.1, 0.3, 0.2, 0.25, 0.05])
        t = differences.mean() / np.sqrt((1 / 5 + 0.25) * differences.var(ddof=1))
        p = 2 * stats.t.sf(t, 4)
        table = make([[differences, np.zeros(5)]])
        for alpha, wins in ((p * 1.01, 1), (p * 0.99, 0)):
            result = compare(table, alpha=alpha, test_size=0.2)
            assert result.significant_wins[0, 1] == wins
        assert compare(table, alpha=p * 0.99).significant_wins[0, 1] == 1

    def test_constant_differences(self):
        table = make([[[0.3, 0.3], [0.1, 0.1], [0.1, 0.1 + 1e-17]]])
        assert compare(table).significant_wins.tolist() == [[0, 1, 1], [0, 0, 0], [0, 0, 0]]
        noise = make([[[0.3, 0.3], [0.2 + 0.1, 0.1 + 0.2]]])
        assert not compare(noise).significant_wins.any()
