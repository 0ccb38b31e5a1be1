"""Stores: what goes in comes out, also by way of a CSV file; what does not belong is refused."""

import csv
import json
import shutil
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from imcc.experiment import Experiment, ExperimentError, Failure, Store, StoreError, run_task
from imcc.experiment._database import FORMAT
from tests.experiment.conftest import ALLOW, DICE


@pytest.fixture
def store(small, tmp_path):
    with Store.create(tmp_path / "small.sqlite", small) as opened:
        yield opened


_computed = []


@pytest.fixture
def runs(small):
    """All results, one of them with an undefined metric and a warning."""
    _computed[:] = _computed or [run_task(task, 1) for task in small.tasks()]  # in every test equal
    runs = list(_computed)
    chosen = runs[0].selections[0]
    undefined = replace(chosen, metrics=chosen.metrics | {"macro_auc": np.nan})
    runs[0] = replace(runs[0], selections=(undefined,), warnings=("a, b\n'c'",))
    return runs


def failure_of(task, text="broken"):
    return Failure(task.key, text, "Traceback", 1.0, "2026-01-01")


def by_key(runs):
    # NaN is not equal to itself, but looks like it.
    return {run.key: repr(run) for run in runs}


def test_rows_come_back_as_they_went_in(store, small, runs):
    for run in runs:
        assert store.add(run)
    assert by_key(store.runs()) == by_key(runs)
    assert store.missing() == []
    assert np.isnan(store.scores("macro_auc").values[0, 0, 0])
    with Store(store.path, read_only=True) as again:
        assert by_key(again.runs()) == by_key(runs)
        assert again.experiment.to_dict() == small.to_dict()


def test_rows_can_be_looked_at_where_the_method_is_not_installed(store, small, runs):
    store.add(runs[0])
    plain = json.dumps(small.to_dict()).replace("imcc_test_methods", "not_installed_here")
    store._connection.execute("UPDATE experiment SET description = ?", (plain,))
    with Store(store.path) as again:
        assert np.isfinite(again.scores("coverage").values).sum() == 1
        with pytest.raises(ExperimentError, match="cannot import 'not_installed_here"):
            again.experiment.run(store.path, allow=["not_installed_here"])


def test_the_first_result_counts(store, runs):
    assert store.add(runs[1])
    assert not store.add(replace(runs[1], fit_seconds=99.0))
    assert store.runs() == [runs[1]]


def test_a_failure_is_never_a_result(store, small, runs):
    task, run = small.tasks()[1], runs[1]
    assert store.add(failure_of(task))
    assert store.add(failure_of(task, "broken again"))
    assert store.failures() == [failure_of(task, "broken again")]
    assert task.key in store.missing()
    assert not store.runs()
    store.add(run)
    assert store.failures() == []
    assert not store.add(failure_of(task))
    assert store.runs() == [run]
    assert store.failures() == []


def test_scores_by_selection(store, runs):
    store.add(*runs[1:])
    found = {run.key: run for run in runs}

    def value(method, repetition, metric, selection):
        chosen = found["pets", method, repetition].selections
        return next(s.metrics[metric] for s in chosen if s.selection == selection)

    for metric, selection, used in (
        ("coverage", None, "average_precision"),
        ("coverage", "ranking_loss", "ranking_loss"),
        ("coverage", "each", "coverage"),
        ("micro_f1", "each", "average_precision"),
    ):
        table = store.scores(metric, selection)
        assert (table.datasets, table.methods) == (("pets",), ("dice", "grid"))
        expected = [
            [np.nan, *(value("dice", r, metric, "none") for r in (1, 2))],  # not added
            [value("grid", r, metric, used) for r in range(3)],
        ]
        np.testing.assert_equal(table.values[0], expected)
        assert table.greater_is_better == (metric == "micro_f1")
    with pytest.raises(ValueError, match="selection"):
        store.scores("coverage", "micro_f1")
    with pytest.raises(ValueError, match="metric"):
        store.scores("f1")


def test_changed_data_are_refused(store, small, runs):
    store.add(runs[0])
    with pytest.raises(StoreError, match="has the file changed"):
        store.add(runs[1], replace(runs[2], data_fingerprint="other"))
    assert len(store.runs()) == 1
    changed = [replace(task, data_fingerprint="other") for task in small.tasks()]
    assert "the data of 'pets' differ" in run_task(changed[0]).error


def test_an_experiment_may_grow(store, small):
    plain = small.to_dict()
    methods = {**plain["methods"], "more": {"estimator": DICE, "params": {}}}
    larger = {**plain, "n_repeats": 5, "methods": methods}
    with Store.create(store.path, Experiment.from_dict(larger, allow=ALLOW).resolve()) as grown:
        assert len(grown.experiment.tasks()) == 15
    with Store.create(store.path, small) as same:  # a part of it takes nothing away
        assert len(same.experiment.tasks()) == 15


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "seed = 0"),
        ({"cv": 7}, "cv = 3"),
        ({"methods": {"dice": {"estimator": DICE, "params": {"strength": 3.0}}}}, "'dice'"),
    ],
)
def test_another_experiment_is_refused(store, small, changes, message):
    before = store.path.read_bytes()
    with pytest.raises(StoreError, match=message):
        Store.create(
            store.path, Experiment.from_dict({**small.to_dict(), **changes}, allow=ALLOW).resolve()
        )
    assert store.path.read_bytes() == before


def test_a_file_elsewhere_replaces_the_one_that_was(store, small, pets_file, tmp_path):
    moved = shutil.move(pets_file, tmp_path / "moved.npz")
    plain = small.to_dict() | {"datasets": [{"name": "pets", "path": str(moved)}]}
    with Store.create(store.path, Experiment.from_dict(plain, allow=ALLOW)) as again:
        assert again.experiment.datasets[0].load().n_rows == 60


# Files that are not stores.


def text_file(path):
    path.write_text("these are not results, but they are mine " * 100)


def foreign_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()


def other_version(path):
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()


def truncated(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def scribbled(path):
    content = bytearray(path.read_bytes())
    content[4096:12288] = b"\x55" * 8192
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (text_file, "not a results store"),
        (foreign_database, "not a results store"),
        (other_version, "version of imcc that wrote it"),
        (truncated, "damaged"),
        (scribbled, "damaged"),
    ],
)
def test_what_is_not_a_store_is_left_as_it_is(small, tmp_path, damage, message):
    path = tmp_path / "x.sqlite"
    if damage in (other_version, truncated, scribbled):
        with Store.create(path, small) as store:
            store.add(run_task(small.tasks()[0], 1))
    damage(path)
    before = path.read_bytes()
    for attempt in (
        lambda: Store(path),
        lambda: Store(path, read_only=True),
        lambda: Store.create(path, small),
        lambda: small.run(path),
    ):
        with pytest.raises(StoreError, match=message):
            attempt()
    assert path.read_bytes() == before


def test_places_without_a_store(small, tmp_path):
    with pytest.raises(StoreError, match="no results store"):
        Store(tmp_path / "none.sqlite")
    with pytest.raises(StoreError, match="folder"):
        Store(tmp_path)
    with pytest.raises(StoreError, match="no folder"):
        Store.create(tmp_path / "none" / "x.sqlite", small)
    with pytest.raises(StoreError, match="you may write"):
        Store.create("/proc/x.sqlite", small)
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(StoreError, match="not a results store"):
        Store(tmp_path / "empty.sqlite")
    Store.create(tmp_path / "empty.sqlite", small).close()


# Disks and permissions.


def test_a_full_disk_loses_nothing(store, runs):
    store.add(runs[0])
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    warned = replace(runs[1], warnings=("x" * 100_000,))
    with pytest.raises(StoreError, match="free some space"):
        store.add(warned)
    assert by_key(store.runs()) == by_key(runs[:1])
    store._connection.execute("PRAGMA max_page_count = 1000000")
    assert store.add(warned)


def test_a_copy_of_the_file_is_complete_at_any_time(store, runs, tmp_path):
    for count, run in enumerate(runs, start=1):
        store.add(run)
        shutil.copy(store.path, tmp_path / "copy.sqlite")
        with Store(tmp_path / "copy.sqlite") as copy:
            assert len(copy.runs()) == count


def test_looking_leaves_nothing_behind_and_changes_nothing(store, runs):
    store.add(runs[0])
    before = store.path.read_bytes()
    with Store(store.path, read_only=True) as looked_at:
        assert len(looked_at.runs()) == 1
        with pytest.raises(StoreError, match="may write"):
            looked_at.add(runs[1])
        assert store.path.read_bytes() == before
        store.add(runs[2])  # by a writer in the meantime
        assert len(looked_at.runs()) == 2
    assert [p.name for p in store.path.parent.glob("small.sqlite*")] == ["small.sqlite"]


# Results that were computed elsewhere.


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_results_survive_the_way_to_another_machine(store, small, runs, tmp_path, kind):
    store.add(*runs)
    source = store.export(tmp_path / "out.csv") if kind == "csv" else store.path
    with Store.create(tmp_path / "new.sqlite", small) as new:
        new.add(runs[3])
        assert new.merge(source) == 5
        assert by_key(new.runs()) == by_key(runs)
        assert new.missing() == []
        assert new.merge(str(source)) == 0


def test_other_values_are_refused_and_nothing_is_added(store, small, runs, tmp_path):
    chosen = runs[1].selections[0]
    other = replace(chosen, metrics=chosen.metrics | {"coverage": 0.123})
    other = replace(runs[1], selections=(other, *runs[1].selections[1:]))
    with Store.create(tmp_path / "other.sqlite", small) as theirs:
        theirs.add(runs[0], other)
        path = theirs.export(tmp_path / "other.csv")
    store.add(runs[1])
    with pytest.raises(StoreError, match="pets, grid, split 1 with other values"):
        store.merge(path)
    assert store.keys() == {runs[1].key}


def test_only_an_export_is_overwritten(store, tmp_path):
    (tmp_path / "out.csv").write_text("mine")
    with pytest.raises(StoreError, match="already exists"):
        store.export(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "mine"
    (tmp_path / "out.csv").unlink()
    for _ in range(2):  # of an empty store
        assert store.merge(store.export(tmp_path / "out.csv")) == 0
    with pytest.raises(StoreError, match=r"\.csv"):
        store.export(tmp_path / "out.xlsx")
    with pytest.raises(FileNotFoundError, match="no folder"):
        store.export(tmp_path / "none" / "out.csv")


def spoil(old, new, count=1):
    return lambda text: text.replace(old, new, count)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda _: "a,b\n1,2\n", "lacks the columns"),
        (spoil("dataset", "data"), "lacks the columns dataset"),
        (spoil("pets,dice,1", "pets,dice,zero"), "line"),
        (lambda text: text + text.splitlines()[1] + "\n", "twice"),
        (lambda text: text[: len(text) - 40], "line"),
        (lambda text: "".join(text.splitlines(keepends=True)[:-2]), "some of them are missing"),
        (spoil(",grid,0,average_precision,", ",grid,0,,"), "line"),
        (spoil("pets,dice,1", "pets,dice,8"), "no task"),
        (spoil("pets,dice,1", "pets,ace,0"), "no task"),
    ],
)
def test_damaged_exports_are_refused_as_a_whole(store, small, runs, tmp_path, damage, message):
    store.add(*runs[1:])
    path = store.export(tmp_path / "out.csv")
    path.write_text(damage(path.read_text()))
    with Store.create(tmp_path / "new.sqlite", small) as new:
        with pytest.raises(StoreError, match=message):
            new.merge(path)
        assert new.runs() == []


@pytest.mark.parametrize("other", [{"seed": 1}, {"test_size": 0.3}, {"cv": 4}])
def test_results_of_another_protocol_are_refused(store, small, runs, tmp_path, other):
    store.add(runs[0])
    different = Experiment.from_dict(small.to_dict() | other, allow=ALLOW)
    path = store.export(tmp_path / "out.csv")
    new = Store.create(tmp_path / "new.sqlite", different)
    with new, pytest.raises(StoreError, match="another protocol"):
        new.merge(path)


@pytest.mark.parametrize("name", ["x.csv", "x.sqlite"])
def test_files_that_are_something_else(store, tmp_path, name):
    path = tmp_path / name
    with pytest.raises(StoreError, match="there is no"):
        store.merge(path)
    path.write_bytes(b"\x00\xff\xfe not a table")
    with pytest.raises(StoreError, match="x"):
        store.merge(path)


NAMES = ("=1+1", "+cmd", "-cmd", "@SUM", "'=1", "'quoted", "''x", "plain")


def test_names_that_begin_a_formula_are_escaped_and_come_back(pets_file, tmp_path):
    experiment = Experiment(
        dict.fromkeys(NAMES, pets_file), {"=m": "kernel_ridge"}, n_repeats=1
    ).resolve()
    run = run_task(experiment.tasks()[0], 1)
    with Store.create(tmp_path / "a.sqlite", experiment) as store:
        store.add(*(replace(run, key=task.key) for task in experiment.tasks()))
        path = store.export(tmp_path / "out.csv")
        with path.open(newline="") as file:
            lines = list(csv.DictReader(file))
        assert {line["method"] for line in lines} == {"'=m"}
        assert not any(line["dataset"].startswith(tuple("=+-@")) for line in lines)
        assert any(line["cv_score"].startswith("0.") for line in lines)
        with Store.create(tmp_path / "b.sqlite", experiment) as other:
            assert other.merge(path) == len(NAMES)
            assert [run.key for run in other.runs()] == [run.key for run in store.runs()]
