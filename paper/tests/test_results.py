"""The committed rows belong to the experiments, and the pages are what the rows give."""

import csv
import html
import re
from dataclasses import replace

import numpy as np
import pytest

from imcc.comparison import ScoreTable, compare, effect_size
from imcc.experiment import EACH, Store, compare_with_published
from imcc.metrics import METRICS
from imcc_paper import calibration, failing_cells, not_first, reports, reproduce
from imcc_paper.places import DOCS, PUBLISHED, RESULTS
from imcc_paper.reproduction import (
    behind,
    calibrated,
    cost,
    failing,
    labels,
    paper,
    per_set,
    ranked,
    recipes,
    rows,
    tests,
)
from imcc_paper.reproduction.ranked import differences, ranked_together
from imcc_paper.reproduction.times import gather_times

pytestmark = pytest.mark.slow  # the page is built from all rows


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
    """The page, its figures, and the marked blocks of README.md and results/README.md."""
    assert reproduce.stale(built) == [], "run make -C paper"


def test_every_block_is_used_and_every_figure_is_shown(built):
    marked = "".join(path.read_text("utf-8") for path in reproduce.MARKED)
    assert set(re.findall(r"<!-- make reproduce: ([\w-]+) -->", marked)) == set(built.blocks)
    shown = re.findall(r"\(images/reproduction/([\w.]+)\)", built.page)
    assert sorted(shown) == sorted(built.figures)


def test_the_report_says_the_same(built, tmp_path):
    """The first screen of the report and the page follow one rule."""
    report = reports.write(tmp_path, "paper").read_text("utf-8")
    answers = re.findall(r'<p class="answer[^"]*">[^<]*</p><p>([^<]*)</p>', report)
    winner, lead, significant, _ = map(html.unescape, answers)
    page = " ".join(built.page.split())
    who = re.search(
        r"Who wins\?\*\* `(\w+)` has the best average rank .*?, ([\d.]+) (of .*?)\.", page
    )
    assert who[1] == rows.CONTROL
    assert winner.startswith(f"{who[1]} has the best mean rank")
    assert f", {float(who[2]):g} {who[3]}" in winner
    alike = re.search(r"By Nemenyi's test (.*?) (?:is|are) not significantly", page)[1]
    assert f"not significantly different from {alike} at the level" in significant
    numbers = re.findall(r"(\+[\d.]+ ± [\d.]+) against (\w+)", lead)
    assert len(numbers) == 2  # the next and the control
    lines = built.page.splitlines()
    for number, method in numbers:
        in_table = any(x.startswith(f"| {method} |") and f"| {number} (" in x for x in lines)
        assert f"{number} against {method}" in page or in_table


def test_a_number_that_was_changed_by_hand_is_found(built, tmp_path, monkeypatch):
    text = reproduce.PAGE.read_text("utf-8")
    at = text.index("0.", text.index("### Average precision")) + 3
    changed = text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
    (tmp_path / "page.md").write_text(changed, "utf-8")
    monkeypatch.setattr(reproduce, "PAGE", tmp_path / "page.md")
    readme = tmp_path / "README.md"
    readme.write_text("<!-- make reproduce: verdict -->\n74 of 75\n<!-- end -->\n", "utf-8")
    monkeypatch.setattr(reproduce, "MARKED", (readme,))
    assert reproduce.stale(built)[:2] == [tmp_path / "page.md", readme]


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


def test_the_first_recipe_is_shown_on_the_splits_that_both_have(tmp_path):
    values = np.full((3, 1, 2), 0.5)
    values[2, 0, 1] = np.nan
    tables = {metric: scores(values, ["kernel_ensemble"]) for metric in METRICS}
    lines = [",".join(["dataset", "repetition", *METRICS])]
    for name, *found in (("d0", 0.4, 0.5), ("d1", 0.6, 0.5), ("d2", 0.3, 0.9), ("other", 0.1)):
        for split, value in enumerate(found):
            lines.append(",".join([name, str(split), *[str(value)] * len(METRICS)]))
    file = tmp_path / "rows.csv"
    file.write_text("\n".join(lines))
    text = "\n".join(recipes.beside(tables, file))
    assert "| d0 | 2 | 0.4500 | 0.5000 | +0.0500 |" in text
    assert "| d1 | 2 | 0.5500 | 0.5000 | -0.0500 |" in text
    assert "| d2 | 1 | 0.3000 | 0.5000 | +0.2000 |" in text
    assert "other" not in text
    assert text.count("+0.0667 ± 0.3126") == len(METRICS)


def test_all_rows_of_the_first_recipe_are_there(store):
    table = store.scores("coverage")
    assert np.isfinite(recipes.first_recipe(table, "coverage")).all()


class TestSharedRuns:
    def test_means_are_over_the_same_splits(self):
        nan = np.nan
        table = scores([[[1, 2, 9], [3, 4, nan], [nan, 6, 7]], [[1, 1, 1], [2, 2, 2], [nan] * 3]])
        both = table.common_runs(("kernel_ensemble", "a"))
        assert both.mean().tolist() == [[1.5, 3.5], [1, 2]]
        assert rows.splits_text(both) == "2 splits each (d1 3)"

    def test_a_method_that_lacks_data_sets_takes_none_away(self):
        values = np.random.default_rng(0).random((8, 3, 2))
        values[0, 2] = np.nan
        assert ranked_together(scores(values)) == ["kernel_ensemble", "a"]
        compared = tests.compare_complete({"average_precision": scores(values)})
        assert len(compared["average_precision"].datasets) == 8
        text = "\n".join(tests.ranks({"average_precision": scores(values)}, compared))
        assert "| b | 7 | 3 |" in text

    def test_more_methods_on_fewer_data_sets(self):
        values = np.random.default_rng(0).random((8, 5, 2))
        values[6:, 2:] = np.nan  # three methods lack two data sets
        values[1:, 4] = np.nan  # and one nearly all
        table = scores(values, ("kernel_ensemble", "a", "b", "c", "d"))
        datasets, methods = tests.largest_group(table)
        assert methods == ("kernel_ensemble", "a", "b", "c")
        assert datasets == table.datasets[:6]

    def test_calibrated_scores_do_not_change_the_ranks_of_others(self):
        values = np.random.default_rng(0).random((8, 3, 2))
        table = scores(values, ("kernel_ensemble", "mahr", "mahr_calibrated"))
        assert ranked_together(table) == ["kernel_ensemble", "mahr"]
        alone = table.select(methods=["kernel_ensemble", "mahr_calibrated"])
        assert ranked_together(alone) == ["kernel_ensemble", "mahr_calibrated"]
        assert rows.means_table(table, None).count("| d0 |") == 2  # in a table of their own

    def test_differences_are_of_the_splits_that_both_have(self):
        values = np.random.default_rng(1).random((8, 3, 3))
        values[2:, 1, 1:] = np.nan
        gap = differences(scores(values), "kernel_ensemble", "a")
        assert gap[0] == pytest.approx(values[0, 0].mean() - values[0, 1].mean())
        assert gap[2] == pytest.approx(values[2, 0, 0] - values[2, 1, 0])
        line = tests.against_all({"average_precision": scores(values)})["a"][0]
        assert line.startswith(f"{effect_size(gap).mean:+.4f} ± ")
        assert line.endswith(f"({(gap > 0).sum()} of 8)")

    def test_cells_say_over_how_many_splits(self):
        nan = np.nan
        table = scores([[[0.5, 0.5], [0.4, 0.4], [0.9, nan]], [[0.5, 0.7], [0.8, nan], [nan, nan]]])
        compared = tests.compare_complete({"average_precision": table})["average_precision"]
        text = rows.means_table(table, compared)
        # Of the two that are ranked together, on the splits that they share.
        assert "| d0 | 2 | **0.500** | 0.400 | 0.900 (1) |" in text
        assert "| d1 | 2 | 0.600 | **0.800** (1) | not run |" in text
        assert "**" not in rows.means_table(table, None)


def test_times_are_compared_at_equal_threads(store):
    runs = store.runs()[:40]
    other = [
        replace(r, environment={**r.environment, "threads": 8}, fit_seconds=1e6) for r in runs[:5]
    ]
    usual, times, n_others = gather_times([*runs, *other])
    assert (usual, n_others) == (1, 5)
    assert all(seconds < 1e6 for t in times for seconds in t.seconds.values())


def test_the_exponents_are_found():
    rng = np.random.default_rng(0)
    design = np.column_stack([np.ones(30), rng.normal(size=(30, 2))])
    fit, errors, share = cost._least_squares(design, design @ [1.0, 2.0, 0.5] + rng.normal(size=30))
    assert np.all(np.abs(fit - [1.0, 2.0, 0.5]) < 3 * errors)
    assert 0 < share < 1


def test_the_detail_is_that_of_a_comparison():
    """One pair by itself, and the same pair inside of ``compare``."""
    values = np.random.default_rng(3).random((9, 2, 1))
    table = scores(values, ("kernel_ensemble", "a"))
    (row,) = tests._detail("average_precision", table, "kernel_ensemble")
    found = compare(table, control="kernel_ensemble")
    against = found.against_control
    assert row[4] == f"{against.wilcoxon_p[1]:.2g}"
    assert row[5:] == [f"{p[1]:.2f}" for p in (against.better, against.equivalent, against.worse)]


class TestLabelFrequency:
    def test_differences_are_over_data_sets(self):
        values = np.random.default_rng(0).random((8, 3, 1))
        values[:2] = np.nan  # no labels of this frequency
        table = replace(scores(values), metric="label_ap_to_1")
        (result,) = labels.compared({"label_ap_to_1": table}).values()
        assert result.datasets == table.datasets[2:]
        gap = values[2:, 0, 0] - values[2:, 1, 0]
        size = effect_size(gap)
        half = size.mean_interval[1] - size.mean
        expected = f"{gap.mean():+.3f} ± {half:.3f}"
        assert labels._difference(table, "a").replace("**", "") == (
            f"{expected} ({(gap > 0).sum()} of 6)"
        )
        assert labels._difference(scores(values[:2]), "a") == "too few data sets"
        assert "of 3 methods on 6 data sets" in labels._winner("label_ap_to_1", result)


class TestCalibrated:
    def table(self):
        """The plain method is behind by .1 everywhere, of which calibration takes .04 or .06."""
        base = np.linspace(0.5, 0.7, 6)
        means = np.stack([base, base - 0.1, base - np.tile([0.04, 0.06], 3)], axis=1)
        methods = ("kernel_ensemble", "kernel_ridge", "kernel_ridge_calibrated")
        return scores(means[:, :, np.newaxis], methods)

    def test_what_calibration_explains(self):
        line = calibrated._lead(self.table(), "kernel_ridge", "kernel_ridge_calibrated")
        assert line[1:3] == ["6", "+0.1000"]
        assert line[3].startswith("+0.0500 ± ")
        assert line[4:] == ["6 of 6", "50 %"]
        short = calibrated._answer(self.table(), {"kernel_ridge_calibrated": "kernel_ridge"})
        assert "does not explain all of the lead over kernel_ridge_calibrated" in short

    def test_too_few_data_sets_say_nothing(self):
        few = self.table().select(datasets=["d0", "d1"])
        assert calibrated._lead(few, "kernel_ridge", "kernel_ridge_calibrated") is None
        gap = differences(few, "kernel_ridge_calibrated", "kernel_ridge")
        assert calibrated._cell(few, gap) == "too few data sets"

    def test_a_lead_that_calibration_takes_away(self):
        table = self.table()
        values = table.values.copy()
        values[:, 2] = values[:, 0] + np.tile([0.01, -0.01], 3)[:, np.newaxis]
        table = replace(table, values=values)
        short = calibrated._answer(table, {"kernel_ridge_calibrated": "kernel_ridge"})
        assert "it may explain all of the lead over kernel_ridge_calibrated" in short


class TestNotFirst:
    """The cells in which the ensemble is not first."""

    def test_the_table_names_them_all(self, store):
        tables = {metric: rows.present(store.scores(metric)) for metric in METRICS}
        compared = tests.compare_complete(tables)
        n = sum(len(ranked.behind(found, rows.CONTROL)) for found in compared.values())
        text = "".join(behind.cells(tables, compared))
        assert f"The {n} cells in which another method" in text
        assert text.count("\n|") == n + 2

    def test_first_everywhere(self, store):
        tables = {"coverage": rows.present(store.scores("coverage"))}
        alone = tables["coverage"].select(["yeast", "image"], [rows.CONTROL, "mahr"])
        text = "".join(behind.cells({"coverage": alone}, {"coverage": compare(alone)}))
        assert "everywhere" in text

    def test_a_method_that_ties_all_labels_is_named(self, tmp_path):
        with rows.opened(tmp_path, "outside") as outside:
            tables = {metric: rows.present(outside.scores(metric)) for metric in METRICS}
        compared = tests.compare_complete(tables)
        assert "jfsc gives all labels of emotions the same score on 1 of" in behind._tied(
            tables, compared
        )
        assert behind._tied({}, compared) == ""

    def test_by_all_labels_the_models_are_those_of_the_experiment(self, store):
        """The ensemble was computed on another device there; logistic regression was not."""
        with behind.FILE.open(encoding="utf-8", newline="") as file:
            found = [row for row in csv.DictReader(file) if row["at_least"] == "0"]
        assert len(found) == 2 * len(not_first.METHODS) * 10
        for row in found:
            for metric in ("ranking_loss", "coverage"):
                table = store.scores(metric)
                at = table.datasets.index(row["dataset"]), table.methods.index(row["method"])
                expected = table.values[*at, int(row["repetition"])]
                near = 1e-3 if row["method"] == "logistic" else 1e-2
                assert float(row[metric]) == pytest.approx(expected, abs=near)


class TestFailingCells:
    """The six where they are worse than the paper's numbers, with other settings."""

    def test_variants_are_described_and_run_where_cells_fail(self, store):
        described = {method.name for method in failing_cells.experiment().methods}
        assert described == set(failing.VARIANTS)
        assert {v.split("_")[0] for v in described} == set(failing_cells.PARTS) == set(failing.OURS)
        for method, datasets in failing_cells.PARTS.items():
            assert method in paper.PAPER
            found = paper.cells(store, "average_precision", method, method)
            # Rows that come in may make a cell better; then it is only not shown.
            assert {c.dataset for c in found} >= set(datasets)

    def test_a_change_that_takes_away_half_of_the_difference(self, store):
        cell = next(
            c
            for c in paper.cells(store, "average_precision", "jfsc", "jfsc")
            if (c.dataset, c.metric) == ("yeast", "coverage")
        )
        assert cell.verdict == "worse"
        gap = failing._deficit(cell)
        assert gap > 0
        half = cell.mean - 0.6 * gap
        changed = replace(cell, mean=half, difference=half - cell.published_mean)
        assert failing._halved(changed, cell)
        assert not failing._halved(cell, cell)
        assert not failing._halved(None, cell)

    def test_variants_differ_from_ours_by_the_setting_alone(self, store):
        """The protocol is the paper's, so that splits and folds are the same."""
        own = failing_cells.experiment()
        assert own.protocol == store.experiment.protocol


def test_what_the_page_says_about_calibration():
    """A sentence of docs/probabilities.md beside its table."""
    found = calibration.stored_rows(reproduce.CALIBRATION)
    changes = {}
    for method in ("IMCC", "kernel ridge", "LLSF", "extra-trees"):
        at = calibration.MEASURES.index("ranking_loss")
        means = calibration._means(found, method).values()
        before, after = (np.mean([m[stage][at] for m in means]) for stage in ("before", "after"))
        changes[method] = 100 * (1 - after / before)
    text = " ".join((DOCS / "probabilities.md").read_text("utf-8").split())
    low, high = min(changes.values()), max(changes.values())
    assert re.search(rf"the ranking loss \w+ by {low:.0f} to {high:.0f} %", text)


def test_intervals_of_one_data_set_allow_for_shared_training_rows():
    gap = np.array([0.01, 0.03, 0.02, 0.06])
    mean, half = per_set.interval(gap)
    assert mean == pytest.approx(0.03)
    variance = sum((g - 0.03) ** 2 for g in gap) / 3 * (1 / 4 + 0.25)
    assert half == pytest.approx(3.182446 * variance**0.5, rel=1e-6)
    assert per_set._cell(np.array([np.nan, np.nan])) == "not run"
    assert per_set._cell(np.array([0.02, np.nan, 0.04])) == "+0.0300 (2)"


@pytest.mark.parametrize("name", ["paper", "outside"])
def test_the_rows_of_the_repository_are_those_of_the_experiment(name, tmp_path):
    """Rows keep their fingerprints when methods are added: nothing of them would be run again."""
    path = RESULTS / f"{name}.csv"
    lines = [line.split(",")[:3] for line in path.read_text("utf-8").splitlines()[1:]]
    keys = {(dataset, method, int(repetition)) for dataset, method, repetition in lines}
    with Store.create(tmp_path / "s.sqlite", rows.plan(name)) as store:
        assert store.merge(path) == len(keys)
        assert not keys & set(store.missing())


def test_the_numbers_of_the_front_page_are_those_of_their_sources():
    front = (DOCS / "index.md").read_text("utf-8")
    shown = re.findall(r"grid-item-card} ([+\d][^\n]*)", front)
    accuracy, speed, rows = shown
    lightgbm = re.search(r"^\| lightgbm \|.*\| ([+-][\d.]+) ± [\d.]+ \((\d+ of \d+)\) \|$",
                      (DOCS / "reproduction.md").read_text("utf-8"), re.M)  # fmt: skip
    assert lightgbm[1] == accuracy
    assert f"better on {lightgbm[2]}" in front
    measured = reproduce.measured_blocks()
    assert speed == measured["times-faster"]
    assert rows == "1,000,000 rows"
    assert f"in {measured['million-rows']} with" in front
