import json

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imcc import IMCCClassifierCV
from imcc.datasets import write
from imcc.experiment import Experiment, ExperimentError, load_experiment
from imcc.experiment._describe import build_estimator, describe_estimator, packages_of
from imcc.experiment._methods import NAMED, make_methods
from imcc.experiment._plan import load_methods
from tests.experiment.conftest import ALLOW, DICE

ESTIMATORS = [
    OneVsRestClassifier(LogisticRegression(C=3.0)),
    make_pipeline(StandardScaler(), RandomForestClassifier(7, max_features=0.5)),
    IMCCClassifierCV(n_clusters=(4, (4, 8)), width_scales=np.array([1.0, 2.0])),
    GridSearchCV(RandomForestClassifier(), {"n_estimators": [3, 5]}),
]


def test_an_experiment_is_all_combinations():
    experiment = Experiment(["yeast", "scene"], ["imcc", "lift"], n_repeats=2)
    keys = [task.key for task in experiment.tasks()]
    assert len(keys) == len(set(keys)) == 8
    assert keys[:4] == [(d, m, 0) for d in ("yeast", "scene") for m in ("imcc", "lift")]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_an_estimator_comes_back_from_its_description(estimator):
    described = json.loads(json.dumps(describe_estimator(estimator)))
    again = build_estimator(described)
    assert type(again) is type(estimator)
    assert describe_estimator(again) == describe_estimator(estimator)
    assert repr(again) == repr(estimator) or isinstance(estimator, IMCCClassifierCV)


@pytest.mark.parametrize("name", NAMED)
def test_every_named_method_can_be_built(name):
    (method,) = make_methods([name])
    assert method.name == name
    estimator, grid = method.build()
    assert hasattr(estimator, "fit")
    assert grid is None


def test_parameters_come_on_top_of_a_named_method():
    (method,) = make_methods({"mine": {"estimator": "llsf", "params": {"budget": 5}}})
    estimator, _ = method.build()
    assert (estimator.budget, estimator.halving) == (5, True)


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ("imc", "imc"),
        ({"a": "no.such.module"}, "cannot import"),
        ({"a": "imcc.NoSuchClass"}, "NoSuchClass"),
        ({"a": 3}, "must be a known name"),
        ({"a": {"estimator": "imcc", "parms": {}}}, "parms"),
        ({"a": {"estimator": "imcc", "params": {"alfa": 1}}}, "alfa"),
        ({"a": {"estimator": DICE, "grid": {"stength": [1]}}}, "stength"),
        ({"a": {"estimator": DICE, "grid": {"strength": 1}}}, "list of values"),
        ({"a": {"estimator": DICE, "grid": {}}}, "grid"),
        ({" a": DICE}, "space"),
        (["imcc", "imcc"], "duplicate"),
        ({"a": IMCCClassifierCV(kernels=[min])}, "cannot be stored"),
        ({"a": (DICE, {}, 1)}, "pair"),
        ({"a": "json.JSONDecodeError"}, "a"),
        (7, "methods must be"),
    ],
)
def test_wrong_methods_are_refused_before_anything_runs(methods, message):
    with pytest.raises(ValueError, match=message):
        Experiment("yeast", methods, allow=[*ALLOW, "no", "json"]).resolve()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"datasets": "yeats", "methods": "imcc"}, "yeast"),
        ({"datasets": "no/such.arff", "methods": "imcc"}, "no file"),
        ({"datasets": ["yeast", "yeast"], "methods": "imcc"}, "duplicate"),
        ({"datasets": 5, "methods": "imcc"}, "datasets"),
        ({"datasets": "yeast"}, "nothing to compute"),
        ({"datasets": "yeast", "methods": "imcc", "n_repeats": 0}, "n_repeats"),
        ({"datasets": "yeast", "methods": "imcc", "test_size": 1.0}, "test_size"),
        ({"datasets": "yeast", "methods": "imcc", "cv": 1}, "cv"),
        ({"datasets": "yeast", "methods": "imcc", "scoring": "f1"}, "scoring"),
        ({"datasets": "yeast", "methods": "imcc", "seed": 0.5}, "seed"),
        ({"datasets": "yeast", "methods": "imcc", "stratified": "yes"}, "stratified"),
        ({"datasets": [{"name": "yeast", "standardize": 1}], "methods": "imcc"}, "standardize"),
        ({"datasets": [{"name": "yeast", "labels": "last"}], "methods": "imcc"}, "with a path"),
        (
            {
                "datasets": [{"table": "a.csv", "labels": ["y"], "standardize": True}],
                "methods": "imcc",
            },
            "standardize is for numeric files",
        ),
    ],
)
def test_wrong_experiments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Experiment(**arguments)


def test_a_description_gives_the_same_experiment(small):
    again = Experiment.from_dict(json.loads(json.dumps(small.to_dict())))
    assert again.to_dict() == small.to_dict()
    assert [t.key for t in again.tasks()] == [t.key for t in small.tasks()]
    assert [t.fingerprint for t in again.tasks()] == [t.fingerprint for t in small.tasks()]


def test_fingerprints_tell_protocols_and_methods_apart(small):
    def first(**changes):
        plain = {**small.to_dict(), **changes}
        return Experiment.from_dict(plain, allow=ALLOW).resolve().tasks()[0].fingerprint

    changed = {"seed": 1, "cv": 4, "test_size": 0.3, "scoring": "coverage", "stratified": True}
    found = {first(**{name: value}) for name, value in changed.items()}
    found.add(first(methods={"dice": {"estimator": DICE, "params": {"strength": 2.0}}}))
    scaled = [{**small.to_dict()["datasets"][0], "standardize": True}]
    found.add(first(datasets=scaled))
    found.add(first())
    assert len(found) == len(changed) + 3
    assert first(n_repeats=9) == first()


def test_a_toml_file_describes_an_experiment(tmp_path, pets):
    write(pets, tmp_path / "pets.csv")
    (tmp_path / "mine.toml").write_text(
        f"""
        n_repeats = 4
        scoring = "coverage"
        datasets = ["yeast", {{name = "animals", path = "pets.csv", label_prefix = "label"}}]
        [methods.imcc]
        [methods.short]
        estimator = "imcc"
        params = {{n_clusters = [8]}}
        [methods.dice]
        estimator = "{DICE}"
        grid = {{strength = [1.0, 2.0]}}
        """
    )
    experiment = load_experiment(tmp_path / "mine.toml")
    assert experiment.name == "mine"
    assert [d.name for d in experiment.datasets] == ["yeast", "animals"]
    assert experiment.datasets[1].load() == pets
    assert experiment.methods[1].build()[0].n_clusters == [8]
    assert experiment.methods[2].resolve(ALLOW).build()[1] == {"strength": [1.0, 2.0]}
    assert experiment.protocol.scoring == "coverage"
    assert len(experiment.tasks()) == 4 * 2 * 3


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mine.toml", b"n_repeats = ", "not valid TOML"),
        ("mine.toml", b"repeats = 3", "repeats"),
        ("mine.toml", b'datasets = ["yeast"]\nmethods = ["imc"]', "imcc"),
        ("mine.toml", b'datasets = ["gone.csv"]\nmethods = ["imcc"]', "gone.csv"),
        ("mine.toml", b"datasets = 5", "datasets"),
        ("mine.toml", b"\xff\xfe", "utf-8"),
        ("mine.json", b"{", "not valid JSON"),
        ("mine.json", b"[" * 100_000, "not valid JSON"),
        ("mine.json", b"[1]", "object"),
    ],
)
def test_a_wrong_file_is_named_in_the_message(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ExperimentError, match=message) as raised:
        load_experiment(tmp_path / name)
    assert name in str(raised.value)


def test_a_missing_file_is_an_error():
    with pytest.raises(ExperimentError, match="quick"):
        load_experiment("papers")


def test_a_file_of_methods(tmp_path):
    path = tmp_path / "m.toml"
    path.write_text(
        'allow = ["a"]\n[methods.knn]\nestimator = "sklearn.neighbors.KNeighborsClassifier"\n'
    )
    methods, allow = load_methods(path)
    assert ([m.name for m in methods], allow) == (["knn"], ("a",))
    for text, message in (
        ("", r"must have \[methods.NAME\].* it has nothing"),
        ('datasets = ["yeast"]\n[methods.imcc]', "it has datasets, methods"),
        ("[methods", "m.toml is not valid TOML"),
        ('[methods.x]\nestimator = "nobody"', "method 'x' must be one of"),
        ('allow = "a b"\n[methods.imcc]', "allow must be names of packages"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            load_methods(path)
    with pytest.raises(ExperimentError, match="cannot be read"):
        load_methods(tmp_path / "none.toml")


def test_the_experiment_of_the_package():
    assert len(load_experiment("quick").tasks()) == 5 * 3


def test_names_are_given_to_files_and_data(pets, pets_file):
    experiment = Experiment({"a": pets_file, "b": pets, "c": {"path": pets_file}}, {"dice": DICE})
    assert [d.name for d in experiment.datasets] == ["a", "b", "c"]
    assert all(d.load() == pets and d.load().name == d.name for d in experiment.datasets)
    with pytest.raises(ExperimentError, match="given in memory"):
        Experiment.from_dict(experiment.to_dict()).datasets[1].load()


def test_a_class_that_no_other_process_can_import_is_refused():
    class Local(RandomForestClassifier):
        pass

    with pytest.raises(ExperimentError, match="put the class into a module"):
        make_methods([Local()])


def test_a_part_of_an_experiment():
    names = ["enron", "yeast", "arts", "genbase"]
    whole = Experiment(names, ["imcc", "ecc", "lift"])
    part = whole.subset(datasets=["yeast", "arts", "yeast"], methods=["ecc", "imcc"], n_repeats=2)
    assert [d.name for d in part.datasets] == ["yeast", "arts"]
    assert [m.name for m in part.methods] == ["ecc", "imcc"]
    assert len(part.tasks()) == 2 * 2 * 2
    assert len(whole.tasks()) == 4 * 3 * 10  # as it was
    known = {task.key: task.fingerprint for task in whole.resolve().tasks()}
    assert all(known[t.key] == t.fingerprint for t in part.resolve().tasks())
    for wrong in ({"datasets": ["cats"]}, {"methods": ["mice"]}, {"n_repeats": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            whole.subset(**wrong)
    with pytest.raises(ExperimentError, match="nothing to compute"):
        whole.subset(methods=[])


def test_the_packages_of_a_method_are_those_of_all_its_parts():
    """A parameter named estimator is not the name of a class."""
    wrapper = {"estimator": "MultilabelCalibrator", "params": {"estimator": {"estimator": "MAHR"}}}
    assert packages_of(make_methods({"x": wrapper})[0].description) == ()
    wrapper["params"] = {"estimator": {"estimator": "sklearn.svm.SVC"}}
    assert packages_of(make_methods({"x": wrapper})[0].description) == ("sklearn",)
