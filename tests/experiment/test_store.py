import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from imcc.experiment import Experiment, ExperimentError, Failure, Store, StoreError, run_task
from imcc.experiment._database import FORMAT
from tests.experiment.conftest import ALLOW, DICE

GRID = {"alphas": [0.1, 10.0], "betas": [1.0], "gammas": [0.1], "n_clusters": [3, 5]}


@pytest.fixture
def store(small, tmp_path):
    with Store.create(tmp_path / "small.sqlite", small) as opened:
        yield opened


def failure_of(task, text="broken"):
    return Failure(task.key, text, "Traceback", 1.0, {}, "2026-01-01")


def test_rows_come_back_as_they_went_in(store, small):
    runs = [run_task(task, 1) for task in small.tasks()]
    for run in runs:
        assert store.add(run)
    found = {run.key: run for run in store.runs()}
    assert found == {run.key: run for run in runs}
    assert store.missing() == []
    with Store(store.path, read_only=True) as again:
        assert again.runs() == store.runs()
        assert again.experiment.to_dict() == small.to_dict()


def test_studies_come_back_as_they_went_in(pets, tmp_path):
    experiment = Experiment((), sensitivity={"datasets": [pets], "params": GRID}, cv=3)
    study = run_task(experiment.tasks()[0], 1)
    with Store.create(tmp_path / "s.sqlite", experiment) as store:
        assert store.add(study)
        assert not store.add(study)
        (found,) = store.studies()
    assert np.array_equal(found.mean, study.mean)
    assert np.array_equal(found.std, study.std)
    assert (found.axes, found.metrics, found.seed) == (study.axes, study.metrics, study.seed)


def test_rows_can_be_looked_at_where_the_method_is_not_installed(store, small):
    store.add(run_task(small.tasks()[0], 1))
    plain = json.dumps(small.to_dict()).replace("imcc_test_methods", "not_installed_here")
    store._connection.execute("UPDATE meta SET value = ? WHERE name = 'experiment'", (plain,))
    with Store(store.path) as again:
        assert np.isfinite(again.scores("coverage").values).sum() == 1
        with pytest.raises(ExperimentError, match="'not_installed_here' is not allowed"):
            again.experiment.run(store.path)
        with pytest.raises(ExperimentError, match="cannot import 'not_installed_here"):
            again.experiment.run(store.path, allow=["not_installed_here"])


def test_undefined_metrics_come_back_as_nan(store, small):
    run = run_task(small.tasks()[0], 1)
    chosen = replace(run.selections[0], metrics=run.selections[0].metrics | {"macro_auc": np.nan})
    store.add(replace(run, selections=(chosen,)))
    assert np.isnan(store.runs()[0].selections[0].metrics["macro_auc"])
    assert np.isnan(store.scores("macro_auc").values).all()


def test_the_first_result_counts(store, small):
    run = run_task(small.tasks()[0], 1)
    assert store.add(run)
    assert not store.add(replace(run, fit_seconds=99.0))
    assert store.runs() == [run]


def test_a_failure_is_never_a_result(store, small):
    task = small.tasks()[0]
    assert store.add(failure_of(task))
    assert store.add(failure_of(task, "broken again"))
    assert [f.error for f in store.failures()] == ["broken again"]
    assert task.key in store.missing()
    assert not store.runs()
    run = run_task(task, 1)
    store.add(run)
    assert store.failures() == []
    assert not store.add(failure_of(task))
    assert store.runs() == [run]
    assert store.failures() == []


def test_scores_by_selection(store, small):
    for task in small.tasks():
        store.add(run_task(task, 1))
    runs = {run.key: run for run in store.runs()}

    def value(method, repetition, metric, selection):
        chosen = runs["scores", "pets", method, repetition].selections
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
            [value("dice", r, metric, "none") for r in range(3)],
            [value("grid", r, metric, used) for r in range(3)],
        ]
        assert table.values[0].tolist() == expected
        assert table.greater_is_better == (metric == "micro_f1")
    with pytest.raises(ValueError, match="selection"):
        store.scores("coverage", "micro_f1")
    with pytest.raises(ValueError, match="metric"):
        store.scores("f1")


def test_missing_runs_are_nan(store, small):
    store.add(run_task(small.tasks()[2], 1))
    values = store.scores("coverage").values
    assert np.isfinite(values).sum() == 1
    assert np.isfinite(values[0, 0, 1])


def test_changed_data_are_refused(store, small):
    first, second = (run_task(task, 1) for task in small.tasks()[:2])
    store.add(first)
    with pytest.raises(StoreError, match="has the file changed"):
        store.add(replace(second, data_fingerprint="other"))
    assert store.runs() == [first]


def test_an_experiment_may_grow(store, small):
    plain = small.to_dict()
    larger = {
        **plain,
        "n_repeats": 5,
        "methods": {**plain["methods"], "more": {"estimator": DICE, "params": {}}},
        "sensitivity": {"datasets": ["yeast"]},
    }
    with Store.create(store.path, Experiment.from_dict(larger, allow=ALLOW).resolve()) as grown:
        assert len(grown.experiment.tasks()) == 16
    with Store.create(store.path, small) as same:  # a part of it takes nothing away
        assert len(same.experiment.tasks()) == 16


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


def test_other_studies_are_refused(store, small):
    plain = {**small.to_dict(), "sensitivity": {"datasets": ["yeast"]}}
    Store.create(store.path, Experiment.from_dict(plain, allow=ALLOW)).close()
    plain["sensitivity"] = {"datasets": ["scene"], "params": {"alphas": [1.0]}}
    with pytest.raises(StoreError, match="another grid"):
        Store.create(store.path, Experiment.from_dict(plain, allow=ALLOW))


def test_a_file_elsewhere_replaces_the_one_that_was(store, small, pets_file, tmp_path):
    moved = shutil.move(pets_file, tmp_path / "moved.npz")
    plain = small.to_dict() | {"datasets": [{"name": "pets", "path": str(moved)}]}
    with Store.create(store.path, Experiment.from_dict(plain, allow=ALLOW)) as again:
        assert again.experiment.datasets[0].load().n_rows == 60


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
        (other_version, "update imcc"),
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


def test_an_older_format_says_what_to_do(small, tmp_path):
    path = tmp_path / "x.sqlite"
    Store.create(path, small).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 0")
    connection.close()
    with pytest.raises(StoreError, match="version that wrote it"):
        Store(path)


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


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
def test_a_read_only_folder_can_be_looked_at(small, tmp_path, monkeypatch):
    folder = tmp_path / "locked"
    folder.mkdir()
    with Store.create(folder / "x.sqlite", small) as store:
        store.add(run_task(small.tasks()[0], 1))
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.geteuid() == 0:  # permissions do not stop root: say what they would say
        monkeypatch.setattr(os, "access", lambda *_: False)
    try:
        with Store(folder / "x.sqlite", read_only=True) as store:
            assert len(store.runs()) == 1
        assert [p.name for p in folder.iterdir()] == ["x.sqlite"]
    finally:
        folder.chmod(0o700)


def test_looking_leaves_nothing_behind_and_changes_nothing(store, small):
    store.add(run_task(small.tasks()[0], 1))
    store.close()
    before = store.path.read_bytes()
    with Store(store.path, read_only=True) as looked_at:
        assert len(looked_at.runs()) == 1
        with pytest.raises(StoreError, match="cannot be written"):
            looked_at.add(run_task(small.tasks()[1], 1))
    assert store.path.read_bytes() == before
    assert [p.name for p in store.path.parent.glob("small.sqlite*")] == ["small.sqlite"]


def test_a_full_disk_loses_nothing(store, small):
    first, second = (run_task(task, 1) for task in small.tasks()[:2])
    store.add(first)
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    warned = replace(second, warnings=("x" * 100_000,))
    with pytest.raises(StoreError, match="free some space and resume"):
        store.add(warned)
    assert store.runs() == [first]
    store._connection.execute("PRAGMA max_page_count = 1000000")
    assert store.add(warned)


def test_a_copy_of_the_file_is_complete_at_any_time(store, small, tmp_path):
    for count, task in enumerate(small.tasks(), start=1):
        store.add(run_task(task, 1))
        shutil.copy(store.path, tmp_path / "copy.sqlite")  # without the write-ahead log
        with Store(tmp_path / "copy.sqlite") as copy:
            assert len(copy.runs()) == count


# Readers that may not write.


@pytest.fixture
def no_write_access(monkeypatch):
    """Permissions do not stop root: say what they would say."""
    monkeypatch.setattr(os, "access", lambda *_: False)


def test_a_reader_without_write_access_sees_a_live_store(store, small, no_write_access):
    for count, task in enumerate(small.tasks(), start=1):
        store.add(run_task(task, 1))
        with Store(store.path, read_only=True) as looked_at:
            assert len(looked_at.runs()) == count
            with pytest.raises(StoreError, match="cannot be written"):
                looked_at.add(run_task(task, 1))
    store.close()
    with Store(store.path, read_only=True) as looked_at:
        assert len(looked_at.runs()) == count


WRITER = """
import sys, time
from dataclasses import replace
from imcc.experiment import Store
path = sys.argv[1]
end = time.time() + float(sys.argv[2])
with Store(path) as store:
    (run,) = store.runs()
number = 0
while time.time() < end:
    # Some rows a store, so that its files come and go.
    with Store(path) as store:
        for _ in range(20):
            number += 1
            key = run.key._replace(repetition=number)
            store.add(replace(run, key=key, warnings=("x" * (number % 7 * 3000),)))
"""


@pytest.mark.slow
def test_a_reader_without_write_access_never_calls_a_live_store_damaged(
    store, small, no_write_access
):
    store.add(run_task(small.tasks()[0], 1))
    store.close()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(store.path), "10"])
    counts = []
    while writer.poll() is None:
        with Store(store.path, read_only=True) as looked_at:
            counts.append(len(looked_at.keys()))
    assert writer.returncode == 0
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]
