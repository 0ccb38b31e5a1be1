"""Conversion of records to plain Python objects for JSON."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def to_plain(value: Any, *, other: Callable[[Any], Any] | None = None) -> Any:
    """Convert dataclasses, arrays and tuples to dicts and lists.

    NaN and infinity, which JSON does not support, become None.

    Parameters
    ----------
    value : object
    other : callable, default=None
        Converts objects that JSON does not support, such as functions and estimators.  None leaves
        them unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> to_plain({"means": np.array([0.5, np.nan]), "names": ("a", "b")})
    {'means': [0.5, None], 'names': ['a', 'b']}
    >>> to_plain(np.bool_(True))
    True
    >>> to_plain({"kernel": len}, other=lambda found: found.__name__)
    {'kernel': 'len'}
    """
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: to_plain(item, other=other) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item, other=other) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if other is None or value is None or isinstance(value, (bool, int, float, str)):
        return value
    return other(value)
