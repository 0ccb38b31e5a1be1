"""Tables of runs, gaps in them, and everything that `compare` gathers."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from imcc.comparison import (
    MissingRunsError,
    ScoreTable,
    compare,
    friedman,
    nemenyi,
    significant_win_tie_loss,
    wilcoxon_pairs,
)

NAN = np.nan


def make(values, *, greater=True, metric="average_precision"):
    values = np.asarray(values, dtype=float)
    if values.ndim == 2:
        values = values[:, :, np.newaxis]
    return ScoreTable(
        metric,
        greater,
        tuple(f"d{i}" for i in range(values.shape[0])),
        tuple(f"m{j}" for j in range(values.shape[1])),
        values,
    )


def random_table(n=8, k=4, repetitions=5, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 1, 1)) + rng.normal(size=(n, k, repetitions)) * 0.3
    return make(values + np.arange(k)[:, np.newaxis] * 0.3)


class TestScoreTable:
    def test_means_counts_and_deviations(self):
        table = make([[[1, 2, 6], [4, NAN, 5]], [[7, NAN, NAN], [NAN, NAN, NAN]]])
        assert table.counts.tolist() == [[3, 2], [1, 0]]
        np.testing.assert_array_equal(table.mean(), [[3, 4.5], [7, NAN]])
        np.testing.assert_allclose(table.std(), [[np.sqrt(7), np.sqrt(0.5)], [NAN, NAN]])

    def test_from_records(self):
        runs = [("b", "x", 7, 0.5), ("a", "y", 3, 0.25), ("b", "y", 3, None), ("a", "x", 3, NAN)]
        table = ScoreTable.from_records(runs, metric="one_error")
        assert (table.datasets, table.methods) == (("b", "a"), ("x", "y"))
        assert not table.greater_is_better
        np.testing.assert_array_equal(
            table.values, [[[NAN, 0.5], [NAN, NAN]], [[NAN, NAN], [0.25, NAN]]]
        )
        wider = ScoreTable.from_records(
            runs, metric="f1", greater_is_better=True, datasets=["c", "a", "b"], methods=["y", "x"]
        )
        assert wider.datasets == ("c", "a", "b")
        assert wider.counts.tolist() == [[0, 0], [1, 0], [0, 1]]
        assert wider.greater_is_better

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"metric": "f1"}, "greater_is_better must be given"),
            ({"records": [("a", "x", 0, 1.0), ("a", "x", 0, 1.0)]}, "two runs of 'x' on 'a'"),
            ({"datasets": ["b"]}, "runs of 'a', which is not among datasets"),
            ({"methods": ["x", "x"]}, "must be unique, got duplicates: x"),
            ({"records": [("a", "x", 0, math.inf)]}, "infinite"),
        ],
    )
    def test_bad_records(self, change, message):
        arguments = {"records": [("a", "x", 0, 1.0)], "metric": "one_error", **change}
        with pytest.raises(ValueError, match=message):
            ScoreTable.from_records(arguments.pop("records"), **arguments)

    def test_bad_tables(self):
        with pytest.raises(ValueError, match=r"1 data sets and 2 methods, got \(2, 2, 1\)"):
            ScoreTable("m", True, ("a",), ("x", "y"), np.zeros((2, 2, 1)))
        with pytest.raises(TypeError, match="greater_is_better"):
            ScoreTable("m", "yes", ("a",), ("x",), np.zeros((1, 1, 1)))
        with pytest.raises(TypeError, match="datasets must be a sequence of names"):
            ScoreTable("m", True, "a", ("x",), np.zeros((1, 1, 1)))

    def test_select_orders_and_cuts(self):
        table = random_table()
        part = table.select(datasets=["d3", "d1"], methods=["m2", "m0"])
        assert (part.datasets, part.methods) == (("d3", "d1"), ("m2", "m0"))
        np.testing.assert_array_equal(part.values, table.values[[3, 1]][:, [2, 0]])
        np.testing.assert_array_equal(table.select().values, table.values)
        with pytest.raises(ValueError, match="methods must be among m0"):
            table.select(methods=["m9"])

    def test_values_are_a_copy_that_stays_as_it_is(self):
        values = np.zeros((1, 1, 1))
        table = ScoreTable("m", True, ("a",), ("x",), values)
        values[0] = 1
        assert table.values[0, 0, 0] == 0
        with pytest.raises(ValueError, match="read-only"):
            table.values[0] = 1


class TestCompare:
    def test_it_gathers_what_the_functions_give(self):
        table = random_table()
        result = compare(table, control="m1", alpha=0.1)
        assert result.datasets == result.rows == table.datasets
        test = friedman(result.ranks, alpha=0.1)
        assert result.friedman == test
        np.testing.assert_array_equal(result.nemenyi.p, nemenyi(result.mean_ranks, 8, alpha=0.1).p)
        expected = wilcoxon_pairs(table.mean(), result.mean_ranks, alpha=0.1)
        np.testing.assert_array_equal(result.wilcoxon.holm_p, expected.holm_p)
        assert result.control_ranks.control == result.wilcoxon_control.control == 1
        for part in (result.nemenyi, result.control_ranks, result.wilcoxon, result.significant_wins,
                     result.wilcoxon_control):  # fmt: skip
            assert part.alpha == 0.1
        np.testing.assert_array_equal(result.podium.n_first, (result.ranks == 1).sum(axis=0))
        np.testing.assert_array_equal(result.means, table.mean())
        np.testing.assert_array_equal(result.stds, table.std())
        assert result.order == tuple(np.argsort(result.mean_ranks))
        assert not result.reasons
        assert not result.dropped

    def test_direction(self):
        up = compare(random_table())
        down = compare(make(-random_table().values, greater=False))
        np.testing.assert_array_equal(up.ranks, down.ranks)
        np.testing.assert_array_equal(up.significant_wins.wins, down.significant_wins.wins)
        assert up.order[0] == 3

    def test_means_that_differ_by_rounding_noise_tie(self):
        runs = [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.4, 0.1, 0.1]]
        table = make([runs, runs])
        assert len(set(table.mean()[0])) > 1
        assert compare(table).ranks.tolist() == [[2, 2, 2]] * 2

    def test_decimals(self):
        table = make([[0.1234, 0.1231, 0.2], [0.51, 0.52, 0.6], [0.3, 0.4, 0.4]])
        assert compare(table).ranks[0].tolist() == [2, 3, 1]
        rounded = compare(table, decimals=3)
        assert rounded.ranks[0].tolist() == [2.5, 2.5, 1]
        assert rounded.wins.ties[0, 1] == 1
        assert rounded.decimals == 3
        assert rounded.means[0, 0] == 0.1234
        assert compare(table, decimals=0).podium.n_first.tolist() == [3, 3, 3]

    def test_over_runs_ranks_every_run(self):
        table = random_table(n=3, repetitions=4)
        values = table.values.copy()
        values[2, :, 1] = NAN  # a repetition that no method has is no gap
        result = compare(make(values), over="runs")
        assert len(result.rows) == 11
        assert result.rows[-1] == "d2/3"
        assert result.friedman.n_rows == 11
        assert any("not independent" in note for note in result.notes)
        np.testing.assert_array_equal(result.ranks[4:8], stats.rankdata(-values[1].T, axis=1))
        with pytest.raises(ValueError, match="over must be"):
            compare(table, over="folds")

    def test_to_dict_is_json(self):
        table = random_table(n=3, k=3)
        plain = compare(table, control="m0").to_dict()
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain
        assert plain["friedman"]["f_df"] == [2, 4]
        assert plain["control"] == "m0"
        alike = compare(make([[1, 2, 3]] * 3)).to_dict()
        json.dumps(alike, allow_nan=False)
        assert alike["friedman"]["f"] is None
        assert alike["stds"][0][0] is None

    def test_bad_arguments(self):
        table = random_table()
        with pytest.raises(TypeError, match="must be a ScoreTable"):
            compare(table.mean())
        with pytest.raises(ValueError, match="control must be one of the methods m0, m1"):
            compare(table, control="m7")
        with pytest.raises(ValueError, match="missing must be one of"):
            compare(table, missing="ignore")
        with pytest.raises(ValueError, match="alpha must be"):
            compare(table, alpha=0)
        with pytest.raises(ValueError, match="at least one data set"):
            compare(ScoreTable("m", True, (), ("x",), np.zeros((0, 1, 1))))


class TestFew:
    def test_one_dataset(self):
        result = compare(make([[1, 2, 3]]), control="m0")
        assert result.mean_ranks.tolist() == [3, 2, 1]
        for name in ("friedman", "nemenyi", "control_ranks", "wilcoxon", "wilcoxon_control"):
            assert getattr(result, name) is None
            assert "two rows" in result.reasons[name]
        assert "two repetitions" in result.reasons["significant_wins"]
        assert result.wins.wins[2, 0] == 1
        json.dumps(result.to_dict(), allow_nan=False)

    def test_one_method(self):
        result = compare(make([[1], [2]]))
        assert "two methods" in result.reasons["friedman"]
        assert result.podium.first.tolist() == [1]

    def test_two_methods(self):
        result = compare(make([[1, 2]] * 8), control="m1")
        assert result.friedman.f == math.inf
        assert result.friedman.f_p == pytest.approx(2.0**-7)
        assert result.nemenyi.q == pytest.approx(stats.norm.isf(0.025), abs=1e-6)
        assert result.nemenyi.significant[0, 1]
        assert result.wilcoxon.p[0, 1] == 2.0**-7
        assert any("F_F is infinite" in note for note in result.notes)

    def test_all_ties(self):
        result = compare(make([[1, 1, 1]] * 6))
        assert result.friedman.f_p == 1
        assert result.friedman.chi_square_tied is None
        assert result.wilcoxon.p.min() == 1
        assert result.nemenyi.cliques == ((0, 1, 2),)
        assert "all methods are tied on every row" in result.notes
        assert result.wins.ties[0, 1] == 6
        assert compare(make(np.zeros((3, 2)))).wilcoxon.p.min() == 1

    def test_too_few_rows_for_wilcoxon_are_reported(self):
        assert any(
            "smallest possible p-value is 0.188" in n for n in compare(make([[1, 2, 3]] * 5)).notes
        )
        # With nine rows a pair out of three can differ: 3 / 256.
        assert not any("smallest" in note for note in compare(make([[1, 2, 3]] * 9)).notes)
        assert compare(make([[1, 2, 3]] * 9)).wilcoxon.significant.sum() == 6


class TestMissing:
    values = np.random.default_rng(5).normal(size=(4, 3, 3))

    def gappy(self, *gaps):
        values = self.values.copy()
        for gap in gaps:
            values[gap] = NAN
        return make(values)

    def test_all_gaps_are_listed(self):
        table = self.gappy((0, 1), (2, 2, 0))
        with pytest.raises(MissingRunsError) as caught:
            compare(table)
        assert caught.value.cells == [("d0", "m1", 0, 3), ("d2", "m2", 2, 3)]
        assert "m1 on d0: 0 of 3\n  m2 on d2: 2 of 3\n" in str(caught.value)
        assert "drop_datasets" in str(caught.value)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)

    def test_what_all_methods_lack_is_no_gap(self):
        table = self.gappy((0, slice(None), 1))
        result = compare(table)
        assert not result.dropped
        assert result.counts[0].tolist() == [2, 2, 2]

    def test_drop_datasets(self):
        result = compare(self.gappy((0, 1), (2, 2, 0)), missing="drop_datasets")
        assert result.datasets == ("d1", "d3")
        assert result.dropped.datasets == ("d0", "d2")
        assert result.dropped.methods == ()
        assert result.notes[0] == "left out because runs are missing: data sets d0, d2"

    def test_drop_methods(self):
        result = compare(self.gappy((0, 1), (2, 1, 0)), missing="drop_methods", control="m0")
        assert result.methods == ("m0", "m2")
        assert result.dropped.methods == ("m1",)
        with pytest.raises(ValueError, match="control 'm1' lacks runs"):
            compare(self.gappy((0, 1)), missing="drop_methods", control="m1")

    def test_drop_repetitions(self):
        table = self.gappy((0, 1, 0), (0, 2, 0), (2, 2, 1))
        result = compare(table, missing="drop_repetitions")
        assert result.dropped.runs == {"d0": 1, "d2": 2}
        assert result.counts.tolist() == [[2] * 3, [3] * 3, [2] * 3, [3] * 3]
        np.testing.assert_allclose(result.means[0], self.values[0][:, 1:].mean(axis=1))
        assert "1 runs on d0; 2 runs on d2" in result.notes[0]
        with pytest.raises(ValueError, match="no repetition is common to all methods on d0"):
            compare(self.gappy((0, 1)), missing="drop_repetitions")

    def test_what_never_ran_goes_first(self):
        # A method without any run does not cost all data sets, and the other way round.
        never = self.gappy((slice(None), 2), (1, 0, 0))
        result = compare(never, missing="drop_datasets")
        assert (result.dropped.methods, result.dropped.datasets) == (("m2",), ("d1",))
        result = compare(self.gappy((3,), (0, 1)), missing="drop_methods")
        assert (result.dropped.methods, result.dropped.datasets) == (("m1",), ("d3",))

    def test_nothing_left(self):
        with pytest.raises(ValueError, match="leaves nothing to compare"):
            compare(self.gappy(*((i, i % 3) for i in range(4))), missing="drop_datasets")

    @given(st.data(), st.sampled_from(["drop_datasets", "drop_methods", "drop_repetitions"]))
    @settings(max_examples=60, deadline=None)
    def test_nothing_goes_silently(self, data, missing):
        mask = data.draw(st.lists(st.booleans(), min_size=36, max_size=36))
        table = make(np.where(np.reshape(mask, (4, 3, 3)), NAN, self.values))
        runs = ~np.isnan(table.values)
        if missing == "drop_repetitions" and not runs.all(axis=1).any(axis=1).all():
            with pytest.raises(ValueError, match="no repetition is common to all methods"):
                compare(table, missing=missing)
            return
        try:
            result = compare(table, missing=missing)
        except ValueError:  # nothing left: every data set, or every method, has a gap
            gaps = table.missing()
            axis = 0 if missing == "drop_datasets" else 1
            other = table.counts.sum(axis=axis) > 0
            names = (table.methods, table.datasets)[axis]
            ran = {name for name, any_ in zip(names, other, strict=True) if any_}
            left = {gap[axis] for gap in gaps if gap[1 - axis] in ran}
            assert left == {*(table.datasets, table.methods)[axis]} or not ran
            return
        assert {*result.datasets, *result.dropped.datasets} == set(table.datasets)
        assert {*result.methods, *result.dropped.methods} == set(table.methods)
        kept = table.select(result.datasets, result.methods)
        lost = [result.dropped.runs.get(name, 0) for name in result.datasets]
        assert (kept.counts.sum(axis=1) - result.counts.sum(axis=1)).tolist() == lost
        assert (result.counts == result.counts[:, :1]).all()
        assert result.counts.min() > 0


class TestSignificantWins:
    def test_it_is_the_paired_t_test(self):
        table = random_table(n=10, k=3, repetitions=6)
        counts = significant_win_tie_loss(table)
        wins = np.zeros((3, 3), dtype=int)
        for runs in table.values:
            for i in range(3):
                for j in range(3):
                    if i != j:
                        test = stats.ttest_rel(runs[i], runs[j])
                        wins[i, j] += test.pvalue < 0.05 and test.statistic > 0
        np.testing.assert_array_equal(counts.wins, wins)
        np.testing.assert_array_equal(counts.losses, wins.T)
        assert 0 < wins.sum() < 30
        assert (counts.wins + counts.ties + counts.losses == 10).all()
        assert significant_win_tie_loss(table, alpha=1e-12).wins.sum() == 0
        np.testing.assert_array_equal(compare(table).significant_wins.wins, wins)

    def test_the_correction_is_nadeau_and_bengio_s(self):
        differences = np.array([0.1, 0.3, 0.2, 0.25, 0.05])
        t = differences.mean() / np.sqrt((1 / 5 + 0.25) * differences.var(ddof=1))
        p = 2 * stats.t.sf(t, 4)
        table = make([[differences, np.zeros(5)]])
        for alpha, wins in ((p * 1.01, 1), (p * 0.99, 0)):
            counts = significant_win_tie_loss(table, alpha=alpha, test_size=0.2)
            assert counts.wins[0, 1] == wins
        assert counts.test == "corrected paired t"
        assert significant_win_tie_loss(table, alpha=p * 0.99).wins[0, 1] == 1
        result = compare(table, alpha=p * 0.99, test_size=0.2)
        assert result.significant_wins.wins[0, 1] == 0
        with pytest.raises(ValueError, match="test_size must be"):
            compare(make([[1, 2]]), test_size=2)

    def test_constant_differences(self):
        table = make([[[0.3, 0.3], [0.1, 0.1], [0.1, 0.1 + 1e-17]]])
        counts = significant_win_tie_loss(table)
        assert counts.wins[0].tolist() == [0, 1, 1]
        assert counts.ties[1, 2] == 1
        assert (
            significant_win_tie_loss(make([[[0.3, 0.3], [0.2 + 0.1, 0.1 + 0.2]]])).ties[0, 1] == 1
        )

    def test_one_common_repetition_is_not_enough(self):
        table = make([[[1, 2, NAN], [NAN, 2, 3]]])
        with pytest.raises(ValueError, match="'m1' and 'm0' on 'd0', got 1"):
            significant_win_tie_loss(table)
