"""The page about tables shows what was tried, from the rows of results/table_encodings.csv."""

import csv

import pytest

pytest.importorskip("pandas")

from imcc_paper import table_encodings
from imcc_paper.places import DOCS, RESULTS


def rows():
    with (RESULTS / "table_encodings.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_page_shows_the_means_of_the_rows():
    table = table_encodings.page_table(rows())
    assert len(table.splitlines()) == 2 + 2 + 4
    assert f"\n\n{table}\n\n" in (DOCS / "tables.md").read_text("utf-8")


def test_each_row_is_there_once():
    """A second one would replace the first in the table."""
    keys = [(row["table"], row["split"], row["variant"]) for row in rows()]
    assert len(set(keys)) == len(keys)


def test_another_number_is_noticed():
    changed = [
        row | {"macro_f1": "0.5"} if row["variant"] == "corrected" else row for row in rows()
    ]
    table = table_encodings.page_table(changed)
    assert "| corrected by trees | the same | 0.500 | 0.963 | 0.203 |" in table


def test_weights_of_the_trees_on_flags_and_birds_are_zero():
    weights = [
        float(row["weight"])
        for row in rows()
        if row["table"] in ("flags", "birds") and row["variant"] == "corrected"
    ]
    assert weights == [0.0] * 6
