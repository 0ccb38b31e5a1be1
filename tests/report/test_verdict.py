"""Who wins, by how much, is it significant: each sentence must be true."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from imcc.comparison import ScoreTable
from imcc.experiment import TaskKey
from imcc.report._results import compare_runs
from imcc.report._verdict import verdict, when_not


def said(values, methods=None, control=None, greater=True):
    values = np.asarray(values, dtype=float)
    datasets = tuple(f"data{i}" for i in range(values.shape[0]))
    methods = tuple(methods or "abcdefghij"[: values.shape[1]])
    scores = ScoreTable("average_precision", greater, datasets, methods, values)
    return verdict(compare_runs(scores, control=control, test_size=0.2))


def ordered(n, k, noise=0.0, seed=0):
    """n data sets, k methods, each a little worse than the one before it."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.5, 0.8, size=(n, 1, 1)) - 0.02 * np.arange(k)[:, np.newaxis]
    return base + noise * rng.normal(size=(n, k, 3))


def test_a_clear_winner():
    answers = said(ordered(15, 5))
    assert answers.winner[0] == "a"
    assert "average precision, 1 of 5 methods on 15 data sets." in answers.winner[1]
    assert "First, alone or in a tie: a on 15 of 15." in answers.winner[1]
    assert answers.lead[0] == "+0.0200 against b"
    assert "Next is b, mean rank 2. " in answers.lead[1]
    assert "against b (better on 15 of 15 data sets)" in answers.lead[1]
    # Nemenyi's critical difference of 5 methods on 15 data sets is 1.57.
    assert answers.significant[0] == "Against 3 of 4"
    assert "Nemenyi's test" in answers.significant[1]
    assert (
        "better than c, d and e; it is not significantly different from b" in answers.significant[1]
    )
    assert answers.not_different == ("b",)
    assert answers.test.startswith("Friedman, p < 0.001")


def test_better_than_all():
    assert said(ordered(30, 3)).significant[0] == "Yes, against both"
    assert said(ordered(60, 4)).significant[0] == "Yes, against all 3"


def test_of_losses_the_lowest_wins():
    assert said(ordered(15, 3), greater=False).winner[0] == "c"


def test_with_a_control_the_control_s_test():
    assert "Bonferroni and Dunn's" in said(ordered(15, 5), control="a").significant[1]
    # The control does not win: then the test is the one for all pairs.
    assert "Nemenyi's" in said(ordered(15, 5), control="c").significant[1]


def test_no_difference_by_friedman():
    answers = said(np.random.default_rng(1).random((6, 4, 3)))
    assert answers.significant[0] == "No"
    assert "finds no significant difference" in answers.significant[1]
    assert len(answers.not_different) == 3


def test_two_methods_are_judged_by_wilcoxon():
    answers = said(ordered(10, 2))
    assert answers.significant[0] == "Yes"
    assert "Wilcoxon" in answers.significant[1]
    assert "(p = 0.002)" in answers.significant[1]  # 2 / 2^10
    few = said(ordered(4, 2))
    assert few.significant[0] == "No"  # 2 / 2^4 is not below 0.05
    assert few.not_different == ("b",)


def test_one_data_set_says_nothing_about_others():
    answers = said([[[0.80, 0.81, 0.82], [0.70, 0.71, 0.72], [0.79, 0.82, 0.81]]])
    assert answers.winner[0] == "a"
    assert "On data0" in answers.winner[1]
    assert "0.810 ± 0.010 over 3 random splits" in answers.winner[1]
    assert answers.lead[0] == "0.003"
    assert answers.significant[0] == "Against 1 of 2"
    assert "better than b; it is not significantly different from c" in answers.significant[1]
    assert "One data set does not show" in answers.significant[1]


def test_one_data_set_and_one_split():
    answers = said([[[0.80], [0.70]]])
    assert answers.winner[0] == "a"
    assert answers.significant[0] == "Not known"
    assert "no spread to test" in answers.significant[1]


def test_ties():
    same = said(np.full((1, 3, 2), 0.5))
    assert same.winner[0] == "a, b and c"
    assert same.lead[0] == "Not at all"
    assert same.significant[0] == "No"
    over_many = said(np.full((4, 2, 2), 0.5))
    assert over_many.winner[0] == "a and b"
    assert over_many.significant[0] == "No"
    values = ordered(4, 3)
    values[:2, 0], values[:2, 1] = values[:2, 1].copy(), values[:2, 0].copy()
    shared = said(values)  # a and b are first twice each
    assert shared.winner[0] in ("a and b", "b and a")
    assert shared.significant[0] == "No"
    assert set(shared.not_different) == {"a", "b", "c"} - {shared.winner[0][0]}


def test_one_method_only():
    answers = said(ordered(3, 1))
    assert answers.winner[0] == "One method only"
    assert answers.significant[0] == answers.lead[0] == "Not known"
    assert when_not(compare_runs(table(ordered(3, 1))), [], [])[0] == "Not known"


def test_nothing_to_compare():
    apart = np.full((2, 2, 1), 0.5)
    apart[0, 0] = apart[1, 1] = np.nan
    for values in (np.full((2, 2, 1), np.nan), apart):
        assert said(values).winner[0] == "Not known"
        assert when_not(compare_runs(table(values)), [], [])[0] == "Not known"


def table(values, methods="abcdefgh"):
    values = np.asarray(values, dtype=float)
    names = tuple(f"data{i}" for i in range(len(values)))
    return ScoreTable("average_precision", True, names, tuple(methods)[: values.shape[1]], values)


def test_a_method_that_lacks_data_sets_takes_none_away():
    values = ordered(5, 3)
    values[4, 2] = np.nan
    compared = compare_runs(table(values))
    assert compared.comparison.methods == ("a", "b")
    assert len(compared.comparison.datasets) == 5
    (text,) = compared.left_out
    assert text == "c: runs on 4 of 5 data sets"
    assert "of 2 methods on 5 data sets" in verdict(compared).winner[1]


def test_the_control_is_named_too():
    lead = verdict(compare_runs(table(ordered(10, 4)), control="c")).lead
    assert lead[0] == "+0.0200 against b"
    assert "+0.0400 ± 0.0000 against c (better on 10 of 10 data sets)" in lead[1]


def test_two_data_sets_have_no_interval():
    text = verdict(compare_runs(table(ordered(2, 3)))).lead[1]
    assert "±" not in text
    assert "interval" not in text
    assert "±" in verdict(compare_runs(table(ordered(3, 3)))).lead[1]


def test_pair_by_pair():
    text = said(ordered(15, 5)).significant[1]
    assert "Pair by pair (Wilcoxon's test, Holm's adjustment for all pairs) it also differs" in text
    assert "also differs from b." in text
    for n_methods in (2, 4):  # 2 / 2^5 is above 0.05
        assert "cannot find a difference" in said(ordered(5, n_methods)).significant[1]


# When not to use it.


def runs(seconds, datasets=5, device=None, threads=1, processor="one"):
    """Make runs that only have times: a number for each method."""
    environment = {"threads": threads, "processor": processor} | (
        {"device": device} if device else {}
    )
    return [
        SimpleNamespace(
            key=TaskKey(f"data{i}", method, 0),
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
    short, text = when_not(compare_runs(table(values)), [], runs({"a": 1, "b": 1, "c": 1}))
    assert short == "On 1 of 5 data sets"
    assert "It is not first on data2 (b)." in text
    assert "take about as long as b (not significantly different; CPU, 5 data sets)" in text


def test_nothing_speaks_against_it():
    short, text = when_not(compare_runs(table(ordered(5, 3))), [], runs({"a": 1, "b": 2, "c": 4}))
    assert short == "No case found"
    assert "It is first, alone or in a tie, on all 5 data sets." in text
    assert "(with 1 thread) take 0.5 times as long as b" in text


def test_what_it_costs():
    compared = compare_runs(table(ordered(5, 3)), control="c")
    times = runs({"a": 30, "b": 3, "c": 1})
    short, text = when_not(compared, [], [*times, *runs({"b": 1e-3}, threads=8)])
    assert short == "Where training time matters"
    assert "take 10 times as long as b (not significantly different; CPU, 5 data sets) and" in (
        text
    )
    assert "30 times as long as c" in text


def test_times_that_cannot_be_compared():
    compared = compare_runs(table(ordered(5, 2)))
    apart = [*runs({"a": 30}, device="cuda"), *runs({"b": 3})]
    assert "nothing can be said about cost" in when_not(compared, [], apart)[1]
    assert "nothing can be said about cost" in when_not(compared, [], [])[1]
    machines = [*runs({"a": 30}), *runs({"b": 3}, processor="another")]
    assert "on different machines" in when_not(compared, [], machines)[1]


def test_other_metrics():
    others = [replace(table(ordered(8, 2)), metric=m) for m in ("coverage", "macro_auc")]
    others[0] = replace(others[0], greater_is_better=False)
    panels = [compare_runs(other) for other in others]
    short, text = when_not(compare_runs(table(ordered(8, 3))), panels, [])
    assert short == "By 1 of 3 metrics"
    assert "By other metrics it is not the best: coverage (b)." in text
