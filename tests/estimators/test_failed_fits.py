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


def state(estimator):
    """The attributes by name."""
    return dict(vars(estimator))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: str(e)[:60])
@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        # Fails after the features and their names are read.
        (
            pd.DataFrame(X[:, :2], columns=["a", "b"]),
            Y[:-1],
            "the same number of rows|inconsistent",
        ),
        (np.full((30, 2), np.nan), Y, "NaN"),
        (X[:, :2], np.full((30, 3), 7), "must contain labels"),
    ],
    ids=["lengths", "nan", "labels"],
)
def test_a_failed_fit_changes_nothing(estimator, rows, labels, message):
    estimator = clone(estimator)
    untouched = state(estimator)
    with pytest.raises(ValueError, match=message):
        estimator.fit(rows, labels)
    assert vars(estimator).keys() == untouched.keys()

    estimator.fit(named(), Y)
    fitted, scores = state(estimator), estimator.decision_function(named())
    with pytest.raises(ValueError, match=message):
        estimator.fit(rows, labels)
    after = state(estimator)
    assert list(after) == list(fitted)
    assert all(after[name] is fitted[name] for name in fitted)
    np.testing.assert_array_equal(estimator.decision_function(named()), scores)


def named():
    return pd.DataFrame(X, columns=list("abcd"))


def test_a_stream_that_fails_changes_nothing():
    def chunks():
        yield X[:20], Y[:20]
        yield X[20:] * np.nan, Y[20:]

    clf = IMCCClassifier(n_clusters=3, kernel="linear", random_state=0).fit(named(), Y)
    before = state(clf)
    with pytest.raises(ValueError, match="NaN"):
        clf.fit(chunks)
    assert state(clf).keys() == before.keys()
    assert all(vars(clf)[name] is before[name] for name in before)


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
