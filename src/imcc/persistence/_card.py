"""The card in a model file: a description in JSON that is read without loading the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from imcc.persistence._errors import ModelFileError

#: Version of the file format; it increases when older versions could not read new files correctly.
FORMAT = 1

# With more labels, the co-occurrence counts would be most of the file.
MOST_PAIRED_LABELS = 1000


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
    label_pairs : list of lists of int, or None
        Numbers of training rows in which labels occur together: list i contains the counts of label
        i with labels i, i + 1, ...
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
    label_pairs: list[list[int]] | None = None
    notes: str = ""

    def together(self) -> np.ndarray | None:
        """Return the co-occurrence counts of the labels.

        Returns
        -------
        ndarray of shape (n_labels, n_labels), or None
            A symmetric matrix with the label counts on the diagonal; None if they are not stored.
        """
        if self.label_pairs is None:
            return None
        count = len(self.label_names)
        out = np.zeros((count, count))
        for i, row in enumerate(self.label_pairs):
            out[i, i:] = row
            out[i:, i] = row
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return the card as a dict of plain values, including the format version."""
        return {**asdict(self), "format": FORMAT}


def pairs_of(Y: np.ndarray) -> list[list[int]] | None:
    """Return the upper triangle of the co-occurrence counts of labels.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Labels coded {0, 1}.

    Returns
    -------
    list of lists of int, or None
        List i contains the counts of label i with labels i, i + 1, ...; None for more than 1000
        labels.
    """
    if Y.shape[1] > MOST_PAIRED_LABELS:
        return None
    counts = Y.T.astype(np.int64) @ Y
    return [counts[i, i:].tolist() for i in range(len(counts))]


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
    "label_pairs": (list, type(None)),
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
    pairs = content.get("label_pairs")
    if pairs is not None:
        shape = [len(row) if isinstance(row, list) else -1 for row in pairs]
        if shape != list(range(len(content["label_names"]), 0, -1)) or not all(
            isinstance(count, int) for row in pairs for count in row
        ):
            raise ModelFileError("the file is damaged: label_pairs of its card are invalid", path)
