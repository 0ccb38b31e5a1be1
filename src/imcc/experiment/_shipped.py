"""Experiments in TOML or JSON files: those included in the package, and files of the user."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from imcc.experiment._describe import check_allowed
from imcc.experiment._errors import ExperimentError
from imcc.experiment._methods import Method, make_methods
from imcc.experiment._plan import Experiment


def list_experiments() -> dict[str, str]:
    """Return the experiments that are included in the package.

    Returns
    -------
    dict of str to str
        Descriptions by name.

    Examples
    --------
    >>> sorted(list_experiments())
    ['quick']
    """
    folder = resources.files("imcc.experiment") / "shipped"
    found = {}
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            # The first line of a file is a comment with its description.
            first = file.read_text(encoding="utf-8").splitlines()[0]
            found[file.name.removesuffix(".toml")] = first.lstrip("# ").rstrip()
    return found


def load_experiment(source: str | Path) -> Experiment:
    """Load an experiment by its name, or from a TOML or JSON file.

    Parameters
    ----------
    source : str or path-like
        Name of an included experiment (see :func:`list_experiments`), or a file, which is read as
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
    <Experiment 'quick': 1 data sets x 5 methods x 3 repetitions, 0 studies>
    """
    if str(source) in list_experiments():
        text = (resources.files("imcc.experiment") / "shipped" / f"{source}.toml").read_text(
            encoding="utf-8"
        )
        return parse_experiment(text, str(source), Path(), tomllib.loads)
    path = Path(source)
    if not path.exists():
        raise ExperimentError(
            f"there is no experiment {str(source)!r}: give one of "
            f"{', '.join(list_experiments())}, or the path of a TOML or JSON file"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{path} is not UTF-8 text: {error}") from error
    read = json.loads if path.suffix.lower() == ".json" else tomllib.loads
    return parse_experiment(text, path.stem, path.parent, read)


def load_methods(path: str | Path) -> tuple[list[Method], tuple[str, ...]]:
    """Load methods from a TOML or JSON file.

    Parameters
    ----------
    path : str or path-like
        File, read as JSON if its name ends in ``.json`` and as TOML otherwise.  It has ``methods``,
        as in an experiment, and optionally ``allow``.  Nothing is imported.

    Returns
    -------
    methods : list of Method
        The methods.
    allow : tuple of str
        Packages from which the file allows methods to be imported.
    """
    path = Path(path)
    plain = _read_plain(path, f"file of methods {path.name!r}")
    if set(plain) - {"methods", "allow"} or not plain.get("methods"):
        raise ExperimentError(
            f"{path}: a file of methods must have [methods.NAME] and may have allow = [...]; it "
            f"has {', '.join(plain) or 'nothing'}"
        )
    return make_methods(plain["methods"]), check_allowed(plain.get("allow", ()))


def _read_plain(path: Path, what: str) -> dict[str, Any]:
    """Return the content of a TOML or JSON file."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{path} is not UTF-8 text: {error}") from error
    except OSError as error:
        raise ExperimentError(f"{path} cannot be read: {error.strerror}") from error
    return _parse_plain(text, what, json.loads if path.suffix.lower() == ".json" else tomllib.loads)


def _parse_plain(text: str, what: str, read: Callable[[str], Any]) -> dict[str, Any]:
    kind = "JSON" if read is json.loads else "TOML"
    try:
        plain = read(text)
    except (ValueError, RecursionError) as error:  # both decoders raise a kind of ValueError
        raise ExperimentError(f"{what} is not valid {kind}: {error}") from error
    if not isinstance(plain, dict):
        raise ExperimentError(f"{what} must be an object of names and values")
    return plain


def parse_experiment(text: str, name: str, folder: Path, read: Callable[[str], Any]) -> Experiment:
    """Return the experiment described by the text of a file.

    Parameters
    ----------
    text : str
    name : str
        Name of the experiment, if the text has none.
    folder : Path
        Folder to which paths in the text are relative.
    read : callable
        ``tomllib.loads`` or ``json.loads``.
    """
    plain = _parse_plain(text, f"experiment {name!r}", read)
    plain.setdefault("name", name)
    plain["datasets"] = _resolved(plain.get("datasets", []), folder)
    if isinstance(plain.get("sensitivity"), Mapping):
        studies = dict(plain["sensitivity"])
        studies["datasets"] = _resolved(studies.get("datasets", []), folder)
        plain["sensitivity"] = studies
    # A file that the user runs is trusted like a program: it may allow the packages that it needs.
    return Experiment.from_dict(plain, f"experiment {name!r}", allow=plain.pop("allow", ()))


def _resolved(datasets: Any, folder: Path) -> Any:
    """Make the paths of files absolute, so that a stored experiment can be resumed anywhere."""
    if isinstance(datasets, Mapping):
        datasets = [
            {"name": name, **(entry if isinstance(entry, Mapping) else {"path": entry})}
            for name, entry in datasets.items()
        ]
    if not isinstance(datasets, list):
        return datasets
    return [_resolve_entry(entry, folder) for entry in datasets]


def _resolve_entry(entry: Any, folder: Path) -> Any:
    if isinstance(entry, str) and ("." in entry or "/" in entry):
        return str((folder / entry).resolve())
    if not isinstance(entry, Mapping):
        return entry
    resolved = dict(entry)
    for key in ("table", "schema"):
        if isinstance(resolved.get(key), str):
            resolved[key] = str((folder / resolved[key]).resolve())
    if "path" in resolved:
        paths = resolved["path"]
        paths = [paths] if isinstance(paths, str) else list(paths)
        resolved["path"] = [str((folder / path).resolve()) for path in paths]
    labels = resolved.get("labels")
    if isinstance(labels, str) and labels.lower().endswith(".xml"):
        resolved["labels"] = str((folder / labels).resolve())
    return resolved
