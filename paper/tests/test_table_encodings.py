"""The page about tables shows what was tried, from the rows of results/table_encodings.csv."""

import pytest

pytest.importorskip("pandas")

from imcc_paper import table_encodings
from imcc_paper.places import DOCS


def test_the_page_shows_the_means_of_the_rows():
    table = table_encodings.page_table(table_encodings.stored_rows())
    assert f"\n{table}\n" in (DOCS / "tables.md").read_text("utf-8")


def test_each_row_is_there_once():
    """A second one would replace the first in the table."""
    rows = table_encodings.stored_rows()
    keys = [(row["table"], row["split"], row["variant"]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert {variant for _, _, variant in keys} == set(table_encodings.VARIANTS)
    assert len({key[:2] for key in keys}) * 2 == len(keys)


def test_another_number_is_noticed():
    changed = [
        row | {"macro_f1": 0.5} if row["variant"] == "corrected" else row
        for row in table_encodings.stored_rows()
    ]
    assert "| corrected by trees | 0.500 |" in table_encodings.page_table(changed)
