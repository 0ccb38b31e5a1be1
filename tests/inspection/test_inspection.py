import json

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import NotFittedError

from imcc import IMCCClassifier
from imcc.inspection import inspect_model, nearest_rows
from tests.naive import inspection as naive


def model(**options):
    return IMCCClassifier(**{"n_clusters": 6, "random_state": 0, **options})


def test_vectors_of_classes(small_problem):
    X, Y, *_ = small_problem
    words = np.array(["cat", "dog", "emu"])[Y[:, 0] + Y[:, 1]]
    clf = model().fit(X, words)
    assert inspect_model(clf, Y=words).label_names == ("cat", "dog", "emu")
    two = model().fit(X, Y[:, 0])
    assert inspect_model(two).label_names == ("1",)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c, X, Y: inspect_model(c, Y=1 - Y), "^Y"),
        (lambda c, X, Y: inspect_model(c, Y=Y[:, :2]), "^Y"),
        (lambda c, X, Y: inspect_model(c, label_names=["a"]), "^label_names"),
    ],
)
def test_bad_arguments(small_problem, call, message):
    X, Y, *_ = small_problem
    with pytest.raises(ValueError, match=message):
        call(model().fit(X, Y), X, Y)


def test_what_cannot_be_looked_into(small_problem):
    X, Y, *_ = small_problem
    with pytest.raises(TypeError, match="pipeline: ExtraTreesClassifier has no virtual examples"):
        inspect_model(ExtraTreesClassifier(3).fit(X, Y))
    with pytest.raises(NotFittedError):
        inspect_model(model())


# Virtual examples


def test_clusters(small_problem):
    X, Y, *_ = small_problem
    clf = model(n_clusters=(3, 4)).fit(X, Y)
    found = inspect_model(clf, Y=Y)
    assert found.clusterings.tolist() == [0, 0, 0, 1, 1, 1, 1]
    for cluster in range(7):
        members = (clf.assignment_ == cluster).any(axis=1)
        assert found.sizes[cluster] == members.sum()
        np.testing.assert_allclose(found.shares[cluster], Y[members].mean(axis=0))
        distances = np.linalg.norm(X - X[members].mean(axis=0), axis=1)
        nearest = nearest_rows(clf, clf.cluster_centers_[cluster], X, n_nearest=3)
        assert list(nearest.rows) == np.argsort(distances)[:3].tolist()
    assert found.sizes[found.largest(7)].tolist() == sorted(clf.cluster_sizes_, reverse=True)
    json.dumps(found.to_dict())
    frame = found.to_frame()
    assert frame.index.names == ["clustering", "cluster", "size"]
    np.testing.assert_array_equal(frame, found.shares)


def test_text(small_problem):
    X, Y, *_ = small_problem
    found = inspect_model(model(n_clusters=12).fit(X, Y))
    text = repr(found)
    assert text.startswith("Inspection of a model of 90 rows and 4 labels, 12 clusters")
    assert "... and 2 more" in text
    assert f"{found.shares[found.largest(1)].max():.0%}" in text


def test_what_is_not_known_is_left_out(small_problem):
    X, Y, *_ = small_problem
    linear = model(kernel="linear").fit(X, Y)
    found = inspect_model(linear)
    assert found.correlations.total is None
    assert np.isnan(found.correlations.share)
    known = inspect_model(linear, Y)
    np.testing.assert_allclose(found.correlations.carried, known.correlations.carried)
    json.dumps(found.to_dict())


@pytest.mark.parametrize("n_clusters", [5, (3, 6)])
def test_correlations_split_exactly(small_problem, n_clusters):
    X, Y, *_ = small_problem
    clf = model(n_clusters=n_clusters).fit(X, Y)
    found = inspect_model(clf, Y=Y).correlations
    assignments = clf.assignment_.reshape(len(X), -1).T
    parts = np.mean([naive.split_covariance(Y, a) for a in assignments], axis=0)
    units = np.outer(Y.std(axis=0), Y.std(axis=0))
    np.testing.assert_allclose(found.total, np.corrcoef(Y.T), atol=1e-12)
    np.testing.assert_allclose(found.carried, parts[0] / units, atol=1e-12)
    np.testing.assert_allclose(found.total - found.carried, parts[1] / units, atol=1e-12)
    first = found.strongest(1)[0]
    pairs = np.abs(found.total[np.triu_indices(4, 1)])
    assert abs(first[2]) == pytest.approx(pairs.max())
    assert len(found.strongest(99)) == 6
    assert len(inspect_model(clf).correlations.strongest(2)) == 2


def test_each_row_its_own_cluster_carries_everything(small_problem):
    X, Y, *_ = small_problem
    found = inspect_model(model(n_clusters=90).fit(X, Y), Y=Y).correlations
    np.testing.assert_allclose(found.carried, found.total, atol=1e-12)
    assert found.share == pytest.approx(1)
    assert found.by_chance == pytest.approx(1)
    one = inspect_model(model(n_clusters=1).fit(X, Y), Y=Y).correlations
    assert one.share == pytest.approx(0, abs=1e-12)
    assert one.by_chance == 0


def test_labels_that_never_or_always_occur(small_problem):
    X, Y, *_ = small_problem
    Y = Y.copy()
    Y[:, 0], Y[:, 1] = 0, 1
    clf = model().fit(X, Y)
    for found in (inspect_model(clf, Y=Y), inspect_model(clf)):
        assert np.isnan(found.correlations.carried[0]).all()
        assert np.isnan(found.correlations.carried[1]).all()
        assert len(found.correlations.strongest(10)) == 1


def test_models_trained_with_weights_keep_none(small_problem):
    """Their clusters can be looked at; what needs the weights says so."""
    X, Y, *_ = small_problem
    weights = np.random.default_rng(0).uniform(0.5, 2, len(X))
    clf = IMCCClassifier(n_clusters=4, random_state=0).fit(X, Y, sample_weight=weights)
    found = inspect_model(clf)
    np.testing.assert_array_equal(found.sizes, clf.cluster_sizes_)
    assert found.sizes.sum() == pytest.approx(weights.sum())
    with pytest.raises(ValueError, match="sample_weight"):
        inspect_model(clf, Y)
