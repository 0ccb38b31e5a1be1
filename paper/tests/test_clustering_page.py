"""The page about clustering: its numbers are those of the rows, its words those of its numbers."""

import re

import numpy as np
import pytest
from scipy.stats import t as student

from imcc.comparison import holm, wilcoxon_p
from imcc_paper import clustering, clustering_page

DATA = [f"set{i}" for i in range(12)]


def made_up(gains, noise=0.0, percents=(10, 100), n_splits=3):
    """Return rows in which variants are better than none by so much, the same on all data sets."""
    rng = np.random.default_rng(0)
    rows = []
    for data in DATA:
        for split in range(n_splits):
            for percent in percents:
                for variant in clustering.VARIANTS:
                    gain = gains.get(variant, 0.0)
                    gain += noise * rng.normal() * (variant != "none")
                    row = dict.fromkeys(clustering.COLUMNS, 0.25)
                    row |= {"data": data, "split": split, "percent": percent, "width": "paper"}
                    row |= {"variant": variant, "n_train": 80, "n_labels": 4, "device": "cpu"}
                    row |= {"average_precision": 0.6 + gain, "ranking_loss": 0.2 - gain}
                    rows.append(row)
    return rows


def test_effects_are_means_over_data_sets_with_tests_over_data_sets():
    rows = made_up({"kmeans": 0.01, "random": 0.004}, noise=0.01)
    table = clustering_page.gather(rows)
    found = clustering_page.effects(table, clustering_page.PAIRS)
    assert len(found) == 2 * len(clustering_page.PAIRS)
    values = {
        (row["data"], row["split"], row["variant"]): row["average_precision"]
        for row in rows
        if row["percent"] == 10
    }
    means = [
        np.mean([values[data, s, "kmeans"] - values[data, s, "random"] for s in range(3)])
        for data in DATA
    ]
    effect = found[10, "k-means less random clusters"]
    assert effect.values == pytest.approx(means, abs=1e-9)
    assert effect.p == wilcoxon_p(means)
    half = student.ppf(0.975, 11) * np.std(means, ddof=1) / np.sqrt(12)
    assert effect.half == pytest.approx(half)
    expected = holm([e.p for e in found.values()])
    assert [e.holm_p for e in found.values()] == expected.tolist()


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ({}, "**No: not in a way that can be seen on these data.**"),
        ({"kmeans": 0.01}, "**Yes.**"),
        (
            {"kmeans": 0.01, "random": 0.01},
            "**Yes, but random clusters do as well: it is not the clustering.**",
        ),
        ({"kmeans": -0.01}, "**No: it does harm.**"),
    ],
)
def test_the_answer_follows_the_numbers(gains, expected):
    text = clustering_page.page(made_up(gains))
    words = re.sub(r"\s+", " ", text)
    assert expected in words
    kmeans, random = (gains.get(name, 0.0) for name in ("kmeans", "random"))
    gain, apart = clustering_page.signed(kmeans), clustering_page.signed(kmeans - random)
    assert f"| set3 | 80 | 0.6000 | {gain} ± 0.0000 | {gain} ± 0.0000 |" in text
    for name, value in (("k-means less none", gain), ("k-means less random clusters", apart)):
        cell = f"{value} ± 0.0000"
        cell = f"**{cell}**" if float(value) else cell
        assert f"| {name} | {cell} | {cell} |" in text
    sense = {0: "no difference can be seen", 1: "it helps", -1: "it does harm"}
    few = words.partition("With few rows, ")[2]
    assert few.startswith(sense[int(np.sign(kmeans))])
    assert f"the mean difference is {gain} ± 0.0000" in few


def test_few_rows_are_one_test_of_the_means_over_parts():
    rows = made_up({"kmeans": 0.01}, percents=(5, 100))
    rows += made_up({"kmeans": -0.04}, percents=(20,))
    few = clustering_page.with_few_rows(clustering_page.gather(rows))
    assert few.differences == pytest.approx(dict.fromkeys(DATA, -0.015))
    assert (
        clustering_page.with_few_rows(clustering_page.gather(made_up({}, percents=(50,)))) is None
    )


def test_a_mean_that_hangs_on_one_data_set_is_not_said_to_do_harm():
    rows = made_up({"kmeans": -0.01})
    for row in rows:
        if row["data"] == "set0" and row["variant"] == "kmeans":
            row["average_precision"] = 0.75
    text = " ".join(clustering_page.page(rows).split())
    assert "**With few rows, it is worse on most data sets**" in text


def test_power_grows_with_the_difference_and_shrinks_with_the_noise():
    values = np.random.default_rng(0).normal(size=20) * 0.002
    assert clustering_page.power(values, 0.0, 400) < 0.1
    assert clustering_page.power(values, 0.005, 400) == 1.0
    assert 0.2 < clustering_page.power(10 * values, 0.01, 400) < 0.9
    # It is that of differences around the one in question, wherever these values are.
    assert clustering_page.power(values + 1, 0.0, 400) < 0.1


def test_runs_at_an_end_of_the_values_of_beta_are_counted():
    rows = made_up({})
    assert "chose an end of its values in 0." in " ".join(clustering_page.page(rows).split())
    rows = [row | {"beta": 1e-3 if row["data"] in ("set1", "set2") else 1.0} for row in rows]
    assert clustering_page.at_the_ends(rows) == []
    rows = [row | {"device": "cuda"} if row["data"] == "set1" else row for row in rows]
    assert {run.data for run in clustering_page.at_the_ends(rows)} == {"set1"}
    text = " ".join(clustering_page.page(rows).split())
    assert "Of all 72 runs, ridge regression chose an end of its values in 6 (of set1)." in text


def test_runs_that_are_not_finished_and_other_widths_do_not_count():
    rows = made_up({"kmeans": 0.01})
    expected = clustering_page.page(rows)
    more = [row | {"width": "searched"} for row in made_up({"kmeans": 0.02}, percents=(10,))]
    lone = [row | {"data": "alone"} for row in made_up({}) if row["variant"] != "none"]
    assert clustering_page.page(rows + more + lone) == expected
    few_sets = [row for row in rows if row["percent"] == 10 or row["data"] in DATA[:4]]
    assert list(clustering_page.gather(few_sets)) == [10]
    only_few = [row for row in made_up({}) if row["percent"] == 10 or row["data"] != "set0"]
    assert "| set0 |  |  | 0.0000 ± 0.0000 | not run |" in clustering_page.page(only_few)


def test_the_figure_says_which_rows_it_shows(tmp_path):
    pytest.importorskip("matplotlib")
    table = clustering_page.gather(made_up({"kmeans": 0.02}, noise=0.01))
    path = tmp_path / "figure.svg"
    clustering_page.plot(table, path, "sha256 of the rows: 1234")
    text = path.read_text("utf-8")
    assert "sha256 of the rows: 1234" in text
    assert "random clusters" in text
    clustering_page.plot(table, tmp_path / "again.svg", "sha256 of the rows: 1234")
    assert (tmp_path / "again.svg").read_text("utf-8") == text


def test_two_splits_have_no_interval_and_zero_has_no_sign():
    text = clustering_page.page(made_up({"kmeans": 0.01}, n_splits=2))
    assert "| set3 | 80 | 0.6000 | +0.0100 | +0.0100 |" in text
    assert "(2 with 10 %, 2 with 100 %)" in text
    assert clustering_page.signed(-0.00004) == clustering_page.signed(0.00004) == "0.0000"
    assert clustering_page.signed(-0.00006) == "-0.0001"
    # Half of the interval of three splits that share rows: 4.303 s sqrt(1/3 + 1/4).
    assert clustering_page.over_splits(np.array([0.01, 0.02, 0.03])) == "+0.0200 ± 0.0329"


def test_names_in_the_figure_do_not_overlap():
    heights = clustering_page.spread([0.3, 0.1, 0.1, 0.11], 0.05)
    assert np.argsort(heights).tolist() == [1, 2, 3, 0]
    assert np.diff(np.sort(heights)).min() > 0.0499
    assert clustering_page.spread([0.0, 1.0], 0.1).tolist() == [0.0, 1.0]


def test_the_page_is_what_the_rows_give():
    rows = clustering.stored_rows(clustering_page.ROWS)
    assert clustering_page.PAGE.read_text("utf-8") == clustering_page.page(rows), "make -C paper"
    assert clustering_page.digest() in clustering_page.FIGURE.read_text("utf-8"), "make -C paper"
    clustering_page.main(["--check"])
