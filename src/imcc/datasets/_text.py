"""Numbers and names in text files."""

from __future__ import annotations

import numpy as np

from imcc.datasets._dataset import Dataset
from imcc.datasets._errors import listed, repeated


def plain_float(text: str) -> float:
    """Convert a text to a number; unlike ``float``, reject underscores as in 1_000.

    >>> plain_float(" 1e3 ")
    1000.0
    """
    if "_" in text:
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def number_texts(values: np.ndarray, missing: str) -> list[str]:
    """Convert numbers to the shortest texts that are read as the same numbers.

    >>> number_texts(np.array([1.0, 0.1, np.nan]), missing="?")
    ['1', '0.1', '?']
    """
    texts = []
    for value in values.tolist():
        if value != value:  # NaN
            texts.append(missing)
        else:
            text = repr(value)
            # Zeros keep ".0", so that the sign of -0.0 does not look like a mistake.
            texts.append(text[:-2] if text.endswith(".0") and value else text)
    return texts


def check_names(dataset: Dataset) -> None:
    """Raise an error for names that CSV files cannot represent or distinguish."""
    names = [*dataset.feature_names, *dataset.label_names]
    odd = [name for name in names if "\0" in name or not _is_unicode(name)]
    if odd:
        raise ValueError(f"CSV cannot represent these names: {listed(odd)}; rename them")
    if twice := repeated(names):
        raise ValueError(
            f"CSV needs unique column names, but these are repeated: {listed(twice)}; "
            "rename them, or write .npz"
        )


def _is_unicode(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
