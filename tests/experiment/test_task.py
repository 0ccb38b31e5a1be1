import random
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc._math.logistic import fit_logistic_maps
from imcc.baselines import LLSFCV, KernelRidgeBaseline
from imcc.datasets import Dataset, paper_splits, read, write
from imcc.estimators import EdgeOfGridWarning, TunedThresholds, cross_fit_scores
from imcc.experiment import Experiment, Failure, StoreError, run_task
from imcc.experiment._scores import all_metrics, centred_scores
from imcc.metrics import METRICS, evaluate
from tests.backends import backend
from tests.experiment.conftest import ALLOW, DICE

# The same clusters on every device, unlike those of k-means.
SAME_CLUSTERS = {
    "estimator": "sklearn.cluster.AgglomerativeClustering",
    "params": {"linkage": "complete"},
}
GRID = {"alphas": [0.1, 10.0], "betas": [0.01, 1.0], "gammas": [0.1], "n_clusters": [3, 5]}


def only(data, method, **options):
    return Experiment(
        data, {"m": method}, **{"n_repeats": 1, "cv": 3, "allow": ALLOW} | options
    ).tasks()[0]


def parts(data, repetition=0, **options):
    train, test = paper_splits(data, repetition + 1, **options)[repetition]
    return data.X[train], data.Y[train], data.X[test], data.Y[test]


def test_both_selections_are_what_a_search_by_hand_gives(pets):
    run = run_task(only(pets, {"estimator": "imcc", "params": GRID}), 1)
    X, Y, X_new, Y_new = parts(pets)
    assert [s.selection for s in run.selections] == [
        "average_precision",
        *(name for name in METRICS if name != "average_precision"),
    ]
    for chosen in run.selections:
        search = IMCCClassifierCV(
            **GRID,
            grid="paper",
            cv=KFold(3, shuffle=True, random_state=run.seed),
            scoring=chosen.selection,
            random_state=run.seed,
        ).fit(X, Y)
        assert chosen.setting == search.best_params_
        assert chosen.cv_score == pytest.approx(search.best_score_, rel=1e-12)
        scores = search.decision_function(X_new)
        expected = all_metrics(Y_new, scores, scores >= 0)
        assert chosen.metrics == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "params", "make"),
    [
        ("imcc", GRID, IMCCClassifierCV),
        ("kernel_ridge", {"betas": [0.01, 1.0], "width_scales": [1.0]}, KernelRidgeBaseline),
        ("llsf", {"alphas": [0.1], "betas": [0.1, 1.0], "max_iter": 5000}, LLSFCV),
    ],
)
def test_a_search_that_calibrates_does_so_for_each_choice(pets, name, params, make):
    run = run_task(only(pets, {"estimator": name, "params": {**params, "calibrate": True}}), 1)
    assert not isinstance(run, Failure), run.error
    plain = run_task(only(pets, {"estimator": name, "params": params}), 1)
    X, Y, X_new, Y_new = parts(pets)
    folds = KFold(3, shuffle=True, random_state=run.seed)
    for chosen, without in zip(run.selections, plain.selections, strict=True):
        assert (chosen.setting, chosen.cv_score) == (without.setting, without.cv_score)
        if name == "llsf":
            continue
        fixed = {**GRID, "grid": "paper"} if make is IMCCClassifierCV else params
        search = make(**fixed, cv=folds)
        if make is IMCCClassifierCV:
            search.set_params(random_state=run.seed)
        search.fit(X, Y)
        model = clone(search.estimator_for(chosen.setting))
        maps = fit_logistic_maps(cross_fit_scores(model, X, Y, cv=folds), Y > 0)
        odds = maps.log_odds(model.fit(X, Y).decision_function(X_new))
        assert chosen.metrics == pytest.approx(all_metrics(Y_new, odds, odds >= 0), rel=1e-9)
        assert chosen.metrics != without.metrics


def test_the_edge_of_a_grid_is_no_news_in_a_row(pets):
    axes = {**GRID, "betas": [1e-3, 1e-2, 1e-1], "cv": 3}
    search = IMCCClassifierCV(**axes, width_scales=1.0, random_state=0)
    with pytest.warns(EdgeOfGridWarning, match="largest of betas"):
        search.fit(*parts(pets)[:2])
    tuned = TunedThresholds(search, cv=3)
    run = run_task(only(pets, tuned), 1)
    assert not any("edge of the grid" in text for text in run.warnings)


def test_a_grid_over_any_estimator_is_searched_by_every_metric(pets):
    forest = RandomForestClassifier(5)
    run = run_task(only(pets, (forest, {"max_depth": [1, 2, 6]})), 1)
    X, Y, X_new, Y_new = parts(pets)
    forest = RandomForestClassifier(5, random_state=run.seed)
    for chosen in run.selections:
        values = {}
        for depth in (1, 2, 6):
            folds = []
            for train, test in KFold(3, shuffle=True, random_state=run.seed).split(X):
                forest.set_params(max_depth=depth).fit(X[train], Y[train])
                scores = np.column_stack([p[:, 1] for p in forest.predict_proba(X[test])]) - 0.5
                folds.append(
                    all_metrics(Y[test], scores, forest.predict(X[test]) > 0)[chosen.selection]
                )
            values[depth] = np.mean(folds)
        best = max if METRICS[chosen.selection].greater_is_better else min
        assert chosen.cv_score == pytest.approx(best(values.values()), rel=1e-12)
        assert values[chosen.setting["max_depth"]] == pytest.approx(chosen.cv_score)
        forest.set_params(**chosen.setting).fit(X, Y)
        scores = np.column_stack([p[:, 1] for p in forest.predict_proba(X_new)]) - 0.5
        assert chosen.metrics == pytest.approx(
            all_metrics(Y_new, scores, forest.predict(X_new) > 0)
        )


def test_a_method_without_a_search_has_one_row(pets):
    run = run_task(only(pets, IMCCClassifier(4)), 1)
    (chosen,) = run.selections
    assert (chosen.selection, chosen.setting, chosen.cv_score) == ("none", {}, None)
    X, Y, X_new, Y_new = parts(pets)
    scores = IMCCClassifier(4, random_state=run.seed).fit(X, Y).decision_function(X_new)
    assert {m: chosen.metrics[m] for m in METRICS} == pytest.approx(evaluate(Y_new, scores))


def test_the_chosen_kernel_ridge_is_the_one_of_its_own_search(pets):
    run = run_task(only(pets, "kernel_ridge"), 1)
    X, Y, X_new, Y_new = parts(pets)
    own = KernelRidgeBaseline(cv=KFold(3, shuffle=True, random_state=run.seed)).fit(X, Y)
    expected = evaluate(Y_new, own.decision_function(X_new))
    metrics = run.selections[0].metrics
    assert {m: metrics[m] for m in METRICS} == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "method",
    [{"estimator": "imcc", "params": GRID}, {"estimator": "imcc_test_methods.Rude", "params": {}}],
    ids=["imcc", "global generators"],
)
def test_the_row_depends_on_the_task_alone(pets, method):
    experiment = Experiment(pets, {"m": method}, n_repeats=2, cv=3, allow=ALLOW)
    task, other = experiment.tasks()
    random.seed(1)
    np.random.seed(1)
    first = run_task(task, 1)
    after = random.random(), np.random.rand()
    second = run_task(task, 1)
    assert first.selections == second.selections
    assert first.seed == second.seed
    assert run_task(other, 1).selections != first.selections
    random.seed(1)
    np.random.seed(1)
    assert after == (random.random(), np.random.rand())  # they go on as if nothing had been


def test_small_tasks_get_one_thread(pets):
    def threads(data, *arguments):
        return run_task(only(data, DICE), *arguments).environment["threads"]

    large = Dataset(np.zeros((2500, 400)), np.eye(2500, 2, dtype=int), name="large")
    assert [threads(data, None, None, 2) for data in (pets, large)] == [1, 2]
    assert threads(pets, 2) == 2


def test_seeds_depend_on_base_data_set_and_repetition_only(pets):
    def seeds(name="pets", **options):
        experiment = Experiment(
            {name: pets}, {"d": DICE, "e": DICE}, n_repeats=2, allow=ALLOW, **options
        )
        return [run_task(task, 1).seed for task in experiment.tasks()]

    d0, e0, d1, e1 = seeds()
    assert d0 == e0 != d1 == e1
    assert seeds(test_size=0.3) == [d0, e0, d1, e1]
    assert seeds(name="dogs")[0] != d0
    assert seeds(seed=1)[0] != d0


def test_stratified_splits_are_others(pets):
    plain, even = (run_task(only(pets, DICE, stratified=s), 1) for s in (False, True))
    assert plain.selections != even.selections


def test_the_test_size_is_respected(pets):
    run = run_task(only(pets, DICE, test_size=0.5), 1)
    assert (run.n_train, run.n_test, run.n_features, run.n_labels) == (30, 30, 4, 3)


def test_an_error_becomes_a_failure_with_its_traceback(pets):
    failure = run_task(only(pets, {"estimator": DICE, "params": {"fails": True}}), 1)
    assert isinstance(failure, Failure)
    assert failure.error == "ValueError: the dice fell off the table"
    assert "in fit" in failure.traceback


def test_a_search_that_is_undefined_on_every_fold_fails_clearly():
    data = Dataset(np.eye(12), np.ones((12, 2), int), name="full")
    failure = run_task(only(data, (DICE, {"strength": [1.0, 2.0]})), 1)
    assert "undefined" in failure.error


def test_what_was_measured_is_plausible(pets):
    run = run_task(only(pets, {"estimator": DICE, "params": {"delay": 0.2}}), 1)
    assert 0.2 <= run.fit_seconds < 5
    assert run.search_seconds == 0
    assert 0 <= run.predict_seconds < 1
    assert run.cpu_seconds < 5
    assert run.peak_memory is None or 0 <= run.peak_memory < 2**30
    assert {"imcc", "numpy", "processor", "cores"} <= set(run.environment)
    searched = run_task(only(pets, (DICE, {"delay": [0.05, 0.06]})), 1)
    assert 0.3 <= searched.search_seconds <= searched.fit_seconds - 0.05


def test_warnings_are_kept_with_the_row(pets):
    params = {"budget": 3, "halving": False, "max_iter": 1}
    run = run_task(only(pets, {"estimator": "llsf", "params": params}), 1)
    assert any("max_iter" in text for text in run.warnings)
    assert len(set(run.warnings)) == len(run.warnings)


def test_seeds_go_where_there_are_none(pets):
    def used(random_state):
        forest = make_pipeline(
            StandardScaler(), RandomForestClassifier(3, random_state=random_state)
        )
        return run_task(only(pets, forest), 1)

    free, fixed = used(None), used(7)
    assert free.selections == used(free.seed).selections != fixed.selections


def test_methods_that_know_of_devices_work_there(pets):
    backend("torch")
    task = only(pets, {"estimator": "imcc", "params": GRID | {"clusterer": SAME_CLUSTERS}})
    on_host, on_device = run_task(task, 1), run_task(task, 1, "cpu")
    assert on_device.environment["device"] == "cpu"
    assert "device" not in on_host.environment
    assert on_device.fingerprint == on_host.fingerprint
    for a, b in zip(on_host.selections, on_device.selections, strict=True):
        assert a.setting == b.setting
        assert a.metrics == pytest.approx(b.metrics, rel=1e-8)
    nowhere = run_task(task, 1, "nowhere")
    assert "nowhere" in nowhere.error
    assert run_task(only(pets, DICE), 1, "cpu").selections == run_task(only(pets, DICE)).selections
    ridge = run_task(only(pets, "kernel_ridge"), 1, "cpu")
    assert (
        ridge.selections[0].setting == run_task(only(pets, "kernel_ridge"), 1).selections[0].setting
    )


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_a_data_set_that_is_standardized_gives_what_a_pipeline_gives(pets, tmp_path, kind):
    data = replace(pets, X=kind(pets.X))
    write(data, tmp_path / "pets.npz")
    entry = [{"path": tmp_path / "pets.npz", "standardize": True}]
    method = "sklearn.neighbors.KNeighborsClassifier"
    run = run_task(only(entry, {"estimator": method}))
    X, Y, X_new, Y_new = parts(read(tmp_path / "pets.npz"))
    scaler = StandardScaler(with_mean=kind is np.asarray)
    model = make_pipeline(scaler, KNeighborsClassifier()).fit(X, Y)
    scores = centred_scores(model, X_new, 3)
    expected = all_metrics(Y_new, scores, model.predict(X_new) > 0)
    assert run.selections[0].metrics == pytest.approx(expected, rel=1e-9)


def test_rows_with_and_without_standardizing_are_not_mixed(pets_file, tmp_path):
    def planned(standardize):
        entry = [{"path": pets_file, "standardize": standardize}]
        return Experiment(entry, {"dice": DICE}, n_repeats=1, allow=ALLOW)

    planned(False).run(tmp_path / "s.sqlite", isolate=False)
    with pytest.raises(StoreError, match="standardize = False"):
        planned(True).run(tmp_path / "s.sqlite", isolate=False)
