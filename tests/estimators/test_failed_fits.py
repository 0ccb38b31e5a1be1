"""A fit that fails leaves the estimator as it was before, whichever estimator it is."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from imcc.estimators.base import ScoringClassifierMixin
from tests.models import MODELS

random = np.random.default_rng(0)
X = np.abs(random.normal(size=(60, 4)))
Y = (X[:, :3] + random.normal(size=(60, 3)) > 1).astype(int)
OURS = {name: model for name, model in MODELS.items() if type(model).__module__.startswith("imcc")}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", OURS.values(), ids=OURS)
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
