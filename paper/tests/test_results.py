"""The committed rows belong to the experiments, and the pages are what the rows give."""

import re
from dataclasses import replace

import numpy as np
import pytest

from imcc.comparison import ScoreTable, compare, effect_size
from imcc.experiment import EACH, Store, compare_with_published
from imcc.metrics import METRICS
from imcc_paper import reproduce
from imcc_paper.places import PUBLISHED, RESULTS
from imcc_paper.reproduction import figure, paper, per_set, ranked, rows, screen, tables
from imcc_paper.reproduction.ranked import differences
from imcc_paper.reproduction.times import ratio, training_times

pytestmark = pytest.mark.slow  # the pages are built from all rows


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with rows.opened(tmp_path_factory.mktemp("results"), "paper") as opened:
        yield opened


@pytest.fixture(scope="module")
def built():
    return reproduce.build()


def test_the_rows_of_the_paper_are_complete(store):
    """Ten splits of the paper's methods; others have fewer of the three with most labels."""
    table = store.scores("average_precision")
    has = np.isfinite(table.values)
    for method in (*paper.PAPER, "kernel_ensemble", "kernel_ridge", "extra_trees"):
        assert has[:, table.methods.index(method)].all(), method
    for method in ("imcc_calibrated", "kernel_ridge_calibrated"):
        assert has[:, table.methods.index(method)].all(), method
    large = [d in ("cal500", "bibtex", "corel5k") for d in table.datasets]
    for method in ("lightgbm", "xgboost", "logistic"):
        assert has[np.invert(large), table.methods.index(method)].all(), method
        assert has[:, table.methods.index(method), :2].all(), method


def test_every_method_has_rows_on_every_outside_data_set(tmp_path):
    with rows.opened(tmp_path, "outside") as outside:
        assert (outside.scores("coverage").counts > 0).all()


def test_everything_written_is_what_the_rows_give(built):
    """The appendix, the figure, and the marked blocks of README.md and pages."""
    assert reproduce.stale(built) == [], "run make -C paper"


def test_every_block_is_used(built):
    marked = "".join(path.read_text("utf-8") for path in reproduce.MARKED)
    assert set(re.findall(r"<!-- make reproduce: ([\w-]+) -->", marked)) == set(built.blocks)


def test_a_number_that_was_changed_by_hand_is_found(built, tmp_path, monkeypatch):
    text = reproduce.APPENDIX.read_text("utf-8")
    at = text.index("| 0.") + 5
    changed = text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
    (tmp_path / "tables.md").write_text(changed, "utf-8")
    monkeypatch.setattr(reproduce, "APPENDIX", tmp_path / "tables.md")
    readme = tmp_path / "README.md"
    readme.write_text("<!-- make reproduce: verdict -->\n74 of 75\n<!-- end -->\n", "utf-8")
    monkeypatch.setattr(reproduce, "MARKED", (readme,))
    assert reproduce.stale(built)[:2] == [tmp_path / "tables.md", readme]


def test_an_unknown_block_is_an_error():
    with pytest.raises(SystemExit, match="'nothing' that is not known"):
        reproduce.filled("<!-- make reproduce: nothing -->\n\n<!-- end -->", {}, "a file")


@pytest.mark.parametrize("selection", ["average_precision", EACH])
def test_the_verdicts_are_those_of_the_command(store, selection):
    """The page counts by itself what ``imcc compare --published`` counts."""
    tables = {metric: store.scores(metric, selection) for metric in METRICS}
    found = compare_with_published(tables, PUBLISHED)
    for method in ("imcc", "mahr"):
        counts = paper.counts(paper.cells(store, selection, method, method), "welch")
        assert counts == found.counts(method=method)


def test_cells_on_the_splits_of_another_method(store):
    """Fewer splits leave a wider margin, so both sides must have the same."""
    scores = store.scores("coverage")
    n = scores.common_runs(("imcc", "brsvm"))
    for method in ("imcc", "brsvm"):
        other = {"imcc": "brsvm", "brsvm": "imcc"}[method]
        found = [
            c
            for c in paper.cells(store, "average_precision", method, "imcc", other)
            if c.metric == "coverage"
        ]
        assert [c.n for c in found] == n.counts[:, 0].tolist()
        own = n.methods.index(method)
        assert [c.mean for c in found] == pytest.approx(n.mean()[:, own].tolist())


def test_the_rule_of_two_deviations(store):
    cell = paper.cells(store, "average_precision", "imcc", "imcc")[0]
    assert cell.metric == "one_error"  # less is better
    deviation = cell.published_std
    for difference, verdict in (
        (2.0 * deviation, "reproduced"),
        (2.2 * deviation, "worse"),
        (-2.2 * deviation, "better"),
        (None, "missing"),
    ):
        assert paper.by_deviations(replace(cell, difference=difference)) == verdict


def scores(values, methods=("kernel_ensemble", "a", "b")):
    values = np.asarray(values, dtype=float)
    names = tuple(f"d{i}" for i in range(len(values)))
    return ScoreTable("average_precision", True, names, tuple(methods), values)


def test_the_first_recipe_is_shown_on_the_splits_that_both_have(tmp_path, monkeypatch):
    values = np.full((3, 1, 2), 0.5)
    values[2, 0, 1] = np.nan
    table = scores(values, ["kernel_ensemble"])
    lines = ["dataset,repetition,coverage"]
    for name, *found in (("d0", 0.4, 0.5), ("d1", 0.6, 0.5), ("d2", 0.3, 0.9), ("other", 0.1)):
        lines += [f"{name},{split},{value}" for split, value in enumerate(found)]
    file = tmp_path / "rows.csv"
    file.write_text("\n".join(lines))
    monkeypatch.setattr(tables, "RECIPE_1", file)
    np.testing.assert_allclose(tables.recipe_gap(table, "coverage"), [0.05, -0.05, 0.2])


class TestSharedRuns:
    def test_means_are_over_the_same_splits(self):
        nan = np.nan
        table = scores([[[1, 2, 9], [3, 4, nan], [nan, 6, 7]], [[1, 1, 1], [2, 2, 2], [nan] * 3]])
        both = table.common_runs(("kernel_ensemble", "a"))
        assert both.mean().tolist() == [[1.5, 3.5], [1, 2]]
        assert rows.splits_text(both) == "2 splits each (d1 3)"

    def test_methods_need_every_data_set(self):
        values = np.random.default_rng(0).random((8, 3, 2))
        values[0, 1, 0] = np.nan
        values[0, 2] = np.nan
        assert ranked.complete_methods(scores(values)) == ["kernel_ensemble", "a"]
        assert ranked.complete_methods(scores(values), 2) == ["kernel_ensemble"]

    def test_calibrated_forms_are_left_out_beside_their_method(self):
        values = np.random.default_rng(0).random((8, 3, 2))
        table = scores(values, ("kernel_ensemble", "mahr", "mahr_calibrated"))
        assert ranked.plain_methods(table) == ["kernel_ensemble", "mahr"]
        alone = table.select(methods=["kernel_ensemble", "mahr_calibrated"])
        assert ranked.plain_methods(alone) == ["kernel_ensemble", "mahr_calibrated"]

    def test_differences_are_of_the_splits_that_both_have(self):
        values = np.random.default_rng(1).random((8, 3, 3))
        values[2:, 1, 1:] = np.nan
        gap = differences(scores(values), "kernel_ensemble", "a")
        assert gap[0] == pytest.approx(values[0, 0].mean() - values[0, 1].mean())
        assert gap[2] == pytest.approx(values[2, 0, 0] - values[2, 1, 0])
        line = tables.against_all({"average_precision": scores(values)})["a"][0]
        assert line.startswith(f"{effect_size(gap).mean:+.4f} ± ")
        assert line.endswith(f"({(gap > 0).sum()} of 8)")

    def test_cells_say_over_how_many_splits(self):
        nan = np.nan
        table = scores([[[0.5, 0.5], [0.4, 0.4], [0.9, nan]], [[0.5, 0.7], [0.8, nan], [nan, nan]]])
        text = rows.means_table(table)
        assert "| d0 | 2 | 0.500 | 0.400 | 0.900 (1) |" in text
        assert "| d1 | 2 | 0.600 | 0.800 (1) | not run |" in text

    def test_data_sets_from_yahoo_count_as_one(self):
        values = np.array([[0.5, 0.4], [0.5, 0.3], [0.5, 0.1], [0.5, 0.6]])[:, :, np.newaxis]
        names = ("arts", "image", "health", "yeast")
        table = replace(scores(values, ("kernel_ensemble", "a")), datasets=names)
        gap = ranked.family_differences(table, "kernel_ensemble", "a")
        np.testing.assert_allclose(gap, [0.2, -0.1, 0.25])


def test_times_are_compared_at_one_thread_on_the_same_machine(store):
    runs = store.runs()[:40]
    method, dataset = runs[0].key.method, runs[0].key.dataset
    other = [
        replace(r, environment={**r.environment, "threads": 8}, fit_seconds=1e6) for r in runs[:5]
    ]
    times = training_times([*runs, *other])
    assert all(seconds < 1e6 for of in times.values() for seconds in of.values())
    here = {(dataset, "x"): 2.0, ("elsewhere", "x"): 1.0}
    assert ratio(here, {(dataset, "x"): 1.0, ("elsewhere", "y"): 9.0}) == pytest.approx(2)
    assert ratio(here, {(dataset, "y"): 1.0}) is None
    assert (dataset, runs[0].environment["processor"]) in times[method]


def test_the_equivalence_is_that_of_a_comparison():
    """One pair by itself, and the same pair inside of ``compare``."""
    values = np.random.default_rng(3).random((9, 2, 1))
    table = scores(values, ("kernel_ensemble", "a"))
    against = compare(table, control="kernel_ensemble").against_control
    chances = [f"{p[1]:.2f}" for p in (against.better, against.equivalent, against.worse)]
    line = " | ".join(["a", f"{against.wilcoxon_p[1]:.2g}", *chances])
    assert f"| {line} |" in "\n".join(tables._equivalence(table))


def test_first_places_and_where_not():
    values = np.tile([[0.9, 0.8], [0.7, 0.8], [0.6, 0.6]], (1, 1))[:, :, np.newaxis]
    table = scores(values, ("kernel_ensemble", "a"))
    compared = ranked.compare_on_shared({"average_precision": table}, table.methods)
    assert screen.first_places(compared) == (2, 3)
    assert ranked.behind(compared["average_precision"], "kernel_ensemble") == [("d1", ["a"])]


def test_log_losses_are_of_the_splits_that_all_methods_have():
    found = screen.log_losses(
        [
            {"data": data, "split": split, "method": method, "stage": stage, "log_loss": value}
            for data, split, method, stage, value in (
                ("a", 0, "kernel ridge", "before", 1.0),
                ("a", 1, "kernel ridge", "before", 3.0),
                ("b", 0, "kernel ridge", "before", 4.0),
                ("a", 0, "kernel ridge", "after", 0.5),
                ("b", 0, "kernel ridge", "after", 0.7),
                ("c", 0, "kernel ridge", "after", 9.0),
                ("a", 0, "unknown", "before", 9.0),
                ("a", 0, "ensemble", "after", 0.1),
                ("b", 0, "ensemble", "after", 0.3),
            )
        ]
    )
    means = {"kernel_ridge": 2.5, "kernel_ridge_calibrated": 0.6, "kernel_ensemble": 0.2}
    assert found == (2, 2, pytest.approx(means))


def test_the_figure_says_what_it_shows(built):
    of_paper, outside = built.figure.description.split("Nothing was chosen")
    for rival in figure.RIVALS:
        name = rows.named(rival)
        for text, table in ((of_paper, built.appendix), (outside, built.blocks["rivals"])):
            for mean in re.findall(rf"([+-][\d.]+ ± [\d.]+) against {name}", text):
                lines = [x for x in table.splitlines() if x.startswith(f"| {name} |")]
                assert any(f"| {mean} (" in line for line in lines)
    assert "against calibrated kernel ridge" in of_paper
    assert "against LightGBM" in outside


def test_intervals_of_one_data_set_allow_for_shared_training_rows():
    gap = np.array([0.01, 0.03, 0.02, 0.06])
    mean, half = per_set.interval(gap)
    assert mean == pytest.approx(0.03)
    variance = sum((g - 0.03) ** 2 for g in gap) / 3 * (1 / 4 + 0.25)
    assert half == pytest.approx(3.182446 * variance**0.5, rel=1e-6)
    values = np.zeros((3, 2, 4))
    values[0, 0], values[1, 0], values[2, 0] = gap, np.nan, [0.02, np.nan, 0.04, np.nan]
    (first, second) = per_set.by_data_set(
        scores(values, ("kernel_ensemble", "a")), "kernel_ensemble", "a"
    )
    assert first == ("d0", mean, half, 4)
    assert second[:2] == ("d2", pytest.approx(0.03))
    assert np.isnan(second.half)


@pytest.mark.parametrize("name", ["paper", "outside"])
def test_the_rows_of_the_repository_are_those_of_the_experiment(name, tmp_path):
    """Rows keep their fingerprints when methods are added: nothing of them would be run again."""
    path = RESULTS / f"{name}.csv"
    lines = [line.split(",")[:3] for line in path.read_text("utf-8").splitlines()[1:]]
    keys = {(dataset, method, int(repetition)) for dataset, method, repetition in lines}
    with Store.create(tmp_path / "s.sqlite", rows.plan(name)) as store:
        assert store.merge(path) == len(keys)
        assert not keys & set(store.missing())
