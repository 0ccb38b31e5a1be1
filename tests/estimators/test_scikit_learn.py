"""At home in scikit-learn: its own checks, pipelines, searches, clones and pickles."""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc.metrics import METRICS, get_scorer

SMALL = {"alphas": [0.1, 10.0], "betas": [0.1, 1.0], "gammas": [0.1], "n_clusters": [3], "cv": 2}
SMALL["grid"] = "paper"  # one width

# Checks that do not apply, and why.  Nothing fails.
NO_PROBABILITIES = "check_classifiers_multilabel_output_format_predict_proba"
SKIPPED = {
    "check_array_api_input": "needs SCIPY_ARRAY_API to be set before scipy is imported",
    NO_PROBABILITIES: "no predict_proba: scores of least squares are no probabilities",
}
# Rows of weight 2 are two rows for given clusters and folds (test_sample_weight.py and others); but
# k-means starts elsewhere, folds are others and libsvm's last steps differ.
WEIGHTS = {
    f"check_sample_weight_equivalence_on_{form}_data": "k-means, folds or libsvm see other rows"
    for form in ("dense", "sparse")
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        IMCCClassifier(random_state=0),
        IMCCClassifier(n_clusters=4, approximation="nystroem", n_components=20, random_state=0),
        IMCCClassifierCV(**SMALL, calibrate=True, random_state=0),
    ],
    ids=str,
)
def test_check_estimator(estimator):
    # 32 clusters are one per row in the small problems of these checks.
    expected = {} if estimator.n_clusters is None else WEIGHTS
    results = check_estimator(estimator, on_skip=None, expected_failed_checks=expected)
    skipped = {r["check_name"] for r in results if r["status"] != "passed"}
    assert skipped <= {*SKIPPED, *expected}
    assert (NO_PROBABILITIES in skipped) == (not hasattr(estimator, "predict_proba"))
    assert len(results) > 50


def test_tags_say_what_it_is():
    for estimator in (IMCCClassifier(), IMCCClassifierCV()):
        tags = get_tags(estimator)
        assert is_classifier(estimator)
        assert tags.classifier_tags.multi_label
        assert tags.target_tags.multi_output
        assert tags.input_tags.sparse


def test_pipeline_and_grid_search(small_problem):
    X, Y, X_new, _ = small_problem
    pipeline = make_pipeline(StandardScaler(), PCA(3), IMCCClassifier(n_clusters=5, random_state=0))
    search = GridSearchCV(
        pipeline,
        {"imccclassifier__alpha": [0.1, 10.0], "pca__n_components": [2, 4]},
        scoring=get_scorer("ranking_loss"),
        cv=3,
    ).fit(X, Y)
    assert search.predict(X_new).shape == (40, 4)
    inner = make_pipeline(StandardScaler(), IMCCClassifierCV(**SMALL, random_state=0)).fit(X, Y)
    assert inner[-1].best_params_["alpha"] in (0.1, 10.0)
    assert inner.decision_function(X_new).shape == (40, 4)


def test_cross_validation_with_all_metrics(small_problem):
    X, Y, *_ = small_problem
    clf = IMCCClassifier(n_clusters=5, random_state=0)
    found = cross_validate(clf, X, Y, scoring={name: get_scorer(name) for name in METRICS}, cv=3)
    assert all(np.isfinite(found[f"test_{name}"]).all() for name in METRICS)
    assert cross_val_predict(clf, X, Y, method="decision_function", cv=3).shape == Y.shape


def test_text_in_labels_out():
    """The sparse output of a vectoriser goes straight in."""
    texts = ["red apple", "green apple", "red car", "green car", "blue car", "red pear"] * 3
    Y = [[("red" in t), ("apple" in t or "pear" in t)] for t in texts]
    model = make_pipeline(TfidfVectorizer(), IMCCClassifier(n_clusters=4, beta=0.1, random_state=0))
    model.fit(texts, Y)
    np.testing.assert_array_equal(model.predict(["red apple", "blue car"]), [[1, 1], [0, 0]])
