"""A fit that fails leaves the estimator as it was before, whichever estimator it is."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from imcc import IMCCClassifier, IMCCClassifierCV, KernelEnsembleClassifier
from imcc.estimators import MultilabelCalibrator, TunedThresholds
from imcc.estimators.base import ScoringClassifierMixin, restore_on_failure
from tests.baselines.test_all import BASELINES

random = np.random.default_rng(0)
X = random.normal(size=(30, 4))
Y = (X[:, :3] + random.normal(size=(30, 3)) > 0).astype(int)
SMALL = {"alphas": [1.0], "betas": [1.0], "gammas": [0.1], "n_clusters": [2], "cv": 2}
SMALL["grid"] = "paper"  # one width
ENSEMBLE = KernelEnsembleClassifier(random_state=0)
ESTIMATORS = [
    IMCCClassifier(n_clusters=3, random_state=0),
    IMCCClassifier(n_clusters=3, kernel="linear", random_state=0),
    IMCCClassifier(n_clusters=3, approximation="nystroem", n_components=5, random_state=0),
    IMCCClassifierCV(**SMALL, random_state=0),
    *BASELINES,
    TunedThresholds(IMCCClassifier(n_clusters=3, random_state=0), cv=2),
    MultilabelCalibrator(IMCCClassifier(n_clusters=3, random_state=0), cv=2),
    ENSEMBLE,
    KernelEnsembleClassifier(views=("raw",), trees="all", random_state=0),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: str(e)[:60])
def test_a_failed_fit_changes_nothing(estimator):
    estimator = clone(estimator)
    names, other = pd.DataFrame(X, columns=list("abcd")), pd.DataFrame(X[:, :2], columns=["a", "b"])
    untouched = set(vars(estimator))
    # Fails after the features and their names are read.
    with pytest.raises(ValueError, match=r"the same number of rows|inconsistent"):
        estimator.fit(other, Y[:-1])
    assert set(vars(estimator)) == untouched

    fitted = dict(vars(estimator.fit(names, Y)))
    scores = estimator.decision_function(names)
    with pytest.raises(ValueError, match=r"the same number of rows|inconsistent"):
        estimator.fit(other, Y[:-1])
    assert list(vars(estimator)) == list(fitted)
    assert all(vars(estimator)[name] is fitted[name] for name in fitted)
    np.testing.assert_array_equal(estimator.decision_function(names), scores)


def test_an_interrupted_fit_changes_nothing():
    class Interrupted(ScoringClassifierMixin):
        def fit(self, X, y):
            self.half_ = True
            raise KeyboardInterrupt

    estimator = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(X, Y)
    assert not vars(estimator)
    # Decorating twice is decorating once.
    assert restore_on_failure(Interrupted.fit) is Interrupted.fit
