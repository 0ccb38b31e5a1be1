"""A random sample of rows that does not depend on how the rows are divided into parts.

Each row index has a random key, and the sample consists of the rows with the smallest keys.  A part
only needs the index of its first row, samples of parts are merged by keeping the smallest keys, and
an array and a stream of its rows give the same sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._array.array import asarray, is_numpy, namespace, take_rows
from imcc._utils.validation import Features


def row_keys(seed: int, start: int, n_samples: int) -> np.ndarray:
    """Return a random key for each of the rows ``start, start + 1, ...``.

    The key is the finaliser of SplitMix64 [1]_, a permutation of the 64-bit numbers, so that no two
    rows have the same key.

    References
    ----------
    .. [1] G. L. Steele, D. Lea, C. H. Flood. "Fast splittable pseudorandom number generators."
       OOPSLA 2014.
    """
    # Unsigned integers wrap around in arrays, but raise warnings as NumPy scalars.
    step = 0x9E3779B97F4A7C15
    offset = (seed + 1) * 0xD1B54A32D192ED03 + start * step
    keys = np.arange(n_samples, dtype=np.uint64) * np.uint64(step)
    keys += np.array([offset % 2**64], dtype=np.uint64)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


@dataclass(frozen=True)
class Sample:
    """The rows with the smallest keys.

    Attributes
    ----------
    rows : array or CSR matrix of shape (n, n_features)
        The rows in the order of their indices.
    numbers : ndarray of shape (n,)
        Row indices in ascending order, on the host.
    keys : ndarray of shape (n,)
        Keys of the rows, on the host.
    """

    rows: Features
    numbers: np.ndarray
    keys: np.ndarray

    @classmethod
    def of_rows(cls, X: Features, start: int, size: int, seed: int) -> Sample:
        """Draw at most ``size`` of the rows ``start, start + 1, ...``."""
        keys = row_keys(seed, start, X.shape[0])
        kept = _smallest(keys, size)
        # Indexing copies, so that a sample never keeps the whole part in memory.
        return cls(take_rows(X, kept), start + kept, keys[kept])

    def merge(self, other: Sample, size: int) -> Sample:
        """Draw from the union of two parts."""
        numbers = np.concatenate([self.numbers, other.numbers])
        keys = np.concatenate([self.keys, other.keys])
        kept = _smallest(keys, size)
        kept = kept[np.argsort(numbers[kept])]
        rows = take_rows(stack_rows([self.rows, other.rows]), kept)
        return Sample(rows, numbers[kept], keys[kept])

    def smallest(self, size: int) -> Sample:
        """Return the sample that would have been drawn for a smaller size."""
        if len(self.keys) <= size:
            return self
        kept = _smallest(self.keys, size)
        return Sample(take_rows(self.rows, kept), self.numbers[kept], self.keys[kept])


def sample_rows(X: Features, size: int, seed: int) -> Features:
    """Draw at most ``size`` rows; return all rows if there are no more."""
    return X if X.shape[0] <= size else Sample.of_rows(X, 0, size, seed).rows


def sample_weighted(X: Features, weights: Any, size: int, seed: int) -> tuple[Features, Any]:
    """Draw the rows of :func:`sample_rows` and their weights (None if there are none)."""
    if weights is None or X.shape[0] <= size:
        return sample_rows(X, size, seed), weights
    drawn = Sample.of_rows(X, 0, size, seed)
    return drawn.rows, take_rows(weights, drawn.numbers)


def stack_rows(parts: list[Features]) -> Features:
    """Concatenate rows on the device of the first part; sparse if a part is sparse."""
    if not is_numpy(parts[0]):
        return namespace(parts[0]).concat([asarray(part, parts[0]) for part in parts], axis=0)
    parts = [asarray(part, parts[0]) for part in parts]
    if any(sp.issparse(part) for part in parts):
        return sp.vstack([sp.csr_array(part) for part in parts], format="csr")
    return np.concatenate(parts)


def _smallest(keys: np.ndarray, size: int) -> np.ndarray:
    """Return the positions of the smallest keys in ascending order."""
    if len(keys) <= size:
        return np.arange(len(keys))
    return np.sort(np.argpartition(keys, size)[:size])
