"""Conversion of estimators to plain data and back, so that experiments can be stored.

A description is a dictionary ``{"estimator": name, "params": {...}, "defaults": {...}}``.  The name
is a short name of a class of imcc (:mod:`imcc._utils.names`) or an import path
``package.module.Class``; ``params`` are the given parameters, ``defaults`` all others with their
values when the description was created.  Parameters that are estimators are described in the same
way.  Only numbers, strings, lists and similar values can be described; other values, such as
functions and random generators, are an error.

Descriptions come from files, which may not be trustworthy.  Reading, comparing and hashing them
(:func:`canonical`) only uses the data.  Only :func:`build_estimator` imports what a description
names: classes with ``fit`` from packages that the user allows, which is checked before anything is
called.
"""

from __future__ import annotations

import importlib
import inspect
import math
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from imcc._utils.errors import given
from imcc._utils.names import CLASSES, class_of, name_of
from imcc.experiment._errors import ExperimentError

#: Packages whose estimators are always allowed.
ALLOWED = ("imcc", "sklearn")
# Public modules from which classes of imcc can be imported.
_PUBLIC = ("imcc", "imcc.estimators", "imcc.baselines")
_ENTRIES = {"estimator", "params", "defaults"}


def check_allowed(packages: Any) -> tuple[str, ...]:
    """Validate and return the names of the packages that a user allows.

    >>> check_allowed(["xgboost", "my.methods"])
    ('xgboost', 'my.methods')
    """
    if isinstance(packages, str):
        packages = [packages]
    if not isinstance(packages, Iterable):
        raise ExperimentError(f"allow must be a list of packages, got {packages!r}")
    names = tuple(packages)
    for name in names:
        if not isinstance(name, str) or not all(part.isidentifier() for part in name.split(".")):
            raise ExperimentError(
                f"allow must be names of packages, such as 'xgboost' or 'my.methods', got {name!r}"
            )
    return names


def short_name(path: str) -> str:
    """Return the short name of a class of imcc for its import path; other paths unchanged.

    >>> short_name("imcc.baselines.MAHR"), short_name("sklearn.svm.SVC")
    ('MAHR', 'sklearn.svm.SVC')
    """
    module, _, name = path.replace(":", ".").rpartition(".")
    if name in CLASSES and module in (*_PUBLIC, CLASSES[name].partition(":")[0]):
        return name
    return path


def describe_estimator(estimator: Any) -> dict[str, Any]:
    """Return the class of an estimator and all its parameters.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> described = describe_estimator(OneVsRestClassifier(LogisticRegression(C=2.0)))
    >>> described["params"]["estimator"]["params"]
    {'C': 2.0}
    >>> described["defaults"]
    {'n_jobs': None, 'verbose': 0}
    """
    kind = type(estimator)
    path = name_of(kind) or f"{kind.__module__}.{kind.__qualname__}"
    if kind.__module__ == "__main__" or "<locals>" in kind.__qualname__:
        raise ExperimentError(
            f"{path} cannot be imported by another process: put the class into a module"
        )
    signature = inspect.signature(kind.__init__).parameters
    params: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for name, value in estimator.get_params(deep=False).items():
        where = f"{kind.__name__}.{name}"
        default = signature[name].default if name in signature else inspect.Parameter.empty
        if not _same(value, default):
            params[name] = to_data(value, where)
            continue
        try:
            defaults[name] = to_data(value, where)
        except ExperimentError:  # a class or a function is identified by its name
            named = value if hasattr(value, "__qualname__") else type(value)
            defaults[name] = {"default": f"{named.__module__}.{named.__qualname__}"}
    return {"estimator": path, "params": params, "defaults": defaults}


def canonical(description: Mapping[str, Any]) -> Any:
    """Return a description in a canonical form for comparisons; nothing is built.

    Given values and defaults are not distinguished, since the results are the same.

    >>> one = canonical({"estimator": "MAHR", "params": {"a": 1}, "defaults": {"b": 2}})
    >>> one == canonical({"estimator": "MAHR", "params": {"a": 1, "b": 2}, "defaults": {}})
    True
    """

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return canonical(value) if "estimator" in value else {k: plain(value[k]) for k in value}
        return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value

    given_, defaults = (description.get(name, {}) for name in ("params", "defaults"))
    params = {**plain(defaults), **plain(given_)}
    rest = {k: plain(v) for k, v in description.items() if k not in ("params", "defaults")}
    return {**rest, "params": params}


def packages_of(value: Any) -> tuple[str, ...]:
    """Return the packages that a description names, including nested ones."""
    found: tuple[str, ...] = ()
    if isinstance(value, Mapping):
        if isinstance(value.get("estimator"), str) and value["estimator"] not in CLASSES:
            found = (value["estimator"].partition(".")[0],)
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            found += packages_of(item)
    return found


def build_estimator(
    description: Mapping[str, Any], where: str = "estimator", allow: Iterable[str] = ALLOWED
) -> Any:
    """Return the unfitted estimator of a description.

    Parameters
    ----------
    description : mapping
    where : str, default="estimator"
        What is described, for error messages.
    allow : iterable of str, default=("imcc", "sklearn")
        Packages from which classes may be imported; short names of imcc are always allowed.

    Examples
    --------
    >>> build_estimator({"estimator": "sklearn.naive_bayes.GaussianNB", "params": {}})
    GaussianNB()
    >>> build_estimator({"estimator": "os.system", "params": {"command": "true"}})
    Traceback (most recent call last):
    ...
    imcc.experiment._errors.ExperimentError: estimator: 'os.system' ... is not allowed...
    """
    allow = tuple(allow)
    if not isinstance(description, Mapping) or not {"estimator"} <= set(description) <= _ENTRIES:
        raise ExperimentError(
            f"{where}: an estimator is described by 'estimator' (a name of imcc or an import "
            f"path) and 'params', got {description!r}"
        )
    kind = find_class(description["estimator"], where, allow)
    values: dict[str, Any] = {}
    for entry in ("defaults", "params"):
        params = description.get(entry, {})
        if not isinstance(params, Mapping):
            raise ExperimentError(f"{where}: {entry} must be a table of names and values")
        for name, value in params.items():
            if not (isinstance(value, Mapping) and set(value) == {"default"}):
                values[name] = from_data(value, f"{where}.{name}", allow)
    try:
        built = kind(**values)
    except TypeError as error:
        raise ExperimentError(f"{where}: {error}") from error
    known = {*description.get("params", {}), *description.get("defaults", {})}
    new = {name: v for name, v in built.get_params(deep=False).items() if name not in known}
    if new and "defaults" in description:
        listed = ", ".join(f"{name}={value!r}" for name, value in new.items())
        warnings.warn(
            f"{where}: {type(built).__name__} has parameters that it did not have when the "
            f"experiment was created ({listed}): rows computed now may differ from earlier ones",
            stacklevel=2,
        )
    return built


def find_class(path: Any, where: str, allow: Iterable[str] = ALLOWED) -> type:
    """Import a class with ``fit``, if its package is allowed.

    >>> find_class("sklearn.naive_bayes:GaussianNB", "here").__name__
    'GaussianNB'
    """
    path = short_name(str(path))
    if path in CLASSES:
        return class_of(path)
    dotted = path.replace(":", ".")
    module, _, name = dotted.rpartition(".")
    if not module:
        raise ExperimentError(
            f"{where}: {path!r} is neither the name of a method of imcc nor an import path "
            "(package.module.Class)"
        )
    if not any(dotted.startswith(f"{package}.") for package in allow):
        package = dotted.partition(".")[0]
        raise ExperimentError(
            f"{where}: {path!r} is not imported, because the package {package!r} is not allowed. "
            "Running an experiment runs the code that it names; if you trust this package, allow "
            "it: " + given("allow", text=package)
        )
    try:
        found = getattr(importlib.import_module(module), name)
    except (AttributeError, ImportError) as error:
        raise ExperimentError(f"{where}: cannot import {path!r}: {error}") from error
    if not isinstance(found, type) or not all(
        callable(getattr(found, needed, None)) for needed in ("fit", "get_params")
    ):
        raise ExperimentError(f"{where}: {path!r} is not a scikit-learn estimator: it has no fit")
    return found


def to_data(value: Any, where: str) -> Any:
    """Return a parameter as plain data; ``where`` is for the error message."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}  # not valid in JSON, and NaN is not equal to itself
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, tuple):  # scikit-learn distinguishes tuples and lists, JSON does not
        return {"tuple": [to_data(v, where) for v in value]}
    if isinstance(value, list):
        return [to_data(v, where) for v in value]
    if isinstance(value, Mapping) and all(isinstance(k, str) for k in value):
        return {"table": {k: to_data(v, where) for k, v in value.items()}}
    if hasattr(value, "get_params") and hasattr(value, "fit") and not isinstance(value, type):
        return describe_estimator(value)
    raise ExperimentError(
        f"{where} is of type {type(value).__name__}, which cannot be stored: use numbers, strings, "
        "lists, dictionaries and estimators"
    )


def from_data(value: Any, where: str, allow: Iterable[str] = ALLOWED) -> Any:
    """Return the parameter described by plain data; estimators by :func:`build_estimator`."""
    if isinstance(value, Mapping):
        if "estimator" in value:
            return build_estimator(value, where, allow)
        if set(value) == {"tuple"} and isinstance(value["tuple"], list):
            return tuple(from_data(v, where, allow) for v in value["tuple"])
        if set(value) == {"float"} and value["float"] in ("nan", "inf", "-inf"):
            return float(value["float"])
        wrapped = set(value) == {"table"} and isinstance(value["table"], Mapping)
        inner = value["table"] if wrapped else value
        return {k: from_data(v, f"{where}.{k}", allow) for k, v in inner.items()}
    if isinstance(value, (list, tuple)):
        return [from_data(v, where, allow) for v in value]
    return value


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    if type(value) is not type(default):
        return False
    try:
        return bool(value == default) or (value != value and default != default)
    except ValueError:  # arrays
        return False
