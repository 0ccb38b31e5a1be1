"""Who wins, by how much, is it significant: each sentence must be true."""

import numpy as np

from imcc.comparison import ScoreTable
from imcc.report._results import compare_common_runs
from imcc.report._verdict import verdict


def said(values, methods=None, control=None, greater=True):
    values = np.asarray(values, dtype=float)
    datasets = tuple(f"data{i}" for i in range(values.shape[0]))
    methods = tuple(methods or "abcdefghij"[: values.shape[1]])
    scores = ScoreTable("average_precision", greater, datasets, methods, values)
    return verdict(compare_common_runs(scores, control=control, test_size=0.2))


def ordered(n, k, noise=0.0, seed=0):
    """n data sets, k methods, each a little worse than the one before it."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.5, 0.8, size=(n, 1, 1)) - 0.02 * np.arange(k)[:, np.newaxis]
    return base + noise * rng.normal(size=(n, k, 3))


def test_a_clear_winner():
    found = said(ordered(15, 5))
    assert found.winner.short == "a"
    assert "of 5 methods on 15 data sets: 1." in found.winner.long
    assert "a on 15 of 15" in found.winner.long
    assert found.lead.short == "1 rank"
    assert "better on 15, equal on 0, worse on 0 data sets" in found.lead.long
    assert "average precision 0.020 better on average" in found.lead.long
    # Nemenyi's critical difference of 5 methods on 15 data sets is 1.57.
    assert found.significant.short == "Against 3 of 4"
    assert "Nemenyi's test" in found.significant.long
    assert (
        "better than c, d and e; it is not significantly different from b" in found.significant.long
    )
    assert found.not_different == ("b",)
    assert found.test.startswith("Friedman, p < 0.001")


def test_better_than_all():
    assert said(ordered(30, 3)).significant.short == "Yes, against both"
    assert said(ordered(60, 4)).significant.short == "Yes, against all 3"


def test_of_losses_the_lowest_wins():
    assert said(ordered(15, 3), greater=False).winner.short == "c"


def test_with_a_control_the_control_s_test():
    assert "Bonferroni and Dunn's" in said(ordered(15, 5), control="a").significant.long
    # The control does not win: then the test is the one for all pairs.
    assert "Nemenyi's" in said(ordered(15, 5), control="c").significant.long


def test_no_difference_by_friedman():
    found = said(np.random.default_rng(1).random((6, 4, 3)))
    assert found.significant.short == "No"
    assert "finds no significant difference" in found.significant.long
    assert len(found.not_different) == 3


def test_two_methods_are_judged_by_wilcoxon():
    found = said(ordered(10, 2))
    assert found.significant.short == "Yes"
    assert "Wilcoxon" in found.significant.long
    assert "(p = 0.002)" in found.significant.long  # 2 / 2^10
    few = said(ordered(4, 2))
    assert few.significant.short == "No"  # 2 / 2^4 is not below 0.05
    assert few.not_different == ("b",)


def test_one_data_set_says_nothing_about_others():
    found = said([[[0.80, 0.81, 0.82], [0.70, 0.71, 0.72], [0.79, 0.82, 0.81]]])
    assert found.winner.short == "a"
    assert "On data0" in found.winner.long
    assert "0.810 ± 0.010 over 3 random splits" in found.winner.long
    assert found.lead.short == "0.003"
    assert found.significant.short == "Against 1 of 2"
    assert "better than b; it is not significantly different from c" in found.significant.long
    assert "One data set says nothing about others" in found.significant.long


def test_one_data_set_and_one_split():
    found = said([[[0.80], [0.70]]])
    assert found.winner.short == "a"
    assert found.significant.short == "Not known"
    assert "no spread to test" in found.significant.long


def test_ties():
    same = said(np.full((1, 3, 2), 0.5))
    assert same.winner.short == "a, b and c"
    assert same.lead.short == "Not at all"
    assert same.significant.short == "No"
    over_many = said(np.full((4, 2, 2), 0.5))
    assert over_many.winner.short == "a and b"
    assert over_many.significant.short == "No"
    values = ordered(4, 3)
    values[:2, 0], values[:2, 1] = values[:2, 1].copy(), values[:2, 0].copy()
    shared = said(values)  # a and b are first twice each
    assert shared.winner.short in ("a and b", "b and a")
    assert "there is no single winner" in shared.significant.long
    assert set(shared.not_different) == {"a", "b"}


def test_one_method_only():
    found = said(ordered(3, 1))
    assert found.winner.short == "One method only"
    assert found.significant.short == "Not known"
    assert "nothing to test against" in found.significant.long


def test_nothing_to_compare():
    assert said(np.full((2, 2, 1), np.nan)).winner.short == "Not known"
    values = np.full((2, 2, 1), 0.5)
    values[0, 0] = values[1, 1] = np.nan
    found = said(values)
    assert found.winner.short == "Not known"
    assert "no data set on which all methods have a repetition" in found.winner.long


def test_what_is_missing_is_left_out_and_named():
    values = ordered(5, 3)
    values[4, 2] = np.nan
    scores = ScoreTable("average_precision", True, tuple("vwxyz"), tuple("abc"), values)
    compared = compare_common_runs(scores)
    assert compared.comparison.datasets == tuple("vwxy")
    assert compared.left_out == ("z: no repetition that all methods have",)
    assert "on 4 data sets" in verdict(compared).winner.long
