"""What is to be computed: data sets x methods x repetitions, as a list of independent tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import check_choice, check_count, check_number
from imcc.datasets import Dataset, list_datasets, load_dataset, read
from imcc.experiment._describe import (
    ALLOWED,
    canonical,
    check_allowed,
    is_resolved,
    packages_of,
    short_name,
)
from imcc.experiment._errors import ExperimentError, StoreError
from imcc.experiment._methods import PAPER_GRID, Method, make_methods
from imcc.experiment._tables import TableData, check_options, load_table
from imcc.metrics import METRICS

#: Kind of a task: scores on one split.
SCORES = "scores"
#: Kind of a task: a study of the sensitivity to the parameters.
SENSITIVITY = "sensitivity"
# The method whose parameters a sensitivity study varies, by default.
_STUDIED: dict[str, Any] = {"estimator": "IMCCClassifierCV", "params": PAPER_GRID}


class TaskKey(NamedTuple):
    """The key of a task, unique in an experiment.

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
class DatasetSpec:
    """Where a data set comes from.

    Attributes
    ----------
    name : str
        As it stands in the tables; part of the seed.
    path : tuple of str
        Files, for a data set that is not one of the named ones.
    options : dict
        How to read the files: the arguments of :func:`imcc.datasets.read`.
    data : Dataset or None
        Given in memory.
    """

    name: str
    path: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    data: Dataset | None = field(default=None, compare=False)
    in_memory: bool = False

    def load(self) -> Dataset:
        """Return the data, named as in the experiment."""
        if self.data is not None:
            return self.data.renamed(self.name)
        if self.in_memory:
            raise ExperimentError(
                f"data set {self.name!r} was given in Python, so it cannot be loaded from here: "
                "give it again, with Experiment(...).run(store)"
            )
        if not self.path:
            return load_dataset(self.name)
        return read(list(self.path), **self.options).renamed(self.name)

    @property
    def is_table(self) -> bool:
        """Whether the data are a table, with columns of every kind."""
        return bool(self.options.get("table"))

    def load_table(self) -> TableData:
        """Return a table, named as in the experiment."""
        options = {key: value for key, value in self.options.items() if key != "table"}
        return load_table(self.name, self.path[0], options)

    def to_dict(self) -> dict[str, Any]:
        """Return the specification as plain data."""
        plain: dict[str, Any] = {"name": self.name}
        if self.in_memory:
            plain["in_memory"] = True
        if self.path:
            plain["path"] = list(self.path)
        return plain | self.options


@dataclass(frozen=True)
class Protocol:
    """How every method is judged; the same for all, so that their numbers can be compared."""

    test_size: float = 0.2
    cv: int = 5
    scoring: str = "average_precision"
    stratified: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Task:
    """One piece of work: a method on a data set, one repetition.

    It holds all that its result depends on, and in ``allow`` the packages from which the method
    may be imported, which is not part of what is computed.
    """

    kind: str
    dataset: DatasetSpec
    method: Method
    repetition: int
    protocol: Protocol
    allow: tuple[str, ...] = field(default=ALLOWED, compare=False)

    @property
    def key(self) -> TaskKey:
        """Its key, unique in an experiment."""
        return TaskKey(self.kind, self.dataset.name, self.method.name, self.repetition)

    @property
    def fingerprint(self) -> str:
        """A hash of protocol and method: results with different ones are not comparable.

        All parameters of the method take part, also those that have their default values.
        """
        if not self.method.is_resolved:
            raise ExperimentError(
                f"the defaults of the method {self.method.name!r} are not known yet: call "
                "resolve() of the experiment first"
            )
        return _hash({"protocol": asdict(self.protocol), "method": self.method.canonical()})

    def __str__(self) -> str:
        return str(self.key)


class Experiment:
    """Methods compared on data sets over repeated random splits, as in section 4 of the paper.

    Parameters
    ----------
    datasets : str, path, Dataset, mapping or iterable of these
        Named data sets, files, data sets in memory; a mapping gives names to files.  A table
        ``{"name": ..., "path": ..., "labels": ...}`` says how to read a file;
        ``{"name": ..., "table": "file.csv", "labels": [...]}`` (or ``"tags": ...``) is a table with
        words and missing values, whose preprocessing is fitted to each training part.
    methods : str, estimator, mapping or iterable of these
        Ours by name (see :data:`imcc.experiment.NAMED`), scikit-learn multi-label estimators or
        their import paths; a pair (estimator, grid) is searched by cross-validation.
    n_repeats : int, default=10
        Random splits of each data set.
    test_size : float, default=0.2
        Part of the rows held out in each split.
    cv : int, default=5
        Folds for the choice of parameters, on the training rows of a split.
    scoring : str, default="average_precision"
        The metric by which a search chooses one setting.  Besides, every metric is reported with
        the setting chosen by that metric itself.
    stratified : bool, default=False
        Whether the splits keep the frequency of every label.
    seed : int, default=0
        Other seeds give other splits.
    sensitivity : iterable of str, or mapping, optional
        Data sets (of this experiment or others) whose sensitivity to IMCC's parameters is studied;
        a mapping has ``datasets`` and ``params``, the parameters of
        :class:`imcc.IMCCClassifierCV`.
    name : str, default="experiment"
    allow : iterable of str, default=()
        Packages from which methods that are given by import paths may be imported, besides imcc
        and sklearn.  Nothing is imported before the experiment is run or resolved.  Never stored:
        a store does not bring its own permission along.

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
            raise ValueError(f"seed must be a whole number, got {seed!r}")
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
        self._check_not_empty()

    def tasks(self) -> list[Task]:
        """Return all tasks, in an order that fills the tables repetition by repetition."""
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

        This imports and builds the estimators that the experiment names, to see that they can be
        run, and notes their defaults, so that rows are never mixed with those of a version that
        has others.

        Parameters
        ----------
        allow : iterable of str
            Packages from which they may be imported, besides imcc, sklearn and those that the
            experiment was given.
        """
        resolved = copy(self)
        resolved.allow = tuple(dict.fromkeys((*self.allow, *check_allowed(allow))))
        allowed = (*ALLOWED, *resolved.allow)
        resolved._replace_methods(lambda method: method.resolve(allowed))
        return resolved

    def resolve_ours(self) -> Experiment:
        """Return the experiment with the methods resolved that name our own classes only.

        For places where nothing else may be imported, such as merging.
        """
        resolved = copy(self)
        resolved._replace_methods(
            lambda method: (
                method.resolve(()) if method.is_ours and not method.is_resolved else method
            )
        )
        return resolved

    def _replace_methods(self, by: Callable[[Method], Method]) -> None:
        self.methods = [by(method) for method in self.methods]
        if self.studied_datasets:
            self.studied_method = by(self.studied_method)

    def packages(self) -> list[str]:
        """Return the packages besides imcc and sklearn that the methods name."""
        named = (packages_of(method.to_dict()) for method in self.methods)
        found = dict.fromkeys(package for packages in named for package in packages)
        return [package for package in found if package not in ALLOWED]

    def check_resolved(self) -> None:
        """Raise an error if the values of some parameters are not known."""
        studied = [self.studied_method] if self.studied_datasets else []
        if names := [m.name for m in (*self.methods, *studied) if not m.is_resolved]:
            raise ExperimentError(
                f"the defaults of the methods {', '.join(names)} are not known, because they are "
                "not imcc's own and nothing is imported here: let the experiment be run into the "
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
        datasets, methods : iterable of str, optional
            The names of those to keep, in this order; all by default.  Sensitivity studies of
            other data sets are removed, too.
        n_repeats : int, optional
            Another number of splits.
        sensitivity : bool, default=True
            Whether to keep the sensitivity studies.

        Examples
        --------
        >>> from imcc.experiment import load_experiment
        >>> load_experiment("paper").subset(datasets=["yeast"], methods=["imcc"], n_repeats=2)
        <Experiment 'paper': 1 data sets x 1 methods x 2 repetitions, 1 studies>
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
        part._check_not_empty()
        return part

    def with_methods(self, methods: Any, allow: Iterable[str] = ()) -> Experiment:
        """Return the experiment with further methods.

        Parameters
        ----------
        methods : str, estimator, mapping or iterable of these
            As for the class; their names must be new.
        allow : iterable of str
            Packages from which they may be imported, besides imcc, sklearn and those that the
            experiment was given.

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
                f"methods: the experiment {self.name!r} has {', '.join(sorted(taken))} already: "
                "give yours another name"
            )
        grown = copy(self)
        grown.methods = [*self.methods, *more]
        grown.allow = tuple(dict.fromkeys((*self.allow, *check_allowed(allow))))
        return grown

    def _check_not_empty(self) -> None:
        if not self.tasks():
            raise ExperimentError(
                "the experiment has nothing to compute: give datasets and methods, or sensitivity"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the whole description as plain data."""
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
        """Return the experiment of a description, such as that of a TOML file.

        Nothing that the description names is imported; ``allow`` is as for the class.
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
        """Compute what is missing in a store; see :func:`imcc.experiment.run`."""
        from imcc.experiment._runner import run

        return run(self, store, **options)

    def __repr__(self) -> str:
        return (
            f"<Experiment {self.name!r}: {len(self.datasets)} data sets x {len(self.methods)} "
            f"methods x {self.n_repeats} repetitions, {len(self.studied_datasets)} studies>"
        )


def make_datasets(given: Any) -> list[DatasetSpec]:
    """Return the specifications of the data sets that a user named or gave."""
    if isinstance(given, (str, Path, Dataset)):
        given = [given]
    if isinstance(given, Mapping):
        given = [_named_entry(str(name), source) for name, source in given.items()]
    if not isinstance(given, Iterable):
        raise ExperimentError(f"datasets must be names, files or data sets, got {given!r}")
    specs = [_make_dataset(entry) for entry in given]
    names = [spec.name for spec in specs]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ExperimentError(
            f"datasets: {sorted(repeated)} occur twice; give them different names"
        )
    return specs


def _named_entry(name: str, source: Any) -> Any:
    if isinstance(source, Mapping):
        return {"name": name, **source}
    return source.renamed(name) if isinstance(source, Dataset) else {"name": name, "path": source}


def _make_dataset(entry: Any) -> DatasetSpec:
    if isinstance(entry, DatasetSpec):
        return entry
    if isinstance(entry, Dataset):
        return DatasetSpec(entry.name, data=entry, in_memory=True)
    if isinstance(entry, Mapping):
        options = dict(entry)
        if isinstance(options.get("table"), (str, Path)):
            if "path" in options:
                raise ExperimentError("datasets: an entry has a path, or a table; not both")
            options["path"], options["table"] = options["table"], True
        paths = options.pop("path", ())
        paths = [paths] if isinstance(paths, (str, Path)) else list(paths)
        name = str(options.pop("name", Path(paths[0]).stem if paths else ""))
        if options.pop("in_memory", False):
            return DatasetSpec(name, in_memory=True)
        if not paths:
            check_choice("datasets", name, list_datasets())
            return DatasetSpec(name)
        spec = DatasetSpec(name, tuple(_absolute(path) for path in paths), _plain(options))
        if spec.is_table:
            if len(paths) != 1:
                raise ExperimentError(f"data set {name!r}: a table is one file")
            check_options(name, {key: value for key, value in options.items() if key != "table"})
        return spec
    text = str(entry)
    if text in list_datasets():
        return DatasetSpec(text)
    if isinstance(entry, Path) or "." in text or "/" in text:
        if not Path(text).exists():
            raise ExperimentError(f"datasets: there is no file {text}")
        return DatasetSpec(Path(text).name.partition(".")[0], (_absolute(text),))
    check_choice("datasets", text, list_datasets())
    raise AssertionError("unreachable")  # pragma: no cover


def _absolute(path: Any) -> str:
    """Return a path that still leads to the file when the store has been moved elsewhere."""
    return str(Path(path).resolve())


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """Return reading options as they come back from a store: paths are texts there."""
    return {k: str(v) if isinstance(v, Path) else v for k, v in options.items()}


def _make_studies(given: Any) -> tuple[list[DatasetSpec], Method]:
    description: dict[str, Any] = dict(_STUDIED)
    if isinstance(given, Mapping):
        if unknown := set(given) - {"datasets", "estimator", "params", "defaults"}:
            raise ExperimentError(
                f"sensitivity: unknown entries {sorted(unknown)}; known are datasets and params"
            )
        description |= {key: given[key] for key in ("params", "defaults") if key in given}
        if not is_resolved(description):
            description["params"] = {**PAPER_GRID, **description["params"]}
        if short_name(str(given.get("estimator", _STUDIED["estimator"]))) != _STUDIED["estimator"]:
            raise ExperimentError(
                f"sensitivity is that of {_STUDIED['estimator']}, got {given['estimator']!r}"
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


# Two descriptions whose results may share a store.

_PROTOCOL = ("test_size", "cv", "scoring", "stratified", "seed")


def merged_description(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Return the description that covers both; what both have must be the same.

    Parameters
    ----------
    ours : mapping
        Of the experiment in a store.
    theirs : mapping
        Of the one that joins it.
    where : str
        The store, for the message.
    """
    for name in _PROTOCOL:
        if ours[name] != theirs[name]:
            raise StoreError(
                f"{where} holds an experiment with {name} = {ours[name]!r}, not {theirs[name]!r}: "
                "their rows cannot be compared; use another store"
            )
    merged = dict(ours)
    merged["n_repeats"] = max(ours["n_repeats"], theirs["n_repeats"])
    merged["datasets"] = _joined_datasets(ours["datasets"], theirs["datasets"])
    merged["methods"] = {**ours["methods"]}
    for name, method in theirs["methods"].items():
        known = ours["methods"].get(name, method)
        if canonical(known) != canonical(method):
            raise StoreError(
                f"{where} has another method named {name!r}: {_difference(known, method)}. Give it "
                "another name, or use another store"
            )
        merged["methods"].setdefault(name, method)
    studies = [plain["sensitivity"] for plain in (ours, theirs) if "sensitivity" in plain]
    if studies:
        settings = [
            canonical({k: v for k, v in study.items() if k != "datasets"}) for study in studies
        ]
        if settings[0] != settings[-1]:
            raise StoreError(f"{where} holds sensitivity studies over another grid")
        lists = [study["datasets"] for study in studies]
        datasets = _joined_datasets(lists[0], lists[-1])
        merged["sensitivity"] = {**studies[0], "datasets": datasets}
    return merged


def _difference(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """Say in what two methods differ: in the first parameter, if it is one."""
    a, b = canonical(ours), canonical(theirs)
    for name in sorted({*a["params"], *b["params"]}):
        if a["params"].get(name) != b["params"].get(name):
            return f"{name} is {a['params'].get(name)!r} there, {b['params'].get(name)!r} here"
    return f"it is {a} there, {b} here"


def _joined_datasets(ours: list[Any], theirs: list[Any]) -> list[Any]:
    # Where a file lies does not matter, and the newer word is the better one: the fingerprints of
    # the data tell whether it is the same.
    newer = {dataset["name"]: dataset for dataset in theirs}
    known = {dataset["name"] for dataset in ours}
    return [
        *(newer.get(dataset["name"], dataset) for dataset in ours),
        *(dataset for dataset in theirs if dataset["name"] not in known),
    ]
