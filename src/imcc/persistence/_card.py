"""The card in a model file: what the model is, in JSON that is read without loading the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from imcc.persistence._errors import ModelFileError

#: The number of the file format; it grows when an older version could not read a file rightly.
FORMAT = 1

# Co-occurrence counts of more labels than this would make up most of the file.
MOST_PAIRED_LABELS = 1000


@dataclass(frozen=True)
class ModelCard:
    """What a model file says about itself.

    Attributes
    ----------
    imcc_version : str
        The version that wrote it.
    versions : dict of str to str
        Those of Python, NumPy, SciPy, scikit-learn and skops.
    created : str
        When, in UTC.
    model : str
        The class of the model, and of what is inside.
    params : dict of str to value
        The setting: chosen by a search, or given.
    feature_names, label_names : tuple of str
    data_name, fingerprint : str
        The training data's name and SHA-256 (:meth:`imcc.datasets.Dataset.fingerprint`); empty if
        the model was saved without them.
    n_rows : int or None
        Their number of rows.
    metrics : dict of str to float
        How good the model is, as measured when it was made; the keys say what was measured.
    columns : dict
        How words in the training file became numbers, and which columns were left out.
    label_pairs : list of lists of int, or None
        In how many training rows labels are on together: row i has the counts with label i, i + 1
        and so on.
    notes : str
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
        """Return the co-occurrence counts as a symmetric matrix, if they are stored."""
        if self.label_pairs is None:
            return None
        count = len(self.label_names)
        out = np.zeros((count, count))
        for i, row in enumerate(self.label_pairs):
            out[i, i:] = row
            out[i:, i] = row
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "format": FORMAT}


def pairs_of(Y: np.ndarray) -> list[list[int]] | None:
    """Return the upper triangle of the labels' co-occurrence counts, if it is not too large."""
    if Y.shape[1] > MOST_PAIRED_LABELS:
        return None
    counts = Y.T.astype(np.int64) @ Y
    return [counts[i, i:].tolist() for i in range(len(counts))]


def write_card(card: ModelCard, digest: str) -> bytes:
    """Return the JSON of a card; the digest is that of the model beside it."""
    content = {**card.to_dict(), "sha256": digest}
    return json.dumps(content, indent=1, ensure_ascii=True).encode("ascii")


def parse_card(data: bytes, path: str) -> tuple[ModelCard, str]:
    """Return the card and the digest of the model, or say why not."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"the file is damaged: its card is not JSON ({error})", path
        ) from error
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise ModelFileError("the file is damaged: its card does not say its format", path)
    _check_format(content, path)
    digest = content.pop("sha256", None)
    content.pop("format")
    _check_types(content, path)
    if not isinstance(digest, str):
        raise ModelFileError("the file is damaged: its card has no checksum", path)
    known = ModelCard.__dataclass_fields__
    # A newer version of the same format may say more; it is left out.
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
        f"the file was written by imcc {writer} in format {number}, and this version reads "
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
            raise ModelFileError(f"the file is damaged: its card's {name} makes no sense", path)
    for name in ("feature_names", "label_names"):
        if not all(isinstance(entry, str) for entry in content[name]):
            raise ModelFileError(f"the file is damaged: its card's {name} are no names", path)
    pairs = content.get("label_pairs")
    if pairs is not None:
        count = len(content["label_names"])
        shape = [len(row) if isinstance(row, list) else -1 for row in pairs]
        if shape != list(range(count, 0, -1)):
            raise ModelFileError("the file is damaged: its card's label_pairs make no sense", path)
