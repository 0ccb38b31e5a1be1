"""Names of labels and features: those given, those that a model keeps, or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.wrappers import layers


def names_of_labels(model: Any, count: int, given: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return a name for each column of a model's scores.

    Parameters
    ----------
    model : fitted classifier
        Also in pipelines, searches and wrappers: the outermost that keeps names has them.
    count : int
        The number of columns.
    given : sequence of str, optional
        Names to use instead; as many as there are columns.
    """
    if given is not None:
        return check_names("label_names", "label", count, given)
    for layer in layers(model):
        if getattr(layer, "target_kind_", None) in ("binary", "multiclass"):
            return tuple(str(name) for name in layer.classes_[-count:])
        kept = getattr(layer, "label_names_", None)
        if kept is not None and len(kept) == count:
            return tuple(str(name) for name in kept)
    return tuple(f"label{j}" for j in range(count))


def names_of_features(
    model: Any, count: int, given: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return a name for each feature of a model's rows; see :func:`names_of_labels`."""
    if given is not None:
        return check_names("feature_names", "column", count, given)
    for layer in layers(model):
        kept = getattr(layer, "feature_names_in_", None)
        if kept is not None and len(kept) == count:
            return tuple(str(name) for name in kept)
    return tuple(f"x{j}" for j in range(count))


def check_names(argument: str, of: str, count: int, given: Sequence[str]) -> tuple[str, ...]:
    """Return names that were given, one for each of ``count`` things, or say what is wrong."""
    if isinstance(given, str) or len(given) != count:
        got = repr(given) if isinstance(given, str) else len(given)
        raise InvalidArgumentError(argument, f"must be {count} names, one per {of}, got {got}")
    return tuple(str(name) for name in given)
