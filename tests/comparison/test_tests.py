"""Ranks, Friedman, Nemenyi, Wilcoxon, Holm: against twins, other libraries and the literature."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from imcc.comparison import (
    against_control,
    cliques,
    critical_difference,
    friedman,
    holm,
    join_podiums,
    mean_ranks,
    nemenyi,
    podium,
    rank_methods,
    wilcoxon_control,
    wilcoxon_p,
    wilcoxon_pairs,
    win_tie_loss,
)
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
        [0.972, 0.981, 0.975, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)
# The article ranks by more decimals than it prints: on the data set voting, cf is before both.
UNROUNDED = AUC.copy()
UNROUNDED[12, 2] += 1e-5

matrices = st.tuples(st.integers(2, 9), st.integers(2, 6)).flatmap(
    # Few different values, so that ties are common.
    lambda shape: hnp.arrays(np.float64, shape, elements=st.integers(0, 6).map(lambda i: i / 8))
)


class TestDemsar:
    ranks = rank_methods(UNROUNDED, greater_is_better=True)
    means = mean_ranks(ranks)

    def test_friedman(self):
        np.testing.assert_allclose(self.means, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
        test = friedman(self.ranks)
        assert test.chi_square == pytest.approx(9.28, abs=0.005)
        assert test.f == pytest.approx(3.69, abs=0.005)
        assert test.f_df == (3, 39)
        assert test.f_critical == pytest.approx(2.85, abs=0.01)
        assert test.significant

    def test_nemenyi(self):
        at_5, at_10 = (nemenyi(self.means, 14, alpha=alpha) for alpha in (0.05, 0.10))
        assert at_5.q == pytest.approx(2.569, abs=0.001)
        assert at_5.critical_difference == pytest.approx(1.25, abs=0.005)
        assert at_5.cliques == ((3, 1, 2, 0),)
        assert not at_5.significant.any()
        assert at_10.critical_difference == pytest.approx(1.12, abs=0.005)
        # At 10 %, C4.5 is worse than both that cut the tree by m.
        assert np.argwhere(np.triu(at_10.significant)).tolist() == [[0, 1], [0, 3]]
        assert at_10.cliques == ((3, 1, 2), (2, 0))

    def test_control(self):
        test = against_control(self.means, 14, control=0, alpha=0.05)
        # The article prints 1.16 for 2.394 x 0.488 = 1.168.
        assert test.bonferroni_dunn_critical_difference == pytest.approx(1.168, abs=0.001)
        error = math.sqrt(4 * 5 / (6 * 14))
        np.testing.assert_allclose(
            -test.difference[[3, 1, 2]] / error, [2.416, 2.342, 0.512], atol=1e-3
        )
        np.testing.assert_allclose(test.p[[3, 1, 2]], [0.016, 0.019, 0.609], atol=1e-3)
        # Holm rejects two; 0.016 < 0.05 / 3 and 0.019 < 0.05 / 2.
        assert (test.holm_p < 0.05).tolist() == [False, True, False, True]
        # Bonferroni-Dunn: only both together, by a hair.
        assert test.bonferroni_dunn_significant.tolist() == [False, False, False, True]
        assert not test.nemenyi_significant.any()
        wide = critical_difference(14, 4, alpha=0.10, procedure="bonferroni-dunn")
        assert wide == pytest.approx(1.04, abs=0.005)


@pytest.mark.parametrize(
    ("k", "alpha", "q"),
    [(2, 0.05, 1.960), (4, 0.05, 2.569), (7, 0.05, 2.949), (10, 0.05, 3.164), (10, 0.10, 2.920)],
)
def test_quantiles_are_those_of_demsar_s_table(k, alpha, q):
    assert nemenyi(np.arange(k), 10, alpha=alpha).q == pytest.approx(q, abs=0.001)


@given(matrices, st.booleans())
@settings(max_examples=150, deadline=None)
def test_friedman_equals_the_twin_and_scipy(values, greater):
    ranks = rank_methods(values, greater_is_better=greater)
    assert ranks.tolist() == [naive.ranks(row, greater) for row in values.tolist()]
    means, chi, f = naive.friedman(values.tolist(), greater)
    test = friedman(ranks)
    np.testing.assert_allclose(mean_ranks(ranks), means)
    assert test.chi_square == pytest.approx(chi, abs=1e-9)
    if f is None:
        assert test.f == math.inf
    else:
        assert test.f == pytest.approx(f)
        assert test.f_p == pytest.approx(float(stats.f.sf(f, *test.f_df)))
        assert test.significant == (test.f > test.f_critical)
    if values.shape[1] > 2 and test.chi_square_tied is not None:
        expected = stats.friedmanchisquare(*values.T)
        assert test.chi_square_tied == pytest.approx(expected.statistic)
        assert test.chi_square_tied_p == pytest.approx(expected.pvalue)


def test_friedman_when_all_rows_agree_or_tie():
    alike = friedman([[1, 2, 3]] * 4)
    assert alike.f == math.inf
    assert alike.f_p == pytest.approx(1 / 6**3)
    assert alike.significant
    # Two rows that agree on two methods say nothing: it happens every second time.
    assert not friedman([[1, 2], [1, 2]]).significant
    assert friedman([[1, 2], [1, 2]]).f_p == pytest.approx(0.5)
    tied = friedman([[2, 2, 2]] * 4)
    assert (tied.chi_square, tied.f, tied.f_p) == (0, 0, 1)
    assert tied.chi_square_tied is None
    for ranks in ([[1, 2, 3]], [[1], [1]]):
        with pytest.raises(ValueError, match="two rows and two methods"):
            friedman(ranks)


def test_friedman_with_two_methods_is_the_sign_test():
    ranks = rank_methods([[1, 2]] * 7 + [[2, 1]] * 3, greater_is_better=False)
    assert friedman(ranks).chi_square == pytest.approx((7 - 3) ** 2 / 10)


def test_nemenyi_equals_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs")
    values = np.random.default_rng(0).normal(size=(12, 5)).round(1) + np.array([0, 0, 0.5, 1, 2])
    means = mean_ranks(rank_methods(values, greater_is_better=False))
    test = nemenyi(means, 12)
    np.testing.assert_allclose(test.p, posthocs.posthoc_nemenyi_friedman(values), atol=1e-6)
    off_diagonal = ~np.eye(5, dtype=bool)
    assert ((test.p <= 0.05) == test.significant)[off_diagonal].all()


def test_wilcoxon_holm_equals_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs")
    values = np.random.default_rng(1).normal(size=(14, 5)) + np.array([0, 0, 0.5, 1, 2])
    test = wilcoxon_pairs(values, np.arange(5))
    expected = posthocs.posthoc_wilcoxon(list(values.T), p_adjust="holm").to_numpy()
    np.testing.assert_allclose(test.holm_p, expected)
    assert (test.significant == (expected < 0.05)).all()
    assert 0 < test.significant.sum() < 20


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
    expected = stats.wilcoxon(differences).pvalue
    assert wilcoxon_p(differences) == pytest.approx(expected)
    # Where counting ends, both ways agree.
    counted, normal = (wilcoxon_p(np.resize(differences, n)) for n in (200, 201))
    assert counted == pytest.approx(stats.wilcoxon(differences[:200]).pvalue, rel=0.1)
    assert normal == pytest.approx(counted, rel=0.4)


def test_wilcoxon_without_differences():
    assert wilcoxon_p([0.0, 0.0]) == 1.0
    assert wilcoxon_p([]) == 1.0
    with pytest.raises(ValueError, match="finite"):
        wilcoxon_p([0.1, np.nan])


def test_wilcoxon_rounding_makes_equal_differences_tie():
    values = np.array([[0.2, 0.3], [0.2, 0.1], [0.7, 0.5], [0.9, 0.6]])
    noisy = values[:, 0] - values[:, 1]
    assert len(set(np.abs(noisy[:2]))) == 2
    test = wilcoxon_pairs(values, [1, 2], decimals=6)
    assert test.p[0, 1] == wilcoxon_p([-1, 1, 2, 3])
    assert wilcoxon_control(values, 0, decimals=6).p[1] == test.p[0, 1]
    assert wilcoxon_control(values, 0).p[1] != test.p[0, 1]


def test_wilcoxon_against_a_control_adjusts_for_fewer_tests():
    values = np.random.default_rng(1).normal(size=(14, 4)) + np.array([0, 0.3, 0.8, 1.2])
    pairs, control = wilcoxon_pairs(values, np.arange(4)), wilcoxon_control(values, 1)
    np.testing.assert_array_equal(control.p, pairs.p[1])
    others = [0, 2, 3]
    np.testing.assert_allclose(control.holm_p[others], naive.holm(pairs.p[1, others].tolist()))
    assert control.holm_p[1] == 1
    assert (control.holm_p <= pairs.holm_p[1]).all()
    assert wilcoxon_control(values, 1, alpha=1e-9).significant.sum() == 0


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_equals_the_twin(p):
    np.testing.assert_allclose(holm(p), naive.holm(p))


def test_holm_refuses_what_is_no_p():
    for p in ([0.1, 1.2], [[0.1]], [np.nan]):
        with pytest.raises(ValueError, match="p must be"):
            holm(p)


@given(st.data(), st.integers(1, 7))
def test_cliques_equal_the_twin(data, k):
    upper = np.triu(data.draw(hnp.arrays(bool, (k, k))), 1)
    different = upper | upper.T
    ranks = data.draw(st.permutations(list(range(k))))
    found = cliques(different, ranks)
    assert len(set(found)) == len(found)
    assert {tuple(sorted(g)) for g in found} == naive.cliques(different)
    for group in found:
        assert [ranks[i] for i in group] == sorted(ranks[i] for i in group)
    # Stretches: groups of neighbours, none within another.
    order = np.argsort(ranks).tolist()
    stretches = {
        tuple(order[a:b])
        for a in range(k)
        for b in range(a + 2, k + 1)
        if not different[np.ix_(order[a:b], order[a:b])].any()
    }
    maximal = {s for s in stretches if not any(set(s) < set(t) for t in stretches)}
    assert set(cliques(different, ranks, contiguous=True)) == maximal


def test_cliques_of_a_critical_difference_are_contiguous():
    means = np.random.default_rng(0).uniform(1, 8, size=8)
    test = nemenyi(means, 15)
    assert test.cliques == cliques(test.significant, means, contiguous=True)
    with pytest.raises(ValueError, match="symmetric"):
        cliques([[0, 1], [0, 0]], [1, 2])


@given(matrices, st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_what_must_not_matter(values, greater, random):
    """Permuted methods permute; monotone maps and flipped directions change nothing."""
    k = values.shape[1]
    ranks = rank_methods(values, greater_is_better=greater)
    order = random.sample(range(k), k)
    np.testing.assert_array_equal(
        rank_methods(values[:, order], greater_is_better=greater), ranks[:, order]
    )
    np.testing.assert_array_equal(rank_methods(np.exp(values), greater_is_better=greater), ranks)
    np.testing.assert_array_equal(rank_methods(-values, greater_is_better=not greater), ranks)
    test, permuted = friedman(ranks), friedman(ranks[:, order])
    assert (test.chi_square, test.f, test.f_p) == (permuted.chi_square, permuted.f, permuted.f_p)
    assert ranks.sum(axis=1).tolist() == [k * (k + 1) / 2] * len(values)
    counts = win_tie_loss(values, greater_is_better=greater)
    flipped = win_tie_loss(-np.exp(values), greater_is_better=not greater)
    np.testing.assert_array_equal(counts.wins, naive.wins(values.tolist(), greater))
    np.testing.assert_array_equal(counts.wins, flipped.wins)
    np.testing.assert_array_equal(counts.losses, counts.wins.T)
    assert (counts.wins + counts.ties + counts.losses == len(values)).all()


def test_decimals_make_ties_as_printing_does():
    values = [[0.1234, 0.1226, 0.1235]]  # printed: 0.123, 0.123, 0.123 (0.1235 is below its half)
    assert rank_methods(values, greater_is_better=False).tolist() == [[2, 1, 3]]
    assert f"{0.1235:.3f}" == "0.123"
    assert rank_methods(values, greater_is_better=False, decimals=3).tolist() == [[2, 2, 2]]
    for wrong in (-1, 2.5, "3", True):
        with pytest.raises(ValueError, match="decimals must be"):
            rank_methods(values, greater_is_better=False, decimals=wrong)


def test_podium_shares_places():
    values = np.array([[3, 1, 1, 2], [1, 2, 3, 4], [5, 5, 5, 5]])
    result = podium(values, greater_is_better=False, places=2)
    assert result.n_first.tolist() == [2, 2, 2, 1]
    assert result.n_top.tolist() == [2, 3, 2, 1]
    assert result.first.tolist() == [2 / 3, 2 / 3, 2 / 3, 1 / 3]
    assert podium(values, greater_is_better=True, places=2).n_first.tolist() == [2, 1, 1, 2]
    both = join_podiums([result, podium(values, greater_is_better=True, places=2)])
    assert (both.n_first.tolist(), both.n_rows) == ([4, 3, 3, 3], 6)
    assert both.top[0] == both.n_top[0] / 6
    with pytest.raises(ValueError, match="same methods"):
        join_podiums([result, podium(values, greater_is_better=True)])
    with pytest.raises(ValueError, match="must not be empty"):
        join_podiums([])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rank_methods([1, 2], greater_is_better=True), "must be a table"),
        (lambda: rank_methods([[1, np.nan]], greater_is_better=True), "row 0, method 1 is NaN"),
        (lambda: rank_methods([[1, 2]], greater_is_better=True, method="max"), "method must be"),
        (lambda: friedman([[1, 2], [2, 1]], alpha=5), "alpha must be"),
        (lambda: critical_difference(5, 1), "n_methods must be at least 2"),
        (lambda: critical_difference(0, 3), "n_rows must be"),
        (lambda: critical_difference(5, 3, procedure="tukey"), "procedure must be"),
        (lambda: nemenyi([[1, 2]], 4), "mean_ranks must be"),
        (lambda: against_control([1, 2], 4, control=2), "control must be"),
        (lambda: wilcoxon_control([[1, 2], [1, 2]], -1), "control must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
