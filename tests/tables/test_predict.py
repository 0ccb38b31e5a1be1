"""Predictions written from Python: files in parts, rows in memory, what cannot be written."""

import io

import numpy as np
import pandas as pd
import pytest

from imcc import IMCCClassifier
from imcc._utils.errors import InvalidArgumentError
from imcc.tables import TableClassifier, example_table, write_predictions

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def fitted():
    table, labels = example_table(120)
    model = TableClassifier(IMCCClassifier(4, random_state=0))
    return model.fit(table, labels), table


def test_files_in_any_number_and_rows_in_memory_give_the_same(fitted, tmp_path):
    model, table = fitted
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_csv(tmp_path / "b.tsv", index=False, sep=";")
    expected = model.decision_function(table)
    out = tmp_path / "out.parquet"
    files = [tmp_path / "a.csv", tmp_path / "a.csv"]
    assert write_predictions(model, files, out, values="score") == 240
    found = pd.read_parquet(out)
    assert found.columns[0] == model.schema_.of_kind("id")[0]
    np.testing.assert_allclose(found[list(model.label_names_)], np.tile(expected, (2, 1)))
    text = io.StringIO()
    assert write_predictions(model, table, text, values="score") == 120
    found = pd.read_csv(io.StringIO(text.getvalue()))
    np.testing.assert_allclose(found[list(model.label_names_)], expected)
    assert write_predictions(model, tmp_path / "b.tsv", text, delimiter=";") == 120


def test_text_of_ids_cannot_break_a_csv_file(fitted, tmp_path):
    model, table = fitted
    (name,) = model.schema_.of_kind("id")
    ids = ["a\r1,0", "=1+1", 'b"2\n', "c", "-7"]
    table[:5].assign(**{name: ids}).to_parquet(tmp_path / "in.parquet")
    write_predictions(model, tmp_path / "in.parquet", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        found = pd.read_csv(file, dtype=str)
    assert found[name].tolist() == ["a\r1,0", "'=1+1", 'b"2\n', "c", "-7"]


def test_mistakes(fitted, tmp_path):
    model, table = fitted
    out = tmp_path / "out.csv"
    table.assign(more=1).to_csv(tmp_path / "in.csv", index=False)
    for wrong, argument in (
        ({"output": tmp_path / "out.pdf"}, "output"),
        ({"output": io.StringIO(), "format": "parquet"}, "output"),
        ({"format": "pdf"}, "format"),
        ({"values": "odds"}, "values"),
        ({"top": 0}, "top"),
        ({"model": IMCCClassifier()}, "label_names"),
        ({"model": IMCCClassifier(), "label_names": ["a"], "rows": "in.csv"}, "rows"),
        ({"rows": tmp_path / "in.csv"}, "ignore_extra"),
    ):
        arguments = {"model": model, "rows": table, "output": out} | wrong
        with pytest.raises((InvalidArgumentError, ValueError), match=argument):
            write_predictions(**arguments)
        assert not out.exists()
    write_predictions(model, tmp_path / "in.csv", out, ignore_extra=True)
    assert len(pd.read_csv(out)) == 120
