"""What the records of this room share: checked arguments in, plain values out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_array

from imcc._utils.validation import label_matrix


def checked(
    y_true: Any, scores: Any, label_names: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return labels as booleans, scores of the same shape, and the labels' names."""
    on = label_matrix(y_true, "y_true")
    scores = check_array(scores, dtype=[np.float64, np.float32], input_name="scores")
    if scores.shape != on.shape:
        raise ValueError(
            f"y_true and scores must have the same shape, got {on.shape} and {scores.shape}"
        )
    if label_names is None:
        return on, scores, [f"label{j}" for j in range(on.shape[1])]
    if isinstance(label_names, str) or len(label_names) != on.shape[1]:
        raise ValueError(
            f"label_names must be {on.shape[1]} names, one a label, got {label_names!r}"
        )
    return on, scores, [str(name) for name in label_names]
