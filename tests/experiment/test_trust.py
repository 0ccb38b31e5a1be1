"""Nothing that a file names is imported or called, until it is run and allowed."""

import json
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.multiclass import OneVsRestClassifier

import imcc.report
from imcc.datasets import Dataset
from imcc.experiment import (
    Experiment,
    ExperimentError,
    Failure,
    Store,
    StoreError,
    load_experiment,
    run,
    run_task,
)
from tests.experiment.conftest import DICE


def touch(path):
    """The description of a call that leaves a trace."""
    return {"estimator": "os.system", "params": {"command": f"touch {path}"}}


def descriptions(trace):
    """Methods that call os.system when they are built, in one way or another."""
    evil = touch(trace)
    nested = {"estimator": "sklearn.multiclass.OneVsRestClassifier", "params": {"estimator": evil}}
    return {
        "itself": evil,
        "nested": nested,
        "in ours": {"estimator": "IMCCClassifierCV", "params": {"clusterer": evil}},
        "a default": {
            "estimator": "IMCCClassifierCV",
            "params": {},
            "defaults": {"clusterer": evil},
        },
        "in a list": {"estimator": "IMCCClassifierCV", "params": {"kernels": [evil]}},
        "in a tuple": {"estimator": "IMCCClassifierCV", "params": {"kernels": {"tuple": [evil]}}},
        "in a table": {"estimator": "IMCCClassifierCV", "params": {"cv": {"table": {"a": evil}}}},
        "in a grid": {
            "estimator": "sklearn.neighbors.KNeighborsClassifier",
            "params": {},
            "grid": {"metric": [evil]},
        },
        "by a colon": {"estimator": "os:system", "params": {"command": f"touch {trace}"}},
        "subprocess": {"estimator": "subprocess.Popen", "params": {"args": ["touch", str(trace)]}},
        "no estimator": {"estimator": "sklearn.utils.Bunch", "params": {}},
    }


WAYS = list(descriptions("x"))


@pytest.fixture
def trace(tmp_path):
    return tmp_path / "trace"


def hostile_store(path, method):
    """A store with a row, whose description names what it should not."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    data = Dataset(X, [[0, 1], [1, 0], [1, 1]] * 10, name="pets")
    experiment = Experiment(data, {"m": "kernel_ridge"}, n_repeats=2, cv=2)
    with Store.create(path, experiment) as store:
        store.add(run_task(experiment.tasks()[0], 1))
    with sqlite3.connect(path) as connection:
        (text,) = connection.execute("SELECT description FROM experiment").fetchone()
        plain = json.loads(text)
        plain["methods"]["m"] = method
        connection.execute("UPDATE experiment SET description = ?", (json.dumps(plain),))
    connection.close()
    return path


REFUSED = r"not allowed|not a scikit-learn estimator"


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_called_unless_a_store_is_run_and_then_it_is_refused(tmp_path, trace, way):
    path = hostile_store(tmp_path / "x.sqlite", descriptions(trace)[way])
    with Store(path, read_only=True) as store:
        experiment = store.experiment
        assert len(store.runs()) == len(store.missing()) == 1
        store.scores("coverage")
        store.failures()
        repr(experiment)
        store.export(tmp_path / "out.csv")
    imcc.report.write_tables(path, tmp_path / "out.tex")
    if way in ("itself", "in ours"):  # which takes a while
        imcc.report.write_report(path, tmp_path / "out.html")
    with Store(path) as store:
        for source in (tmp_path / "out.csv", path):
            with pytest.raises((StoreError, ExperimentError), match=r"another|not known"):
                store.merge(source)
    if way == "a default":  # all is said there, so nothing is built
        Store.create(tmp_path / "other.sqlite", experiment).close()
    else:
        with pytest.raises(ExperimentError, match=REFUSED):
            Store.create(tmp_path / "other.sqlite", experiment)
        assert not (tmp_path / "other.sqlite").exists()
    with pytest.raises(ExperimentError, match=REFUSED):
        run(experiment, path)
    with pytest.raises(ExperimentError, match="not a scikit-learn estimator"):
        run(experiment, path, allow=["os", "subprocess"])  # even where the package is allowed
    assert isinstance(run_task(experiment.tasks()[0]), Failure)
    assert not trace.exists()


@pytest.mark.parametrize("way", WAYS)
def test_a_file_runs_nothing_while_it_is_parsed(tmp_path, trace, way):
    plain = {"datasets": ["yeast"], "methods": {"m": descriptions(trace)[way]}}
    path = tmp_path / "x.json"
    path.write_text(json.dumps(plain))
    experiment = load_experiment(path)
    experiment.tasks()
    experiment.to_dict()
    with pytest.raises(ExperimentError, match=REFUSED):
        experiment.run(tmp_path / "x.sqlite")
    assert not trace.exists()
    assert not (tmp_path / "x.sqlite").exists()


def test_a_store_cannot_bring_its_own_permission(tmp_path, pets_file):
    experiment = Experiment(pets_file, {"d": DICE}, n_repeats=1, allow=["imcc_test_methods"])
    path = tmp_path / "x.sqlite"
    run(experiment.subset(n_repeats=1), path, isolate=False)
    with sqlite3.connect(path) as connection:
        (text,) = connection.execute("SELECT description FROM experiment").fetchone()
        assert "allow" not in json.loads(text)
        plain = json.loads(text) | {"allow": ["imcc_test_methods"], "n_repeats": 2}
        connection.execute("UPDATE experiment SET description = ?", (json.dumps(plain),))
    connection.close()
    with pytest.raises(StoreError, match="allow"):
        Store(path)
    with sqlite3.connect(path) as connection:
        del plain["allow"]
        connection.execute("UPDATE experiment SET description = ?", (json.dumps(plain),))
    connection.close()
    with Store(path) as store:
        wanted = store.experiment
    with pytest.raises(ExperimentError, match="'imcc_test_methods' is not allowed"):
        run(wanted, path)
    assert run(wanted, path, allow=["imcc_test_methods"], isolate=False).n_computed == 1


def test_a_toml_file_that_is_run_may_name_the_packages_it_needs(tmp_path, pets_file):
    path = tmp_path / "mine.toml"
    text = f'n_repeats = 1\ndatasets = ["{pets_file}"]\nmethods = {{d = "{DICE}"}}\n'
    path.write_text(text)
    with pytest.raises(ExperimentError, match="not allowed"):
        load_experiment(path).run(tmp_path / "x.sqlite")
    path.write_text('allow = ["imcc_test_methods"]\n' + text)
    assert load_experiment(path).run(tmp_path / "x.sqlite", isolate=False).n_computed == 1
    path.write_text("allow = [3]\n" + text)
    with pytest.raises(ExperimentError, match="allow must be names of packages"):
        load_experiment(path)


def test_a_part_of_a_package_does_not_allow_all_of_it():
    experiment = Experiment("yeast", {"d": "os.system"}, n_repeats=1, allow=["os.path"])
    with pytest.raises(ExperimentError, match="not allowed"):
        experiment.resolve()


def test_an_estimator_that_was_given_as_an_object_is_allowed(tmp_path, pets):
    from imcc_test_methods import Dice

    experiment = Experiment(pets, {"d": Dice()}, n_repeats=1)
    assert run(experiment, tmp_path / "x.sqlite", isolate=False).n_computed == 1
    Experiment(pets, {"e": OneVsRestClassifier(Dice())}, n_repeats=1).resolve()
    assert "allow" not in json.dumps(experiment.to_dict())


class Odd(ClassifierMixin, BaseEstimator):
    """An estimator whose defaults cannot all be written into a description."""

    def __init__(self, dtype=float, missing=float("nan"), limit=float("inf")):
        self.dtype, self.missing, self.limit = dtype, missing, limit

    def fit(self, X, Y):
        return self


def test_defaults_are_part_of_a_method(pets, monkeypatch):
    before = Experiment(pets, {"o": Odd()}, n_repeats=1)
    again = Experiment.from_dict(json.loads(json.dumps(before.to_dict())))
    assert again.tasks()[0].fingerprint == before.tasks()[0].fingerprint
    given = Experiment(pets, {"o": Odd(limit=float("inf"))}, n_repeats=1)
    assert given.tasks()[0].fingerprint == before.tasks()[0].fingerprint
    other = Experiment(pets, {"o": Odd(limit=3.0)}, n_repeats=1)
    assert other.tasks()[0].fingerprint != before.tasks()[0].fingerprint
    monkeypatch.setattr(Odd.__init__, "__defaults__", (float, float("nan"), 3.0))
    changed = Experiment(pets, {"o": Odd()}, n_repeats=1)
    assert changed.tasks()[0].fingerprint == other.tasks()[0].fingerprint
    built, _ = before.methods[0].build()  # the defaults of its time, not those of today
    assert built.limit == float("inf")


def test_a_changed_default_does_not_mix_with_old_rows(tmp_path, pets, monkeypatch):
    path = tmp_path / "x.sqlite"
    Store.create(path, Experiment(pets, {"o": Odd()}, n_repeats=1)).close()
    monkeypatch.setattr(Odd.__init__, "__defaults__", (float, float("nan"), 3.0))
    with pytest.raises(StoreError, match=r"limit = .*inf.*, not 3.0"):
        Store.create(path, Experiment(pets, {"o": Odd()}, n_repeats=1))


def test_a_new_parameter_is_warned_of(pets):
    plain = Experiment(pets, {"o": Odd()}, n_repeats=1).to_dict()
    del plain["methods"]["o"]["defaults"]["limit"]
    method = Experiment.from_dict(plain).methods[0]
    with pytest.warns(UserWarning, match="limit=inf"):
        method.resolve(["tests"])


def test_our_classes_are_stored_by_their_short_names(tmp_path):
    methods = ["imcc", "ecc", "kernel_ensemble", "imcc.baselines.MAHR"]
    plain = Experiment("yeast", methods).resolve().to_dict()
    text = json.dumps([method["estimator"] for method in plain["methods"].values()])
    assert "imcc." not in text


def test_opening_imports_no_estimator_of_the_store(tmp_path, pets_file):
    """In a new process, which would otherwise have them imported already."""
    path = tmp_path / "x.sqlite"
    experiment = Experiment(pets_file, {"n": "sklearn.neighbors.KNeighborsClassifier"})
    Store.create(path, experiment.resolve()).close()
    program = (
        "import sys\nfrom imcc.experiment import Store\nbefore = set(sys.modules)\n"
        f"Store({str(path)!r}, read_only=True).close()\n"
        "print(sorted(m for m in set(sys.modules) - before if m.startswith(('sklearn', 'imcc'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_packages_of_further_methods_are_allowed_for_all(tmp_path, pets_file):
    """Methods that a store has can be run together with others of their package."""
    path = tmp_path / "x.sqlite"
    whole = Experiment(pets_file, {"d": DICE}, n_repeats=1, allow=["imcc_test_methods"])
    Store.create(path, whole).close()
    with Store(path) as store:
        grown = store.experiment.with_methods({"e": DICE}, allow=["imcc_test_methods"])
    assert grown.run(path, isolate=False).n_computed == 2
