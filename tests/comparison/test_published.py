"""Our numbers beside the paper's: the verdicts and what they rest on."""

import json

import numpy as np
import pytest
from scipy import stats

from imcc.comparison import ScoreTable
from imcc.metrics import METRICS
from imcc.published import compare_with_published, table

METRIC = "average_precision"


def runs(values, *, metric=METRIC, dataset="yeast", method="imcc"):
    records = [(dataset, method, i, value) for i, value in enumerate(values)]
    return {metric: ScoreTable.from_records(records, metric=metric)}


def cell(result, metric=METRIC, dataset="yeast", method="imcc"):
    (found,) = (
        c for c in result.cells if (c.metric, c.dataset, c.method) == (metric, dataset, method)
    )
    return found


class Store:
    """What a store of results looks like from here: ten runs around the paper's means."""

    def __init__(self):
        self.asked = []

    def scores(self, metric, selection):
        self.asked.append((metric, selection))
        printed = table(metric)
        z = np.random.default_rng(0).normal(size=(15, 7, 10))
        z = (z - z.mean(axis=2, keepdims=True)) / z.std(axis=2, ddof=1, keepdims=True)
        values = printed.means[:, :, np.newaxis] + printed.stds[:, :, np.newaxis] * z
        return ScoreTable(
            metric, printed.greater_is_better, printed.datasets, printed.methods, values
        )


def test_the_paper_reproduces_itself():
    store = Store()
    result = compare_with_published(store)
    assert store.asked == [(metric, "average_precision") for metric in METRICS]
    assert result.selection == "average_precision"
    assert result.counts() == {"reproduced": 525, "better": 0, "worse": 0, "missing": 0}
    compare_with_published(store, selection="own", metrics=["coverage"])
    assert store.asked[-1] == ("coverage", "own")


def test_it_is_welch_s_test_less_the_rounding():
    # The paper: 0.777 +- 0.008 over ten runs.
    ours = np.array([0.75, 0.77, 0.76, 0.765])
    found = cell(compare_with_published(runs(ours)))
    assert (found.n, found.published_mean, found.published_std) == (4, 0.777, 0.008)
    assert found.mean == pytest.approx(ours.mean())
    assert found.std == pytest.approx(ours.std(ddof=1))
    assert found.difference == pytest.approx(ours.mean() - 0.777)
    test = stats.ttest_ind_from_stats(
        ours.mean(), ours.std(ddof=1), 4, 0.777 - 0.0005, 0.008, 10, equal_var=False
    )
    assert found.standard_errors == pytest.approx(test.statistic)
    for alpha, verdict in ((test.pvalue * 0.99, "reproduced"), (test.pvalue * 1.01, "worse")):
        assert cell(compare_with_published(runs(ours), alpha=alpha)).verdict == verdict
    own, theirs = ours.var(ddof=1) / 4, 0.008**2 / 10
    freedom = (own + theirs) ** 2 / (own**2 / 3 + theirs**2 / 9)
    assert found.threshold == pytest.approx(stats.t.isf(0.025, freedom))
    assert found.p == pytest.approx(test.pvalue)


@pytest.mark.parametrize("metric", METRICS)
def test_the_verdict_knows_the_direction(metric):
    mean, _, _ = table(metric).cell("yeast", "imcc")
    up = METRICS[metric].greater_is_better
    for shift, verdict in ((0.1, "better" if up else "worse"), (-0.1, "worse" if up else "better")):
        ours = runs([mean + shift, mean + shift + 0.001], metric=metric)
        result = compare_with_published(ours)
        assert cell(result, metric).verdict == verdict
        assert np.sign(cell(result, metric).standard_errors) == np.sign(shift)
        assert result.counts()[verdict] == 1


def test_rounding_explains_half_a_unit():
    # Ours never varies, theirs is printed as .013 +- 0.0: up to 0.0005 both in mean and deviation.
    def verdict(value):
        ours = runs([value] * 10, metric="hamming_loss", dataset="bibtex")
        return cell(compare_with_published(ours), "hamming_loss", "bibtex")

    assert verdict(0.0134).standard_errors == 0
    edge = 0.013 + 0.0005 + stats.t.isf(0.025, 9) * 0.0005 / np.sqrt(10)
    assert verdict(edge - 1e-6).verdict == "reproduced"
    assert verdict(edge + 1e-6).verdict == "worse"
    assert verdict(2 * 0.013 - edge - 1e-6).verdict == "better"


def test_a_single_run_has_the_paper_s_deviation():
    edge = 0.777 + 0.0005 + stats.t.isf(0.025, 9) * 0.008 * np.sqrt(1 + 1 / 10)
    assert cell(compare_with_published(runs([edge - 1e-6]))).verdict == "reproduced"
    found = cell(compare_with_published(runs([edge + 1e-6])))
    assert found.verdict == "better"
    assert found.std is None


def test_the_correction_for_overlap():
    ours = np.array([0.76, 0.77, 0.765, 0.77])
    plain = cell(compare_with_published(runs(ours)))
    result = compare_with_published(runs(ours), test_size=0.2)
    found = cell(result)
    variance = ours.var(ddof=1) * (1 / 4 + 0.25) + 0.008**2 * (1 / 10 + 0.25)
    assert found.standard_error == pytest.approx(np.sqrt(variance))
    assert (plain.verdict, found.verdict) == ("worse", "reproduced")
    assert result.test_size == 0.2
    single = cell(compare_with_published(runs([0.8]), test_size=0.2))
    assert single.standard_error == pytest.approx(0.008 * np.sqrt(1 + 0.1 + 2 * 0.25))


def test_what_is_missing_and_what_is_ours_alone():
    records = [
        ("yeast", "imcc", 0, 0.77),
        ("emotions", "kernel_ridge", 0, 0.8),
        ("scene", "ecc", 0, None),
    ]
    ours = {METRIC: ScoreTable.from_records(records, metric=METRIC)}
    result = compare_with_published(ours)
    assert result.not_published == {"datasets": ("emotions",), "methods": ("kernel_ridge",)}
    assert len(result.cells) == 105
    assert result.counts() == {"reproduced": 1, "better": 0, "worse": 0, "missing": 104}
    empty = cell(result, dataset="scene", method="ecc")
    assert (empty.verdict, empty.n, empty.mean, empty.difference) == ("missing", 0, None, None)
    assert empty.published_mean == 0.857
    assert result.selection is None


def test_summary_counts_every_cell_once():
    result = compare_with_published({**runs([0.7, 0.71]), **runs([0.2, 0.21], metric="one_error")})
    summary = result.summary()
    assert sum(n for m in summary.values() for v in m.values() for n in v.values()) == 210
    assert summary["imcc"][METRIC] == {"reproduced": 0, "better": 0, "worse": 1, "missing": 14}
    assert result.counts(method="imcc", metric="one_error")["reproduced"] == 1
    assert result.counts(dataset="yeast", method="imcc")["worse"] == 1
    with pytest.raises(ValueError, match="where must be one of"):
        result.counts(algorithm="imcc")


def test_doubtful_cells_say_so():
    result = compare_with_published(runs([0.7], dataset="health", method="lift"))
    assert "failed runs" in cell(result, dataset="health", method="lift").doubtful
    assert cell(result).doubtful is None


def test_to_dict_is_json():
    plain = compare_with_published(runs([0.7, 0.8])).to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["counts"]["missing"] == 104
    assert len(plain["cells"]) == 105
    assert plain["summary"]["imcc"][METRIC]["missing"] == 14


def test_bad_arguments():
    ours = runs([0.7])
    with pytest.raises(TypeError, match="source must be a store"):
        compare_with_published(ours[METRIC].values)
    with pytest.raises(ValueError, match="selection can only be used with a store"):
        compare_with_published(ours, selection="coverage")
    with pytest.raises(ValueError, match="which is not in source"):
        compare_with_published(ours, metrics=["coverage"])
    with pytest.raises(ValueError, match="metrics must be one of"):
        compare_with_published({"f1": ours[METRIC]})
    with pytest.raises(TypeError, match="must have a ScoreTable for 'coverage'"):
        compare_with_published({"coverage": [1, 2]})
    with pytest.raises(ValueError, match="wrong direction"):
        compare_with_published({"coverage": ours[METRIC]})
    with pytest.raises(ValueError, match="alpha must be"):
        compare_with_published(ours, alpha=1)
