"""What can be said about a model without knowing where it came from."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from imcc.datasets import Dataset


def versions() -> dict[str, str]:
    """Return the versions that a model may depend on."""
    names = ("numpy", "scipy", "scikit-learn", "skops")
    found = {name: importlib.metadata.version(name) for name in names}
    return {"python": platform.python_version(), **found}


def describe(model: Any) -> str:
    """Return the classes of a model, outermost first."""
    if isinstance(model, Pipeline):
        return " -> ".join(describe(step) for _, step in model.steps)
    inner = getattr(model, "estimator_", None)
    name = type(model).__name__
    return name if inner is None or isinstance(inner, list) else f"{name}({describe(inner)})"


def _inside(model: Any) -> Any:
    """Return the model inside pipelines and thresholds: the one that has settings."""
    while True:
        if isinstance(model, Pipeline):
            model = model.steps[-1][1]
        elif hasattr(model, "thresholds_") and hasattr(model, "estimator_"):
            model = model.estimator_
        else:
            return model


def params_of(model: Any) -> dict[str, Any]:
    """Return the setting of a model: what a search chose, or what was given."""
    inner = _inside(model)
    chosen = getattr(inner, "best_params_", None)
    return {name: _plain(value) for name, value in (chosen or inner.get_params(False)).items()}


def metrics_of(model: Any) -> dict[str, float]:
    """Return the cross-validated score of a search."""
    inner = _inside(model)
    if not hasattr(inner, "best_score_"):
        return {}
    scoring = getattr(inner, "scoring", None)
    name = scoring if isinstance(scoring, str) else getattr(inner, "refit", None)
    name = name if isinstance(name, str) else "score"
    return {f"cross-validated {name}": float(inner.best_score_)}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return getattr(value, "__name__", None) or str(value)


def names_of(
    model: Any, data: Dataset | None, given: Sequence[str] | None, what: str
) -> tuple[str, ...]:
    """Return the names of the features or of the labels, as many as the model has."""
    kept = "feature_names_in_" if what == "feature" else "label_names_"
    holder = model if what == "feature" else _inside(model)
    if given is not None:
        names = tuple(str(name) for name in given)
    elif data is not None:
        names = data.feature_names if what == "feature" else data.label_names
    elif getattr(holder, kept, None) is not None:
        names = tuple(str(name) for name in getattr(holder, kept))
    else:
        names = ()
    count = _count(model, what)
    if count is None or len(names) == count:
        return names
    if names:
        raise ValueError(f"{what}_names has {len(names)} names, the model {count} {what}s")
    if what == "label" and getattr(holder, "target_kind_", "") in ("binary", "multiclass"):
        return tuple(str(name) for name in holder.classes_)[-count:]
    return tuple(f"{'x' if what == 'feature' else 'label'}{i}" for i in range(count))


def _count(model: Any, what: str) -> int | None:
    if what == "feature":
        return getattr(model, "n_features_in_", None)
    inner = _inside(model)
    if getattr(inner, "target_kind_", "") == "binary":
        return 1
    classes = getattr(inner, "classes_", None)
    return None if classes is None else len(classes)
