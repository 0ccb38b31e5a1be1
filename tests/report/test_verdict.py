"""Who wins, by how much, is it significant: each sentence must be true."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from imcc.comparison import ScoreTable
from imcc.report._results import compare_common_runs
from imcc.report._verdict import verdict, when_not


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
    assert "average precision, 1 of 5 methods on 15 data sets." in found.winner.long
    assert "first, alone or in a tie, on 15 of 15" in found.winner.long
    assert found.lead.short == "+0.0200 against b"
    assert "Next is b, mean rank 2. " in found.lead.long
    assert "against b, the nearest of all (better on 15 of 15 data sets)" in found.lead.long
    # Nemenyi's critical difference of 5 methods on 15 data sets is 1.57.
    assert found.significant.short == "Against 3 of 4, pair by pair against all"
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


def table(values, methods="abcdefgh"):
    values = np.asarray(values, dtype=float)
    names = tuple(f"data{i}" for i in range(len(values)))
    return ScoreTable("average_precision", True, names, tuple(methods)[: values.shape[1]], values)


def test_a_method_that_lacks_data_sets_takes_none_away():
    values = ordered(5, 3)
    values[4, 2] = np.nan
    compared = compare_common_runs(table(values))
    assert compared.comparison.methods == ("a", "b")
    assert len(compared.comparison.datasets) == 5
    assert compared.left_out == (
        "c: runs on 4 of 5 data sets; ranked among the others on 4 data sets its mean rank is 3 of "
        "3 (a: 1)",
    )
    assert "of 2 methods on 5 data sets" in verdict(compared).winner.long


def test_a_data_set_that_has_just_begun_is_left_out():
    values = ordered(5, 4)
    values[4, 1:] = np.nan  # only the first method has run on it
    compared = compare_common_runs(table(values))
    assert compared.comparison.methods == tuple("abcd")
    assert compared.left_out == ("data4: no repetition that all of the ranked methods have",)


def test_methods_that_share_no_data_set_completely_are_ranked_on_what_they_share():
    values = ordered(6, 3)
    values[0, 0] = values[1, 1] = values[2, 2] = np.nan
    compared = compare_common_runs(table(values))
    assert compared.comparison.methods == ("a", "b", "c")
    assert compared.comparison.datasets == ("data3", "data4", "data5")


def test_a_method_with_few_data_sets_and_one_without_any():
    values = ordered(8, 4)
    values[2:, 2], values[:, 3] = np.nan, np.nan
    compared = compare_common_runs(table(values))
    assert compared.comparison.methods == ("a", "b")
    assert compared.left_out == ("c: runs on fewer than 4 data sets of 8", "d: no runs")


def test_calibrated_scores_do_not_change_the_ranks_of_others():
    values = ordered(5, 3)
    found = compare_common_runs(table(values, ("a", "b", "a_calibrated")))
    assert found.comparison.methods == ("a", "b")
    assert found.left_out[0].startswith(
        "a_calibrated: another of the methods with calibrated scores; ranked among the others on 5"
    )
    # There is nothing else to compare: then they are compared.
    both = compare_common_runs(table(values[:, :2], ("a", "a_calibrated")))
    assert both.comparison.methods == ("a", "a_calibrated")
    # Only the name says so.
    assert not compare_common_runs(table(values, ("x", "b", "a_calibrated"))).left_out


def test_runs_of_repetitions_that_not_all_have_are_counted():
    values = ordered(3, 2, noise=0.001)
    values[0, 0, 0] = np.nan
    compared = compare_common_runs(table(values))
    assert compared.left_out == ("1 run of repetitions that not all of the ranked methods have",)
    assert compared.comparison.counts.tolist() == [[2, 2], [3, 3], [3, 3]]


def test_the_control_and_the_nearest_are_named_too():
    values = ordered(10, 4, noise=0.002)
    values[:, 3] = values[:, 0] - 0.001  # d is nearest, but has fewer data sets
    values[8:, 3] = np.nan
    found = verdict(compare_common_runs(table(values), control="c"))
    assert found.lead.short == "+0.0203 against b, +0.0010 against d"
    assert "against c (better on 10 of 10 data sets)" in found.lead.long
    assert "+0.0010 ± 0.0000 against d, the nearest of all (better on 8 of 8" in found.lead.long


def test_two_data_sets_have_no_interval():
    text = verdict(compare_common_runs(table(ordered(2, 3)))).lead.long
    assert "±" not in text
    assert "interval" not in text
    assert "±" in verdict(compare_common_runs(table(ordered(3, 3)))).lead.long


def test_pair_by_pair():
    text = said(ordered(15, 5)).significant.long
    assert "Pair by pair (Wilcoxon's test, Holm's adjustment for all pairs) it differs from b" in (
        text
    )
    few = said(ordered(5, 4)).significant.long  # 2 / 2^5 is above 0.05
    assert "Pair by pair nothing can be found with 5 data sets" in few


# When not to use it.


def runs(seconds, datasets=5, device=None, threads=1, processor="one"):
    """Make runs that only have times: a number for each method."""
    environment = {"threads": threads, "processor": processor} | (
        {"device": device} if device else {}
    )
    return [
        SimpleNamespace(
            key=("scores", f"data{i}", method, 0),
            fit_seconds=float(value) * (i + 1),
            predict_seconds=0.1,
            environment=environment,
        )
        for method, value in seconds.items()
        for i in range(datasets)
    ]


def test_not_first_everywhere():
    values = ordered(5, 3)
    values[2, 1] = 0.99
    values[2, 2] = 0.98
    found = when_not(compare_common_runs(table(values)), [], runs({"a": 1, "b": 1, "c": 1}))
    assert found.short == "On 1 of 5 data sets"
    assert "It is not first on data2 (b)." in found.long
    assert "take about as long as b (not significantly different; CPU, 5 data sets)" in found.long


def test_nothing_speaks_against_it():
    found = when_not(compare_common_runs(table(ordered(5, 3))), [], runs({"a": 1, "b": 2, "c": 4}))
    assert found.short == "No case found"
    assert "It is first, alone or in a tie, on all 5 data sets." in found.long
    assert "(with 1 thread) take 0.5 times as long as b" in found.long


def test_what_it_costs():
    compared = compare_common_runs(table(ordered(5, 3)), control="c")
    times = runs({"a": 30, "b": 3, "c": 1})
    found = when_not(compared, [], [*times, *runs({"b": 1e-3}, threads=8)])
    assert found.short == "Where training time matters"
    assert "take 10 times as long as b (not significantly different; CPU, 5 data sets) and" in (
        found.long
    )
    assert "30 times as long as c" in found.long


def test_times_that_cannot_be_compared():
    compared = compare_common_runs(table(ordered(5, 2)))
    apart = [*runs({"a": 30}, device="cuda"), *runs({"b": 3})]
    assert "nothing can be said about cost" in when_not(compared, [], apart).long
    assert "nothing can be said about cost" in when_not(compared, [], []).long
    machines = [*runs({"a": 30}), *runs({"b": 3}, processor="another")]
    assert "on different machines" in when_not(compared, [], machines).long


def test_other_metrics_and_methods_that_lack_data_sets():
    values = ordered(8, 3)
    values[:, 2] = values[:, 0] + 0.01
    values[6:, 2] = np.nan
    others = [replace(table(ordered(8, 2)), metric=m) for m in ("coverage", "macro_auc")]
    others[0] = replace(others[0], greater_is_better=False)
    found = when_not(
        compare_common_runs(table(values)), [compare_common_runs(o) for o in others], []
    )
    assert found.short == "On the 6 data sets of c and by 1 of 3 metrics"
    assert (
        "c, not ranked above, has a better mean rank on the 6 data sets that it has: 1, not 2"
        in (found.long)
    )
    assert "By other metrics it is not the best: coverage (b)." in found.long


def test_methods_outside_of_the_ranking_that_are_ahead_somewhere():
    values = ordered(8, 3)
    values[2:, 2] = np.nan  # too few data sets to be ranked
    values[0, 2] = values[0, 0] + 0.01
    found = when_not(compare_common_runs(table(values)), [], [])
    assert found.short == "On 1 of 8 data sets"
    assert "It is first, alone or in a tie, on all 8 data sets." in found.long
    assert "Methods that are not ranked are ahead of it on data0 (c)." in found.long
    values[0, 2] = values[0, 0]  # equal is not ahead
    assert "ahead" not in when_not(compare_common_runs(table(values)), [], []).long


def test_nothing_can_be_said_of_one_method():
    assert when_not(compare_common_runs(table(ordered(3, 1))), [], []).short == "Not known"
    nothing = compare_common_runs(table(np.full((2, 2, 1), np.nan)))
    assert when_not(nothing, [], []).short == "Not known"
