"""Commands to reproduce the results of an experiment."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from imcc.experiment import Experiment, list_experiments, load_experiment
from imcc.report._words import one_line


@dataclass(frozen=True)
class Reproduction:
    """How to rerun an experiment.

    Attributes
    ----------
    commands : tuple of str
        Commands to run, in this order.
    description : str
        The experiment as JSON.
    file : str
        File name for the description; "" if the commands do not need it.
    note : str
        What else is needed, if anything.
    """

    commands: tuple[str, ...]
    description: str
    file: str
    note: str


def reproduction(experiment: Experiment, store: str) -> Reproduction:
    """Return how to rerun an experiment into a store of the given name."""
    file = "experiment.json"
    text = json.dumps(_as_given(experiment.to_dict()), indent=2, ensure_ascii=False)
    report = shlex.join(["imcc", "report", store, "-o", "report.html"])
    shipped = _shipped_command(experiment)
    if shipped is not None:
        return Reproduction((shlex.join([*shipped, "-o", store]), report), text, "", "")
    specs = [*experiment.datasets, *experiment.studied_datasets]
    in_memory = list(dict.fromkeys(spec.name for spec in specs if spec.in_memory))
    if in_memory:
        code = f"Experiment(..., name={experiment.name!r}).run({store!r})"
        note = "Some data sets were given in memory and must be given again: " + ", ".join(
            one_line(name) for name in in_memory
        )
        return Reproduction(
            ("from imcc.experiment import Experiment", code, report), text, "", note
        )
    # Allowed packages are part of the command, where they are visible, not of the file.
    flags = [word for package in experiment.packages() for word in ("--allow", package)]
    command = shlex.join(["imcc", "experiment", "run", file, *flags, "-o", store])
    return Reproduction((command, report), text, file, "")


def _as_given(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return a description without default values."""

    def given(value: Any) -> Any:
        if isinstance(value, Mapping):
            described = "estimator" in value
            return {k: given(v) for k, v in value.items() if not (described and k == "defaults")}
        return [given(item) for item in value] if isinstance(value, (list, tuple)) else value

    return dict(given(plain))


def _shipped_command(experiment: Experiment) -> list[str] | None:
    """Return the command if this is a part of an included experiment."""
    ours = experiment.to_dict()
    for name in list_experiments():
        known = load_experiment(name)
        theirs = known.to_dict()
        if known.protocol != experiment.protocol:
            continue
        if any(dataset not in theirs["datasets"] for dataset in ours["datasets"]):
            continue
        if not _same_methods(experiment, known):
            continue
        command = ["imcc", "experiment", "run", name]
        if len(ours["datasets"]) < len(theirs["datasets"]):
            command += ["--datasets", ",".join(d["name"] for d in ours["datasets"])]
        if len(ours["methods"]) < len(theirs["methods"]):
            command += ["--methods", ",".join(ours["methods"])]
        if experiment.n_repeats != known.n_repeats:
            command += ["--repeats", str(experiment.n_repeats)]
        if "sensitivity" in theirs and "sensitivity" not in ours:
            command.append("--no-sensitivity")
        return command
    return None


def _same_methods(part: Experiment, whole: Experiment) -> bool:
    """Return whether the methods of an experiment are a subset of those of an included one.

    Only methods of imcc are resolved.
    """
    resolved = whole.resolve_ours()
    for method in part.methods:
        known = {m.name: m for m in (resolved if method.is_resolved else whole).methods}
        if method.name not in known or known[method.name].canonical() != method.canonical():
            return False
    if not part.studied_datasets:
        return True
    studied = (resolved if part.studied_method.is_resolved else whole).studied_method
    return (
        part.studied_datasets == whole.studied_datasets
        and part.studied_method.canonical() == studied.canonical()
    )
