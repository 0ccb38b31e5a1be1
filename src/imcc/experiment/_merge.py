"""Joining the descriptions of two experiments whose results may share a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from imcc.experiment._errors import StoreError

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
        if ours["methods"].get(name, method) != method:
            raise StoreError(
                f"{where} has another method named {name!r}: {ours['methods'][name]} is not "
                f"{method}; give it another name, or use another store"
            )
        merged["methods"][name] = method
    studies = [plain["sensitivity"] for plain in (ours, theirs) if "sensitivity" in plain]
    if studies:
        settings = [{k: v for k, v in study.items() if k != "datasets"} for study in studies]
        if settings[0] != settings[-1]:
            raise StoreError(f"{where} holds sensitivity studies over another grid")
        lists = [study["datasets"] for study in studies]
        datasets = _joined_datasets(lists[0], lists[-1])
        merged["sensitivity"] = {**studies[0], "datasets": datasets}
    return merged


def _joined_datasets(ours: list[Any], theirs: list[Any]) -> list[Any]:
    # Where a file lies does not matter, and the newer word is the better one: the fingerprints of
    # the data tell whether it is the same.
    newer = {dataset["name"]: dataset for dataset in theirs}
    known = {dataset["name"] for dataset in ours}
    return [
        *(newer.get(dataset["name"], dataset) for dataset in ours),
        *(dataset for dataset in theirs if dataset["name"] not in known),
    ]
