"""Methods of an experiment: named methods and scikit-learn estimators, optionally with a grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.base import BaseEstimator

from imcc._utils.names import CLASSES
from imcc._utils.validation import check_choice
from imcc.datasets._errors import repeated
from imcc.experiment._describe import (
    ALLOWED,
    build_estimator,
    describe_estimator,
    from_data,
    packages_of,
    short_name,
    to_data,
)
from imcc.experiment._errors import ExperimentError

# The full grids of LLSF and JFSC have 1323 and 3993 settings, too many for a comparison; 40 of them
# are tried, with halving over the folds (see docs/baselines.md for the effect).  Rows of unit norm
# and no column of ones are the authors' choices.
_SPARSE = {
    "budget": 40,
    "halving": True,
    "max_iter": 100,
    "unit_rows": True,
    "fit_intercept": False,
}

# The paper's grid, written out: the grid of an experiment must not change with the defaults of the
# search.
_WEIGHTS = {"tuple": [0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]}
PAPER_GRID: dict[str, Any] = {
    "alphas": _WEIGHTS,
    "betas": _WEIGHTS,
    "gammas": _WEIGHTS,
    "n_clusters": {"tuple": [8, 16, 32, 64, 128, 256]},
    "kernels": {"tuple": ["rbf"]},
    "width_scales": {"tuple": [1.0]},
}

#: Named methods: the estimator, and the parameters that differ from its defaults.
NAMED: dict[str, dict[str, Any]] = {
    "imcc": {"estimator": "IMCCClassifierCV", "params": PAPER_GRID},
    "brsvm": {"estimator": "BinaryRelevanceSVM", "params": {}},
    "ecc": {"estimator": "EnsembleClassifierChains", "params": {}},
    "mahr": {"estimator": "MAHR", "params": {}},
    "llsf": {"estimator": "LLSFCV", "params": _SPARSE},
    "jfsc": {"estimator": "JFSCCV", "params": _SPARSE},
    "lift": {"estimator": "LIFT", "params": {}},
    "kernel_ensemble": {"estimator": "KernelEnsembleClassifier", "params": {}},
    "kernel_ridge": {"estimator": "KernelRidgeBaseline", "params": {}},
    # Of scikit-learn.
    "extra_trees": {
        "estimator": "sklearn.ensemble.ExtraTreesClassifier",
        "params": {"n_estimators": 300},
    },
    "logistic": {
        "estimator": "sklearn.multiclass.OneVsRestClassifier",
        "params": {
            "estimator": {
                "estimator": "sklearn.linear_model.LogisticRegression",
                "params": {"max_iter": 1000},
            }
        },
    },
}


@dataclass(frozen=True)
class Method:
    """A method of an experiment.

    Attributes
    ----------
    name : str
        Name of the method in tables.
    description : dict
        ``{"estimator": name or import path, "params": {...}}``, with a ``"grid"`` of parameters to
        search, if there is one, and if the method is resolved, ``"defaults"`` with the values of
        all other parameters.
    allow : tuple of str
        Packages from which classes may be imported, besides imcc and sklearn: those that the user
        allows, and those of an estimator that was given as an object, which are already imported.
        Not part of the method, and never stored.
    """

    name: str
    description: dict[str, Any]
    allow: tuple[str, ...] = field(default=(), compare=False)

    def build(self) -> tuple[Any, dict[str, list[Any]] | None]:
        """Return the unfitted estimator and the grid to search, or None."""
        allow, where = (*ALLOWED, *self.allow), f"method {self.name!r}"
        rest = dict(self.description)
        grid = rest.pop("grid", None)
        estimator = build_estimator(rest, where, allow)
        if grid is None:
            return estimator, None
        known = estimator.get_params(deep=True)
        for name in grid:
            if name not in known:
                raise ExperimentError(
                    f"{where}: grid has {name!r}, which is not a parameter of "
                    f"{type(estimator).__name__}; it has {', '.join(sorted(known))}"
                )
        return estimator, {
            name: [from_data(value, f"{where}.{name}", allow) for value in values]
            for name, values in grid.items()
        }

    def resolve(self, allow: Iterable[str] = ()) -> Method:
        """Return the method with the values of all its parameters; raise an error if it is invalid.

        This imports and creates the estimator.  A method that is already resolved is returned
        unchanged: it includes the defaults of the version that resolved it.

        Parameters
        ----------
        allow : iterable of str, default=()
            Further packages from which classes may be imported.

        Returns
        -------
        Method
        """
        method = replace(self, allow=tuple(dict.fromkeys((*self.allow, *allow))))
        estimator, grid = method.build()
        if method.is_resolved:
            return method
        description = describe_estimator(estimator)
        if grid is not None:
            description["grid"] = _check_grid(grid, f"method {self.name!r}")
        return replace(method, description=description)

    @property
    def is_resolved(self) -> bool:
        """Whether the values of all parameters are known."""
        return "defaults" in self.description


def make_methods(given: Any, allow: Iterable[str] = ()) -> list[Method]:
    """Return the methods given by a user; nothing is imported.

    Parameters
    ----------
    given : mapping of str to method, or iterable of methods
        A method is a name, an import path, an estimator, a pair of one of these and a grid, or a
        mapping with ``estimator``, ``params`` and ``grid``.  In an iterable, estimators and import
        paths are named after their class.
    allow : iterable of str, default=()
        Packages from which they may be imported, besides imcc and sklearn.

    Returns
    -------
    list of Method

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> [m.name for m in make_methods(["imcc", KNeighborsClassifier()])]
    ['imcc', 'KNeighborsClassifier']
    >>> knn = make_methods({"knn": (KNeighborsClassifier(), {"n_neighbors": [5, 10]})})[0]
    >>> knn.description["grid"]
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
    if twice := repeated(method.name for method in methods):
        raise ExperimentError(
            f"methods: duplicate names {twice}; use a dictionary with different names"
        )
    return [
        replace(method, allow=tuple(dict.fromkeys((*method.allow, *allow)))) for method in methods
    ]


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
        return replace(given, name=name)
    grid: Any = None
    if isinstance(given, tuple):
        if len(given) != 2:
            raise ExperimentError(f"{where}: a pair is (estimator, grid), got {len(given)} parts")
        given, grid = given
    if isinstance(given, Mapping):
        given = dict(given)
        grid = given.pop("grid", grid)
        given.setdefault("estimator", name)
        described = _described(given, where)
    elif isinstance(given, str):
        described = _described({"estimator": given}, where)
    elif hasattr(given, "get_params") and not isinstance(given, type):
        described = describe_estimator(given)
    else:
        raise ExperimentError(
            f"{where} must be a known name ({', '.join(NAMED)}), an import path or an estimator, "
            f"got {given!r}"
        )
    if grid is not None:
        described["grid"] = _check_grid(grid, where)
    is_object = not isinstance(given, (Mapping, str))
    return Method(name, described, packages_of(described) if is_object else ())


def _described(given: dict[str, Any], where: str) -> dict[str, Any]:
    """Replace the name of a method by its description, with further parameters added."""
    estimator, params = given.get("estimator"), given.get("params", {})
    tables = params, given.get("defaults", {})
    if not isinstance(estimator, str) or not all(isinstance(table, Mapping) for table in tables):
        raise ExperimentError(f"{where}: estimator must be a name and params a table, got {given}")
    if unknown := set(given) - {"estimator", "params", "defaults"}:
        raise ExperimentError(
            f"{where}: unknown entries {sorted(unknown)}; known are estimator, params and grid"
        )
    estimator = short_name(estimator)
    if estimator in NAMED:
        named = NAMED[estimator]
        return {"estimator": named["estimator"], "params": {**named["params"], **params}}
    if "." not in estimator and ":" not in estimator:
        check_choice(where, estimator, [*NAMED, *CLASSES])
    return {**given, "estimator": estimator, "params": dict(params)}


def _check_grid(grid: Any, where: str) -> dict[str, list[Any]]:
    if not isinstance(grid, Mapping) or not grid:
        raise ExperimentError(f"{where}: grid must map parameters to lists of values")
    checked = {}
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Iterable) or not list(values):
            raise ExperimentError(f"{where}: grid entry {name!r} must be a list of values")
        checked[str(name)] = [_as_data(value, f"{where}.{name}") for value in values]
    return checked


def _as_data(value: Any, where: str) -> Any:
    """Return a value of a grid as data; values from a file are already data."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, list):
        return [_as_data(item, where) for item in value]
    return to_data(value, where)
