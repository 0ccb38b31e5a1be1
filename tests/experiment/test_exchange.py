import csv
import shutil
from dataclasses import replace

import numpy as np
import pytest

from imcc.experiment import Experiment, Store, StoreError, export, merge, run_task
from tests.experiment.conftest import ALLOW

GRID = {"alphas": [0.1, 10.0], "betas": [1.0], "gammas": [0.1], "n_clusters": [3, [3, 5]]}


@pytest.fixture
def whole(small, tmp_path):
    plain = small.to_dict()
    plain["sensitivity"] = {"datasets": plain["datasets"], "params": GRID}
    return Experiment.from_dict(plain, allow=ALLOW)


@pytest.fixture
def results(whole):
    results = [run_task(task, 1) for task in whole.tasks()]
    chosen = results[0].selections[0]
    undefined = replace(chosen, metrics=chosen.metrics | {"macro_auc": np.nan})
    results[0] = replace(results[0], selections=(undefined,), warnings=("a, b\n'c'",))
    return results


@pytest.fixture
def store(whole, results, tmp_path):
    with Store.create(tmp_path / "whole.sqlite", whole) as opened:
        opened.add_all(results)
        yield opened


def same(a, b):
    for name in ("mean", "std"):
        if hasattr(a, name):
            assert np.array_equal(getattr(a, name), getattr(b, name))
            a, b = replace(a, **{name: None}), replace(b, **{name: None})
    return repr(a) == repr(b)  # NaN is not equal to itself, but looks like it


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_results_survive_the_way_to_another_machine(store, whole, tmp_path, kind):
    if kind == "sqlite":
        sources = [shutil.copy(store.path, tmp_path / "copy.sqlite")]
    else:
        sources = export(store, tmp_path / "out.csv")
        assert [p.name for p in sources] == ["out.csv", "out.sensitivity.csv"]
    with Store.create(tmp_path / "new.sqlite", whole) as new:
        merged = merge(new, sources)
        assert (merged.n_new, merged.n_known, merged.conflicts) == (7, 0, [])
        for a, b in zip(new.results(), store.results(), strict=True):
            assert same(a, b)
        again = merge(new, sources)
        assert (again.n_new, again.n_known) == (0, 7)


def test_rows_of_several_machines_come_together(whole, results, tmp_path):
    parts = []
    for i in range(2):
        with Store.create(tmp_path / f"part{i}.sqlite", whole) as part:
            part.add_all(results[i::2])
            parts += export(part, tmp_path / f"part{i}.csv")
    with Store.create(tmp_path / "all.sqlite", whole) as together:
        assert merge(together, parts).n_new == 7
        assert together.missing() == []


def test_a_conflict_keeps_what_is_there(store, whole, results, tmp_path):
    chosen = results[1].selections[0]
    other = replace(chosen, metrics=chosen.metrics | {"coverage": 0.123})
    with Store.create(tmp_path / "other.sqlite", whole) as theirs:
        theirs.add_all([replace(results[1], selections=(other, *results[1].selections[1:]))])
        path = export(theirs, tmp_path / "other.csv")
    before = store.runs()
    merged = merge(store, path)
    assert (merged.n_new, merged.n_known) == (0, 0)
    assert merged.conflicts == [results[1].key]
    assert repr(store.runs()) == repr(before)


def test_files_are_not_overwritten_unless_asked(store, tmp_path):
    (tmp_path / "out.csv").write_text("mine")
    with pytest.raises(StoreError, match="already exists"):
        export(store, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "mine"
    assert not (tmp_path / "out.sensitivity.csv").exists()
    assert export(store, tmp_path / "out.csv", overwrite=True)


def test_places_that_cannot_be_written_to(store, tmp_path):
    with pytest.raises(StoreError, match=r"\.csv"):
        export(store, tmp_path / "out.xlsx")
    with pytest.raises(FileNotFoundError, match="no folder"):
        export(store, tmp_path / "none" / "out.csv")
    assert not list(tmp_path.glob(".out*"))


def spoil(old, new, count=1):
    return lambda text: text.replace(old, new, count)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda _: "a,b\n1,2\n", "lacks the columns"),
        (spoil("dataset", "data"), "lacks the columns dataset"),
        (lambda text: text.replace(",pets", ",x").replace("pets,dice,0", "pets,dice,zero"), "line"),
        (lambda text: text + text.splitlines()[1] + "\n", "twice"),
        (lambda text: text[: len(text) - 40], "line"),
        (lambda text: "".join(text.splitlines(keepends=True)[:-2]), "some of them missing"),
        (spoil(",grid,0,average_precision,", ",grid,0,,"), "line"),
        (spoil("pets,dice,0", "pets,dice,8"), "no task"),
        (spoil("pets,dice,0", "pets,ace,0"), "no task"),
    ],
)
def test_damaged_exports_are_refused_as_a_whole(store, whole, tmp_path, damage, message):
    path, _ = export(store, tmp_path / "out.csv")
    path.write_text(damage(path.read_text()))
    with Store.create(tmp_path / "new.sqlite", whole) as new:
        with pytest.raises(StoreError, match=message):
            merge(new, [path])
        assert new.runs() == []


def test_a_study_with_lines_missing_is_refused(store, whole, tmp_path):
    _, path = export(store, tmp_path / "out.csv")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    new = Store.create(tmp_path / "new.sqlite", whole)
    with new, pytest.raises(StoreError, match="its grid has"):
        merge(new, [path])


def test_results_of_another_protocol_are_refused(store, whole, tmp_path):
    path = export(store, tmp_path / "out.csv")
    other = Experiment.from_dict(whole.to_dict() | {"cv": 4}, allow=ALLOW)
    new = Store.create(tmp_path / "new.sqlite", other)
    with new, pytest.raises(StoreError, match="another protocol"):
        merge(new, path)


@pytest.mark.parametrize("name", ["x.csv", "x.sqlite"])
def test_files_that_are_something_else(store, tmp_path, name):
    path = tmp_path / name
    with pytest.raises(StoreError, match="there is no"):
        merge(store, [path])
    path.write_bytes(b"\x00\xff\xfe not a table")
    with pytest.raises(StoreError, match="x"):
        merge(store, [path])


def test_an_empty_export_brings_nothing(whole, tmp_path):
    with Store.create(tmp_path / "e.sqlite", whole) as empty:
        (path,) = export(empty, tmp_path / "e.csv")
        assert merge(empty, [path]).n_new == 0


NAMES = ("=1+1", "+cmd", "-cmd", "@SUM", "'=1", "'quoted", "''x", "plain")


def test_names_that_begin_a_formula_are_defused_and_come_back(pets_file, tmp_path):
    experiment = Experiment(
        dict.fromkeys(NAMES, pets_file), {"=m": "kernel_ridge"}, n_repeats=1
    ).resolve()
    rows = [run_task(task, 1) for task in experiment.tasks()[:1]]
    rows = [replace(rows[0], key=task.key) for task in experiment.tasks()]
    with Store.create(tmp_path / "a.sqlite", experiment) as store:
        store.add_all(rows)
        (path,) = export(store, tmp_path / "out.csv")
        with path.open(newline="") as file:
            lines = list(csv.DictReader(file))
        assert {line["method"] for line in lines} == {"'=m"}
        assert not any(line["dataset"].startswith(tuple("=+-@")) for line in lines)
        assert any(line["cv_score"].startswith("0.") for line in lines)
        raw = export(store, tmp_path / "raw.csv", defuse=False)[0].read_text()
        assert "\n=1+1,=m," in raw
        with Store.create(tmp_path / "b.sqlite", experiment) as other:
            assert merge(other, [path]).n_new == len(NAMES)
            assert [run.key for run in other.runs()] == [run.key for run in store.runs()]
