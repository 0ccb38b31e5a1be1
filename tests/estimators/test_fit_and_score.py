"""``fit`` and ``score`` have one signature: weights and groups are passed by name, everywhere."""

import inspect
import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import imcc
from imcc import IMCCClassifier, IMCCClassifierCV, KernelEnsembleClassifier
from imcc._utils.errors import InvalidArgumentError
from imcc.estimators import MultilabelCalibrator, TunedThresholds, cross_fit_scores
from imcc.estimators.base_search import SearchClassifier
from imcc.tables import TableClassifier
from tests.baselines.test_all import BASELINES

random = np.random.default_rng(0)
X = random.normal(size=(40, 4))
Y = (X[:, :3] + random.normal(size=(40, 3)) > 0).astype(int)
GROUPS = np.arange(40) % 8
SMALL = {"alphas": [1.0], "betas": [0.1, 1.0], "gammas": [0.1], "n_clusters": [2], "cv": 3}
SMALL |= {"width_scales": [1.0], "random_state": 0}
PLAIN = IMCCClassifier(n_clusters=3, random_state=0)
ENSEMBLE = KernelEnsembleClassifier(random_state=0)
HOLD_OUT = [
    IMCCClassifierCV(**SMALL),
    ENSEMBLE,
    KernelEnsembleClassifier(views=("raw",), random_state=0),
    MultilabelCalibrator(PLAIN, cv=3),
    TunedThresholds(PLAIN, cv=3),
    TunedThresholds(ENSEMBLE, cv="held_out"),
]
ESTIMATORS = [PLAIN, *HOLD_OUT, *BASELINES]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: str(e)[:60])
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def public_classes():
    """Return all classes with ``fit`` that can be imported from a public module."""
    public = [getattr(imcc, name) for name in imcc.__all__]
    modules = [imcc, *(value for value in public if isinstance(value, ModuleType))]
    found = {value for module in modules for value in vars(module).values() if has_fit(value)}
    return sorted(found, key=lambda cls: cls.__name__)


def has_fit(value):
    return inspect.isclass(value) and value.__module__.startswith("imcc") and hasattr(value, "fit")


def arguments(method):
    """Return the names of arguments that may be positional, and those that are passed by name."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    by_name = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD], by_name


def test_every_public_class_has_the_same_signatures():
    classes = public_classes()
    assert {c.__name__ for c in classes} >= {
        *("IMCCClassifier", "IMCCClassifierCV", "KernelEnsembleClassifier", "TableClassifier"),
        *("MultilabelCalibrator", "TunedThresholds", "TableEncoder"),
        *(type(baseline).__name__ for baseline in BASELINES),
    }
    both = {"sample_weight": None, "groups": None}
    for cls in classes:
        known = dict(inspect.getmembers(cls))
        if not hasattr(cls, "predict"):  # a transformer has neither weights nor groups
            assert arguments(cls.fit) == (["X", "y"], {}), cls
            continue
        assert arguments(cls.fit) == (["X", "y"], both), cls
        assert arguments(cls.score) == (["X", "y"], {"sample_weight": None}), cls
        if "fit_held_out" in known:
            assert arguments(cls.fit_held_out) == (["X", "y"], both), cls


@every_estimator
def test_score_is_a_weighted_mean(estimator):
    model = clone(estimator).fit(X, Y)
    right = (model.predict(X) == Y).all(axis=1)
    weights = np.arange(40) % 4
    assert model.score(X, Y) == pytest.approx(right.mean())
    found = model.score(X, Y, sample_weight=weights)
    assert found == pytest.approx(np.average(right, weights=weights))
    again = np.repeat(np.arange(40), weights)
    assert found == pytest.approx(model.score(X[again], Y[again]))
    with pytest.raises(InvalidArgumentError, match="sample_weight"):
        model.score(X, Y, sample_weight=-weights)


@every_estimator
def test_groups_are_used_or_refused(estimator):
    """Rows of one group cannot be held out together, as whoever uses groups must notice."""
    with pytest.raises(ValueError, match="groups"):
        clone(estimator).fit(X, Y, groups=np.zeros(40))
    if estimator in HOLD_OUT or isinstance(estimator, SearchClassifier):
        assert is_classifier(clone(estimator).fit(X, Y, groups=GROUPS))
    else:
        with pytest.raises(InvalidArgumentError, match="groups would have no effect"):
            clone(estimator).fit(X, Y, groups=GROUPS)


@pytest.mark.parametrize(
    "estimator",
    [IMCCClassifierCV(**SMALL), MultilabelCalibrator(PLAIN)],
    ids=lambda e: type(e).__name__,
)
def test_groups_that_the_folds_ignore_are_refused(estimator):
    for cv in (KFold(3), list(KFold(3).split(X))):
        with pytest.raises(InvalidArgumentError, match="groups would have no effect, because cv"):
            clone(estimator).set_params(cv=cv).fit(X, Y, groups=GROUPS)
    number = clone(estimator).set_params(cv=3).fit(X, Y, groups=GROUPS)
    splitter = clone(estimator).set_params(cv=GroupKFold(3)).fit(X, Y, groups=GROUPS)
    np.testing.assert_array_equal(number.decision_function(X), splitter.decision_function(X))


@pytest.mark.parametrize("wrapper", [MultilabelCalibrator, TunedThresholds])
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_a_search_inside_a_wrapper_has_the_groups_too(wrapper, in_pipeline):
    search = IMCCClassifierCV(**SMALL)
    expected = clone(search).fit(X, Y, groups=GROUPS).cv_results_["mean_test_score"]
    assert np.any(expected != clone(search).fit(X, Y).cv_results_["mean_test_score"])
    inside = make_pipeline(StandardScaler(with_std=False), search) if in_pipeline else search
    model = wrapper(inside, cv=4).fit(X, Y, groups=GROUPS)
    found = model.estimator_[-1] if in_pipeline else model.estimator_
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], expected, atol=1e-9)
    # Also in the folds: without two groups among the training rows, there is nothing to hold out.
    with pytest.raises(ValueError, match="groups"):
        cross_fit_scores(search, X, Y, cv=2, groups=np.arange(40) % 2)


@pytest.mark.parametrize("wrapper", [MultilabelCalibrator, TunedThresholds])
def test_a_fitted_classifier_needs_no_groups(wrapper):
    fitted = clone(PLAIN).fit(X, Y)
    with pytest.raises(InvalidArgumentError, match=r"groups .* cv='prefit'"):
        wrapper(fitted, cv="prefit").fit(X, Y, groups=GROUPS)


def test_predictions_in_data_frames():
    rng = np.random.default_rng(0)
    names, index = ["red", "green"], [f"r{i}" for i in range(60)]
    X = pd.DataFrame(rng.normal(size=(60, 3)), index=index, columns=list("abc"))
    Y = pd.DataFrame((X.to_numpy()[:, :2] > 0).astype(int), columns=names)
    calibrated = MultilabelCalibrator(PLAIN, cv=3)
    for model in (calibrated, TunedThresholds(calibrated, cv=3), TableClassifier(calibrated)):
        model.fit(X, Y)
        found = model.predict(X, as_frame=True)
        assert found.columns.tolist() == names
        assert found.index.tolist() == index
        np.testing.assert_array_equal(found, model.predict(X))
        chances = model.predict_proba(X, as_frame=True)
        assert chances.columns.tolist() == names
        np.testing.assert_array_equal(chances, model.predict_proba(X))
        some = model.predict(X, [0.3, 0.9], as_frame=True)
        np.testing.assert_array_equal(some, chances >= [0.3, 0.9])
        with pytest.raises(ValueError, match=r"^thresholds"):
            model.predict(X, 1.5)
    plain = PLAIN.fit(X.to_numpy(), Y.to_numpy()).predict(X.to_numpy(), as_frame=True)
    assert plain.columns.tolist() == ["label0", "label1"]
    words = np.where(Y["red"], "yes", "no")
    of_classes = MultilabelCalibrator(PLAIN, cv=3).fit(X, words)
    assert of_classes.predict(X, as_frame=True).tolist() == of_classes.predict(X).tolist()
    assert of_classes.predict_proba(X, as_frame=True).columns.tolist() == ["no", "yes"]


def test_data_frames_need_pandas(monkeypatch):
    X, Y = np.eye(12), np.eye(12, 2, dtype=int)
    model = IMCCClassifier(n_clusters=2, random_state=0).fit(X, Y)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="as_frame=True needs the package 'pandas'"):
        model.predict(X, as_frame=True)
