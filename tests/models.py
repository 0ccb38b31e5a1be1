"""A model of every classifier, small and fast, for the properties that all of them must have."""

from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imcc import IMCCClassifier, IMCCClassifierCV, KernelEnsembleClassifier
from imcc.baselines import (
    JFSC,
    JFSCCV,
    LIFT,
    LLSF,
    LLSFCV,
    MAHR,
    BinaryRelevanceSVM,
    EnsembleClassifierChains,
    KernelRidgeBaseline,
)
from imcc.estimators import GuaranteedThresholds, MultilabelCalibrator, TunedThresholds

GRID = {"alphas": [1.0], "betas": [0.1, 1.0], "gammas": [0.1], "n_clusters": [4], "cv": 3}
GRID["grid"] = "paper"  # one width
IMCC = {"n_clusters": 4, "random_state": 0}
MODELS = {
    "rbf": IMCCClassifier(**IMCC),
    "linear": IMCCClassifier(**IMCC, kernel="linear"),
    "laplacian": IMCCClassifier(**IMCC, kernel="laplacian"),
    "chi2": IMCCClassifier(**IMCC, kernel="chi2"),
    "polynomial": IMCCClassifier(**IMCC, kernel="poly", kernel_params={"degree": 2}),
    "nystroem": IMCCClassifier(**IMCC, approximation="nystroem", n_components=9),
    "random landmarks": IMCCClassifier(
        **IMCC, approximation="nystroem", n_components=9, landmarks="random"
    ),
    "search": IMCCClassifierCV(**GRID, random_state=0),
    "calibrated search": IMCCClassifierCV(**GRID, calibrate=True, random_state=0),
    "pipeline": make_pipeline(StandardScaler(with_mean=False), IMCCClassifier(**IMCC)),
    "grid search": GridSearchCV(IMCCClassifier(**IMCC), {"beta": [0.1, 1.0]}, cv=2),
    "thresholds": TunedThresholds(IMCCClassifier(**IMCC), cv=3),
    "thresholds of a search": TunedThresholds(IMCCClassifierCV(**GRID, random_state=0), cv=3),
    "guaranteed": GuaranteedThresholds(
        IMCCClassifier(**IMCC), recall=0.3, confidence=0.3, random_state=0
    ),
    "ensemble": KernelEnsembleClassifier(
        views=("raw", "ranks", "tfidf"), trees=False, random_state=0
    ),
    "with trees": KernelEnsembleClassifier(views=("raw", "ranks", "tfidf"), random_state=0),
    "calibrated": MultilabelCalibrator(IMCCClassifier(**IMCC), cv=3),
    "calibrated, isotonic": MultilabelCalibrator(IMCCClassifier(**IMCC), cv=3, method="isotonic"),
    "kernel ridge": KernelRidgeBaseline(cv=3),
    "BRsvm": BinaryRelevanceSVM(),
    "ECC": EnsembleClassifierChains(random_state=0),
    "MAHR": MAHR(n_rounds=10),
    "LIFT": LIFT(random_state=0),
    "LLSF": LLSF(),
    "LLSFCV": LLSFCV(budget=3, random_state=0),
    "JFSC": JFSC(),
    "JFSCCV": JFSCCV(budget=3, random_state=0),
}
