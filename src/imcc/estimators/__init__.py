"""The classifiers, as scikit-learn estimators."""

from imcc.estimators.imcc import IMCCClassifier
from imcc.estimators.imcc_cv import KERNEL_SEARCH, IMCCClassifierCV
from imcc.estimators.kernel_ensemble import KernelEnsembleClassifier

__all__ = ["KERNEL_SEARCH", "IMCCClassifier", "IMCCClassifierCV", "KernelEnsembleClassifier"]
