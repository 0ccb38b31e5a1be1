"""Methods of an experiment: ours by name, any scikit-learn estimator, with or without a grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import BaseEstimator

from imcc._utils.validation import check_choice
from imcc.experiment._describe import build_estimator, describe_estimator, import_object, to_data
from imcc.experiment._errors import ExperimentError

# LLSF's and JFSC's full grids have 1323 and 3993 settings; 40 of them, halved over the folds, are
# what a comparison can afford (docs/baselines.md says what that costs).
_SPARSE = {"budget": 40, "halving": True, "max_iter": 100}

#: Our methods by name: the estimator and the parameters that differ from its defaults.
NAMED: dict[str, dict[str, Any]] = {
    "imcc": {"estimator": "imcc.IMCCClassifierCV", "params": {}},
    "imcc_kernels": {
        "estimator": "imcc.IMCCClassifierCV",
        "params": {"kernels": ["rbf", "laplacian"], "width_scales": [0.25, 0.5, 1.0, 2.0]},
    },
    "brsvm": {"estimator": "imcc.baselines.BinaryRelevanceSVM", "params": {}},
    "ecc": {"estimator": "imcc.baselines.EnsembleClassifierChains", "params": {}},
    "mahr": {"estimator": "imcc.baselines.MAHR", "params": {}},
    "llsf": {"estimator": "imcc.baselines.LLSFCV", "params": _SPARSE},
    "jfsc": {"estimator": "imcc.baselines.JFSCCV", "params": _SPARSE},
    "lift": {"estimator": "imcc.baselines.LIFT", "params": {}},
    "kernel_ensemble": {"estimator": "imcc.KernelEnsembleClassifier", "params": {}},
    "kernel_ridge": {"estimator": "imcc.baselines.KernelRidgeBaseline", "params": {}},
    "extra_trees": {"estimator": "imcc.baselines.ExtraTreesBaseline", "params": {}},
}


@dataclass(frozen=True)
class Method:
    """One method of an experiment.

    Attributes
    ----------
    name : str
        As it stands in the tables.
    description : dict
        ``{"estimator": import path, "params": {...}}``.
    grid : dict of str to list, or None
        Parameters to search; None for methods that have none or search by themselves.
    """

    name: str
    description: dict[str, Any]
    grid: dict[str, list[Any]] | None = field(default=None)

    def build(self) -> Any:
        """Return the estimator, unfitted."""
        return build_estimator(self.description, f"method {self.name!r}")

    @classmethod
    def from_dict(cls, name: str, plain: Mapping[str, Any]) -> Method:
        """Return the method that was made plain data, without asking whether it can be built."""
        description = {key: value for key, value in plain.items() if key != "grid"}
        return cls(name, description, plain.get("grid"))

    def to_dict(self) -> dict[str, Any]:
        """Return the method as plain data."""
        plain: dict[str, Any] = dict(self.description)
        if self.grid is not None:
            plain["grid"] = self.grid
        return plain


def make_methods(given: Any) -> list[Method]:
    """Return the methods that a user named or gave.

    Parameters
    ----------
    given : mapping of str to method, or iterable of methods
        A method is one of our names, an import path, an estimator, a pair (one of these, grid), or
        a table with ``estimator``, ``params`` and ``grid``.  In an iterable it must bring its name
        along: our names, or an estimator, which is named after its class.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> [m.name for m in make_methods(["imcc", KNeighborsClassifier()])]
    ['imcc', 'KNeighborsClassifier']
    >>> make_methods({"knn": (KNeighborsClassifier(), {"n_neighbors": [5, 10]})})[0].grid
    {'n_neighbors': [5, 10]}
    """
    if isinstance(given, (str, BaseEstimator)):
        given = [given]
    if isinstance(given, Mapping):
        methods = [_make(str(name), method) for name, method in given.items()]
    elif isinstance(given, Iterable):
        methods = [_make(_own_name(method), method) for method in given]
    else:
        raise ExperimentError(f"methods must be names or estimators, got {given!r}")
    names = [method.name for method in methods]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ExperimentError(
            f"methods: {sorted(repeated)} occur twice; give a dictionary with different names"
        )
    return methods


def _own_name(method: Any) -> str:
    if isinstance(method, Method):
        return method.name
    if isinstance(method, str):
        return method.replace(":", ".").rpartition(".")[2]
    if isinstance(method, tuple) and method:
        return _own_name(method[0])
    return type(method).__name__


def _make(name: str, given: Any) -> Method:
    where = f"method {name!r}"
    if not name.strip() or name != name.strip():
        raise ExperimentError(f"{where}: the name is empty or begins or ends with a space")
    if isinstance(given, Method):
        return Method(name, given.description, given.grid)
    grid = None
    if isinstance(given, tuple):
        if len(given) != 2:
            raise ExperimentError(f"{where}: a pair is (estimator, grid), got {len(given)} parts")
        given, grid = given
    if isinstance(given, Mapping):
        given = dict(given)
        grid = given.pop("grid", grid)
        given.setdefault("estimator", name)
        described = _resolve(given, where)
    elif isinstance(given, str):
        described = _resolve({"estimator": given}, where)
    elif hasattr(given, "get_params") and not isinstance(given, type):
        described = describe_estimator(given)
    else:
        raise ExperimentError(
            f"{where} must be one of our names ({', '.join(NAMED)}), an import path or an "
            f"estimator, got {given!r}"
        )
    method = Method(name, described, _check_grid(grid, where))
    _check_usable(method.build(), method.grid, where)
    return method


def _resolve(given: dict[str, Any], where: str) -> dict[str, Any]:
    """Replace one of our names by what it stands for; other parameters come on top."""
    estimator, params = given.get("estimator"), dict(given.get("params", {}))
    if unknown := set(given) - {"estimator", "params"}:
        raise ExperimentError(
            f"{where}: unknown entries {sorted(unknown)}; known are estimator, params and grid"
        )
    if isinstance(estimator, str) and estimator in NAMED:
        named = NAMED[estimator]
        return {"estimator": named["estimator"], "params": {**named["params"], **params}}
    if isinstance(estimator, str) and "." not in estimator and ":" not in estimator:
        check_choice(where, estimator, list(NAMED))
    import_object(str(estimator), where)
    return {"estimator": str(estimator), "params": params}


def _check_grid(grid: Any, where: str) -> dict[str, list[Any]] | None:
    if grid is None:
        return None
    if not isinstance(grid, Mapping) or not grid:
        raise ExperimentError(f"{where}: grid must name parameters and list their values")
    checked = {}
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Iterable) or not list(values):
            raise ExperimentError(f"{where}: grid entry {name!r} must be a list of values")
        checked[str(name)] = [to_data(value, f"{where}.{name}") for value in values]
    return checked


def _check_usable(estimator: Any, grid: dict[str, list[Any]] | None, where: str) -> None:
    """Find out before an hour of computing whether a method can be run at all."""
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise ExperimentError(f"{where}: {estimator!r} is not a scikit-learn estimator")
    known = estimator.get_params(deep=True)
    for name in grid or {}:
        if name not in known:
            raise ExperimentError(
                f"{where}: grid names {name!r}, which is not a parameter of "
                f"{type(estimator).__name__}; it has {', '.join(sorted(known))}"
            )
