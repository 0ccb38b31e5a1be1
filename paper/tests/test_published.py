"""The paper's tables: complete, consistent with themselves but for the listed slips."""

import numpy as np
import pytest
from scipy.stats import rankdata

from imcc.comparison import ScoreTable, compare
from imcc.datasets import dataset_info, describe, list_datasets, load_dataset
from imcc.experiment import compare_with_published
from imcc.metrics import METRICS
from imcc_paper import published
from imcc_paper.places import PUBLISHED
from imcc_paper.published import (
    CITATION,
    DECIMALS,
    FRIEDMAN,
    PERCENTAGES,
    SLIPS,
    datasets,
    doubtful,
    friedman_range,
    table,
)
from imcc_paper.published._ties import rank_difference_range

METHODS = ("imcc", "brsvm", "ecc", "mahr", "llsf", "jfsc", "lift")


def ranks_as_printed(metric):
    """Return the ranks of the printed means; tied methods share the smallest, as printed."""
    printed = table(metric)
    towards_best = -printed.means if printed.greater_is_better else printed.means
    return rankdata(towards_best, method="min", axis=1).astype(int)


def slips(where, what):
    return [slip for slip in SLIPS if slip.where in where and slip.what == what]


@pytest.mark.parametrize("metric", METRICS)
def test_tables_are_complete(metric):
    printed = table(metric)
    assert printed.metric == metric
    assert printed.greater_is_better == METRICS[metric].greater_is_better
    assert printed.datasets == tuple(list_datasets("paper"))
    assert printed.methods == METHODS
    for array in (printed.means, printed.stds, printed.ranks):
        assert array.shape == (15, 7)
        assert np.isfinite(array).all()
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
    assert ((printed.means >= 0) & (printed.means <= 1)).all()
    np.testing.assert_allclose(printed.means.round(3), printed.means, atol=1e-12)
    assert printed.ranks.min() == 1
    scores = printed.to_scores()
    assert (scores.metric, scores.greater_is_better) == (metric, printed.greater_is_better)
    np.testing.assert_array_equal(scores.mean(), printed.means)


def test_some_cells_by_hand():
    assert table("one_error").cell("cal500", "mahr") == (0.186, 0.092, 7)
    assert table("hamming_loss").cell("bibtex", "llsf") == (0.012, 0.0, 1)
    assert table("ranking_loss").cell("society", "ecc") == (0.121, 0.012, 1)
    assert table("coverage").cell("medical", "lift") == (0.038, 0.011, 4)
    assert table("average_precision").cell("society", "lift") == (0.609, 0.085, 6)


def test_printed_ranks_follow_from_printed_means_but_for_the_slips():
    found = set()
    for metric in METRICS:
        printed = table(metric)
        ours = ranks_as_printed(metric)
        for i, j in np.argwhere(ours != printed.ranks):
            cell = (metric, printed.datasets[i], METHODS[j])
            found.add((*cell, int(printed.ranks[i, j]), int(ours[i, j])))
    listed = {
        (s.metric, s.dataset, s.method, s.printed, s.correct)
        for s in slips(("Table 3", "Table 4"), "rank")
    }
    assert found == listed
    assert len(found) == 7


@pytest.mark.parametrize(
    ("metric", "f"),
    [
        ("one_error", 8.07),
        ("hamming_loss", 11.68),
        ("ranking_loss", 12.84),
        ("coverage", 8.11),
        ("average_precision", 11.93),
    ],
)
def test_friedman(metric, f):
    result = compare(table(metric).to_scores(), control="imcc")
    assert round(result.friedman.f, 2) == f
    assert round(result.friedman.f_critical, 3) == FRIEDMAN.critical_value
    (slip,) = (s for s in slips("Table 5", "F_F") if s.metric == metric)
    assert slip.printed == FRIEDMAN.f[metric]
    assert f"give {f} if" in slip.why
    # What is proven, and what is only possible, over all orders of means that are equal in print.
    better = METRICS[metric].greater_is_better
    found = friedman_range(table(metric).means, greater_is_better=better)
    assert slip.interval == (round(found.low, 2), round(found.high, 2))
    assert slip.proven == (not found.contains(slip.printed, decimals=2))
    assert slip.proven == (metric in ("one_error", "hamming_loss"))
    assert slip.correct == (None if slip.proven else f)
    # Nothing changes the verdict, and IMCC has the best mean rank by every metric.
    assert min(slip.printed, found.bound) > FRIEDMAN.critical_value
    assert result.order[0] == 0


def test_critical_difference():
    ours = compare(table("coverage").to_scores()).nemenyi.critical_difference
    assert ours == pytest.approx(FRIEDMAN.critical_difference, abs=0.001)
    assert round(FRIEDMAN.q * np.sqrt(7 * 8 / (6 * 15)), 3) == round(ours, 3) == 2.326
    assert ours / np.sqrt(7 * 8 / (6 * 15)) == pytest.approx(FRIEDMAN.q, abs=0.001)
    (slip,) = slips("text", "critical difference")
    assert (slip.printed, slip.correct) == (FRIEDMAN.critical_difference, round(ours, 4))


def difference(metric, method):
    """Return by how much a method's mean rank can be above IMCC's."""
    better = METRICS[metric].greater_is_better
    other = METHODS.index(method)
    return rank_difference_range(table(metric).means, 0, other, greater_is_better=better)


def test_ranks_that_differ_only_by_a_tie_are_not_proven():
    for slip in slips(("Table 3", "Table 4"), "rank"):
        printed = table(slip.metric)
        row = printed.means[printed.datasets.index(slip.dataset)]
        row = -row if printed.greater_is_better else row
        mine = row[METHODS.index(slip.method)]
        possible = range(int((row < mine).sum()) + 1, int((row <= mine).sum()) + 1)
        assert slip.proven == (slip.printed not in possible), slip


def test_who_differs_from_imcc():
    differs = {}
    for metric in METRICS:
        result = compare(table(metric).to_scores(), control="imcc")
        significant = result.nemenyi.significant[0]
        differs[metric] = [m for m, yes in zip(METHODS, significant, strict=True) if yes]
        assert result.mean_ranks[1:].min() > result.mean_ranks[0]
    assert differs["average_precision"] == ["brsvm", "ecc", "mahr", "jfsc", "lift"]  # as they say
    (slip,) = (s for s in SLIPS if "do not differ from IMCC" in s.what)
    assert sorted({*METHODS[1:]} - {*differs["one_error"]}) == sorted(slip.correct)
    limit = result.nemenyi.critical_difference
    assert not slip.proven
    assert slip.interval == pytest.approx(difference(slip.metric, slip.method), abs=0.005)
    assert difference("one_error", "jfsc")[1] > limit  # so the sentence can be true
    (slip,) = (s for s in SLIPS if "differs from LLSF" in s.what)
    assert sum("llsf" in names for names in differs.values()) == slip.correct
    assert not slip.proven
    assert slip.interval == pytest.approx(difference(slip.metric, slip.method), abs=0.005)
    assert difference("ranking_loss", "llsf")[0] > limit
    assert difference("coverage", "llsf")[1] > limit
    for method in ("brsvm", "ecc", "mahr", "jfsc", "lift"):
        assert sum(method in names for names in differs.values()) >= 2


def test_percentages():
    ours = np.array([ranks_as_printed(metric)[:, 0] for metric in METRICS])
    assert ours.size == 75
    assert 100 * (ours == 1).mean() == PERCENTAGES["first"] == 72
    assert (ours <= 3).sum() == 68
    # The printed ranks say the same.
    ranks = np.array([table(metric).ranks[:, 0] for metric in METRICS])
    assert (ranks == 1).sum() == 54
    assert (ranks <= 3).sum() == 68
    (slip,) = slips("text", "top three, percent")
    assert slip.printed == PERCENTAGES["top_three"]
    assert slip.correct == round(100 * (ours <= 3).mean(), 2)
    regular = len(list_datasets("regular"))
    assert round(100 * (ranks[:, :regular] == 1).mean(), 2) == PERCENTAGES["first_regular"]
    (slip,) = slips("text", "first on the large data sets, percent")
    assert slip.printed == PERCENTAGES["first_large"]
    assert slip.correct == pytest.approx(100 * (ranks[:, regular:] == 1).mean())
    (slip,) = (s for s in SLIPS if s.what.startswith("first on image"))
    assert table(slip.metric).cell(slip.dataset, slip.method)[2] == slip.correct


def test_failed_runs_are_those_with_large_deviations():
    found = {
        (printed.datasets[i], METHODS[j])
        for printed in map(table, METRICS)
        for i, j in np.argwhere(printed.stds >= 0.085)
    }
    listed = {(s.dataset, s.method) for s in slips(("Table 3", "Table 4"), "failed runs")}
    assert found == listed
    for dataset in list_datasets("paper"):
        for method in METHODS:
            expected = (dataset, method) in {*listed, ("education", "brsvm")}
            assert (doubtful(dataset, method) is not None) == expected
    # IMCC's own cells are all sound.
    assert not any(method == "imcc" for _, method in found)


def test_slips_name_what_is_printed():
    lines = {line.dataset: line for line in datasets()}
    for slip in SLIPS:
        if slip.where == "Table 2":
            assert getattr(lines[slip.dataset], slip.what) == slip.printed
        elif slip.what == "rank":
            assert table(slip.metric).cell(slip.dataset, slip.method)[2] == slip.printed
            regular = slip.dataset in list_datasets("regular")
            assert slip.where == ("Table 3" if regular else "Table 4")


def test_table_2_is_ours_but_for_the_slips():
    assert [line.dataset for line in datasets()] == list_datasets("paper")
    found = set()
    for line in datasets():
        info = dataset_info(line.dataset)
        for name in ("n_rows", "n_features", "n_labels", "feature_type"):
            if getattr(info, name) != getattr(line, name):
                found.add((line.dataset, name, getattr(line, name), getattr(info, name)))
    listed = {
        (s.dataset, s.what, s.printed, s.correct)
        for s in SLIPS
        if s.where == "Table 2" and s.what in ("n_labels", "feature_type")
    }
    assert found == listed


@pytest.mark.data
@pytest.mark.parametrize("line", datasets(), ids=lambda line: line.dataset)
def test_table_2_is_what_the_data_give(line):
    facts = describe(load_dataset(line.dataset), n_pairs=0)
    corrected = {
        s.what: s.correct for s in SLIPS if s.where == "Table 2" and s.dataset == line.dataset
    }
    for name in ("cardinality", "density", "n_label_sets", "label_set_proportion"):
        expected = corrected.get(name, getattr(line, name))
        assert getattr(facts, name) == pytest.approx(expected, abs=0.000501), name


def test_citation():
    assert "Information Sciences 590, 2022" in CITATION
    assert "Information Sciences 590, 2022" in " ".join(published.__doc__.split())


def test_the_file_says_which_results_are_doubtful():
    """The library reads the file, so that it has the reasons of SLIPS too."""
    ours = {m: ScoreTable.from_records([("yeast", "imcc", 0, 0.5)], metric=m) for m in METRICS}
    result = compare_with_published(ours, PUBLISHED)
    assert result.source == CITATION
    assert len(result.cells) == 15 * 7 * 5
    for cell in result.cells:
        mean, std, _ = table(cell.metric).cell(cell.dataset, cell.method)
        assert (cell.published_mean, cell.published_std) == (mean, std)
        assert cell.rounding == 0.5 * 10**-DECIMALS
        assert cell.doubtful == doubtful(cell.dataset, cell.method)
