"""The table of docs/tables.md is that of the rows in results/tables.csv."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pandas = pytest.importorskip("pandas")


def test_the_documentation_shows_the_rows_that_were_measured():
    from benchmarks.tables import FIELDS, TABLES, summary

    rows = pandas.read_csv(ROOT / "results" / "tables.csv")
    assert list(rows.columns) == list(FIELDS)
    assert not rows.duplicated(["table", "split", "method"]).any()
    assert set(rows["table"]) <= set(TABLES)
    shown = summary(rows)
    assert shown in (ROOT / "docs" / "tables.md").read_text("utf-8")


@pytest.mark.slow
def test_a_table_takes_at_most_three_times_its_file():
    pytest.importorskip("pyarrow")
    pytest.importorskip("resource")
    from benchmarks.table_memory import measure

    found = measure(100_000, 50)
    assert found["fit"] < 3, found
    assert found["transform"] < 3, found
