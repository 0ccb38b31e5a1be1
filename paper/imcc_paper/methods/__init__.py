"""Methods for comparison only, as scikit-learn classifiers for experiments of imcc."""

from imcc_paper.methods.boosting import LightGBMBaseline, XGBoostBaseline
from imcc_paper.methods.logistic import LogisticRegressionBaseline
from imcc_paper.methods.trees import ExtraTreesBaseline

__all__ = [
    "ExtraTreesBaseline",
    "LightGBMBaseline",
    "LogisticRegressionBaseline",
    "XGBoostBaseline",
]
