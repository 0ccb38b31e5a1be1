"""Sizes that a file may claim: a few bytes must not be able to ask for all of the memory."""

from __future__ import annotations

#: A dense matrix of more numbers than this (4 GiB of floats) is refused before it is made.
MAX_CELLS = 2**29

#: More features than this are refused: each has a name.
MAX_FEATURES = 5_000_000


def check_size(n_features: int, label_shape: tuple[int, int]) -> None:
    """Refuse, with a ValueError, sizes that no data set of this kind has."""
    if n_features > MAX_FEATURES:
        raise ValueError(f"{n_features:,} features are more than the limit of {MAX_FEATURES:,}")
    rows, labels = label_shape
    if rows * labels > MAX_CELLS:
        raise ValueError(f"{rows:,} rows x {labels:,} labels are more than {MAX_CELLS:,} numbers")
