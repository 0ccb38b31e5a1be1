"""KernelEnsembleClassifier at home in scikit-learn."""

import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from imcc import KernelEnsembleClassifier
from imcc.metrics import get_scorer

SMALL = {"views": ("raw", "ranks"), "random_state": 0}

# Checks that do not apply, and why.  Nothing fails.
SKIPPED = {
    "check_array_api_input": "needs SCIPY_ARRAY_API to be set before scipy is imported",
    "check_sample_weight_equivalence_on_dense_data": "weights do not change widths, views and "
    "which rows kernels are screened on; repeated rows do",
    "check_sample_weight_equivalence_on_sparse_data": "the same",
}


@pytest.mark.slow
def test_check_estimator():
    estimator = KernelEnsembleClassifier(**SMALL)
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] != "passed"}
    assert set(failed) <= set(SKIPPED), failed
    assert len(results) > 50


def test_pipeline_and_cross_validation():
    X, Y = make_multilabel_classification(90, n_classes=3, random_state=0)
    model = make_pipeline(StandardScaler(), KernelEnsembleClassifier(**SMALL))
    found = cross_validate(model, X, Y, cv=2, scoring=get_scorer("average_precision"))
    assert (found["test_score"] > 0.5).all()
