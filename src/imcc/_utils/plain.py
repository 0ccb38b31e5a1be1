"""Records as plain Python objects, ready for JSON."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def to_plain(value: Any, *, other: Callable[[Any], Any] | None = None) -> Any:
    """Turn records, arrays and tuples into dicts and lists.

    NaN and infinity, which JSON does not know, become None.

    Parameters
    ----------
    value : object
    other : callable, optional
        What makes something plain of an object that JSON does not know (a function, an estimator);
        unless given, such objects stay as they are.

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
        return {
            field.name: to_plain(getattr(value, field.name), other=other) for field in fields(value)
        }
    if isinstance(value, dict):
        return {key: to_plain(item, other=other) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist(), other=other)
    if isinstance(value, (list, tuple)):
        return [to_plain(item, other=other) for item in value]
    if isinstance(value, np.generic):
        return to_plain(value.item(), other=other)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if other is None or value is None or isinstance(value, (bool, int, float, str)):
        return value
    return other(value)
