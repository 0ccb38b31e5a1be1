"""A common description of two experiments whose results are in one store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from imcc.experiment._describe import canonical
from imcc.experiment._errors import StoreError

_PROTOCOL = ("test_size", "cv", "scoring", "stratified", "seed")


def merged_description(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Return a description that covers two experiments; their common parts must be the same.

    Parameters
    ----------
    ours : mapping
        Description of the experiment in a store.
    theirs : mapping
        Description of the experiment to add.
    where : str
        Name of the store, for error messages.
    """
    for name in _PROTOCOL:
        if ours[name] != theirs[name]:
            raise StoreError(
                f"{where} has an experiment with {name} = {ours[name]!r}, not {theirs[name]!r}: "
                "their rows cannot be compared; use another store"
            )
    merged = dict(ours)
    merged["n_repeats"] = max(ours["n_repeats"], theirs["n_repeats"])
    merged["datasets"] = _joined_datasets(ours["datasets"], theirs["datasets"], where)
    merged["methods"] = {**ours["methods"]}
    for name, method in theirs["methods"].items():
        known = ours["methods"].get(name, method)
        if canonical(known) != canonical(method):
            raise StoreError(
                f"{where} has another method named {name!r}: {_difference(known, method)}. Use "
                "another name or another store"
            )
        merged["methods"].setdefault(name, method)
    studies = [plain["sensitivity"] for plain in (ours, theirs) if "sensitivity" in plain]
    if studies:
        settings = [
            canonical({k: v for k, v in study.items() if k != "datasets"}) for study in studies
        ]
        if settings[0] != settings[-1]:
            raise StoreError(f"{where} has sensitivity studies over another grid")
        lists = [study["datasets"] for study in studies]
        datasets = _joined_datasets(lists[0], lists[-1], where)
        merged["sensitivity"] = {**studies[0], "datasets": datasets}
    return merged


def _difference(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """Describe the first difference between two methods."""
    a, b = canonical(ours), canonical(theirs)
    for name in sorted({*a["params"], *b["params"]}):
        if a["params"].get(name) != b["params"].get(name):
            return f"{name} is {a['params'].get(name)!r} there, {b['params'].get(name)!r} here"
    return f"it is {a} there, {b} here"


def _joined_datasets(ours: list[Any], theirs: list[Any], where: str) -> list[Any]:
    # The newer path of a file is used; fingerprints ensure that the data are the same.
    newer = {dataset["name"]: dataset for dataset in theirs}
    for dataset in ours:
        name, scaled = dataset["name"], dataset.get("standardize", False)
        if name in newer and newer[name].get("standardize", False) != scaled:
            raise StoreError(
                f"{where} has rows of the data set {name!r} with standardize = {scaled}: they "
                "cannot be compared with others; use another name or another store"
            )
    known = {dataset["name"] for dataset in ours}
    return [
        *(newer.get(dataset["name"], dataset) for dataset in ours),
        *(dataset for dataset in theirs if dataset["name"] not in known),
    ]
