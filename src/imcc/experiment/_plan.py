"""Description of an experiment: data sets x methods x repetitions, as independent tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import check_choice, check_count, check_number
from imcc.experiment._describe import (
    ALLOWED,
    check_allowed,
    is_resolved,
    packages_of,
    short_name,
)
from imcc.experiment._errors import ExperimentError
from imcc.experiment._methods import PAPER_GRID, Method, make_methods
from imcc.experiment._sources import DatasetSpec, make_datasets
from imcc.metrics import METRICS

#: Kind of a task: scores of a method on one split.
SCORES = "scores"
#: Kind of a task: a study of the sensitivity to the parameters.
SENSITIVITY = "sensitivity"
_MAX_TASKS = 1_000_000
# The default method of sensitivity studies.
_STUDIED: dict[str, Any] = {"estimator": "IMCCClassifierCV", "params": PAPER_GRID}


class TaskKey(NamedTuple):
    """Key of a task, unique in an experiment.

    Attributes
    ----------
    kind : {"scores", "sensitivity"}
        Kind of the task.
    dataset, method : str
        Names of the data set and the method.
    repetition : int
        Index of the split, from 0.

    Examples
    --------
    >>> print(TaskKey("scores", "yeast", "imcc", 0))
    yeast, imcc, split 1
    >>> print(TaskKey("sensitivity", "enron", "imcc", 0))
    enron, sensitivity of imcc
    """

    kind: str
    dataset: str
    method: str
    repetition: int

    def __str__(self) -> str:
        if self.kind == SENSITIVITY:
            return f"{self.dataset}, sensitivity of {self.method}"
        return f"{self.dataset}, {self.method}, split {self.repetition + 1}"


@dataclass(frozen=True)
class Protocol:
    """Protocol of an experiment, the same for all methods so that their results are comparable.

    Attributes
    ----------
    test_size : float
        Fraction of the rows held out in each split.
    cv : int
        Number of folds for the choice of parameters.
    scoring : str
        Metric by which parameters are chosen.
    stratified : bool
        Whether splits preserve the frequency of every label.
    seed : int
        Seed of the splits.
    """

    test_size: float = 0.2
    cv: int = 5
    scoring: str = "average_precision"
    stratified: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Task:
    """A task of an experiment: one method on one repetition of one data set.

    Attributes
    ----------
    kind : {"scores", "sensitivity"}
        Kind of the task.
    dataset : DatasetSpec
        The data set.
    method : Method
        The method.
    repetition : int
        Index of the split, from 0.
    protocol : Protocol
        Protocol of the experiment.
    allow : tuple of str
        Packages from which the method may be imported; the result does not depend on it.
    """

    kind: str
    dataset: DatasetSpec
    method: Method
    repetition: int
    protocol: Protocol
    allow: tuple[str, ...] = field(default=ALLOWED, compare=False)

    @property
    def key(self) -> TaskKey:
        """Key of the task, unique in an experiment."""
        return TaskKey(self.kind, self.dataset.name, self.method.name, self.repetition)

    @property
    def fingerprint(self) -> str:
        """Hash of protocol and method; results with different fingerprints are not comparable.

        It includes all parameters of the method, also those with default values, and whether the
        features are standardized.
        """
        if not self.method.is_resolved:
            raise ExperimentError(
                f"the defaults of the method {self.method.name!r} are not known: call resolve() of "
                "the experiment first"
            )
        described: dict[str, Any] = {
            "protocol": asdict(self.protocol),
            "method": self.method.canonical(),
        }
        if self.dataset.standardize:
            described["standardize"] = True
        return _hash(described)

    def __str__(self) -> str:
        return str(self.key)


class Experiment:
    """Comparison of methods on data sets over repeated random splits.

    The protocol is that of section 4 of the paper.

    Parameters
    ----------
    datasets : str, path-like, Dataset, mapping or iterable of these
        Named data sets, files or data sets in memory; a mapping gives names to files.  A mapping
        ``{"name": ..., "path": ..., "labels": ...}`` has options for reading a file (a named data
        set has no path); with ``"standardize": True`` the features are standardized for all methods
        by the training rows of each split (sparse ones are scaled, but not centred);
        ``{"name": ..., "table": "file.csv", "labels": [...]}`` (or ``"tags": ...``) is a table with
        text and missing values, whose preprocessing is fitted to the training rows of each split.
    methods : str, estimator, mapping or iterable of these, default=()
        Named methods (see :data:`imcc.experiment.NAMED`), scikit-learn multi-label estimators or
        their import paths.  The parameters of a pair (estimator, grid) are chosen by
        cross-validation.
    n_repeats : int, default=10
        Number of random splits per data set.
    test_size : float, default=0.2
        Fraction of the rows held out in each split, in (0, 1).
    cv : int, default=5
        Number of folds for the choice of parameters on the training rows of a split, >= 2.
    scoring : str, default="average_precision"
        Metric by which a search chooses a setting.  In addition, every metric is reported for the
        setting chosen by that metric.
    stratified : bool, default=False
        Whether splits preserve the frequency of every label.
    seed : int, default=0
        Seed of the splits.
    sensitivity : iterable of str or mapping, default=()
        Data sets, not necessarily among ``datasets``, on which the sensitivity to IMCC's parameters
        is studied.  A mapping has ``datasets`` and ``params``, parameters of
        :class:`imcc.IMCCClassifierCV`.
    name : str, default="experiment"
        Name of the experiment.
    allow : iterable of str, default=()
        Packages from which methods given by import paths may be imported, in addition to imcc and
        sklearn.  Nothing is imported before the experiment is run or resolved.  It is never stored:
        a store cannot allow packages.

    Attributes
    ----------
    datasets : list of DatasetSpec
        The data sets.
    methods : list of Method
        The methods.
    protocol : Protocol
        Test size, folds, metric, stratification and seed.

    See Also
    --------
    run : Compute the tasks of an experiment.
    load_experiment : Load an included experiment or a file.

    Examples
    --------
    >>> from imcc.experiment import Experiment
    >>> experiment = Experiment(["yeast"], ["imcc", "kernel_ridge"], n_repeats=3)
    >>> len(experiment.tasks())
    6
    >>> print(experiment.tasks()[0])
    yeast, imcc, split 1
    """

    def __init__(
        self,
        datasets: Any,
        methods: Any = (),
        *,
        n_repeats: int = 10,
        test_size: float = 0.2,
        cv: int = 5,
        scoring: str = "average_precision",
        stratified: bool = False,
        seed: int = 0,
        sensitivity: Any = (),
        name: str = "experiment",
        allow: Iterable[str] = (),
    ) -> None:
        self.name = str(name)
        self.allow = check_allowed(allow)
        self.n_repeats = check_count("n_repeats", n_repeats)
        if check_count("cv", cv) < 2:
            raise ValueError(f"cv must be at least 2, got {cv}")
        if not 0 < check_number("test_size", test_size, above=0) < 1:
            raise ValueError(f"test_size must be between 0 and 1, got {test_size}")
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise ValueError(f"seed must be an integer, got {seed!r}")
        if not isinstance(stratified, bool):
            raise ValueError(f"stratified must be True or False, got {stratified!r}")
        self.protocol = Protocol(
            test_size=float(test_size),
            cv=int(cv),
            scoring=check_choice("scoring", scoring, METRICS),
            stratified=stratified,
            seed=int(seed),
        )
        self.datasets = make_datasets(datasets)
        self.methods = make_methods(methods)
        self.studied_datasets, self.studied_method = _make_studies(sensitivity)
        self._check_size()

    def tasks(self) -> list[Task]:
        """Return all tasks: all first repetitions, then all second ones, and so on.

        Returns
        -------
        list of Task
        """
        return list(self._tasks())

    def _tasks(self) -> Iterator[Task]:
        allow = (*ALLOWED, *self.allow)
        for repetition in range(self.n_repeats):
            for dataset in self.datasets:
                for method in self.methods:
                    yield Task(SCORES, dataset, method, repetition, self.protocol, allow)
        for dataset in self.studied_datasets:
            yield Task(SENSITIVITY, dataset, self.studied_method, 0, self.protocol, allow)

    def resolve(self, allow: Iterable[str] = ()) -> Experiment:
        """Return the experiment with the values of all parameters of its methods.

        This imports and creates the estimators of the experiment, to check that they are valid, and
        records their defaults, so that results are never mixed with those of a version with other
        defaults.

        Parameters
        ----------
        allow : iterable of str, default=()
            Packages from which methods may be imported, in addition to imcc, sklearn and ``allow``
            of the experiment.

        Returns
        -------
        Experiment
        """
        resolved = copy(self)
        resolved.allow = tuple(dict.fromkeys((*self.allow, *check_allowed(allow))))
        allowed = (*ALLOWED, *resolved.allow)
        resolved._replace_methods(lambda method: method.resolve(allowed))
        return resolved

    def resolve_ours(self) -> Experiment:
        """Return the experiment with its named methods, and others of classes of imcc, resolved.

        For cases in which nothing else may be imported, such as merging.

        Returns
        -------
        Experiment
        """
        resolved = copy(self)
        resolved._replace_methods(
            lambda method: method.resolve() if method.is_ours and not method.is_resolved else method
        )
        return resolved

    def _replace_methods(self, by: Callable[[Method], Method]) -> None:
        self.methods = [by(method) for method in self.methods]
        if self.studied_datasets:
            self.studied_method = by(self.studied_method)

    def packages(self) -> list[str]:
        """Return the packages that the methods use, except imcc and sklearn."""
        named = (packages_of(method.to_dict()) for method in self.methods)
        found = dict.fromkeys(package for packages in named for package in packages)
        return [package for package in found if package not in ALLOWED]

    def check_resolved(self) -> None:
        """Raise an ExperimentError if a method is not resolved."""
        studied = [self.studied_method] if self.studied_datasets else []
        if names := [m.name for m in (*self.methods, *studied) if not m.is_resolved]:
            raise ExperimentError(
                f"the defaults of the methods {', '.join(names)} are not known, because they are "
                "not methods of imcc and nothing is imported here: run the experiment into the "
                "store first (imcc experiment run FILE -o STORE --for 0s computes nothing), or "
                "call resolve() in Python"
            )

    def subset(
        self,
        *,
        datasets: Iterable[str] | None = None,
        methods: Iterable[str] | None = None,
        n_repeats: int | None = None,
        sensitivity: bool = True,
    ) -> Experiment:
        """Return a part of the experiment.

        Parameters
        ----------
        datasets, methods : iterable of str, default=None
            Names to keep, in this order; all by default.  Sensitivity studies of other data sets
            are removed, too.
        n_repeats : int, default=None
            Number of splits; unchanged by default.
        sensitivity : bool, default=True
            Whether to keep the sensitivity studies.

        Returns
        -------
        Experiment

        Examples
        --------
        >>> from imcc.experiment import load_experiment
        >>> load_experiment("quick").subset(methods=["imcc"], n_repeats=2)
        <Experiment 'quick': 1 data sets x 1 methods x 2 repetitions, 0 studies>
        """
        part = copy(self)
        if datasets is not None:
            part.datasets = _chosen("datasets", datasets, self.datasets)
            kept = {dataset.name for dataset in part.datasets}
            part.studied_datasets = [d for d in self.studied_datasets if d.name in kept]
        if methods is not None:
            part.methods = _chosen("methods", methods, self.methods)
        if n_repeats is not None:
            part.n_repeats = check_count("n_repeats", n_repeats)
        if not sensitivity:
            part.studied_datasets = []
        part._check_size()
        return part

    def with_methods(self, methods: Any, allow: Iterable[str] = ()) -> Experiment:
        """Return the experiment with further methods.

        Parameters
        ----------
        methods : str, estimator, mapping or iterable of these
            As for the class; the names must be new.
        allow : iterable of str, default=()
            Packages from which they may be imported, in addition to imcc, sklearn and ``allow`` of
            the experiment.

        Returns
        -------
        Experiment

        Examples
        --------
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from imcc.experiment import load_experiment
        >>> grown = load_experiment("quick").with_methods({"forest": RandomForestClassifier()})
        >>> grown.methods[-1].name
        'forest'
        """
        more = make_methods(methods)
        if taken := {method.name for method in more} & {method.name for method in self.methods}:
            raise ExperimentError(
                f"methods: the experiment {self.name!r} already has {', '.join(sorted(taken))}: "
                "use another name"
            )
        grown = copy(self)
        grown.methods = [*self.methods, *more]
        grown.allow = tuple(dict.fromkeys((*self.allow, *check_allowed(allow))))
        return grown

    def _check_size(self) -> None:
        n_tasks = self.n_repeats * len(self.datasets) * len(self.methods)
        n_tasks += len(self.studied_datasets)
        if not n_tasks:
            raise ExperimentError(
                "the experiment has nothing to compute: give datasets and methods, or sensitivity"
            )
        if n_tasks > _MAX_TASKS:
            raise ExperimentError(
                f"the experiment has {n_tasks:,} tasks (n_repeats x datasets x methods), more than "
                f"{_MAX_TASKS:,}: use fewer, or several experiments"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return a description that can be written as JSON."""
        plain: dict[str, Any] = {
            "name": self.name,
            "n_repeats": self.n_repeats,
            **asdict(self.protocol),
            "datasets": [dataset.to_dict() for dataset in self.datasets],
            "methods": {method.name: method.to_dict() for method in self.methods},
        }
        if self.studied_datasets:
            plain["sensitivity"] = {
                "datasets": [dataset.to_dict() for dataset in self.studied_datasets],
                **self.studied_method.description,
            }
        return plain

    @classmethod
    def from_dict(
        cls, plain: Mapping[str, Any], where: str = "experiment", allow: Iterable[str] = ()
    ) -> Experiment:
        """Return the experiment of a description, for example of a TOML file; nothing is imported.

        Parameters
        ----------
        plain : mapping
            A description, as returned by :meth:`to_dict`.
        where : str, default="experiment"
            Source of the description, for error messages.
        allow : iterable of str, default=()
            As for the class.

        Returns
        -------
        Experiment
        """
        known = {
            *("name", "n_repeats", "test_size", "cv", "scoring", "stratified", "seed"),
            *("datasets", "methods", "sensitivity"),
        }
        if unknown := set(plain) - known:
            raise ExperimentError(
                f"{where}: unknown entries {sorted(unknown)}; known are {', '.join(sorted(known))}"
            )
        arguments = {"datasets": (), **plain, "allow": allow}
        try:
            return cls(**arguments)
        except (ValueError, TypeError) as error:
            raise ExperimentError(f"{where}: {error}") from error

    def run(self, store: Any, **options: Any) -> Any:
        """Compute the tasks that are missing in a store; see :func:`imcc.experiment.run`."""
        from imcc.experiment._runner import run

        return run(self, store, **options)

    def __repr__(self) -> str:
        return (
            f"<Experiment {self.name!r}: {len(self.datasets)} data sets x {len(self.methods)} "
            f"methods x {self.n_repeats} repetitions, {len(self.studied_datasets)} studies>"
        )


def _make_studies(given: Any) -> tuple[list[DatasetSpec], Method]:
    description: dict[str, Any] = dict(_STUDIED)
    if isinstance(given, Mapping):
        if unknown := set(given) - {"datasets", "estimator", "params", "defaults"}:
            raise ExperimentError(
                f"sensitivity: unknown entries {sorted(unknown)}; known are datasets and params"
            )
        description |= {key: given[key] for key in ("params", "defaults") if key in given}
        if not all(isinstance(description.get(key, {}), Mapping) for key in ("params", "defaults")):
            raise ExperimentError("sensitivity: params must be a table of names and values")
        if not is_resolved(description):
            description["params"] = {**PAPER_GRID, **description["params"]}
        if short_name(str(given.get("estimator", _STUDIED["estimator"]))) != _STUDIED["estimator"]:
            raise ExperimentError(
                f"sensitivity can only be studied for {_STUDIED['estimator']}, got "
                f"{given['estimator']!r}"
            )
        given = given.get("datasets", ())
    return make_datasets(given), Method("imcc", description)


def _chosen(argument: str, names: Iterable[str], known: list[Any]) -> list[Any]:
    by_name = {entry.name: entry for entry in known}
    for name in names:
        if name not in by_name:
            raise InvalidArgumentError(
                argument, f"{name!r} is not in the experiment, which has {', '.join(by_name)}"
            )
    return [by_name[name] for name in dict.fromkeys(names)]


def _hash(plain: Any) -> str:
    text = json.dumps(plain, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
