"""Predictions written from Python: files in parts, rows in memory, what cannot be written."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from imcc import IMCCClassifier
from imcc._utils.errors import InvalidArgumentError
from imcc.datasets import DataFormatError
from imcc.persistence import save_model
from imcc.tables import (
    TableClassifier,
    TableError,
    example_table,
    read_table,
    write_predictions,
)
from imcc.tables._load import _natural_frame

pa = pytest.importorskip("pyarrow")


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


def test_ids_that_are_no_finite_numbers_are_kept(fitted, tmp_path):
    model, table = fitted
    (name,) = model.schema_.of_kind("id")
    table[:3].assign(**{name: [1.5, np.inf, -np.inf]}).to_parquet(tmp_path / "in.parquet")
    write_predictions(model, tmp_path / "in.parquet", tmp_path / "out.csv")
    assert pd.read_csv(tmp_path / "out.csv")[name].tolist() == [1.5, np.inf, -np.inf]


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


_PEAK = """
import sys
from imcc import load_model
from imcc.tables import write_predictions
model, *files = sys.argv[1:]
model = load_model(model)
for file in files:
    for form in ("csv", "parquet"):
        write_predictions(model, file, f"{file}.{form}")
    with open("/proc/self/status") as status:
        print(next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for the peak memory")
def test_a_larger_file_takes_no_more_memory(tmp_path):
    def write(n):
        # Long keys: the file is large, and its features are not.
        lines = (f"{'k' * 1600}{i},{i % 17},{'Ulm' if i % 3 else 'Bonn'}\n" for i in range(n))
        (tmp_path / f"{n}.csv").write_text("key,size,town\n" + "".join(lines))
        return tmp_path / f"{n}.csv"

    train = read_table(write(60))
    Y = np.column_stack([np.arange(60) % 17 > 8, np.arange(60) % 3 > 0]).astype(int)
    classifier = IMCCClassifier(n_clusters=2, kernel="linear", random_state=0)
    save_model(TableClassifier(classifier).fit(train, Y), tmp_path / "m.skops")
    words = [tmp_path / "m.skops", write(5_000), write(20_000)]
    code = [sys.executable, "-c", _PEAK, *map(str, words)]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    small, large = map(int, done.stdout.split())
    # The second file alone has 24 MB more, and is more than that as a table.
    assert large - small < 16e6


def test_values_that_pandas_does_not_have():
    far = pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    with pytest.raises(TableError, match=r"columns 'when: date32\[day\]'"):
        _natural_frame(pa.table({"when": far}))


def test_another_table_is_said_to_be_one(tmp_path):
    rng = np.random.default_rng(0)
    table = {"age": rng.normal(size=40), "vip": rng.integers(0, 2, 40), "late": [0, 1] * 20}
    model = TableClassifier(IMCCClassifier(n_clusters=2, random_state=0)).fit(
        table, ["vip", "late"]
    )
    (tmp_path / "other.csv").write_text("species,weight\ncat,3\ndog,4\n")
    for ignore_extra in (False, True):
        with pytest.raises(DataFormatError, match=r"another table.*'age'.*'species'"):
            write_predictions(
                model, tmp_path / "other.csv", tmp_path / "o.csv", ignore_extra=ignore_extra
            )
    with pytest.raises(TableError, match=r"another table.*'age'.*'species'"):
        model.predict({"species": ["cat"]})
