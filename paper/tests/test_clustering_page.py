"""The page about clustering: its numbers are those of the rows, its words those of its numbers."""

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
                    row |= {"data": data, "split": split, "percent": percent, "device": "cpu"}
                    row |= {"variant": variant, "n_train": 80, "average_precision": 0.6 + gain}
                    rows.append(row)
    return rows


def test_effects_are_means_over_data_sets_with_tests_over_data_sets():
    rows = made_up({"kmeans": 0.01, "random": 0.004}, noise=0.01)
    runs = clustering_page.gather(rows)
    values = {
        (row["data"], row["split"], row["variant"]): row["average_precision"]
        for row in rows
        if row["percent"] == 10
    }
    means = [
        np.mean([values[data, s, "kmeans"] - values[data, s, "random"] for s in range(3)])
        for data in DATA
    ]
    effect = clustering_page.effect_of(
        clustering_page.differences(runs, ("kmeans", "random")).loc[10]
    )
    assert sorted(effect.values) == pytest.approx(sorted(means), abs=1e-9)
    assert effect.p == pytest.approx(wilcoxon_p(means))
    half = student.ppf(0.975, 11) * np.std(means, ddof=1) / np.sqrt(12)
    assert effect.half == pytest.approx(half)
    # In the table, effects whose p is below 5 % after Holm's adjustment for all of them are bold.
    cells = [line.split("|")[2:-1] for line in clustering_page.effect_table(runs).splitlines()[2:]]
    gaps = [clustering_page.differences(runs, pair) for pair in clustering_page.PAIRS.values()]
    p = [wilcoxon_p(np.round(gap.loc[percent], 9)) for percent in (10, 100) for gap in gaps]
    bold = np.reshape(holm(p) < 0.05, (2, -1)).T
    assert [["**" in cell for cell in line] for line in cells] == bold.tolist()
    assert bold.any()
    assert not bold.all()


def test_few_rows_are_one_effect_of_the_means_over_parts():
    rows = made_up({"kmeans": 0.01}, percents=(5, 100)) + made_up({"kmeans": -0.04}, percents=(20,))
    all_rows, few = clustering_page.main_effects(clustering_page.gather(rows))
    assert all_rows.values == pytest.approx(np.full(12, 0.01))
    assert few.values == pytest.approx(np.full(12, -0.015))
    assert "better on 0, worse on 12 of 12 data sets" in clustering_page.in_words(few)


def test_what_the_page_says_follows_from_its_numbers():
    """That no difference is seen with all rows, and that most data sets are worse with few."""
    runs = clustering_page.gather(clustering.stored_rows(clustering_page.ROWS))
    all_rows, few = clustering_page.main_effects(runs)
    assert all_rows.p > 0.05
    assert few.p < 0.05
    assert np.median(few.values) < 0
    assert abs(few.mean) < few.half
    assert len(all_rows.values) == len(few.values) == 20


def test_power_grows_with_the_difference_and_shrinks_with_the_noise():
    values = np.random.default_rng(0).normal(size=20) * 0.002
    assert clustering_page.power(values, 0.0, 400) < 0.1
    assert clustering_page.power(values, 0.005, 400) == 1.0
    assert 0.2 < clustering_page.power(10 * values, 0.01, 400) < 0.9
    # It is that of differences around the one in question, wherever these values are.
    assert clustering_page.power(values + 1, 0.0, 400) < 0.1


def test_runs_at_an_end_of_the_values_of_beta_are_found():
    rows = [row for row in made_up({}) if row["variant"] == "none"]
    rows = [row | {"beta": 1e-3 if row["data"] in ("set1", "set2") else 1.0} for row in rows]
    assert clustering_page.at_the_ends(rows) == []
    rows = [row | {"device": "cuda"} if row["data"] == "set1" else row for row in rows]
    assert clustering_page.at_the_ends(rows) == ["set1"] * 6


def test_runs_that_are_not_finished_do_not_count_and_missing_ones_are_said():
    rows = made_up({"kmeans": 0.01})
    lone = [row | {"data": "alone"} for row in made_up({}) if row["variant"] != "none"]
    assert clustering_page.gather(rows + lone).equals(clustering_page.gather(rows))
    some = [row for row in rows if row["percent"] == 100 or row["data"] != "set0"]
    table = clustering_page.by_data(clustering_page.gather(some), dict.fromkeys(DATA, 80))
    assert "| set0 | 80 | 0.6000 | not run | +0.0100 ± 0.0000 |" in table
    two = clustering_page.gather(made_up({"kmeans": 0.01}, n_splits=2))
    table = clustering_page.by_data(two, dict.fromkeys(DATA, 80))
    assert "| set3 | 80 | 0.6000 | +0.0100 | +0.0100 |" in table
    assert clustering_page.signed(-0.00004) == "0.0000"


def test_the_figure_says_which_rows_it_shows(tmp_path):
    pytest.importorskip("matplotlib")
    runs = clustering_page.gather(made_up({"kmeans": 0.02}, noise=0.01))
    path = tmp_path / "figure.svg"
    clustering_page.plot(runs, path, "sha256 of the rows: 1234")
    text = path.read_text("utf-8")
    assert "sha256 of the rows: 1234" in text
    assert "random clusters" in text


def test_names_in_the_figure_do_not_overlap():
    heights = clustering_page.spread([0.3, 0.1, 0.1, 0.11], 0.05)
    assert np.argsort(heights).tolist() == [1, 2, 3, 0]
    assert np.diff(np.sort(heights)).min() > 0.0499
