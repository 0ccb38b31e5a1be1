"""Records as plain Python objects, ready for JSON."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def to_plain(value: Any) -> Any:
    """Turn records, arrays and tuples into dicts and lists.

    NaN and infinity, which JSON does not know, become None.

    >>> import numpy as np
    >>> to_plain({"means": np.array([0.5, np.nan]), "names": ("a", "b")})
    {'means': [0.5, None], 'names': ['a', 'b']}
    >>> to_plain(np.bool_(True))
    True
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
