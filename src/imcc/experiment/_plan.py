"""Description of an experiment: data sets x methods x repetitions, as independent tasks."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import asdict, dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import check_choice, check_count, check_share, check_switch
from imcc.experiment._describe import ALLOWED, canonical, check_allowed, packages_of
from imcc.experiment._errors import ExperimentError, StoreError
from imcc.experiment._methods import Method, make_methods
from imcc.experiment._results import TaskKey
from imcc.experiment._sources import DatasetSpec, make_datasets
from imcc.metrics import METRICS

#: The experiments that are included in the package.
SHIPPED = ("quick",)
_MAX_TASKS = 1_000_000
# Entries of a file besides those of the protocol.
_ENTRIES = ("name", "n_repeats", "datasets", "methods")


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
    dataset : DatasetSpec
        The data set.
    method : Method
        The method.
    repetition : int
        Index of the split, from 0.
    protocol : Protocol
        Protocol of the experiment.
    data_fingerprint : str or None
        Hash of the data of existing results; with other data, the task fails.
    """

    dataset: DatasetSpec
    method: Method
    repetition: int
    protocol: Protocol
    data_fingerprint: str | None = field(default=None, compare=False)

    @property
    def key(self) -> TaskKey:
        """Key of the task, unique in an experiment."""
        return TaskKey(self.dataset.name, self.method.name, self.repetition)

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
            "method": canonical(self.method.description),
        }
        if self.dataset.standardize:
            described["standardize"] = True
        text = json.dumps(described, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

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
        Named methods, such as ``"imcc"`` and ``"ecc"``, scikit-learn multi-label estimators or
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
        name: str = "experiment",
        allow: Iterable[str] = (),
    ) -> None:
        self.name = str(name)
        self.allow = check_allowed(allow)
        self.n_repeats = check_count("n_repeats", n_repeats)
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise ValueError(f"seed must be an integer, got {seed!r}")
        self.protocol = Protocol(
            test_size=check_share("test_size", test_size),
            cv=check_count("cv", cv, at_least=2),
            scoring=check_choice("scoring", scoring, METRICS),
            stratified=check_switch("stratified", stratified),
            seed=int(seed),
        )
        self.datasets = make_datasets(datasets)
        self.methods = make_methods(methods, self.allow)
        self._check_size()

    def tasks(self) -> list[Task]:
        """Return all tasks: all first repetitions, then all second ones, and so on.

        Returns
        -------
        list of Task
            Each has a ``key`` (data set, method and repetition), and a ``fingerprint`` of method
            and protocol.
        """
        return [
            Task(dataset, method, repetition, self.protocol)
            for repetition in range(self.n_repeats)
            for dataset in self.datasets
            for method in self.methods
        ]

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
        resolved.methods = [method.resolve(resolved.allow) for method in self.methods]
        return resolved

    @property
    def is_resolved(self) -> bool:
        """Whether the values of all parameters of all methods are known."""
        return all(method.is_resolved for method in self.methods)

    def packages(self) -> list[str]:
        """Return the packages that the methods use, except imcc and sklearn."""
        named = packages_of([method.description for method in self.methods])
        return [package for package in dict.fromkeys(named) if package not in ALLOWED]

    def subset(
        self,
        *,
        datasets: Iterable[str] | None = None,
        methods: Iterable[str] | None = None,
        n_repeats: int | None = None,
    ) -> Experiment:
        """Return a part of the experiment.

        Parameters
        ----------
        datasets, methods : iterable of str, default=None
            Names to keep, in this order; all by default.
        n_repeats : int, default=None
            Number of splits; unchanged by default.

        Returns
        -------
        Experiment

        Examples
        --------
        >>> from imcc.experiment import load_experiment
        >>> load_experiment("quick").subset(methods=["imcc"], n_repeats=2)
        <Experiment 'quick': 1 data sets x 1 methods x 2 repetitions>
        """
        part = copy(self)
        if datasets is not None:
            part.datasets = _chosen("datasets", datasets, self.datasets)
        if methods is not None:
            part.methods = _chosen("methods", methods, self.methods)
        if n_repeats is not None:
            part.n_repeats = check_count("n_repeats", n_repeats)
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
        packages = tuple(dict.fromkeys((*self.allow, *check_allowed(allow))))
        more = make_methods(methods, packages)
        if taken := {method.name for method in more} & {method.name for method in self.methods}:
            raise ExperimentError(
                f"methods: the experiment {self.name!r} already has {', '.join(sorted(taken))}: "
                "use another name"
            )
        grown = copy(self)
        grown.methods, grown.allow = [*self.methods, *more], packages
        return grown

    def joined(self, other: Experiment, where: str) -> Experiment:
        """Return an experiment that covers this one, of a store, and another one.

        Parameters
        ----------
        other : Experiment
            What both have must be the same.  Its paths of files are used: fingerprints ensure that
            the data are the same.
        where : str
            Name of the store, for error messages.

        Returns
        -------
        Experiment
        """
        ours, theirs = self._identities(), other._identities()
        for what in ours:
            if theirs.get(what, ours[what]) != ours[what]:
                raise StoreError(
                    f"{where} has {what} with {_first_difference(ours[what], theirs[what])}: their "
                    "rows cannot be compared; use another name or another store"
                )
        both = copy(self)
        both.n_repeats = max(self.n_repeats, other.n_repeats)
        both.datasets = list({d.name: d for d in (*self.datasets, *other.datasets)}.values())
        both.methods = list({m.name: m for m in (*self.methods, *other.methods)}.values())
        return both

    def _identities(self) -> dict[str, dict[str, Any]]:
        """Return what must be the same in experiments that share a store."""
        return {
            "an experiment": asdict(self.protocol),
            **{f"the data set {d.name!r}": {"standardize": d.standardize} for d in self.datasets},
            **{f"the method {m.name!r}": canonical(m.description) for m in self.methods},
        }

    def _check_size(self) -> None:
        n_tasks = self.n_repeats * len(self.datasets) * len(self.methods)
        if not n_tasks:
            raise ExperimentError(
                "the experiment has nothing to compute: give datasets and methods"
            )
        if n_tasks > _MAX_TASKS:
            raise ExperimentError(
                f"the experiment has {n_tasks:,} tasks (n_repeats x datasets x methods), more than "
                f"{_MAX_TASKS:,}: use fewer, or several experiments"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return a description that can be written as JSON."""
        return {
            "name": self.name,
            "n_repeats": self.n_repeats,
            **asdict(self.protocol),
            "datasets": [dataset.to_dict() for dataset in self.datasets],
            "methods": {method.name: {**method.description} for method in self.methods},
        }

    @classmethod
    def from_dict(
        cls,
        plain: Mapping[str, Any],
        where: str = "experiment",
        allow: Iterable[str] = (),
        folder: Path = Path(),
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
        folder : Path, default=Path()
            Folder to which paths in the description are relative.

        Returns
        -------
        Experiment
        """
        known = {*_ENTRIES, *(entry.name for entry in fields(Protocol))}
        if unknown := set(plain) - known:
            raise ExperimentError(
                f"{where}: unknown entries {sorted(unknown)}; known are {', '.join(sorted(known))}"
            )
        try:
            datasets = make_datasets(plain.get("datasets", ()), folder)
            return cls(**{**plain, "datasets": datasets, "allow": allow})
        except (ValueError, TypeError) as error:
            raise ExperimentError(f"{where}: {error}") from error

    def run(self, store: Any, **options: Any) -> Any:
        """Compute the tasks that are missing in a store; see :func:`imcc.experiment.run`."""
        from imcc.experiment._runner import run

        return run(self, store, **options)

    def __repr__(self) -> str:
        return (
            f"<Experiment {self.name!r}: {len(self.datasets)} data sets x {len(self.methods)} "
            f"methods x {self.n_repeats} repetitions>"
        )


def _chosen(argument: str, names: Iterable[str], known: list[Any]) -> list[Any]:
    by_name = {entry.name: entry for entry in known}
    for name in names:
        if name not in by_name:
            raise InvalidArgumentError(
                argument, f"{name!r} is not in the experiment, which has {', '.join(by_name)}"
            )
    return [by_name[name] for name in dict.fromkeys(names)]


def _first_difference(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Return in words where two descriptions differ."""
    flat = [{**plain, **plain.get("params", {}), "params": None} for plain in (ours, theirs)]
    names = (name for name in flat[0] | flat[1] if flat[0].get(name) != flat[1].get(name))
    name = next(names)
    return f"{name} = {flat[0].get(name)!r}, not {flat[1].get(name)!r}"


def load_experiment(source: str | Path) -> Experiment:
    """Load an experiment by its name, or from a TOML or JSON file.

    Parameters
    ----------
    source : str or path-like
        Name of an included experiment (``"quick"``), or a file, which is read as
        JSON if its name ends in ``.json`` and as TOML otherwise.  Paths in a file are relative to
        it.  Methods named in the file are not imported before the experiment is run.

    Returns
    -------
    Experiment

    Raises
    ------
    ExperimentError
        If the experiment does not exist or its description is invalid.

    Examples
    --------
    >>> from imcc.experiment import load_experiment
    >>> load_experiment("quick")
    <Experiment 'quick': 1 data sets x 5 methods x 3 repetitions>
    """
    path = Path(source)
    if str(source) in SHIPPED:
        path = Path(str(resources.files("imcc.experiment") / "shipped" / f"{source}.toml"))
    elif not path.exists():
        raise ExperimentError(
            f"there is no experiment {str(source)!r}: give one of {', '.join(SHIPPED)}, or the "
            "path of a TOML or JSON file"
        )
    plain = _read_plain(path)
    plain.setdefault("name", path.stem)
    # A file that the user runs is trusted like a program: it may allow the packages that it needs.
    allow = plain.pop("allow", ())
    return Experiment.from_dict(plain, str(path), allow=allow, folder=path.parent)


def load_methods(path: str | Path) -> tuple[list[Method], tuple[str, ...]]:
    """Load methods from a TOML or JSON file.

    Parameters
    ----------
    path : str or path-like
        File with ``methods``, as in an experiment, and optionally ``allow``.  Nothing is imported.

    Returns
    -------
    methods : list of Method
        The methods.
    allow : tuple of str
        Packages from which the file allows methods to be imported.
    """
    path = Path(path)
    plain = _read_plain(path)
    if set(plain) - {"methods", "allow"} or not plain.get("methods"):
        raise ExperimentError(
            f"{path}: a file of methods must have [methods.NAME] and may have allow = [...]; it "
            f"has {', '.join(plain) or 'nothing'}"
        )
    return make_methods(plain["methods"]), check_allowed(plain.get("allow", ()))


def _read_plain(path: Path) -> dict[str, Any]:
    """Return the content of a TOML or JSON file."""
    kind, read = ("JSON", json.loads) if path.suffix == ".json" else ("TOML", tomllib.loads)
    try:
        plain = read(path.read_text(encoding="utf-8"))
        if not isinstance(plain, dict):
            raise ValueError("it must be an object of names and values")
    except OSError as error:
        raise ExperimentError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also of the decoders
        raise ExperimentError(f"{path} is not valid {kind}: {error}") from error
    return plain
