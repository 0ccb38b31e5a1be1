"""A random sample of rows that does not depend on how the rows are cut into parts.

Each row number gets a random key, and the rows with the smallest keys are the sample.  So a part of
the rows needs to know only where it begins, samples of parts are merged by keeping the smallest
keys, and one machine, a stream and a cluster draw the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._backend.array import asarray, is_numpy, namespace, take_rows
from imcc._utils.validation import Features


def row_keys(seed: int, start: int, n_samples: int) -> np.ndarray:
    """Return a random key for each of the rows ``start, start + 1, ...``.

    The finaliser of SplitMix64 [1]_, which is a permutation of the 64-bit numbers: no two rows have
    the same key.

    References
    ----------
    .. [1] G. L. Steele, D. Lea, C. H. Flood. "Fast splittable pseudorandom number generators."
       OOPSLA 2014.
    """
    # Unsigned whole numbers of arrays wrap around; those of Python and NumPy's scalars complain.
    step = 0x9E3779B97F4A7C15
    offset = (seed + 1) * 0xD1B54A32D192ED03 + start * step
    keys = np.arange(n_samples, dtype=np.uint64) * np.uint64(step)
    keys += np.array([offset % 2**64], dtype=np.uint64)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


@dataclass(frozen=True)
class Sample:
    """The rows with the smallest keys, so far.

    Attributes
    ----------
    rows : array or CSR matrix of shape (n, n_features)
        In the order of their numbers; the rest is on the host.
    numbers : ndarray of shape (n,)
        Their row numbers, rising.
    keys : ndarray of shape (n,)
    """

    rows: Features
    numbers: np.ndarray
    keys: np.ndarray

    @classmethod
    def of_rows(cls, X: Features, start: int, size: int, seed: int) -> Sample:
        """Draw at most so many of the rows ``start, start + 1, ...``."""
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

    def likely(self, size: int, n_samples: int) -> Sample:
        """Keep the rows that have a chance to be among the smallest keys of so many rows.

        The bound is ten standard deviations above what is expected, and the same for all parts.
        """
        share = (size + 10 * np.sqrt(size) + 50) / n_samples
        if share >= 1:
            return self
        kept = np.flatnonzero(self.keys < np.uint64(share * 2.0**64))
        return Sample(take_rows(self.rows, kept), self.numbers[kept], self.keys[kept])


def sample_rows(X: Features, size: int, seed: int) -> Features:
    """Draw at most so many rows; all of them, as they are, if there are no more."""
    return X if X.shape[0] <= size else Sample.of_rows(X, 0, size, seed).rows


def sample_weighted(X: Features, weights: Any, size: int, seed: int) -> tuple[Features, Any]:
    """Draw the rows of :func:`sample_rows`, with their weights (None if there are none)."""
    if weights is None or X.shape[0] <= size:
        return sample_rows(X, size, seed), weights
    drawn = Sample.of_rows(X, 0, size, seed)
    return drawn.rows, take_rows(weights, drawn.numbers)


def stack_rows(parts: list[Features]) -> Features:
    """Put rows one after the other, where the first are; sparse if any part is."""
    if not is_numpy(parts[0]):
        return namespace(parts[0]).concat([asarray(part, parts[0]) for part in parts], axis=0)
    parts = [asarray(part, parts[0]) for part in parts]
    if any(sp.issparse(part) for part in parts):
        return sp.vstack([sp.csr_array(part) for part in parts], format="csr")
    return np.concatenate(parts)


def _smallest(keys: np.ndarray, size: int) -> np.ndarray:
    """Return the positions of the smallest keys, rising."""
    if len(keys) <= size:
        return np.arange(len(keys))
    return np.sort(np.argpartition(keys, size)[:size])
