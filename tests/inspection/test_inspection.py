import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc._utils.wrappers import innermost
from imcc.baselines import KernelRidgeBaseline
from imcc.estimators import MultilabelCalibrator, TunedThresholds
from imcc.inspection import (
    Explainer,
    draw_clusters,
    draw_correlations,
    draw_explanation,
    explain,
    inspect_model,
)
from tests.naive import imcc as naive_imcc
from tests.naive import inspection as naive

HOSTILE = ("<script>alert(1)</script>", "[bold]", "two\nlines", "ü \"&amp;' $x_1$")


def signs(Y):
    return 2.0 * Y - 1


def model(**options):
    return IMCCClassifier(**{"n_clusters": 6, "random_state": 0, **options})


KINDS = {
    "rbf": {},
    "laplacian": {"kernel": "laplacian", "width_scale": 0.5},
    "linear": {"kernel": "linear"},
    "several clusterings": {"n_clusters": (3, 5), "gamma": 2.0},
    "no virtual examples": {"alpha": 0.0, "gamma": 0.0},
    "spectral": {"solver": "spectral", "beta": 0.01},
    "cosine": {"kernel": "cosine"},
}


# Contributions


@pytest.mark.parametrize("kind", KINDS)
def test_evidence_adds_up_to_the_score(small_problem, kind):
    X, Y, X_new, _ = small_problem
    clf = model(**KINDS[kind]).fit(X, Y)
    explainer = Explainer(clf, X, Y)
    for i, label in ((0, 0), (7, 2), (20, 3)):
        found = explainer.explain(X_new[i], label)
        total = found.contributions("row").sum() + found.contributions("center").sum()
        assert abs(total - clf.decision_function(X_new[i : i + 1])[0, label]) < 1e-10
        assert found.score == pytest.approx(total, abs=1e-10)
        assert found.constant == 0
        weights = found.weights["row"].sum() + found.weights["center"].sum()
        assert weights == pytest.approx(1, abs=1e-9)
        np.testing.assert_array_equal(found.values["row"], signs(Y)[:, label])
        np.testing.assert_array_equal(found.values["center"], clf.soft_labels_[:, label])


@pytest.mark.parametrize("n_clusters", [4, (2, 3)])
def test_evidence_is_what_refitting_gives(small_problem, n_clusters):
    X, Y, X_new, _ = (part[:30] for part in small_problem)
    weights = {"alpha": 3.0, "beta": 0.5, "gamma": 0.7}
    clf = model(n_clusters=n_clusters, **weights).fit(X, Y)
    found = explain(clf, X_new[0], 0, Y=Y)
    assignments = clf.assignment_.reshape(30, -1).T
    assignments = [a - a.min() for a in assignments]
    rows, centers = naive.evidence_weights(
        X,
        signs(Y),
        X_new[0],
        assignments,
        **weights,
        kernel=naive_imcc.rbf,
        sigma=clf.width_,
    )
    np.testing.assert_allclose(found.weights["row"], rows, atol=1e-8)
    np.testing.assert_allclose(found.weights["center"], centers, atol=1e-8)


def test_wide_linear_and_sparse_rows(small_problem):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((30, 50)) * (rng.random((30, 50)) < 0.3))
    Y = (rng.random((30, 3)) < 0.4).astype(int)
    for rows, more in ((X.toarray(), {}), (X, {}), (X[:, :12], {}), (X, {"kernel": "rbf"})):
        clf = model(n_clusters=4, **{"kernel": "linear", **more}).fit(rows, Y)
        found = explain(clf, rows[[2]], 1, X=rows, Y=Y)
        assert sum(found.totals().values()) == pytest.approx(found.score, abs=1e-10)
        assert len(inspect_model(clf, X=rows).clusters[0].nearest) == 3
    found = explain(model(kernel="linear").fit(X, Y), X[[2]], 1, by="features")
    assert sum(found.totals().values()) == pytest.approx(found.score, abs=1e-10)


@pytest.mark.parametrize("kind", ["rbf", "laplacian", "cosine"])
def test_support_adds_up_to_the_score(small_problem, kind):
    X, Y, X_new, _ = small_problem
    clf = model(**KINDS[kind]).fit(X, Y)
    found = explain(clf, X_new[5], 2, by="support")
    assert found.constant == clf.intercept_[2]
    total = sum(found.totals().values())
    assert abs(total - clf.decision_function(X_new[5:6])[0, 2]) < 1e-10
    np.testing.assert_array_equal(found.values["row"], clf.dual_coef_[:, 2])
    if kind == "rbf":
        similar = rbf_kernel(X_new[5:6], X, gamma=1 / (2 * clf.width_**2))[0]
        np.testing.assert_allclose(found.weights["row"], similar, atol=1e-12)


def test_features_are_measured_from_the_mean_row(small_problem):
    X, Y, X_new, _ = small_problem
    frame = pd.DataFrame(X, columns=list("abcde"))
    clf = model(kernel="linear", n_clusters=(3, 4)).fit(frame, Y)
    found = explain(clf, pd.DataFrame(X_new[:1], columns=list("abcde")), 3, by="features")
    mean_row = pd.DataFrame(X.mean(axis=0)[None], columns=list("abcde"))
    assert found.constant == pytest.approx(clf.decision_function(mean_row)[0, 3])
    np.testing.assert_allclose(
        found.contributions("feature"), (X_new[0] - X.mean(axis=0)) * clf.coef_[3]
    )
    assert sum(found.totals().values()) == pytest.approx(found.score, abs=1e-12)
    assert {part.name for part in found.top(5)} == set("abcde")


def test_float32_rows(small_problem):
    X, Y, X_new, _ = small_problem
    clf = model().fit(X.astype(np.float32), Y)
    for by in ("evidence", "support"):
        found = explain(clf, X_new[0].astype(np.float32), 0, by=by, Y=Y)
        assert sum(found.totals().values()) == pytest.approx(found.score, abs=1e-10)
        small = clf.decision_function(X_new[:1].astype(np.float32))[0, 0]
        assert found.score == pytest.approx(small, abs=1e-4)


def test_wrapped_models(small_problem):
    X, Y, X_new, _ = small_problem
    grid = {"alphas": [1.0], "betas": [1.0], "gammas": [0.1], "n_clusters": [4], "cv": 3}
    grid["width_scales"] = 1.0
    wrapped = [
        IMCCClassifierCV(**grid, random_state=0),
        make_pipeline(StandardScaler(), model()),
        TunedThresholds(model(), cv=3),
        make_pipeline(StandardScaler(), TunedThresholds(IMCCClassifierCV(**grid), cv=3)),
        TunedThresholds(make_pipeline(StandardScaler(), model(kernel="linear")), cv=3),
        GridSearchCV(model(), {"beta": [0.1, 1.0]}, cv=3),
        KernelRidgeBaseline(cv=3),
        make_pipeline(model()),
    ]
    for clf in wrapped:
        clf.fit(X, Y)
        found = explain(clf, X_new[0], 1, X=X, Y=Y)
        assert found.score == pytest.approx(clf.decision_function(X_new[:1])[0, 1], abs=1e-10)
        assert sum(found.totals().values()) == pytest.approx(found.score, abs=1e-10)
        assert (found.score >= found.threshold) == bool(clf.predict(X_new[:1])[0, 1])
        assert len(inspect_model(clf, X, Y).clusters) > 0
    assert explain(wrapped[2], X_new[0], 1, Y=Y).threshold == wrapped[2].thresholds_[1]


@pytest.mark.parametrize("method", ["logistic", "isotonic"])
def test_calibrated_models_are_explained_on_the_scores_of_the_model_inside(small_problem, method):
    X, Y, X_new, _ = small_problem
    calibrated = MultilabelCalibrator(model(), cv=3, method=method, min_support=5)
    inner_tuned = MultilabelCalibrator(TunedThresholds(model(), cv=3), cv=3, method=method)
    for clf in (calibrated, TunedThresholds(calibrated, cv=3), inner_tuned):
        clf.fit(X, Y)
        for row in range(10):
            found = explain(clf, X_new[row], 1, X=X, Y=Y)
            inside = innermost(clf).decision_function(X_new[row : row + 1])[0, 1]
            assert found.score == pytest.approx(inside, abs=1e-10)
            predicted = bool(clf.predict(X_new[row : row + 1])[0, 1])
            assert (found.score >= found.threshold) == predicted


def test_vectors_of_classes(small_problem):
    X, Y, X_new, _ = small_problem
    words = np.array(["cat", "dog", "emu"])[Y[:, 0] + Y[:, 1]]
    clf = model().fit(X, words)
    found = explain(clf, X_new[0], "dog", Y=words)
    assert sum(found.totals().values()) == pytest.approx(found.score, abs=1e-10)
    assert inspect_model(clf, Y=words).label_names == ("cat", "dog", "emu")
    two = model().fit(X, Y[:, 0])
    assert explain(two, X_new[0], 0, Y=Y[:, 0]).label == "1"
    assert inspect_model(two).label_names == ("1",)


def test_top_and_to_dict(small_problem):
    X, Y, X_new, _ = small_problem
    clf = model().fit(X, pd.DataFrame(Y, columns=list("pqrs")))
    found = explain(clf, X_new[0], "q", Y=Y)
    parts = found.top(5)
    sizes = [abs(part.contribution) for part in parts]
    assert sizes == sorted(sizes, reverse=True)
    every = np.concatenate([found.contributions("row"), found.contributions("center")])
    assert sizes == pytest.approx(np.sort(np.abs(every))[::-1][:5])
    total = sum(part.contribution for part in parts) + sum(size for _, size in found.rest(parts))
    assert total == pytest.approx(found.score, abs=1e-10)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["label"] == "q"
    assert plain["weights"]["row"] == found.weights["row"].tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c, X, Y: explain(c, X[0], 0), "Y is needed"),
        (lambda c, X, Y: explain(c, X[0], 0, Y=1 - Y), "Y must be the training labels"),
        (lambda c, X, Y: explain(c, X[0], 0, Y=Y[:, :2]), "Y has 2 columns"),
        (lambda c, X, Y: explain(c, X[0], 4, Y=Y), "from 0 to 3, got 4"),
        (lambda c, X, Y: explain(c, X[0], "x", Y=Y), "label must be one of"),
        (lambda c, X, Y: explain(c, X[0], 0, by="x"), "by must be one of"),
        (lambda c, X, Y: explain(c, X[:2], 0, Y=Y), "one row, got 2"),
        (lambda c, X, Y: explain(c, X[0], 0, by="features"), "kernel='linear'"),
        (lambda c, X, Y: inspect_model(c, X[:9]), "fitted on 90 rows, but X has 9"),
        (lambda c, X, Y: inspect_model(c, X[::-1]), "differ from the centres"),
        (lambda c, X, Y: inspect_model(c, label_names=["a"]), "must be 4 names"),
        (lambda c, X, Y: inspect_model(c, n_nearest=0), "n_nearest"),
    ],
)
def test_bad_arguments(small_problem, call, message):
    X, Y, *_ = small_problem
    with pytest.raises(ValueError, match=message):
        call(model().fit(X, Y), X, Y)


def test_what_cannot_be_looked_into(small_problem):
    X, Y, X_new, _ = small_problem
    with pytest.raises(TypeError, match="pipeline: ExtraTreesClassifier has no virtual examples"):
        inspect_model(ExtraTreesClassifier(3).fit(X, Y))
    with pytest.raises(NotFittedError):
        inspect_model(model())
    linear = model(kernel="linear").fit(X, Y)
    with pytest.raises(ValueError, match="X is needed"):
        explain(linear, X_new[0], 0, Y=Y)
    with pytest.raises(ValueError, match="by='features'"):
        explain(linear, X_new[0], 0, by="support")
    changed = model().fit(X, Y).set_params(beta=100.0)
    with pytest.raises(ValueError, match="parameters were changed"):
        explain(changed, X_new[0], 0, Y=Y)


# Virtual examples


def test_clusters(small_problem):
    X, Y, *_ = small_problem
    clf = model(n_clusters=(3, 4)).fit(X, Y)
    found = inspect_model(clf, Y=Y)
    assert [c.clustering for c in found.clusters] == [0, 0, 0, 1, 1, 1, 1]
    for cluster in found.clusters:
        members = (clf.assignment_ == cluster.index).any(axis=1)
        assert cluster.size == members.sum()
        np.testing.assert_allclose(cluster.shares, Y[members].mean(axis=0))
        np.testing.assert_allclose(cluster.soft_labels, signs(Y)[members].mean(axis=0))
        distances = np.linalg.norm(X - X[members].mean(axis=0), axis=1)
        assert [row for row, _ in cluster.nearest] == np.argsort(distances)[:3].tolist()
        assert cluster.nearest[0][1] == pytest.approx(distances.min(), abs=1e-6)
    assert [c.size for c in found.largest(7)] == sorted(clf.cluster_sizes_, reverse=True)
    assert len(inspect_model(clf, n_nearest=5).clusters[0].nearest) == 5
    json.dumps(found.to_dict())
    assert found.facts["rows"] == 90


def test_what_is_not_known_is_left_out(small_problem):
    X, Y, *_ = small_problem
    linear = model(kernel="linear").fit(X, Y)
    found = inspect_model(linear)
    assert found.clusters[0].nearest == ()
    assert found.correlations.total is None
    assert np.isnan(found.correlations.share)
    known = inspect_model(linear, X, Y)
    assert len(known.clusters[0].nearest) == 3
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
    X, Y, X_new, _ = small_problem
    Y = Y.copy()
    Y[:, 0], Y[:, 1] = 0, 1
    clf = model().fit(X, Y)
    for found in (inspect_model(clf, Y=Y), inspect_model(clf)):
        assert np.isnan(found.correlations.carried[0]).all()
        assert np.isnan(found.correlations.carried[1]).all()
        assert len(found.correlations.strongest(10)) == 1
    assert explain(clf, X_new[0], 0, Y=Y).score == pytest.approx(-1)


# Pictures


@pytest.fixture(scope="module")
def hostile(small_problem):
    X, Y, X_new, _ = small_problem
    clf = model().fit(X, Y)
    found = inspect_model(clf, Y=Y, label_names=HOSTILE)
    return found, Explainer(clf, Y=Y, label_names=HOSTILE).explain(X_new[0], 0)


def test_figures(hostile, tmp_path, small_problem):
    pytest.importorskip("matplotlib")
    found, explanation = hostile
    for draw, record in (
        (draw_clusters, found),
        (draw_correlations, found),
        (draw_explanation, explanation),
    ):
        for suffix in ("png", "svg"):
            assert draw(record, tmp_path / f"x.{suffix}").stat().st_size > 4000
    few = draw_clusters(found, tmp_path / "x.svg", max_clusters=2, max_labels=2).read_text()
    assert draw_clusters(found, tmp_path / "x.svg").read_text() != few
    assert len(draw_correlations(found, tmp_path / "y.svg", max_labels=2).read_text()) > 0
    assert len(draw_explanation(explanation, tmp_path / "y.svg", top=3).read_text()) < len(
        draw_explanation(explanation, tmp_path / "y.svg").read_text()
    )
    X, Y, *_ = small_problem
    unknown = inspect_model(model(kernel="linear").fit(X, Y))
    assert draw_correlations(unknown, tmp_path / "z.png")


def test_models_trained_with_weights_keep_none(small_problem):
    """Their clusters can be looked at; what needs the weights says so."""
    X, Y, X_new, _ = small_problem
    weights = np.random.default_rng(0).uniform(0.5, 2, len(X))
    clf = IMCCClassifier(n_clusters=4, random_state=0).fit(X, Y, sample_weight=weights)
    found = inspect_model(clf)
    sizes = [cluster.size for cluster in found.clusters]
    np.testing.assert_allclose(sizes, clf.cluster_sizes_)
    assert sum(sizes) == pytest.approx(weights.sum())
    for by_weights in (lambda: inspect_model(clf, X, Y), lambda: explain(clf, X_new[0], 0, Y=Y)):
        with pytest.raises(ValueError, match="trained with sample_weight"):
            by_weights()
    part = explain(clf, X_new[0], 0, by="support")
    assert sum(part.totals().values()) == pytest.approx(clf.decision_function(X_new[:1])[0, 0])
