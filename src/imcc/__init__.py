"""Multi-label learning with cluster centres as virtual examples (IMCC)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imcc import (
        baselines,
        comparison,
        datasets,
        estimators,
        experiment,
        inspection,
        metrics,
        persistence,
        report,
        serve,
        tables,
    )
    from imcc.datasets import load_dataset
    from imcc.estimators import (
        IMCCClassifier,
        IMCCClassifierCV,
        KernelEnsembleClassifier,
        TunedThresholds,
    )
    from imcc.persistence import load_model, save_model
    from imcc.tables import TableClassifier

__version__ = "0.1.0"

# Where the names that users type come from.  They are imported when they are first used, so that
# ``import imcc`` and the command line start without scikit-learn.
_NAMES = {
    "IMCCClassifier": "estimators",
    "IMCCClassifierCV": "estimators",
    "KernelEnsembleClassifier": "estimators",
    "TableClassifier": "tables",
    "TunedThresholds": "estimators",
    "load_dataset": "datasets",
    "load_model": "persistence",
    "save_model": "persistence",
}
_PACKAGES = (
    "baselines",
    "comparison",
    "datasets",
    "estimators",
    "experiment",
    "inspection",
    "metrics",
    "persistence",
    "report",
    "serve",
    "tables",
)

__all__ = [
    "IMCCClassifier",
    "IMCCClassifierCV",
    "KernelEnsembleClassifier",
    "TableClassifier",
    "TunedThresholds",
    "baselines",
    "comparison",
    "datasets",
    "estimators",
    "experiment",
    "inspection",
    "load_dataset",
    "load_model",
    "metrics",
    "persistence",
    "report",
    "save_model",
    "serve",
    "tables",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"imcc.{name}")
    if name in _NAMES:
        found = getattr(importlib.import_module(f"imcc.{_NAMES[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'imcc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
