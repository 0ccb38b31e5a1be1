"""The classifiers, as scikit-learn estimators."""

from imcc._math.search.results import EdgeOfGridWarning
from imcc.estimators.imcc import IMCCClassifier
from imcc.estimators.imcc_cv import GRIDS, KERNEL_SEARCH, IMCCClassifierCV
from imcc.estimators.kernel_ensemble import KernelEnsembleClassifier

__all__ = [
    "GRIDS",
    "KERNEL_SEARCH",
    "EdgeOfGridWarning",
    "IMCCClassifier",
    "IMCCClassifierCV",
    "KernelEnsembleClassifier",
]
