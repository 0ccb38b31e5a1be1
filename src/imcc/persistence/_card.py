"""The card in a model file: a description in JSON that is read without loading the model."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sklearn.utils.validation import check_is_fitted

import imcc
from imcc._utils.plain import to_plain
from imcc._utils.wrappers import describe, first_with, innermost
from imcc.datasets import Dataset
from imcc.persistence._errors import ModelFileError

#: Version of the file format; it increases when older versions could not read new files correctly.
FORMAT = 1


@dataclass(frozen=True)
class ModelCard:
    """Description of a model file.

    Attributes
    ----------
    imcc_version : str
        Version of imcc that wrote the file.
    versions : dict of str to str
        Versions of Python, NumPy, SciPy, scikit-learn and skops.
    created : str
        Time of creation in UTC, in ISO 8601 format.
    model : str
        Class names of the model and of the estimators inside it.
    params : dict of str to value
        Parameters: selected by a search, or of the constructor.
    feature_names, label_names : tuple of str
        Names of the features and labels.
    data_name, fingerprint : str
        Name and SHA-256 of the training data (:meth:`imcc.datasets.Dataset.fingerprint`); empty if
        the model was saved without data.
    n_rows : int or None
        Number of training rows.
    metrics : dict of str to float
        Metrics of the model by name, measured when it was made.
    columns : dict
        How the columns of the training file were encoded as numbers, and which were dropped.
    notes : str
        Free text.
    """

    imcc_version: str
    versions: dict[str, str]
    created: str
    model: str
    params: dict[str, Any]
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    data_name: str = ""
    fingerprint: str = ""
    n_rows: int | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)
    notes: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the card as a dict of plain values, including the format version."""
        return {**asdict(self), "format": FORMAT}


def make_card(
    model: Any,
    data: Dataset | None = None,
    *,
    feature_names: Sequence[str] | None = None,
    label_names: Sequence[str] | None = None,
    metrics: Mapping[str, float] | None = None,
    notes: str = "",
) -> ModelCard:
    """Make the card of a fitted model.

    Parameters
    ----------
    model : fitted classifier
        As for :func:`save_model`.
    data : Dataset, default=None
        As for :func:`save_model`.
    feature_names, label_names : sequence of str, default=None
        As for :func:`save_model`.
    metrics : mapping of str to float, default=None
        As for :func:`save_model`.
    notes : str, default=""
        As for :func:`save_model`.

    Returns
    -------
    ModelCard
        The card, which :func:`save_model` accepts.
    """
    check_is_fitted(model)
    given = _metrics_of(model) if metrics is None else metrics
    return ModelCard(
        imcc_version=imcc.__version__,
        versions=_versions(),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        model=describe(model),
        params=_params_of(model),
        feature_names=_names_of(model, data, feature_names, "feature"),
        label_names=_names_of(model, data, label_names, "label"),
        data_name="" if data is None else data.name,
        fingerprint="" if data is None else data.fingerprint(),
        n_rows=None if data is None else data.n_rows,
        metrics={name: float(value) for name, value in given.items()},
        columns={} if data is None or data.coding is None else data.coding.to_dict(),
        notes=notes,
    )


def _versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a model depends on."""
    names = ("numpy", "scipy", "scikit-learn", "skops")
    found = {name: importlib.metadata.version(name) for name in names}
    return {"python": platform.python_version(), **found}


def _params_of(model: Any) -> dict[str, Any]:
    """Return the parameters of a model: selected by a search, or of the constructor."""
    inner = innermost(model, searches=False)
    chosen = getattr(inner, "best_params_", None)
    return to_plain(chosen or inner.get_params(deep=False), other=_named)


def _metrics_of(model: Any) -> dict[str, float]:
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


def _names_of(
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


def write_card(card: ModelCard, digest: str) -> bytes:
    """Return the JSON of a card with the digest of the model."""
    content = {**card.to_dict(), "sha256": digest}
    return json.dumps(content, indent=1, ensure_ascii=True).encode("ascii")


def parse_card(data: bytes, path: str) -> tuple[ModelCard, str]:
    """Return the card and the digest of the model; raise an error if the JSON is invalid."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"the file is damaged: its card is not JSON ({error})", path
        ) from error
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise ModelFileError("the file is damaged: its card has no format version", path)
    _check_format(content, path)
    digest = content.pop("sha256", None)
    content.pop("format")
    _check_types(content, path)
    if not isinstance(digest, str):
        raise ModelFileError("the file is damaged: its card has no checksum", path)
    known = ModelCard.__dataclass_fields__
    # A newer version with the same format may have more entries, which are ignored.
    values = {name: value for name, value in content.items() if name in known}
    for name in ("feature_names", "label_names"):
        values[name] = tuple(values[name])
    return ModelCard(**values), digest


def _check_format(content: dict[str, Any], path: str) -> None:
    writer, number = content.get("imcc_version", "unknown"), content["format"]
    if number == FORMAT:
        return
    remedy = "install a newer imcc" if number > FORMAT else "fit the model again"
    raise ModelFileError(
        f"the file was written by imcc {writer} in format {number}, but this version reads "
        f"format {FORMAT}: {remedy}",
        path,
    )


# The type of each entry; those with a default may be absent.
_TYPES: Mapping[str, tuple[type, ...]] = {
    "imcc_version": (str,),
    "versions": (dict,),
    "created": (str,),
    "model": (str,),
    "params": (dict,),
    "feature_names": (list,),
    "label_names": (list,),
    "data_name": (str,),
    "fingerprint": (str,),
    "n_rows": (int, type(None)),
    "metrics": (dict,),
    "columns": (dict,),
    "notes": (str,),
}
_NEEDED = ("imcc_version", "versions", "created", "model", "params", "feature_names", "label_names")


def _check_types(content: dict[str, Any], path: str) -> None:
    if missing := [name for name in _NEEDED if name not in content]:
        raise ModelFileError(f"the file is damaged: its card has no {', '.join(missing)}", path)
    for name, types in _TYPES.items():
        if name in content and not isinstance(content[name], types):
            raise ModelFileError(f"the file is damaged: {name} of its card is invalid", path)
    for name in ("feature_names", "label_names"):
        if not all(isinstance(entry, str) for entry in content[name]):
            raise ModelFileError(f"the file is damaged: {name} of its card are not strings", path)
    if not all(isinstance(value, (int, float)) for value in content.get("metrics", {}).values()):
        raise ModelFileError("the file is damaged: metrics of its card are not numbers", path)
