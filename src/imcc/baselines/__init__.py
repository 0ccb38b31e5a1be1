"""The six algorithms of the paper's comparison, and kernel ridge regression.

All are scikit-learn classifiers with the same interface as :class:`imcc.IMCCClassifier`: the same
input validation, real-valued scores, and a label is predicted if its score is at least 0.
"""

from imcc.baselines._proximal import UnboundedError
from imcc.baselines.brsvm import BinaryRelevanceSVM
from imcc.baselines.ecc import EnsembleClassifierChains
from imcc.baselines.jfsc import JFSC
from imcc.baselines.kernel_ridge import KernelRidgeBaseline
from imcc.baselines.lift import LIFT
from imcc.baselines.llsf import LLSF
from imcc.baselines.mahr import MAHR
from imcc.baselines.search_cv import JFSCCV, LLSFCV

__all__ = [
    "JFSC",
    "JFSCCV",
    "LIFT",
    "LLSF",
    "LLSFCV",
    "MAHR",
    "BinaryRelevanceSVM",
    "EnsembleClassifierChains",
    "KernelRidgeBaseline",
    "UnboundedError",
]
