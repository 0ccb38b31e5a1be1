"""Sizes of blocks and samples, in one place.

How much is worked on at a time, and how many rows are used where a sample is enough.  The defaults
are what was measured to be fast; :func:`config_context` changes them for a while, as
``sklearn.config_context(working_memory=...)`` does, for small machines and for tests.

The settings are those of the process.  This module imports nothing, so that every other may use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Config:
    """The settings.

    Attributes
    ----------
    kernel_entries : int
        Kernel values that are computed at a time on the host: about what a core's cache holds.
    nearest_entries : int
        Distances held at a time when rows are assigned to prototypes on the host.
    score_entries : int
        Kernel values held at a time when rows are scored on the host: enough for fast products.
    sum_entries : int
        Features held at a time when they are summed over rows on the host.
    slice_entries : int
        Entries of a slice of a memory-mapped array.
    width_rows : int
        Rows of which all pairs are taken for the mean distance of an approximation or a stream: the
        paper's data sets have no more.
    rows_per_landmark : int
        Rows, for each landmark, that k-means for the landmarks sees.
    cluster_rows, rows_per_cluster : int
        Rows of a stream that the prototypes of clusters start from, and at least so many for each
        cluster.
    max_stream_features : int
        The most features of a linear model that is trained on a stream; their products are a
        square matrix (8 GiB).
    late_condition : float
        Up to this condition number of the landmarks' kernel matrix, Nyström's sums are taken over
        kernel values and rotated afterwards: six of sixteen digits may be lost.
    device_entries : int
        The most entries of a block of work on a device (4 GiB in float64).
    device_share : float
        The most of a device's free memory that a block takes.
    host_memory : float or None
        Bytes of this machine's memory that an exact model may take; None is all that it has (or
        all that the control group of the process may use).
    device_memory : float or None
        Bytes of a device's memory that may be used; None is all that is free.
    device_columns : int
        Columns that a device factorises at a time: enough for its products to run at full speed.
    chunks_ahead : int
        Chunks of a stream that may be on their way to a device before the host waits for it.
    dask_merge : int
        Parts that are merged in one task of Dask.
    pair_entries : int
        Comparisons of labels that the metrics hold at a time: about what a core's cache holds.
    draw_entries : int
        Random weights that Bayesian comparisons draw at a time.
    gram_bytes : int
        The largest kernel matrix from which support vector machines are trained: 11,585 rows.
    screen_rows, screen_keep : tuple of int
        Rows of the rounds in which the kernels of an ensemble are screened, and how many kernels
        each round keeps.
    progress_after, progress_every : float
        Seconds after which a command says how far it is where it cannot draw a bar, and how often
        from then on.
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
    dask_merge: int = 8
    pair_entries: int = 2**19
    draw_entries: int = 2**20
    gram_bytes: int = 2**30
    screen_rows: tuple[int, ...] = (1000, 2000)
    screen_keep: tuple[int, ...] = (10, 6)
    progress_after: float = 2.0
    progress_every: float = 10.0


_current = Config()


def get_config() -> Config:
    """Return the settings that are in force."""
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
    unknown = sorted(settings.keys() - {field.name for field in fields(Config)})
    if unknown:
        raise ValueError(f"there is no setting called {unknown[0]!r}")
    before = _current
    _current = replace(before, **settings)
    try:
        yield _current
    finally:
        _current = before
