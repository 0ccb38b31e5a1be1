"""Our numbers beside published ones: the verdicts and what they rest on."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from imcc import experiment
from imcc.comparison import ScoreTable
from imcc.experiment import ExperimentError
from imcc.metrics import METRICS

METRIC = "average_precision"
HEAD = "dataset,method,metric,mean,std,n,doubtful,rank\n"
# Nine published results by each metric; of yeast .777 +- .008 for IMCC.
PUBLISHED = Path(__file__).parents[1] / "data" / "published.csv"


def compare_with_published(source, *arguments, **options):
    return experiment.compare_with_published(source, PUBLISHED, *arguments, **options)


def runs(values, *, metric=METRIC, dataset="yeast", method="imcc"):
    records = [(dataset, method, i, value) for i, value in enumerate(values)]
    return {metric: ScoreTable.from_records(records, metric=metric)}


def cell(result, metric=METRIC, dataset="yeast", method="imcc"):
    (found,) = (
        c for c in result.cells if (c.metric, c.dataset, c.method) == (metric, dataset, method)
    )
    return found


def test_it_is_welch_s_test_less_the_rounding():
    # Published: 0.777 +- 0.008 over ten runs.
    ours = np.array([0.75, 0.77, 0.76, 0.765])
    found = cell(compare_with_published(runs(ours)))
    assert (found.n, found.published_mean, found.published_std) == (4, 0.777, 0.008)
    assert found.rounding == 0.0005
    assert found.mean == pytest.approx(ours.mean())
    assert found.std == pytest.approx(ours.std(ddof=1))
    assert found.difference == pytest.approx(ours.mean() - 0.777)
    test = stats.ttest_ind_from_stats(
        ours.mean(), ours.std(ddof=1), 4, 0.777 - 0.0005, 0.008, 10, equal_var=False
    )
    assert found.standard_errors == pytest.approx(test.statistic)
    for alpha, verdict in ((test.pvalue * 0.99, "reproduced"), (test.pvalue * 1.01, "worse")):
        assert cell(compare_with_published(runs(ours), alpha=alpha)).verdict == verdict


@pytest.mark.parametrize("metric", METRICS)
def test_the_verdict_knows_the_direction(metric):
    mean = 0.777
    up = METRICS[metric].greater_is_better
    for shift, verdict in ((0.1, "better" if up else "worse"), (-0.1, "worse" if up else "better")):
        ours = runs([mean + shift, mean + shift + 0.001], metric=metric)
        result = compare_with_published(ours)
        assert cell(result, metric).verdict == verdict
        assert np.sign(cell(result, metric).standard_errors) == np.sign(shift)
        assert result.counts()[verdict] == 1


def test_rounding_explains_half_a_unit():
    # Ours never varies, theirs is printed as .577 +- .000: up to 0.0005 both in mean and deviation.
    def verdict(value):
        ours = runs([value] * 10, metric="hamming_loss", dataset="bibtex")
        return cell(compare_with_published(ours), "hamming_loss", "bibtex")

    assert verdict(0.5774).standard_errors == 0
    edge = 0.577 + 0.0005 + stats.t.isf(0.025, 9) * 0.0005 / np.sqrt(10)
    assert verdict(edge - 1e-6).verdict == "reproduced"
    assert verdict(edge + 1e-6).verdict == "worse"
    assert verdict(2 * 0.577 - edge - 1e-6).verdict == "better"


@pytest.mark.parametrize(("printed", "rounding"), [(".77", 0.005), ("0.7700", 5e-5), ("1", 0.5)])
def test_the_decimals_that_are_printed_count(tmp_path, printed, rounding):
    file = tmp_path / "p.csv"
    file.write_text(f"dataset,method,metric,mean,std,n\nyeast,imcc,coverage,{printed},0.01,5\n")
    (found,) = experiment.compare_with_published(runs([0.7], metric="coverage"), file).cells
    assert found.rounding == pytest.approx(rounding)


def test_a_single_run_has_the_published_deviation():
    edge = 0.777 + 0.0005 + stats.t.isf(0.025, 9) * 0.008 * np.sqrt(1 + 1 / 10)
    assert cell(compare_with_published(runs([edge - 1e-6]))).verdict == "reproduced"
    found = cell(compare_with_published(runs([edge + 1e-6])))
    assert found.verdict == "better"
    assert found.std is None


def test_what_is_missing_and_what_is_ours_alone():
    records = [
        ("yeast", "imcc", 0, 0.77),
        ("emotions", "kernel_ridge", 0, 0.8),
        ("scene", "ecc", 0, None),
    ]
    ours = {METRIC: ScoreTable.from_records(records, metric=METRIC)}
    result = compare_with_published(ours)
    assert len(result.cells) == 9
    assert result.counts() == {"reproduced": 1, "better": 0, "worse": 0, "missing": 8}
    empty = cell(result, dataset="scene", method="ecc")
    assert (empty.verdict, empty.n, empty.mean, empty.difference) == ("missing", 0, None, None)
    assert empty.published_mean == 0.667


def test_counts():
    result = compare_with_published({**runs([0.7, 0.71]), **runs([0.2, 0.21], metric="one_error")})
    assert sum(result.counts().values()) == 18
    assert result.counts("imcc") == {"reproduced": 0, "better": 1, "worse": 1, "missing": 4}


def test_doubtful_cells_say_so():
    result = compare_with_published(runs([0.7], method="lift"))
    assert cell(result, method="lift").doubtful == "failed runs, it seems"
    assert cell(result).doubtful is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have the columns"),
        ("dataset,method\n", "lack metric, mean, std, n"),
        (HEAD, "no lines"),
        (HEAD + "yeast,imcc,f2,0.7,0.1,10,,\n", "line 2: metric must be one of"),
        ("# x\n" + HEAD + "yeast,imcc,coverage,high,0.1,10,,\n", "line 3: .*'high'"),
        (HEAD + "yeast,imcc,coverage,nan,0.1,10,,\n", "line 2: mean must be"),
        (HEAD + "yeast,imcc,coverage,0.7,-0.1,10,,\n", "line 2: mean must be"),
        (HEAD + "yeast,imcc,coverage,0.7,0.1,1,,\n", "line 2: mean must be"),
        (HEAD + "yeast,imcc,coverage\n", "line 2"),
        (HEAD + 2 * "yeast,imcc,coverage,0.7,0.1,10,,\n", "line 3: .* for the second time"),
        (HEAD + 'yeast,imcc,"coverage', "unexpected end of data"),
    ],
)
def test_bad_files(tmp_path, text, message):
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(ExperimentError, match=message):
        experiment.compare_with_published(runs([0.7]), path)
    with pytest.raises(ExperimentError, match="cannot be read"):
        experiment.compare_with_published(runs([0.7]), tmp_path / "gone.csv")


def test_bad_arguments():
    ours = runs([0.7])
    with pytest.raises(ValueError, match="scores must be one of"):
        compare_with_published({"f1": ours[METRIC]})
    with pytest.raises(ValueError, match="wrong direction"):
        compare_with_published({"coverage": ours[METRIC]})
    with pytest.raises(ValueError, match="alpha must be"):
        compare_with_published(ours, alpha=1)
