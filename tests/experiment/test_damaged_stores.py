"""Stores that someone else wrote: they are read, or a StoreError says that they are damaged."""

import sqlite3

import numpy as np
import pytest

from imcc.experiment import Experiment, Failure, Store, StoreError, TaskKey
from imcc.experiment._claims import Claims
from imcc.experiment._results import read_csv
from tests.report.synthetic import make_store

FAILED = Failure(TaskKey("b", "imcc", 2), "ValueError: no", "Traceback", 0.5, "then")
DEEP = "[" * 900 + "]" * 900


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a store with runs, a failure and a claim."""
    path = tmp_path_factory.mktemp("stores") / "s.sqlite"
    left_out = [("b", "imcc", 2), ("c", "imcc", 2)]
    make_store(path, ("a", "b", "c"), failures=[FAILED], leave_out=left_out)
    with Store(path) as store, Claims(store) as claims:
        claims.claim([TaskKey("c", "imcc", 2)])
        return path.read_bytes()


@pytest.fixture
def store(whole, tmp_path):
    path = tmp_path / "s.sqlite"
    path.write_bytes(whole)
    return path


def changed(path, *statements):
    """Run SQL in a store, without its constraints."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    for statement, *values in statements:
        connection.execute(statement, values)
    connection.commit()
    connection.close()


def look(path):
    """Do all that reads the store of someone else."""
    with Store(path, read_only=True) as opened:
        opened.missing(), opened.failures(), opened.running()
        for metric in ("average_precision", "label_ap_to_1"):
            opened.scores(metric)
        opened.export(path.with_suffix(".csv"))
        with Store.create(path.with_name("new.sqlite"), opened.experiment) as new:
            new.add(*opened.runs())
    path.with_name("new.sqlite").unlink()
    with Store(path) as opened, Claims(opened) as claims:
        claims.claim([task.key for task in opened.experiment.tasks()])


ENDLESS = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT"
COLUMNS = "'a' AS dataset, 'imcc' AS method, i AS repetition"


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE tasks RENAME TO t", f"CREATE VIEW tasks AS {ENDLESS} {COLUMNS} FROM n"],
        ["DROP TABLE experiment", "CREATE VIEW experiment AS SELECT '{}' AS description"],
        ["CREATE VIEW more AS SELECT * FROM tasks"],
        ["CREATE TABLE more (x)"],
        ["CREATE TRIGGER t AFTER INSERT ON tasks BEGIN DELETE FROM tasks; END"],
        ["CREATE INDEX i ON tasks (abs(repetition))"],
        ["ALTER TABLE tasks ADD COLUMN y AS (zeroblob(1000000000))"],
        ["DROP TABLE tasks"],
    ],
)
def test_other_tables_than_ours(store, statements):
    """Tables that compute something when they are read, some without an end."""
    changed(store, *([statement] for statement in statements))
    for options in ({}, {"read_only": True}):
        with pytest.raises(StoreError, match="it has other tables"):
            Store(store, **options)


def put(path, value, state="done"):
    """SQL that replaces a value in the JSON of a state."""
    return (
        f"UPDATE tasks SET content = json_set(content, '$.{path}', json('{value}')) "
        f"WHERE state = '{state}'"
    )


DESCRIBED = "UPDATE experiment SET description = json_set(description, '$.{}', 3)"


@pytest.mark.parametrize(
    "statement",
    [
        ["UPDATE tasks SET repetition = 'first' WHERE rowid = 1"],
        ["UPDATE tasks SET repetition = 10000000000 WHERE rowid = 1"],
        ["UPDATE tasks SET repetition = -1 WHERE rowid = 1"],
        ["UPDATE tasks SET dataset = 'of nobody' WHERE rowid = 1"],
        ["UPDATE tasks SET method = x'00' WHERE rowid = 1"],
        ["UPDATE tasks SET state = 'lost' WHERE rowid = 1"],
        ["UPDATE tasks SET at = 'noon' WHERE rowid = 1"],
        ["UPDATE tasks SET content = ?", DEEP],
        ["UPDATE tasks SET content = '{}' WHERE state = 'done'"],
        ["UPDATE tasks SET content = '{}' WHERE state = 'failed'"],
        ["UPDATE claims SET runner = '{}'"],
        ["UPDATE claims SET runner = json_set(runner, '$[2]', '1/../../x')"],
        ["UPDATE claims SET runner = x'00'"],
        [put("environment", "3")],
        [put("warnings", "3")],
        [put("warnings", DEEP)],
        [put("fit_seconds", '"a while"')],
        [put("fit_seconds", "9e999")],
        [put("n_train", "null")],
        [put("n_train", "true")],
        [put("selections", "[]")],
        [put("selections[0].setting", "[1]")],
        [put("selections[0].setting", '{"a": ' + DEEP + "}")],
        [put("selections[0].average_precision", '"good"')],
        [put("selections[0].average_precision", "true")],
        ["UPDATE tasks SET content = json_remove(content, '$.selections[0].coverage')"],
        [put("selections[0].label_ap_to_1", '"x"')],
        [put("selections[0].selection", '"luck"')],
        [put("seconds", '"x"', "failed")],
        [put("error", "3", "failed")],
        ["UPDATE experiment SET description = ?", '{"name": ' + DEEP + "}"],
        ["UPDATE experiment SET description = '{}'"],
        ["UPDATE experiment SET description = 'nothing'"],
        ["UPDATE experiment SET description = x'00'"],
        [DESCRIBED.replace("3", "100000000000").format("n_repeats")],
        [DESCRIBED.format("methods.imcc")],
        [DESCRIBED.format("methods.imcc.params")],
        [DESCRIBED.format("methods.imcc.defaults")],
        [DESCRIBED.format("datasets")],
        [DESCRIBED.format("scoring")],
        [DESCRIBED.format("surprise")],
        ["DELETE FROM experiment"],
    ],
    ids=lambda statement: statement[0][:120],
)  # fmt: skip
def test_contents_that_make_no_sense(store, statement):
    changed(store, statement)
    with pytest.raises(StoreError, match=store.name):
        look(store)


@pytest.mark.parametrize("value", [0.0, -1e29])
def test_scores_of_any_size_can_be_looked_at(store, value):
    changed(store, [put("selections[0].coverage", value)])
    look(store)


def test_an_experiment_is_not_added_to_a_damaged_store(store, tmp_path):
    changed(store, ["UPDATE experiment SET description = '{\"methods\": {}}'"])
    before = store.read_bytes()
    experiment = Experiment([{"name": "a", "in_memory": True}], "imcc").resolve()
    with pytest.raises(StoreError, match="damaged"):
        Store.create(store, experiment)
    assert store.read_bytes() == before


def test_too_many_tasks():
    with pytest.raises(ValueError, match="1,000,000,000 tasks"):
        Experiment([{"name": "a", "in_memory": True}], "imcc", n_repeats=10**9)


def test_columns_of_an_export_that_make_no_sense(store, tmp_path):
    pandas = pytest.importorskip("pandas")
    with Store(store) as opened:
        table = pandas.read_csv(
            opened.export(tmp_path / "out.csv"), dtype=str, keep_default_na=False
        )
        for name, value in [
            *(("coverage", "NaN"), ("fit_seconds", "true")),
            *((column, DEEP) for column in ("setting", "warnings", "environment")),
            *(("setting", "[1]"), ("warnings", '"text"'), ("environment", "3")),
            *(("n_train", "1e400"), ("n_train", "9" * 5000), ("repetition", "x")),
            *(("repetition", ""), ("coverage", "high"), ("method", "")),
        ]:
            bad = table.copy()
            bad.loc[0, name] = value
            bad.to_csv(tmp_path / "bad.csv", index=False)
            with pytest.raises(StoreError, match=name):
                opened.merge(tmp_path / "bad.csv")


def test_scores_by_frequency_are_kept(store, tmp_path):
    """Some rows have them; a row without them has none in an export, and NaN in a table."""
    with Store(store) as opened:
        runs = opened.runs()
        assert np.isnan(opened.scores("label_ap_to_1").values).all()
        experiment = opened.experiment
    runs[0].selections[0].by_frequency["label_ap_to_1"] = 0.25
    with Store.create(tmp_path / "new.sqlite", experiment) as new:
        new.add(*runs)
        assert new.runs() == runs
        assert np.nansum(new.scores("label_ap_to_1").values) == 0.25
        new.export(tmp_path / "out.csv")
        with Store.create(tmp_path / "again.sqlite", experiment) as again:
            again.add(*read_csv(tmp_path / "out.csv"))
            assert again.runs() == runs
