"""The table of docs/tables.md is that of the rows in results/tables.csv."""

import pytest

from imcc_paper.places import DOCS, RESULTS

pandas = pytest.importorskip("pandas")


def test_the_documentation_shows_the_rows_that_were_measured():
    from imcc_paper.tables import FIELDS, TABLES, summary

    rows = pandas.read_csv(RESULTS / "tables.csv")
    assert list(rows.columns) == list(FIELDS)
    assert not rows.duplicated(["table", "split", "method"]).any()
    assert set(rows["table"]) <= set(TABLES)
    page = (DOCS / "tables.md").read_text("utf-8")
    assert summary(rows) in page

    def of(table, method, column):
        chosen = rows[(rows["table"] == table) & (rows["method"] == method)]
        return chosen[column].mean()

    text = " ".join(page.split())
    whole = ("goemotions-whole", "debian-whole")
    ours, theirs = ([of(t, m, "seconds") for t in whole] for m in ("imcc", "lightgbm"))
    assert f"imcc took {ours[0]:.0f} s and {ours[1]:.0f} s" in text
    assert f"LightGBM {theirs[0]:.0f} s and {theirs[1]:.0f} s" in text
    before, after = (
        [of("debian-whole", m, column) for column in ("macro_f1", "average_precision")]
        for m in ("imcc, no trees", "imcc")
    )
    assert f"macro-F1 from {before[0]:.3f} to {after[0]:.3f}" in text
    assert f"average precision from {before[1]:.3f} to {after[1]:.3f}" in text


@pytest.mark.slow
def test_a_table_takes_at_most_three_times_its_file():
    pytest.importorskip("pyarrow")
    pytest.importorskip("resource")
    from imcc_paper.table_memory import measure

    found = measure(100_000, 50)
    assert found["fit"] < 3, found
    assert found["transform"] < 3, found
