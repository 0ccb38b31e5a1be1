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
    "GuaranteedThresholds": "imcc.estimators.thresholds:GuaranteedThresholds",
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
    "MultilabelCalibrator": "imcc.estimators.calibrator:MultilabelCalibrator",
    "TableClassifier": "imcc.tables._classifier:TableClassifier",
    "TableEncoder": "imcc.tables._encoder:TableEncoder",
    "TunedThresholds": "imcc.estimators.thresholds:TunedThresholds",
}

#: Other classes that fitted models contain, for model files only: short name -> "module:class".
PARTS: dict[str, str] = {
    "Chain": "imcc.baselines.ecc:Chain",
    "Chi2Kernel": "imcc._math.kernels:Chi2Kernel",
    "EnsembleMember": "imcc._math.ensemble.model:Member",
    "EnsembleModel": "imcc._math.ensemble.model:EnsembleModel",
    "EnsembleTrees": "imcc._math.ensemble.model:TreeMember",
    "EnsembleSpace": "imcc._math.ensemble.views:Space",
    "EnsembleView": "imcc._math.ensemble.views:View",
    "IsotonicMap": "imcc._math.score_maps:IsotonicMap",
    "Kernel": "imcc._math.kernels:Kernel",
    "KernelModel": "imcc._math.kernels:KernelModel",
    "LaplacianKernel": "imcc._math.kernels:LaplacianKernel",
    "LinearKernel": "imcc._math.kernels:LinearKernel",
    "LinearModel": "imcc._math.kernels:LinearModel",
    "LinearScore": "imcc.baselines._svm:LinearScore",
    "LogisticMaps": "imcc._math.logistic:LogisticMaps",
    "RBFKernel": "imcc._math.kernels:RBFKernel",
    "Round": "imcc.baselines.mahr:Round",
    "ScoreMaps": "imcc._math.score_maps:ScoreMaps",
    "Sigmoid": "imcc.baselines._platt:Sigmoid",
    "Schema": "imcc.tables._schema:Schema",
    "SchemaColumn": "imcc.tables._schema:Column",
    "TableCategory": "imcc.tables._steps:Category",
    "TableMissing": "imcc.tables._steps:Missing",
    "TableNumbers": "imcc.tables._steps:Numbers",
    "TableText": "imcc.tables._steps:Text",
    "BoostedTrees": "imcc._math.ensemble.trees:Trees",
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
