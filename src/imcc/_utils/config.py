"""Configuration: sizes of blocks and samples, and threads.

The settings control how much is processed at a time, and how many rows are used where a sample is
sufficient.  The defaults were measured to be fast.  :func:`config_context` changes them
temporarily, as ``sklearn.config_context(working_memory=...)`` does, for small machines and tests.

The settings are global to the process.  This module imports no other module of imcc, so that all
of them can use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Config:
    """The settings.

    Attributes
    ----------
    kernel_entries : int
        Number of kernel values computed at a time on the host, which about fit into the cache.
    nearest_entries : int
        Number of distances in memory when rows are assigned to prototypes on the host.
    score_entries : int
        Number of kernel values in memory when rows are scored on the host; large enough for fast
        products.
    sum_entries : int
        Number of features in memory when they are summed over rows on the host.
    slice_entries : int
        Number of entries of a slice of a memory-mapped array.
    width_rows : int
        Number of rows for the mean pairwise distance of an approximation or a stream.
    rows_per_landmark : int
        Number of rows per landmark in the sample for the k-means of the landmarks.
    cluster_rows, rows_per_cluster : int
        Number of rows of a stream used to initialise the prototypes of clusters, and its minimum
        per cluster.
    max_stream_features : int
        Maximum number of features of a linear model that is fitted on a stream, whose Gram matrix
        is square (8 GiB).
    late_condition : float
        Maximum condition number of the kernel matrix of the landmarks for which the sums of Nyström
        features are computed from kernel values and rotated afterwards, which may lose six of
        sixteen digits.
    device_entries : int
        Maximum number of entries of a block on a device (4 GiB in float64).
    device_share : float
        Maximum share of the free memory of a device for a block.
    host_memory : float or None
        Memory of the host in bytes that an exact model may use.  None means all memory of the
        machine, or of the control group of the process.
    device_memory : float or None
        Memory of a device in bytes that may be used.  None means all free memory.
    device_columns : int
        Number of columns that a device factorises at a time; large enough for fast products.
    chunks_ahead : int
        Number of chunks of a stream that are sent to a device before the host waits for it.
    pair_entries : int
        Number of comparisons of labels in memory for the metrics, which about fit into the cache.
    draw_entries : int
        Number of random weights that Bayesian comparisons draw at a time.
    gram_bytes : int
        Maximum size of a kernel matrix for support vector machines (11,585 rows).
    thread_rows : int
        Number of rows of a matrix for each thread of the linear algebra; matrices with less than
        twice as many rows are computed by one thread.  1 means as many threads as there are cores.
    progress_after, progress_every : float
        Seconds after which a command without a progress bar prints its progress, and the interval
        between such messages.
    """

    kernel_entries: int = 2**20
    nearest_entries: int = 2**20
    score_entries: int = 2**22
    sum_entries: int = 2**23
    slice_entries: int = 2**22
    width_rows: int = 5000
    rows_per_landmark: int = 10
    cluster_rows: int = 10_000
    rows_per_cluster: int = 50
    max_stream_features: int = 2**15
    late_condition: float = 1e6
    device_entries: int = 2**29
    device_share: float = 1 / 8
    host_memory: float | None = None
    device_memory: float | None = None
    device_columns: int = 2048
    chunks_ahead: int = 2
    pair_entries: int = 2**19
    draw_entries: int = 2**20
    gram_bytes: int = 2**30
    thread_rows: int = 1000
    progress_after: float = 10.0
    progress_every: float = 30.0


_current = Config()


def get_config() -> Config:
    """Return the current settings."""
    return _current


@contextmanager
def config_context(**settings: Any) -> Iterator[Config]:
    """Change settings within a ``with`` statement, for the whole process.

    Parameters
    ----------
    **settings
        Attributes of :class:`Config` and their values.
    """
    global _current
    before = _current
    _current = replace(before, **settings)
    try:
        yield _current
    finally:
        _current = before
