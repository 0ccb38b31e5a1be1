"""Number of threads of BLAS and OpenMP."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """Limit BLAS and OpenMP to one thread within a ``with`` statement.

    Used for the k-means of scikit-learn.  The libraries are loaded when it is imported and are
    looked up only once, because each lookup by ``threadpool_limits`` takes milliseconds.
    """
    return _controller().limit(limits=1)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
