"""Short names of the classes of imcc in files.

Model files and experiment stores contain the short names of this table instead of module paths.
When a class moves, its entry here changes, and all files can still be read.  A released short name
is never used for another class.
"""

from __future__ import annotations

import importlib
from typing import Any

#: Short name -> "module:class".
CLASSES: dict[str, str] = {
    "BinaryRelevanceSVM": "imcc.baselines.brsvm:BinaryRelevanceSVM",
    "EnsembleClassifierChains": "imcc.baselines.ecc:EnsembleClassifierChains",
    "IMCCClassifier": "imcc.estimators.imcc:IMCCClassifier",
    "IMCCClassifierCV": "imcc.estimators.imcc_cv:IMCCClassifierCV",
    "JFSC": "imcc.baselines.jfsc:JFSC",
    "JFSCCV": "imcc.baselines.search_cv:JFSCCV",
    "KernelEnsembleClassifier": "imcc.estimators.kernel_ensemble:KernelEnsembleClassifier",
    "KernelRidgeBaseline": "imcc.baselines.kernel_ridge:KernelRidgeBaseline",
    "LIFT": "imcc.baselines.lift:LIFT",
    "LLSF": "imcc.baselines.llsf:LLSF",
    "LLSFCV": "imcc.baselines.search_cv:LLSFCV",
    "MAHR": "imcc.baselines.mahr:MAHR",
    "MultilabelCalibrator": "imcc.calibration._calibrator:MultilabelCalibrator",
    "TableClassifier": "imcc.tabular._classifier:TableClassifier",
    "TableEncoder": "imcc.tabular._encoder:TableEncoder",
    "TreeCorrectedClassifier": "imcc.tabular._corrected:TreeCorrectedClassifier",
    "TunedThresholds": "imcc.calibration._tuned:TunedThresholds",
}

#: Other classes that fitted models contain, for model files only: short name -> "module:class".
PARTS: dict[str, str] = {
    "Chain": "imcc.baselines.ecc:Chain",
    "Chi2Kernel": "imcc._core.kernels:Chi2Kernel",
    "EnsembleMember": "imcc._ensemble.model:Member",
    "EnsembleModel": "imcc._ensemble.model:EnsembleModel",
    "EnsembleSetting": "imcc._ensemble.model:Setting",
    "EnsembleView": "imcc._ensemble.views:View",
    "FourierMap": "imcc._core.maps:FourierMap",
    "FourierModel": "imcc._core.models:FourierModel",
    "IdentityMap": "imcc._core.maps:IdentityMap",
    "Indicators": "imcc.tabular._transformer:Indicators",
    "IsotonicMap": "imcc.calibration._maps:IsotonicMap",
    "Kernel": "imcc._core.kernels:Kernel",
    "KernelModel": "imcc._core.models:KernelModel",
    "LaplacianKernel": "imcc._core.kernels:LaplacianKernel",
    "Layout": "imcc._stream.sources:Layout",
    "LinearKernel": "imcc._core.kernels:LinearKernel",
    "LinearModel": "imcc._core.models:LinearModel",
    "LinearScore": "imcc.baselines._svm:LinearScore",
    "LogisticMaps": "imcc._core.logistic:LogisticMaps",
    "NystroemMap": "imcc._core.maps:NystroemMap",
    "RBFKernel": "imcc._core.kernels:RBFKernel",
    "Round": "imcc.baselines.mahr:Round",
    "ScoreMaps": "imcc.calibration._maps:ScoreMaps",
    "Sigmoid": "imcc._core.platt:Sigmoid",
    "Statistics": "imcc._core.statistics:Statistics",
    "Schema": "imcc.tabular._schema:Schema",
    "SchemaColumn": "imcc.tabular._schema:Column",
    "BoostedTrees": "imcc.tabular._trees:Trees",
    "StreamPlan": "imcc._stream.passes:StreamPlan",
    "StreamState": "imcc._stream.fitting:StreamState",
    "StreamSums": "imcc._stream.passes:StreamSums",
}


def class_of(name: str) -> Any:
    """Import and return the estimator class with a short name.

    >>> class_of("MAHR").__name__
    'MAHR'
    """
    module, _, attribute = CLASSES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def name_of(kind: type) -> str | None:
    """Return the short name of a class; None if it is not a class of imcc.

    >>> name_of(class_of("MAHR")), name_of(dict)
    ('MAHR', None)
    """
    return _NAMES.get(f"{kind.__module__}:{kind.__qualname__}")


_NAMES = {path: name for name, path in {**CLASSES, **PARTS}.items()}
