"""Kernels, and the rule for their width.

A kernel is evaluated in two steps, so that a search over widths and folds pays for the first step
once: ``base`` is what does not depend on the width (distances, or the kernel itself when it has no
width), ``finish`` turns it into kernel values, in place.

==========  =========================================  ==============================
name        k(x, x')                                   distance that the width is in
==========  =========================================  ==============================
rbf         ``exp(-|x - x'|_2^2 / (2 width^2))``       Euclidean
laplacian   ``exp(-|x - x'|_1 / width)``               Manhattan
chi2        ``exp(-sum (x - x')^2/(x + x') / width)``  additive chi-squared
==========  =========================================  ==============================

The paper's rule takes the mean distance over all pairs of training rows as the width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import (
    PAIRWISE_KERNEL_FUNCTIONS,
    additive_chi2_kernel,
    manhattan_distances,
    pairwise_kernels,
)
from sklearn.utils.extmath import row_norms

from imcc._validation import Features, check_choice, check_number

# Kernel blocks of about this many entries stay in the cache of a core.
BLOCK_ENTRIES = 2**20


def row_blocks(n_rows: int, n_columns: int, entries: int | None = None) -> Iterator[slice]:
    """Split rows into slices of about so many entries each (BLOCK_ENTRIES by default)."""
    step = max(1, (entries or BLOCK_ENTRIES) // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


class Kernel:
    """A kernel without a width; the base is the kernel itself.

    Parameters
    ----------
    function : str or callable
        A name or callable of :func:`sklearn.metrics.pairwise.pairwise_kernels`.
    parameters : mapping
        Passed on to it.
    """

    has_width = False

    def __init__(
        self, function: str | Callable[..., float], parameters: Mapping[str, Any] | None = None
    ) -> None:
        self.function = function
        self.parameters = dict(parameters or {})

    @property
    def is_semidefinite(self) -> bool:
        """Whether kernel matrices are known to have no negative eigenvalues."""
        return self.function == "cosine"

    def base(self, X: Features, Y: Features | None = None) -> np.ndarray:
        """Return the part that does not depend on the width, between rows of X and Y (or X)."""
        values = pairwise_kernels(X, Y, metric=self.function, **self.parameters)
        return np.asarray(values.toarray() if sp.issparse(values) else values)

    def origin(self, X: Features) -> np.ndarray | None:
        """Return a point to subtract from all rows, which loses fewer digits, or None."""
        return None

    def finish(self, base: np.ndarray, width: float | None) -> np.ndarray:
        """Turn the base into kernel values, in place."""
        return base


class LinearKernel(Kernel):
    """``<x, x'>``."""

    is_semidefinite = True

    def base(self, X: Features, Y: Features | None = None) -> np.ndarray:
        """Return the inner products."""
        return _inner_products(X, X if Y is None else Y)


class WidthKernel(Kernel):
    """A kernel exp(-base / scale(width)), where the base grows with a distance."""

    has_width = True
    is_semidefinite = True

    def mean_distance(self, base: np.ndarray) -> float:
        """Return the mean distance over all pairs of different rows; 0 if there are none."""
        n = base.shape[0]
        if n < 2:
            return 0.0
        # The diagonal is zero, so the sum over the whole matrix counts each pair twice.
        return float(sum(self._distances(base[b]).sum() for b in row_blocks(n, n)) / (n * (n - 1)))

    def mean_distance_of(self, X: Features) -> float:
        """Return the same for rows, without the matrix of all pairs."""
        n = X.shape[0]
        total = 0.0
        for block in row_blocks(n, n):
            distances = self._distances(self.base(X[block], X))
            # A row is at no distance from itself, whatever rounding says.
            total += float(distances.sum() - distances.diagonal(block.start).sum())
        return total / max(n * (n - 1), 1)

    def _distances(self, base: np.ndarray) -> np.ndarray:
        return base

    def finish(self, base: np.ndarray, width: float | None) -> np.ndarray:
        """Turn the base into exp(-base / scale(width)), in place."""
        assert width is not None
        factor = base.dtype.type(-1.0 / self._scale(width))
        for block in row_blocks(*base.shape):
            rows = base[block]
            rows *= factor
            np.exp(rows, out=rows)
        return base

    def _scale(self, width: float) -> float:
        return width


class RBFKernel(WidthKernel):
    """``exp(-|x - x'|_2^2 / (2 width^2))``, the paper's kernel."""

    def origin(self, X: Features) -> np.ndarray | None:
        """Return the mean of dense rows: distances stay, the products they come from shrink."""
        return None if sp.issparse(X) else X.mean(axis=0)

    def base(self, X: Features, Y: Features | None = None) -> np.ndarray:
        """Return the squared Euclidean distances, ``|x|^2 + |y|^2 - 2 <x, y>``."""
        squares = row_norms(X, squared=True)
        other = squares if Y is None else row_norms(Y, squared=True)
        out = _inner_products(X, X if Y is None else Y)
        for block in row_blocks(*out.shape):
            rows = out[block]
            rows *= -2
            rows += squares[block, np.newaxis]
            rows += other
            np.maximum(rows, 0, out=rows)
        if Y is None:
            np.fill_diagonal(out, 0)
        return out

    def _distances(self, base: np.ndarray) -> np.ndarray:
        return np.sqrt(base)

    def _scale(self, width: float) -> float:
        return 2 * width**2


class LaplacianKernel(WidthKernel):
    """``exp(-|x - x'|_1 / width)``."""

    def base(self, X: Features, Y: Features | None = None) -> np.ndarray:
        """Return the Manhattan distances."""
        if sp.issparse(X) or (Y is not None and sp.issparse(Y)):
            return manhattan_distances(sp.csr_matrix(X), None if Y is None else sp.csr_matrix(Y))
        if Y is not None:
            return cdist(X, Y, "cityblock")
        return _mirrored(X, lambda rows, others: cdist(rows, others, "cityblock"))


class Chi2Kernel(WidthKernel):
    """``exp(-sum_k (x_k - x'_k)^2 / (x_k + x'_k) / width)``, for features >= 0."""

    def base(self, X: Features, Y: Features | None = None) -> np.ndarray:
        """Return the additive chi-squared distances."""
        return -additive_chi2_kernel(X, Y)


def _inner_products(X: Features, Y: Features) -> np.ndarray:
    """Return X Y^T as a dense array; sparse operands are never densified as a whole."""
    if not sp.issparse(X) and not sp.issparse(Y):
        return X @ Y.T
    if not sp.issparse(X):
        return np.ascontiguousarray((Y @ X.T).T)
    out = np.empty((X.shape[0], Y.shape[0]), dtype=np.result_type(X, Y))
    for block in row_blocks(*out.shape):
        product = X[block] @ Y.T
        out[block] = product.toarray() if sp.issparse(product) else product
    return out


def _mirrored(X: np.ndarray, distances: Callable[..., np.ndarray]) -> np.ndarray:
    """Fill a symmetric matrix from the blocks on and below its diagonal."""
    n = X.shape[0]
    out = np.empty((n, n))
    for block in row_blocks(n, n):
        out[block, : block.stop] = distances(X[block], X[: block.stop])
        out[: block.stop, block] = out[block, : block.stop].T
    return out


_NAMED: dict[str, type[Kernel]] = {
    "rbf": RBFKernel,
    "laplacian": LaplacianKernel,
    "chi2": Chi2Kernel,
    "linear": LinearKernel,
}


def resolve_kernel(kernel: Any, parameters: Mapping[str, Any] | None = None) -> Kernel:
    """Return the kernel that a name or callable stands for, or say which there are."""
    if isinstance(kernel, str) and kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' cannot be used: the virtual examples are means of training rows, "
            "and their kernel values do not follow from those of the rows; pass the rows and a "
            "kernel name or a callable"
        )
    if not callable(kernel) and kernel not in (*_NAMED, *PAIRWISE_KERNEL_FUNCTIONS):
        names = ", ".join(sorted({*_NAMED, *PAIRWISE_KERNEL_FUNCTIONS}))
        raise ValueError(f"kernel must be a callable or one of {names}; got {kernel!r}")
    if not callable(kernel) and kernel in _NAMED:
        if parameters:
            raise ValueError(
                f"kernel_params={parameters!r} has no effect on kernel={kernel!r}: its width is "
                "set with width and width_scale"
            )
        return _NAMED[kernel](kernel)
    return Kernel(kernel, parameters)


def check_kernel(kernel: Any, kernel_params: Any, width: Any, width_scale: Any = 1.0) -> Kernel:
    """Check the kernel and its width together; return the kernel."""
    resolved = resolve_kernel(kernel, kernel_params)
    check_number("width_scale", width_scale, above=0)
    if isinstance(width, str):
        check_choice("width", width, ["mean_distance"])
    else:
        check_number("width", width, above=0)
    if not resolved.has_width and (width != "mean_distance" or width_scale != 1.0):
        raise ValueError(
            f"kernel={kernel!r} has no width: leave width and width_scale at their defaults "
            f"(got width={width!r}, width_scale={width_scale!r})"
        )
    return resolved


def choose_width(kernel: Kernel, base: np.ndarray, width: Any, width_scale: float) -> float | None:
    """Return the width for training rows whose base is given; None for a kernel without one.

    Parameters
    ----------
    kernel : Kernel
    base : ndarray of shape (n_rows, n_rows)
        ``kernel.base(X)``.
    width : "mean_distance" or float
        The paper's rule or a number.
    width_scale : float
        A factor on it.
    """
    if not isinstance(kernel, WidthKernel):
        return None
    chosen = kernel.mean_distance(base) if isinstance(width, str) else float(width)
    return check_width(chosen, base.shape[0]) * width_scale


def check_width(width: float, n_rows: int) -> float:
    """Return a width that the rule gave for so many rows, if it is one."""
    if not width > 0:
        raise ValueError(
            "width='mean_distance' gives no width: all training rows are identical "
            f"(n_samples={n_rows}); pass a positive number as width"
        )
    return width
