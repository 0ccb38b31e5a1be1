"""Tables of runs, and what is compared if some are missing."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imcc.comparison import MissingRunsError, ScoreTable, compare
from tests.comparison.tables import make, random_table

NAN = np.nan


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
        assert ScoreTable.from_records(runs, metric="f1", greater_is_better=True).greater_is_better

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"metric": "f1"}, "greater_is_better"),
            ({"records": [("a", "x", 0, 1.0), ("a", "x", 0, 1.0)]}, "'a', 'x', 0"),
            ({"records": [("a", "x", 0, math.inf)]}, "infinite"),
        ],
    )
    def test_bad_records(self, change, message):
        arguments = {"records": [("a", "x", 0, 1.0)], "metric": "one_error", **change}
        with pytest.raises(ValueError, match=message):
            ScoreTable.from_records(arguments.pop("records"), **arguments)

    def test_bad_tables(self):
        with pytest.raises(ValueError, match=r"values.*\(2, 2, 1\)"):
            ScoreTable("m", True, ("a",), ("x", "y"), np.zeros((2, 2, 1)))
        with pytest.raises(TypeError, match="greater_is_better"):
            ScoreTable("m", "yes", ("a",), ("x",), np.zeros((1, 1, 1)))
        with pytest.raises(TypeError, match="datasets"):
            ScoreTable("m", True, "a", ("x",), np.zeros((1, 1, 1)))
        with pytest.raises(ValueError, match=r"methods.*unique.*x"):
            ScoreTable("m", True, ("a",), ("x", "x"), np.zeros((1, 2, 1)))

    def test_select_orders_and_cuts(self):
        table = random_table()
        part = table.select(datasets=["d3", "d1"], methods=["m2", "m0"])
        assert (part.datasets, part.methods) == (("d3", "d1"), ("m2", "m0"))
        np.testing.assert_array_equal(part.values, table.values[[3, 1]][:, [2, 0]])
        np.testing.assert_array_equal(table.select().values, table.values)
        with pytest.raises(ValueError, match=r"methods.*m9"):
            table.select(methods=["m9"])

    def test_values_are_a_copy_that_stays_as_it_is(self):
        values = np.zeros((1, 1, 1))
        table = ScoreTable("m", True, ("a",), ("x",), values)
        values[0] = 1
        assert table.values[0, 0, 0] == 0
        with pytest.raises(ValueError, match="read-only"):
            table.values[0] = 1

    def test_common_runs_and_differences(self):
        table = make([[[1, 2, 9], [3, 4, NAN], [NAN, 6, 7]], [[1, 1, 1], [2, 2, 2], [NAN] * 3]])
        both = table.common_runs(["m0", "m1"])
        assert both.mean().tolist() == [[1.5, 3.5], [1, 2]]
        all_three = table.common_runs()
        assert all_three.datasets == ("d0",)
        assert all_three.mean().tolist() == [[2, 4, 6]]
        assert table.differences("m0", "m1").tolist() == [-2, -1]
        losses = make(table.values, greater=False)
        assert losses.differences("m0", "m1").tolist() == [2, 1]
        assert losses.differences("m2", "m0").tolist() == [(2 + 9 - 6 - 7) / 2]


class TestMissing:
    values = np.random.default_rng(5).normal(size=(4, 3, 3))

    def gappy(self, *gaps, values=None):
        values = (self.values if values is None else values).copy()
        for gap in gaps:
            values[gap] = NAN
        return make(values)

    def test_all_gaps_are_listed(self):
        table = self.gappy((0, 1), (2, 2, 0))
        with pytest.raises(MissingRunsError) as caught:
            compare(table)
        assert "m1 on d0: 0 of 3\n  m2 on d2: 2 of 3\n" in str(caught.value)
        assert "missing='drop'" in str(caught.value)

    def test_what_all_methods_lack_is_no_gap(self):
        result = compare(self.gappy((0, slice(None), 1)))
        assert not result.left_out
        assert result.counts[0].tolist() == [2, 2, 2]

    def test_repetitions_that_not_all_have_are_left_out(self):
        result = compare(self.gappy((0, 1, 0), (0, 2, 0), (2, 2, 1)), missing="drop")
        assert [name for name, _ in result.left_out] == ["3 runs"]
        assert result.counts.tolist() == [[2] * 3, [3] * 3, [2] * 3, [3] * 3]
        np.testing.assert_allclose(result.means[0], self.values[0][:, 1:].mean(axis=1))

    def test_a_method_that_lacks_data_sets_takes_none_away(self):
        table = self.gappy((0, 1))
        result = compare(table, missing="drop", control="m0")
        assert (result.methods, len(result.datasets)) == (("m0", "m2"), 4)
        assert result.left_out == (("m1", "runs on 3 of 4 data sets"),)

    def test_with_a_control_its_runs_are_compared(self):
        table = self.gappy((0, 1), (1, 1, 2), (3, 2, 0))
        result = compare(table, missing="drop", control="m1")
        assert (result.methods, result.datasets) == (("m0", "m1", "m2"), ("d1", "d2", "d3"))
        assert result.counts.tolist() == [[2] * 3, [3] * 3, [2] * 3]
        assert result.left_out[0] == ("d0", "no runs of m1")
        # A method on other splits than those of the control is not compared with it.
        other = self.gappy((0, 1, slice(1, None)), (0, 2, 0))
        result = compare(other, missing="drop", control="m1")
        assert result.methods == ("m0", "m1")
        assert result.left_out[0] == ("m2", "runs on 3 of 4 data sets")
        with pytest.raises(ValueError, match="control 'm1' is left out: no runs"):
            compare(self.gappy((slice(None), 1)), missing="drop", control="m1")

    def test_a_method_that_never_ran(self):
        result = compare(self.gappy((slice(None), 2)), missing="drop")
        assert result.left_out == (("m2", "no runs"),)

    def test_a_data_set_that_has_just_begun_is_left_out(self):
        result = compare(self.gappy((3, slice(1, None))), missing="drop")
        assert (result.methods, result.datasets) == (("m0", "m1", "m2"), ("d0", "d1", "d2"))
        assert [name for name, _ in result.left_out] == ["d3"]

    def test_methods_without_a_complete_one_share_what_they_have(self):
        values = np.random.default_rng(0).normal(size=(6, 3, 1))
        result = compare(self.gappy((0, 0), (1, 1), (2, 2), values=values), missing="drop")
        assert (result.methods, result.datasets) == (("m0", "m1", "m2"), ("d3", "d4", "d5"))

    def test_a_method_with_few_data_sets_does_not_count(self):
        values = np.random.default_rng(0).normal(size=(8, 3, 1))
        result = compare(self.gappy((slice(2, None), 2), values=values), missing="drop")
        assert result.methods == ("m0", "m1")
        assert result.left_out == (("m2", "runs on 2 of 8 data sets"),)

    def test_nothing_in_common(self):
        for table in (
            self.gappy((slice(None),)),
            self.gappy((0, 0), (1, 0), (2, 1), (3, 1), (slice(None), 2)),
            self.gappy(*((i, j) for i in range(3) for j in range(3) if i != j), (3,)),
        ):
            with pytest.raises(ValueError, match="in common"):
                compare(table, missing="drop")

    @given(st.data())
    @settings(max_examples=200, deadline=None)
    def test_nothing_goes_silently(self, data):
        mask = data.draw(st.lists(st.booleans(), min_size=36, max_size=36))
        table = make(np.where(np.reshape(mask, (4, 3, 3)), NAN, self.values))
        try:
            result = compare(table, missing="drop")
        except ValueError:
            # No run that all methods share, on any data set.
            assert not (~np.isnan(table.values)).all(axis=1).any()
            return
        left_out = [name for name, _ in result.left_out]
        assert {*result.datasets, *left_out} >= set(table.datasets)
        assert {*result.methods, *left_out} >= set(table.methods)
        kept = table.select(result.datasets, result.methods)
        lost = int(kept.counts.sum() - result.counts.sum())
        assert not lost or left_out[-1].startswith(f"{lost} run")
        assert (result.counts == result.counts[:, :1]).all()
        assert result.counts.min() > 0
