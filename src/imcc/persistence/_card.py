"""The card in a model file: a description in JSON that is read without loading the model."""

from __future__ import annotations

import datetime
import importlib.metadata
import math
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import NoneType
from typing import Any

from sklearn.utils.validation import check_is_fitted

import imcc
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.plain import to_plain
from imcc._utils.wrappers import describe, first_with, innermost
from imcc.datasets import Dataset
from imcc.estimators import TunedThresholds
from imcc.persistence._errors import ModelFileError, require

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
    """

    imcc_version: str
    versions: dict[str, str]
    created: str
    model: str
    params: dict[str, Any]
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    data_name: str
    fingerprint: str
    n_rows: int | None
    metrics: dict[str, float]
    columns: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the card as a dict of plain values, including the format version."""
        return {**asdict(self), "format": FORMAT}


def make_card(
    model: Any, data: Dataset | None = None, *, metrics: Mapping[str, float] | None = None
) -> ModelCard:
    """Make the card of a fitted model.

    Parameters
    ----------
    model : fitted classifier
        As for :func:`save_model`.
    data : Dataset, default=None
        As for :func:`save_model`.
    metrics : mapping of str to float, default=None
        As for :func:`save_model`.

    Returns
    -------
    ModelCard
        The card, which :func:`save_model` accepts.
    """
    check_is_fitted(model)
    inner = innermost(model, searches=False)
    # Selected by a search, or of the constructor.
    params = getattr(inner, "best_params_", None) or inner.get_params(deep=False)
    given = metrics_of(model) if metrics is None else metrics
    packages = ("numpy", "scipy", "scikit-learn", "skops")
    versions = {name: importlib.metadata.version(name) for name in packages}
    return ModelCard(
        imcc_version=imcc.__version__,
        versions={"python": platform.python_version(), **versions},
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        model=describe(model),
        params=to_plain(params, other=_named),
        feature_names=_names_of(model, data, "feature"),
        label_names=_names_of(model, data, "label"),
        data_name="" if data is None else data.name,
        fingerprint="" if data is None else data.fingerprint(),
        n_rows=None if data is None else data.n_rows,
        metrics={name: float(value) for name, value in given.items()},
        columns={} if data is None or data.coding is None else data.coding.to_dict(),
    )


def metrics_of(model: Any) -> dict[str, float]:
    """Return what a fitted model knows of its quality: scores of rows that were held out."""
    inner, tuned = innermost(model, searches=False), first_with(model, "thresholds_")
    metrics: dict[str, float] = {}
    if hasattr(inner, "cv_results_") and hasattr(inner, "best_index_"):
        suffix = "" if first_with(model, "maps_") is None else ", before calibration"
        for key, values in inner.cv_results_.items():
            if key.startswith("mean_test_"):
                name = key.removeprefix("mean_test_")
                name = inner.scoring if name == "score" and isinstance(inner.scoring, str) else name
                metrics[f"cross-validated {name}{suffix}"] = values[inner.best_index_]
    elif hasattr(inner, "held_out_score_"):
        metrics[f"held-out {inner.scoring_}"] = inner.held_out_score_
    if isinstance(tuned, TunedThresholds):
        how = "held-out" if isinstance(tuned.cv, str) else "cross-validated"
        metrics[f"{how} {tuned.criterion}, thresholds at 0"] = tuned.default_score_
        metrics[f"{how} {tuned.criterion}, thresholds chosen"] = tuned.best_score_
    # The score is NaN if no label has enough rows.
    return {name: float(value) for name, value in metrics.items() if math.isfinite(value)}


def _named(value: Any) -> str:
    """Return the name of a function or an object among the parameters."""
    return getattr(value, "__name__", None) or str(value)


def _names_of(model: Any, data: Dataset | None, what: str) -> tuple[str, ...]:
    """Return the names of the features or labels of a model.

    They are those of the data or of what the model was fitted to, and otherwise generated.

    Parameters
    ----------
    model : fitted estimator
    data : Dataset or None
        The training data.
    what : {"feature", "label"}

    Raises
    ------
    InvalidArgumentError
        If the names of the data are not those of the model.
    """
    count, kept = count_of(model, what), kept_names(model, what)
    names = kept or ()
    if data is not None:
        names = data.feature_names if what == "feature" else data.label_names
        if count is not None and len(names) != count:
            problem = f"has {len(names)} {what}s, but the model has {count}"
            raise InvalidArgumentError("data", problem)
        if kept is not None and names != kept:
            problem = f"has other names of {what}s than those that the model was fitted with"
            raise InvalidArgumentError("data", problem)
    if names or count is None:
        return names
    inner = _labelled(model)
    if what == "label" and getattr(inner, "target_kind_", "") in ("binary", "multiclass"):
        return tuple(str(name) for name in inner.classes_)[-count:]
    return tuple(f"{'x' if what == 'feature' else 'label'}{i}" for i in range(count))


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


# The type of each entry.
_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("imcc_version", "created", "model", "data_name", "fingerprint"), str),
    **dict.fromkeys(("versions", "params", "metrics", "columns"), dict),
    **dict.fromkeys(("feature_names", "label_names"), list),
    "n_rows": (int, NoneType),
}


def card_of(content: dict[str, Any]) -> ModelCard:
    """Return the card that the JSON of a file describes.

    Raises
    ------
    ModelFileError
        If the file was written in another format, or an entry is missing or invalid.
    """
    number: Any = content.get("format")
    require(isinstance(number, int), "its card has no format version")
    if number != FORMAT:
        remedy = "install a newer imcc" if number > FORMAT else "fit the model again"
        raise ModelFileError(
            f"the file was written by imcc {content.get('imcc_version', 'unknown')} in format "
            f"{number}, but this version reads format {FORMAT}: {remedy}"
        )
    for name, kinds in _TYPES.items():
        require(isinstance(content.get(name), kinds), f"its card has no valid {name}")
    names = [*content["feature_names"], *content["label_names"]]
    require(all(isinstance(x, str) for x in names), "its card has names that are not strings")
    numbers = all(isinstance(x, (int, float)) for x in content["metrics"].values())
    require(numbers, "its card has metrics that are not numbers")
    # A newer version with the same format may have more entries, which are ignored.
    values = {name: content[name] for name in _TYPES}
    for name in ("feature_names", "label_names"):
        values[name] = tuple(values[name])
    return ModelCard(**values)
