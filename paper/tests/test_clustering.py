"""The script behind "does clustering help?": what it searches, stores and skips."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.model_selection import KFold

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc.baselines import KernelRidgeBaseline
from imcc.datasets import Dataset, paper_splits
from imcc.metrics import METRICS, evaluate
from imcc_paper import clustering
from imcc_paper.reproduction.rows import plan

WEIGHTS, BETAS, COUNTS = (0.1, 1.0), (0.01, 0.1, 1.0), (3, 200)


@pytest.fixture
def tiny(monkeypatch, small_problem):
    X, Y, *_ = small_problem
    data = Dataset(X, Y, name="tiny")
    monkeypatch.setattr(clustering, "rows_of", lambda _: (X, Y > 0, data))
    monkeypatch.setattr(clustering, "WEIGHTS", WEIGHTS)
    monkeypatch.setattr(clustering, "BETAS", BETAS)
    monkeypatch.setattr(clustering, "N_CLUSTERS", COUNTS)
    return data


@pytest.mark.filterwarnings("ignore:n_clusters=200 is more")
@pytest.mark.filterwarnings("ignore:the best setting is at the edge of the grid")
def test_it_finds_what_the_searches_of_the_library_find(tiny):
    rows = {row["variant"]: row for row in clustering.measure(clustering.Run("tiny", 1, 60))}
    assert list(rows) == list(clustering.VARIANTS)
    train, test = paper_splits(tiny, 2)[1]
    part = clustering.part_of(train, 60, 1)
    options = {
        "cv": KFold(5, shuffle=True, random_state=1),
        "width_scales": 1.0,
    }
    same = options | {"betas": BETAS, "n_clusters": COUNTS, "random_state": 1}
    or_zero = (0.0, *WEIGHTS)
    models = {
        "none": KernelRidgeBaseline(BETAS, **options),
        "kmeans": IMCCClassifierCV(WEIGHTS, gammas=WEIGHTS, **same),
        "kmeans_alpha": IMCCClassifierCV(WEIGHTS, gammas=0.0, **same),
        "kmeans_gamma": IMCCClassifierCV(0.0, gammas=WEIGHTS, **same),
        "kmeans_or_none": IMCCClassifierCV(or_zero, gammas=or_zero, **same),
    }
    for name, model in models.items():
        model.fit(tiny.X[part], tiny.Y[part])
        row = rows[name]
        assert set(row) == set(clustering.COLUMNS)
        assert row["cv_score"] == pytest.approx(model.best_score_, rel=1e-12)
        found = {key: row[key] for key in clustering.SETTING if key in model.best_params_}
        assert found == {k: v for k, v in model.best_params_.items() if k != "kernel"}
        expected = evaluate(tiny.Y[test], model.decision_function(tiny.X[test]))
        assert {key: row[key] for key in METRICS} == pytest.approx(expected, rel=1e-9)
    assert rows["none"]["n_train"] == len(part) < len(train)


def test_columns_are_standardized_by_the_training_rows(tiny, monkeypatch):
    run = clustering.Run("tiny", 0, 50)
    far = tiny.X * 10.0 ** np.arange(tiny.X.shape[1])
    monkeypatch.setattr(clustering, "rows_of", lambda _: (far, tiny.Y > 0, tiny))
    monkeypatch.setattr(clustering, "STANDARDIZED", ("tiny",))
    scaled = clustering.measure(run)
    train, test = paper_splits(tiny, 1)[0]
    part = clustering.part_of(train, 50, 0)
    X = (tiny.X - tiny.X[part].mean(axis=0)) / tiny.X[part].std(axis=0)
    clf = IMCCClassifier(alpha=0, gamma=0, beta=scaled[0]["beta"], random_state=0)
    expected = evaluate(tiny.Y[test], clf.fit(X[part], tiny.Y[part]).decision_function(X[test]))
    assert {key: scaled[0][key] for key in METRICS} == pytest.approx(expected, rel=1e-9)


def test_the_data_sets_that_are_standardized_are_those_of_the_experiment():
    outside = plan("outside").datasets
    assert tuple(d.name for d in outside if d.standardize) == clustering.STANDARDIZED


def test_random_clusters_have_the_sizes_of_k_means(small_problem):
    X, *_ = small_problem
    found = clustering.RandomClusters(7, random_state=0).fit(X).labels_
    original = KMeans(7, n_init=1, random_state=np.random.RandomState(0)).fit(X).labels_
    assert np.array_equal(np.sort(np.bincount(found)), np.sort(np.bincount(original)))
    assert not np.array_equal(found, original)
    assert np.array_equal(found, clustering.RandomClusters(7, random_state=0).fit(X).labels_)
    assert len(set(clustering.RandomClusters(500).fit(X).labels_)) == len(X)


def test_random_clusters_are_searched_like_others(tiny):
    rows = {r["variant"]: r for r in clustering.measure(clustering.Run("tiny", 0, 100))}
    train, test = paper_splits(tiny, 1)[0]
    row = rows["random"]
    weights = {name: row[name] for name in ("alpha", "beta", "gamma", "n_clusters")}
    clf = IMCCClassifier(**weights, clusterer=clustering.RandomClusters(), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(tiny.X[train], tiny.Y[train])
    expected = evaluate(tiny.Y[test], clf.decision_function(tiny.X[test]))
    assert {key: row[key] for key in METRICS} == pytest.approx(expected, rel=1e-9)


def test_parts_contain_each_other_and_small_ones_are_left_out():
    train = np.arange(0, 300, 3)
    parts = [clustering.part_of(train, percent, 2) for percent in (5, 10, 50, 100)]
    assert [len(part) for part in parts] == [5, 10, 50, 100]
    assert all(set(a) < set(b) for a, b in itertools.pairwise(parts))
    assert np.array_equal(parts[-1], train)
    assert not np.array_equal(parts[0], clustering.part_of(train, 5, 1))
    runs = clustering.plan(["flags", "yeast"], 2, [100, 10])
    assert runs == [
        ("yeast", 0, 10),
        *(("flags", 0, 100), ("yeast", 0, 100)),
        ("yeast", 1, 10),
        *(("flags", 1, 100), ("yeast", 1, 100)),
    ]
