"""Facts about a fitted model: names, shapes and parameters."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence
from typing import Any

from imcc._utils.plain import to_plain
from imcc._utils.wrappers import first_with, innermost
from imcc.datasets import Dataset


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a model depends on."""
    names = ("numpy", "scipy", "scikit-learn", "skops")
    found = {name: importlib.metadata.version(name) for name in names}
    return {"python": platform.python_version(), **found}


def params_of(model: Any) -> dict[str, Any]:
    """Return the parameters of a model: selected by a search, or of the constructor."""
    inner = innermost(model, searches=False)
    chosen = getattr(inner, "best_params_", None)
    return to_plain(chosen or inner.get_params(deep=False), other=_named)


def metrics_of(model: Any) -> dict[str, float]:
    """Return the cross-validated score of a search; empty for other models."""
    inner = innermost(model, searches=False)
    if not hasattr(inner, "best_score_"):
        return {}
    scoring = getattr(inner, "scoring", None)
    name = scoring if isinstance(scoring, str) else getattr(inner, "refit", None)
    name = name if isinstance(name, str) else "score"
    return {f"cross-validated {name}": float(inner.best_score_)}


def _named(value: Any) -> str:
    """Return the name of a function or an object among the parameters."""
    return getattr(value, "__name__", None) or str(value)


def names_of(
    model: Any, data: Dataset | None, given: Sequence[str] | None, what: str
) -> tuple[str, ...]:
    """Return the names of the features or labels of a model.

    Parameters
    ----------
    model : fitted estimator
    data : Dataset or None
        The training data, whose names are used if ``given`` is None.
    given : sequence of str or None
        Names passed by the user.  If both are None, the names are those that the model was fitted
        with or, if it has none, generated.
    what : {"feature", "label"}

    Raises
    ------
    ValueError
        If the number of names does not match the model, or if they differ from the names that the
        model was fitted with.
    """
    count, kept = count_of(model, what), kept_names(model, what)
    argument = f"{what}_names"
    if given is not None:
        names = tuple(str(name) for name in given)
    elif data is not None:
        names = data.feature_names if what == "feature" else data.label_names
        argument = f"data.{what}_names"
    else:
        names = kept or ()
    if names and count is not None and len(names) != count:
        raise ValueError(f"{argument} has {len(names)} names, but the model has {count} {what}s")
    if names and kept is not None and names != kept:
        raise ValueError(
            f"{argument} must be the names that the model was fitted with, got "
            f"{_first_difference(names, kept)}; omit them"
        )
    if names or count is None:
        return names
    inner = _labelled(model)
    if what == "label" and getattr(inner, "target_kind_", "") in ("binary", "multiclass"):
        return tuple(str(name) for name in inner.classes_)[-count:]
    return tuple(f"{'x' if what == 'feature' else 'label'}{i}" for i in range(count))


def _first_difference(names: Sequence[str], kept: Sequence[str]) -> str:
    return next(
        f"{name!r} instead of {other!r}"
        for name, other in zip(names, kept, strict=True)
        if name != other
    )


def kept_names(model: Any, what: str) -> tuple[str, ...] | None:
    """Return the names of features or labels that a model was fitted with, or None."""
    if what == "feature":
        found = getattr(model, "feature_names_in_", None)
    else:
        found = getattr(_labelled(model), "label_names_", None)
    return None if found is None else tuple(str(name) for name in found)


def _labelled(model: Any) -> Any:
    """Return the layer of a model that stores its labels."""
    for attribute in ("target_kind_", "classes_"):
        if (found := first_with(model, attribute)) is not None:
            return found
    return innermost(model)


def count_of(model: Any, what: str) -> int | None:
    """Return the number of features or labels of a model, or None if it is unknown."""
    if what == "feature":
        return getattr(model, "n_features_in_", None)
    inner = _labelled(model)
    if getattr(inner, "target_kind_", "") == "binary":
        return 1
    classes = getattr(inner, "classes_", None)
    return None if classes is None else len(classes)
