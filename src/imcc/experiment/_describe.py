"""Estimators as plain data and back: what makes an experiment a text that can be stored.

A description is a dictionary ``{"estimator": "package.module.Class", "params": {...}}``; parameters
that are estimators are descriptions themselves.  Only numbers, texts, lists and the like can be
described; whatever cannot (a function, a random generator) is refused with a message.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from imcc.experiment._errors import ExperimentError


def describe_estimator(estimator: Any) -> dict[str, Any]:
    """Return the class of an estimator and those of its parameters that are not the defaults.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> described = describe_estimator(OneVsRestClassifier(LogisticRegression(C=2.0)))
    >>> described["params"]["estimator"]["params"]
    {'C': 2.0}
    """
    kind = type(estimator)
    path = f"{kind.__module__}.{kind.__qualname__}"
    if kind.__module__ == "__main__" or "<locals>" in kind.__qualname__:
        raise ExperimentError(
            f"{path} cannot be imported by another process: put the class into a module"
        )
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(kind.__init__).parameters.items()
    }
    params = {
        name: to_data(value, f"{kind.__name__}.{name}")
        for name, value in estimator.get_params(deep=False).items()
        if not _same(value, defaults.get(name, inspect.Parameter.empty))
    }
    return {"estimator": path, "params": params}


def build_estimator(description: Mapping[str, Any], where: str = "estimator") -> Any:
    """Return the estimator of a description, unfitted.

    Examples
    --------
    >>> build_estimator({"estimator": "sklearn.naive_bayes.GaussianNB", "params": {}})
    GaussianNB()
    """
    unknown = set(description) - {"estimator", "params"}
    if unknown or "estimator" not in description:
        raise ExperimentError(
            f"{where}: an estimator is described by 'estimator' (an import path) and 'params', "
            f"got {sorted(description)}"
        )
    kind = import_object(str(description["estimator"]), where)
    params = description.get("params", {})
    if not isinstance(params, Mapping):
        raise ExperimentError(f"{where}: params must be a table of names and values")
    values = {name: from_data(value, f"{where}.{name}") for name, value in params.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise ExperimentError(f"{where}: {error}") from error


def import_object(path: str, where: str) -> Any:
    """Import ``package.module.Name`` or ``package.module:Name``.

    >>> import_object("sklearn.naive_bayes:GaussianNB", "here").__name__
    'GaussianNB'
    """
    module, _, name = path.replace(":", ".").rpartition(".")
    if not module:
        raise ExperimentError(
            f"{where}: {path!r} is not the name of a method of ours nor an import path "
            "(package.module.Class)"
        )
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise ExperimentError(f"{where}: cannot import {path!r}: {error}") from error
    except AttributeError as error:
        raise ExperimentError(f"{where}: there is no {name!r} in the module {module!r}") from error


def to_data(value: Any, where: str) -> Any:
    """Return a parameter as plain data; ``where`` is for the message if that cannot be."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):  # scikit-learn tells tuples and lists apart, JSON does not
        return {"tuple": [to_data(v, where) for v in value]}
    if isinstance(value, list):
        return [to_data(v, where) for v in value]
    if isinstance(value, Mapping) and all(isinstance(k, str) for k in value):
        return {"table": {k: to_data(v, where) for k, v in value.items()}}
    if hasattr(value, "get_params") and not isinstance(value, type):
        return describe_estimator(value)
    raise ExperimentError(
        f"{where} is a {type(value).__name__}, which cannot be written into a description: use "
        "numbers, texts, lists, dictionaries and estimators"
    )


def from_data(value: Any, where: str) -> Any:
    """Return the parameter that plain data stand for."""
    if isinstance(value, Mapping):
        if "estimator" in value:
            return build_estimator(value, where)
        if set(value) == {"tuple"}:
            return tuple(from_data(v, where) for v in value["tuple"])
        inner = value["table"] if set(value) == {"table"} else value
        return {k: from_data(v, f"{where}.{k}") for k, v in inner.items()}
    if isinstance(value, (list, tuple)):
        return [from_data(v, where) for v in value]
    return value


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    if type(value) is not type(default):
        return False
    try:
        return bool(value == default)
    except ValueError:  # arrays
        return False
