"""Stores that someone else wrote: they are read, or a StoreError says that they are damaged."""

import math
import random
import sqlite3

import numpy as np
import pytest

from imcc.experiment import Experiment, Failure, Store, StoreError, TaskKey, export
from imcc.experiment._exchange import read_results
from imcc.report._results import gather
from tests.report.synthetic import make_store

FAILED = Failure(TaskKey("scores", "b", "imcc", 2), "ValueError: no", "Traceback", 0.5, {}, "then")
DEEP = "[" * 900 + "]" * 900


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a store with runs, a study and a failure."""
    path = tmp_path_factory.mktemp("stores") / "s.sqlite"
    left_out = [("b", "imcc", 2)]
    make_store(path, ("a", "b", "c"), studies=("a",), failures=[FAILED], leave_out=left_out)
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
        opened.missing(), opened.failures(), opened.running(), opened.data_fingerprints()
        for metric in ("average_precision", "label_ap_to_1"):
            opened.scores(metric)
        for study in opened.studies():
            study.along("average_precision", "alpha", "beta")
        export(opened, path.with_suffix(".csv"), overwrite=True)
        gather(opened)
        with Store.create(path.with_name("new.sqlite"), opened.experiment) as new:
            new.add_all(opened.results())
    path.with_name("new.sqlite").unlink()


def test_a_whole_one_can_be_looked_at(store):
    look(store)


ENDLESS = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT"
COLUMNS = "'scores' AS kind, 'a' AS dataset, 'imcc' AS method, i AS repetition"


@pytest.mark.parametrize(
    "statements",
    [
        ["DROP TABLE claims", f"CREATE VIEW claims AS {ENDLESS} {COLUMNS}, 1 AS runner FROM n"],
        ["ALTER TABLE runs RENAME TO r", f"CREATE VIEW runs AS {ENDLESS} {COLUMNS} FROM n"],
        ["DROP TABLE meta", "CREATE VIEW meta AS SELECT 'experiment' AS name, '{}' AS value"],
        ["CREATE VIEW more AS SELECT * FROM runs"],
        ["CREATE TABLE more (x)"],
        ["CREATE TRIGGER t AFTER INSERT ON claims BEGIN DELETE FROM runs; END"],
        ["CREATE INDEX i ON runs (abs(repetition))"],
        ["ALTER TABLE runs ADD COLUMN y AS (zeroblob(1000000000))"],
        ["DROP TABLE failures"],
    ],
)
def test_other_tables_than_ours(store, statements):
    """Tables that compute something when they are read, some without an end."""
    changed(store, *([statement] for statement in statements))
    for options in ({}, {"read_only": True}):
        with pytest.raises(StoreError, match="it has other tables"):
            Store(store, **options)


@pytest.mark.parametrize(
    "statement",
    [
        ["UPDATE runs SET environment = 'none'"],
        ["UPDATE runs SET warnings = ?", DEEP],
        ["UPDATE runs SET warnings = '3'"],
        ["UPDATE runs SET repetition = 'first' WHERE id = 1"],
        ["UPDATE runs SET repetition = 10000000000 WHERE id = 1"],
        ["UPDATE runs SET dataset = 'of nobody' WHERE id = 1"],
        ["UPDATE runs SET method = x'00' WHERE id = 1"],
        ["UPDATE runs SET fit_seconds = 'a while'"],
        ["UPDATE runs SET n_train = NULL"],
        ["DELETE FROM selections WHERE run = 1"],
        ["UPDATE selections SET setting = ?", DEEP],
        ["UPDATE selections SET setting = '[1]'"],
        ["UPDATE selections SET average_precision = 'good'"],
        ["UPDATE selections SET average_precision = 9e999"],
        ["UPDATE selections SET selection = 'luck' WHERE rowid = 1"],
        ["UPDATE environments SET content = ?", DEEP],
        ["UPDATE environments SET content = 'nothing'"],
        ["UPDATE studies SET axes = '{}'"],
        ["UPDATE studies SET axes = ?", '{"alpha": ' + DEEP + "}"],
        ["UPDATE studies SET axes = json_set(axes, '$.alpha[0]', '3')"],
        ["UPDATE studies SET metrics = '[\"luck\"]'"],
        ["UPDATE studies SET mean = x'00'"],
        ["UPDATE failures SET environment = ?", DEEP],
        ["UPDATE failures SET error = x'00'"],
        ["UPDATE meta SET value = ?", '{"name": ' + DEEP + "}"],
        ["UPDATE meta SET value = ?", DEEP],
        ["UPDATE meta SET value = '{}'"],
        ["UPDATE meta SET value = json_set(value, '$.n_repeats', 100000000000)"],
        ["UPDATE meta SET value = json_set(value, '$.methods.imcc', 3)"],
        ["UPDATE meta SET value = json_set(value, '$.methods.imcc.params', 3)"],
        ["UPDATE meta SET value = json_set(value, '$.methods.imcc.defaults', 3)"],
        ["UPDATE meta SET value = json_set(value, '$.sensitivity.params', 3)"],
        ["UPDATE meta SET value = json_set(value, '$.sensitivity.defaults', 3)"],
        ["UPDATE meta SET value = json_set(value, '$.datasets[0].name', 3, '$.datasets', 3)"],
        ["UPDATE meta SET value = json_set(value, '$.scoring', 3)"],
        ["UPDATE meta SET value = json_set(value, '$.surprise', 3)"],
        ["UPDATE meta SET name = 'another'"],
    ],
    ids=lambda statement: statement[0],
)
def test_contents_that_make_no_sense(store, statement):
    changed(store, statement)
    with pytest.raises(StoreError, match=store.name):
        look(store)


@pytest.mark.parametrize("value", [0.0, 1e-308, -1e29])
def test_scores_of_any_size(store, value):
    changed(store, ["UPDATE selections SET coverage = ?", value])
    look(store)


def test_an_experiment_is_not_added_to_a_damaged_store(store, tmp_path):
    changed(store, ["UPDATE meta SET value = '{\"methods\": {}}'"])
    before = store.read_bytes()
    experiment = Experiment([{"name": "a", "in_memory": True}], "imcc").resolve()
    with pytest.raises(StoreError, match="damaged"):
        Store.create(store, experiment)
    assert store.read_bytes() == before


def test_too_many_tasks():
    with pytest.raises(ValueError, match="1,000,000,000 tasks"):
        Experiment([{"name": "a", "in_memory": True}], "imcc", n_repeats=10**9)


def test_many_data_sets_with_other_names_are_compared_quickly():
    names = [{"name": f"a{k}", "in_memory": True} for k in range(50_000)]
    with pytest.raises(ValueError, match="duplicate names"):
        Experiment([*names, names[7]], "imcc", n_repeats=1)


@pytest.mark.slow
def test_any_cell_may_have_any_value(whole, store):
    """Cells are replaced at random; what can still be read is, or a StoreError says why not."""
    chance = random.Random(0)
    values = [
        *(None, 0, 1, -1, 5, 2**62, 0.5, 1e308, math.inf, -math.inf, "", "text", DEEP, "{}", "[]"),
        *(b"", b"\xff", '{"a": [1]}', '["a"]', "NaN", "\x1b[2J", "imcc", "a", "scores"),
    ]
    refused = 0
    for number in range(100):
        store.write_bytes(whole)
        connection = sqlite3.connect(store)
        connection.execute("PRAGMA ignore_check_constraints = ON")
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        table = chance.choice(sorted(names))[0]
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        column, value = chance.choice(columns), chance.choice(values)
        if number % 2:  # of the type that the constraints allow
            kinds = [type(row[0]) for row in connection.execute(f"SELECT {column} FROM {table}")]
            value = chance.choice([v for v in values if type(v) in kinds] or values)
        some = chance.choice(["", " WHERE rowid = 1", " WHERE rowid % 5 = 0"])
        try:
            connection.execute(f"UPDATE {table} SET {column} = ?{some}", (value,))
            connection.commit()
        except sqlite3.IntegrityError:  # a key twice
            continue
        finally:
            connection.close()
        try:
            look(store)
        except StoreError:
            refused += 1
        except BaseException as error:
            raise AssertionError(f"{number}: {table}.{column} = {value!r}{some}") from error
    assert refused > 25


def test_columns_of_an_export_that_make_no_sense(store, tmp_path):
    with Store(store) as opened:
        path, beside = export(opened, tmp_path / "out.csv")
    for name, value in [
        *((column, DEEP) for column in ("setting", "warnings", "environment")),
        *(("setting", "[1]"), ("warnings", '"text"'), ("environment", "3")),
        *(("n_train", "1e400"), ("n_train", "9" * 5000), ("repetition", "x")),
    ]:
        with pytest.raises(StoreError, match=f"line 2: invalid value .* of {name}"):
            read_results(replaced(path, tmp_path / "bad.csv", name, value))
    for value in (DEEP, "[[1]]", '{"a": 1}'):
        with pytest.raises(StoreError, match=r"line 2|n_clusters"):
            read_results(replaced(beside, tmp_path / "bad.csv", "n_clusters", value))


def replaced(path, target, column, value):
    """Replace a value in the first row of a CSV file."""
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv(path, dtype=str, keep_default_na=False)
    table.loc[0, column] = value
    table.to_csv(target, index=False)
    return target


def test_scores_by_frequency_are_kept(store, tmp_path):
    """Some rows have them; a row without them has none in an export, and NaN in a table."""
    with Store(store) as opened:
        runs = opened.runs()
        assert not any(chosen.by_frequency for run in runs for chosen in run.selections)
        assert np.isnan(opened.scores("label_ap_to_1").values).all()
        experiment = opened.experiment
    first = runs[0].selections[0]
    first.by_frequency["label_ap_to_1"] = 0.25
    with Store.create(tmp_path / "new.sqlite", experiment) as new:
        new.add_all(runs)
        assert new.runs() == runs
        assert np.nansum(new.scores("label_ap_to_1").values) == 0.25
        export(new, tmp_path / "out.csv")
        with Store.create(tmp_path / "again.sqlite", experiment) as again:
            again.add_all(read_results(tmp_path / "out.csv"))
            assert again.runs() == runs
