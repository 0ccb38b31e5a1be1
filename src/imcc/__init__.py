"""Multi-label learning with cluster centres as virtual examples (IMCC)."""

from imcc.datasets import open_stream
from imcc.estimator import IMCCClassifier
from imcc.estimator_cv import KERNEL_SEARCH, IMCCClassifierCV

__all__ = ["KERNEL_SEARCH", "IMCCClassifier", "IMCCClassifierCV", "open_stream"]
__version__ = "0.1.0.dev0"
