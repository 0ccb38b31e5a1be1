"""Experiments on tables: the preprocessing is fitted inside of each training part."""

import numpy as np
import pytest

from imcc.datasets import DataFormatError, paper_splits
from imcc.experiment import Experiment, ExperimentError, Store, load_experiment
from imcc.experiment._tables import load_table
from imcc.tables import TableEncoder, read_table

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    size = rng.normal(size=90).round(3)
    town = rng.choice(["Ulm", "Köln", "Bonn"], 90)
    frame = pd.DataFrame(
        {
            "key": [f"K{i:03d}" for i in range(90)],
            "size": [f"{v}" if i % 9 else "n/a" for i, v in enumerate(size)],
            "town": town,
            "large": (size > 0).astype(int),
            "south": (town == "Ulm").astype(int),
        }
    )
    frame.to_csv(tmp_path / "films.csv", index=False)
    (tmp_path / "plan.toml").write_text(
        """
name = "tables"
n_repeats = 2
methods = ["brsvm", "kernel_ridge"]

[[datasets]]
name = "films"
table = "films.csv"
labels = ["large", "south"]
""",
        "utf-8",
    )
    return tmp_path


def test_a_table_in_a_toml_file(folder):
    experiment = load_experiment(folder / "plan.toml")
    assert experiment.datasets[0].is_table
    again = Experiment.from_dict(experiment.to_dict())
    assert again.to_dict() == experiment.to_dict()
    experiment.run(folder / "store", n_jobs=1)
    with Store(folder / "store") as store:
        rows = store.runs()
    assert len(rows) == 4
    for run in rows:
        assert run.n_features == 5  # size, whether it is missing, three towns
        assert run.selections[0].metrics["average_precision"] > 0.85


def test_a_schema_says_how_the_file_is_read(folder):
    text = (folder / "films.csv").read_text("utf-8").replace(",", ";")
    (folder / "other.csv").write_text(text, "latin-1")
    (folder / "s.toml").write_text('delimiter = ";"\nencoding = "latin-1"\n', "utf-8")
    options = {"labels": ["large", "south"], "schema": str(folder / "s.toml")}
    data = load_table("films", str(folder / "other.csv"), options)
    assert data.label_names == ("large", "south")
    assert "Köln" in data.table["town"].to_pylist()


def test_only_training_rows_decide_on_the_features(folder):
    data = load_table("films", str(folder / "films.csv"), {"labels": ["large", "south"]})
    train, test = paper_splits(data, 1)[0]
    X, X_new = data.features(train, test)
    table = read_table(folder / "films.csv").drop_columns(["large", "south"])
    encoder = TableEncoder().fit(table.take(train))
    np.testing.assert_allclose(dense(X), dense(encoder.transform(table.take(train))))
    np.testing.assert_allclose(dense(X_new), dense(encoder.transform(table.take(test))))


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


def test_mistakes(folder):
    file = str(folder / "films.csv")
    with pytest.raises(ExperimentError, match="unknown option 'colour' for a table"):
        Experiment([{"table": file, "labels": ["large"], "colour": 1}], ["llsf"])
    with pytest.raises(ExperimentError, match="not both"):
        Experiment([{"table": file, "path": file}], ["llsf"])
    with pytest.raises(ExperimentError, match="a column of tags"):
        load_table("x", file, {})
    with pytest.raises(DataFormatError, match=r"labels= .*nope"):
        load_table("x", file, {"labels": ["nope"]})
    (folder / "films.csv").write_text((folder / "films.csv").read_text().replace("n/a", "abc", 1))
    with pytest.raises(DataFormatError, match=r"films\.csv, line 2: column 'size'"):
        load_table("x", file, {"labels": ["large", "south"]})
