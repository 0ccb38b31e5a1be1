"""The number of threads of BLAS and OpenMP."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """Limit BLAS and OpenMP to one thread within a ``with`` statement.

    For scikit-learn's k-means.  The libraries that it uses are loaded when it is imported, so they
    are looked up once: ``threadpool_limits`` looks for them each time, which takes milliseconds.
    """
    return _controller().limit(limits=1)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
