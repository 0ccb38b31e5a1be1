"""Kernels, the rule for their width, and models whose scores are sums of kernel values.

A kernel is evaluated in two steps, so that a search over widths and folds computes the first step
only once: ``base`` does not depend on the width (distances, or the kernel itself if it has no
width), and ``finish`` converts it to kernel values in place.

==========  =========================================  ==============================
name        k(x, x')                                   distance that the width is in
==========  =========================================  ==============================
rbf         ``exp(-|x - x'|_2^2 / (2 width^2))``       Euclidean
laplacian   ``exp(-|x - x'|_1 / width)``               Manhattan
chi2        ``exp(-sum (x - x')^2/(x + x') / width)``  additive chi-squared
==========  =========================================  ==============================

In the rule of the paper, the width is the mean distance over all pairs of training rows.  With row
weights w, it is ::

    sum_ij w_i w_j d_ij / (N^2 - sum_i w_i min(w_i, 1)),        N = sum_i w_i,

For integer weights, this is the mean over the pairs of repeated rows (of which w_i (w_i - 1) pairs
are copies of the same row); for weights up to 1, it is the mean over pairs of different rows,
weighted by w_i w_j.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.metrics.pairwise import (
    PAIRWISE_KERNEL_FUNCTIONS,
    additive_chi2_kernel,
    manhattan_distances,
    pairwise_kernels,
)
from sklearn.utils.extmath import row_norms

from imcc._array.array import (
    Array,
    asarray,
    clip_in_place,
    dense,
    exp_in_place,
    is_numpy,
    mean_of_rows,
    namespace,
    row_squares,
    to_numpy,
    zero_diagonal,
)
from imcc._array.device import block_entries
from imcc._array.linalg import sparse_products
from imcc._utils.config import get_config
from imcc._utils.progress import report_progress
from imcc._utils.validation import Features, check_choice, check_number

# Beyond these, 2 width^2 or its inverse is 0 or infinite.
MIN_WIDTH, MAX_WIDTH = 1e-150, 1e150


def row_blocks(n_rows: int, n_columns: int, entries: int | None = None) -> Iterator[slice]:
    """Split rows into slices with about ``entries`` entries (by default ``kernel_entries``)."""
    step = max(1, (entries or get_config().kernel_entries) // max(1, n_columns))
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
    is_linear = False

    def __init__(
        self, function: str | Callable[..., float], parameters: Mapping[str, Any] | None = None
    ) -> None:
        self.function = function
        self.parameters = dict(parameters or {})

    @property
    def is_semidefinite(self) -> bool:
        """Whether kernel matrices are known to have no negative eigenvalues."""
        return self.function == "cosine"

    def base(self, X: Features, Y: Features | None = None) -> Array:
        """Return the part that does not depend on the width, between rows of X and Y (or X)."""
        # Rows on a device come to the host: these functions are scikit-learn's or the user's.
        rows, others = to_numpy(X), to_numpy(Y)
        if self.function == "additive_chi2":
            rows, others = dense(rows), dense(others)
        values = pairwise_kernels(rows, others, metric=self.function, **self.parameters)
        return asarray(np.asarray(dense(values)), X)

    def origin(self, X: Features) -> Array | None:
        """Return a point to subtract from all rows, which loses fewer digits, or None."""
        return None

    def finish(self, base: Array, width: float | None) -> Array:
        """Turn the base into kernel values, in place."""
        return base


class LinearKernel(Kernel):
    """``<x, x'>``: its features are the rows themselves."""

    is_linear = True
    is_semidefinite = True

    def origin(self, X: Features) -> Array | None:
        """Return the mean of dense rows; a linear model has an intercept that takes it up."""
        return None if sp.issparse(X) else mean_of_rows(X)

    def base(self, X: Features, Y: Features | None = None) -> Array:
        """Return the inner products."""
        return _inner_products(X, X if Y is None else Y)


class WidthKernel(Kernel):
    """A kernel exp(-base / scale(width)), where the base grows with a distance."""

    has_width = True
    is_semidefinite = True

    def mean_distance(self, base: Array, weights: Array | None = None) -> float:
        """Return the (weighted) mean distance over all pairs of rows; 0 if there are none."""
        n = base.shape[0]
        # The diagonal is zero, so the sum over the whole matrix counts each pair twice.
        blocks = row_blocks(n, n, block_entries(base))
        if weights is None:
            sums = (namespace(base).sum(self._distances(base[b, :])) for b in blocks)
            return float(sum(sums) / _pair_weight(n))
        total = sum(self._weighed(base[b, :], weights, b, slice(0, n)) for b in blocks)
        return total / _pair_weight(n, weights)

    def mean_distance_of(self, X: Features, weights: Array | None = None) -> float:
        """Return the mean distance of rows, without the matrix of all pairs."""
        n, total = X.shape[0], 0.0
        for block in row_blocks(n, n, block_entries(X)):
            # Distances are symmetric: those to later rows count with the later rows.
            rows, start = X[block, :], block.start
            total += self._weighed(self.base(rows), weights, block, block)
            if start:
                before = slice(0, start)
                total += 2 * self._weighed(self.base(rows, X[before, :]), weights, block, before)
        return total / _pair_weight(n, weights)

    def _weighed(self, base: Array, weights: Array | None, rows: slice, others: slice) -> float:
        """Return the (weighted) sum of the distances between two parts of the rows."""
        distances = self._distances(base)
        if weights is None:
            return float(namespace(base).sum(distances))
        return float(weights[rows] @ (distances @ weights[others]))

    def _distances(self, base: Array) -> Array:
        return base

    def finish(self, base: Array, width: float | None) -> Array:
        """Turn the base into exp(-base / scale(width)), in place."""
        assert width is not None
        factor = -1.0 / self._scale(width)
        for block in row_blocks(base.shape[0], base.shape[1], block_entries(base)):
            rows = base[block, :]
            # A distance of infinitely many widths is a kernel value of 0.
            with np.errstate(over="ignore"):
                rows *= factor
            exp_in_place(rows)
        return base

    def _scale(self, width: float) -> float:
        return width


class RBFKernel(WidthKernel):
    """``exp(-|x - x'|_2^2 / (2 width^2))``, the paper's kernel."""

    def origin(self, X: Features) -> Array | None:
        """Return the mean of dense rows: distances stay, the products they come from shrink."""
        return None if sp.issparse(X) else namespace(X).mean(X, axis=0)

    def base(self, X: Features, Y: Features | None = None) -> Array:
        """Return the squared Euclidean distances."""
        return squared_distances(X, Y)

    def _distances(self, base: Array) -> Array:
        return namespace(base).sqrt(base)

    def _scale(self, width: float) -> float:
        return 2 * width**2


class LaplacianKernel(WidthKernel):
    """``exp(-|x - x'|_1 / width)``."""

    def base(self, X: Features, Y: Features | None = None) -> Array:
        """Return the Manhattan distances."""
        if not is_numpy(X):
            return _summed_distances(X, X if Y is None else Y, _manhattan)
        if sp.issparse(X) or (Y is not None and sp.issparse(Y)):
            return manhattan_distances(sp.csr_matrix(X), None if Y is None else sp.csr_matrix(Y))
        if Y is not None:
            return cdist(X, Y, "cityblock")
        return squareform(pdist(X, "cityblock"))


class Chi2Kernel(WidthKernel):
    """``exp(-sum_k (x_k - x'_k)^2 / (x_k + x'_k) / width)``, for features >= 0."""

    def base(self, X: Features, Y: Features | None = None) -> Array:
        """Return the additive chi-squared distances."""
        if not is_numpy(X):
            return _summed_distances(X, X if Y is None else Y, _chi_squared)
        return -additive_chi2_kernel(dense(X), dense(Y))


def _pair_weight(n: int, weights: Array | None = None) -> float:
    """Return the (weighted) number of ordered pairs of rows, see the formula above; 1 for none."""
    if weights is None or n < 2:
        return max(n * (n - 1), 1)
    w = np.asarray(to_numpy(weights), dtype=np.float64)
    return float(w.sum() ** 2 - (w * np.minimum(w, 1.0)).sum())


def squared_lengths(X: Features) -> Array:
    """Return the squared length of each row."""
    return row_norms(X, squared=True) if is_numpy(X) else row_squares(X)


def squared_distances(
    X: Features, Y: Features | None = None, squares_of_Y: Array | None = None, like: Any = None
) -> Array:
    """Return the squared Euclidean distances of all pairs, ``|x|^2 + |y|^2 - 2 <x, y>``.

    Parameters
    ----------
    X, Y : array or CSR matrix
        Rows; Y is X by default.
    squares_of_Y : array, optional
        The squared lengths of Y, if they are known.
    like : array, optional
        Determines library and device, if the rows are sparse; these are on the host.
    """
    squares = squared_lengths(X)
    other = squares_of_Y
    if other is None:
        other = squares if Y is None else squared_lengths(Y)
    if sp.issparse(X) and like is not None and not is_numpy(like):
        out = sparse_products(X, X if Y is None else Y, like)
        squares, other = asarray(squares, out), asarray(other, out)
    else:
        out = _inner_products(X, X if Y is None else Y)
    for block in row_blocks(out.shape[0], out.shape[1], block_entries(out)):
        rows = out[block, :]
        rows *= -2
        rows += squares[block][:, None]
        rows += other
        clip_in_place(rows)
    if Y is None:
        zero_diagonal(out)
    return out


def _summed_distances(X: Array, Y: Array, terms: Callable[..., Array]) -> Array:
    """Return distances that are sums over features, on a device, in blocks of (rows, Y, features).

    ``terms`` gives the summands for all pairs of some rows.
    """
    xp = namespace(X)
    out = xp.zeros((X.shape[0], Y.shape[0]), dtype=xp.result_type(X, Y), device=X.device)
    for block in row_blocks(X.shape[0], Y.shape[0] * Y.shape[1], block_entries(X)):
        out[block, :] = xp.sum(terms(X[block, :][:, None, :], Y[None, :, :]), axis=2)
    return out


def _manhattan(x: Array, y: Array) -> Array:
    return namespace(x).abs(x - y)


def _chi_squared(x: Array, y: Array) -> Array:
    xp = namespace(x)
    if bool(xp.any(x < 0)) or bool(xp.any(y < 0)):
        raise ValueError("kernel='chi2' is for features >= 0: X contains negative values")
    total = x + y
    return (x - y) ** 2 / xp.where(total == 0, xp.ones_like(total), total)


def _inner_products(X: Features, Y: Features) -> Array:
    """Return X Y^T as a dense array; sparse operands are never densified as a whole."""
    if not sp.issparse(X) and not sp.issparse(Y):
        return X @ Y.T
    if not sp.issparse(X):
        return np.ascontiguousarray((Y @ X.T).T)
    out = np.empty((X.shape[0], Y.shape[0]), dtype=np.result_type(X, Y))
    right = Y.T.tocsr() if sp.issparse(Y) else Y.T
    for block in row_blocks(*out.shape):
        # A product with itself is symmetric: blocks on and above the diagonal are enough.
        start = block.start if X is Y else 0
        rows = X if block == slice(0, X.shape[0]) else X[block]
        product = rows @ (right[:, start:] if start else right)
        out[block, start:] = product.toarray() if sp.issparse(product) else product
        if start:
            out[block, :start] = out[:start, block].T
    return out


_NAMED: dict[str, type[Kernel]] = {
    "rbf": RBFKernel,
    "laplacian": LaplacianKernel,
    "chi2": Chi2Kernel,
    "linear": LinearKernel,
}


def check_kernel(
    kernel: Any,
    parameters: Mapping[str, Any] | None = None,
    width: Any = "mean_distance",
    width_scale: Any = 1.0,
) -> Kernel:
    """Check a kernel, its name or function and parameters, and its width; return the kernel."""
    names = sorted({*_NAMED, *PAIRWISE_KERNEL_FUNCTIONS})
    if isinstance(kernel, str) and kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' is not supported: the virtual examples are means of training "
            "rows, and their kernel values do not follow from those of the rows; pass the rows "
            "and the name of a kernel or a callable"
        )
    if not callable(kernel) and kernel not in names:
        raise ValueError(f"kernel must be a callable or one of {', '.join(names)}; got {kernel!r}")
    if callable(kernel) or kernel not in _NAMED:
        resolved = Kernel(kernel, parameters)
    elif parameters:
        raise ValueError(
            f"kernel_params={parameters!r} has no effect on kernel={kernel!r}: its width is "
            "set with width and width_scale"
        )
    else:
        resolved = _NAMED[kernel](kernel)
    check_number("width_scale", width_scale, above=0)
    if isinstance(width, str):
        check_choice("width", width, ["mean_distance"])
    else:
        check_scaled_width(check_number("width", width, above=0), width_scale)
    if not resolved.has_width and (width != "mean_distance" or width_scale != 1.0):
        raise ValueError(
            f"kernel={kernel!r} has no width: leave width and width_scale at their defaults "
            f"(got width={width!r}, width_scale={width_scale!r})"
        )
    return resolved


def choose_width(
    kernel: Kernel, base: Array, width: Any, width_scale: float, weights: Array | None = None
) -> float | None:
    """Return the width for training rows whose base is given; None for a kernel without one.

    Parameters
    ----------
    kernel : Kernel
    base : array of shape (n_samples, n_samples)
        ``kernel.base(X)``.
    width : "mean_distance" or float
        The rule of the paper, or a number.
    width_scale : float
        Factor by which it is multiplied.
    weights : array of shape (n_samples,), default=None
        Row weights.
    """
    if not isinstance(kernel, WidthKernel):
        return None
    chosen = kernel.mean_distance(base, weights) if isinstance(width, str) else float(width)
    return final_width(chosen, width_scale, base.shape[0])


def final_width(width: float, width_scale: float, n_rows: int) -> float:
    """Return a width, given or chosen by the rule for so many rows, times its factor."""
    if not 0 < width < math.inf:
        why = "the distances between the training rows overflow"
        if width == 0:
            why = f"all training rows are identical (n_samples={n_rows}), or nearly so"
        raise ValueError(
            f"width='mean_distance' gives no width: {why}; scale the features, or pass a positive "
            "number as width"
        )
    check_scaled_width(width, width_scale)
    return width * width_scale


def check_scaled_width(width: float, width_scale: float) -> None:
    """Raise an error for a width whose square, or its inverse, is 0 or infinite."""
    scaled = width * width_scale
    if not MIN_WIDTH <= scaled <= MAX_WIDTH:
        size = "small" if scaled < 1 else "large"
        raise ValueError(
            f"the width of the kernel is too {size}: width {width:g} times width_scale "
            f"{width_scale:g} is {scaled:g}, which is not between {MIN_WIDTH:g} and {MAX_WIDTH:g}; "
            "a width of about the mean distance between rows is a good start "
            "(width='mean_distance', width_scale=1)"
        )


# Models: records of arrays that compute scores of rows.


@dataclass(frozen=True)
class LinearModel:
    """Scores x W + b.

    Attributes
    ----------
    coef : array of shape (q, n_features)
        W^T.
    intercept : array of shape (q,)
    """

    coef: Array
    intercept: Array

    @property
    def width(self) -> None:
        """There is no width."""

    @property
    def coefficients(self) -> dict[str, Array]:
        """The coefficients, by the names they have as attributes of an estimator."""
        return {"coef_": self.coef}

    def scores(self, X: Features) -> Array:
        """Return the scores of rows, (n_samples, q), in the precision of the rows."""
        xp = namespace(X)
        dtype = _computing_dtype(X, X.dtype)
        weights, intercept = (
            xp.astype(part, dtype, copy=False) for part in (self.coef.T, self.intercept)
        )
        if X.dtype == dtype:
            return X @ weights + intercept
        out = xp.tile(xp.astype(intercept, X.dtype), (X.shape[0], 1))
        for block in row_blocks(X.shape[0], X.shape[1], get_config().score_entries):
            out[block, :] = xp.astype(X[block, :], dtype) @ weights + intercept
        return out


@dataclass(frozen=True)
class KernelModel:
    """Scores k(x, X) A + b.

    Attributes
    ----------
    kernel : Kernel
    width : float or None
    origin : array of shape (n_features,) or None
        Subtracted from all rows before the kernel is computed.
    rows : array or CSR matrix of shape (n_samples, n_features)
        The training rows minus the origin.
    coef : array of shape (n_samples, q)
    intercept : array of shape (q,)
    """

    kernel: Kernel
    width: float | None
    origin: Array | None
    rows: Features
    coef: Array
    intercept: Array

    @property
    def coefficients(self) -> dict[str, Array]:
        """The coefficients, by the names they have as attributes of an estimator."""
        return {"dual_coef_": self.coef}

    def scores(self, X: Features) -> Array:
        """Return the scores of rows, (n_samples, q), in the precision of the rows."""
        xp = namespace(self.rows)
        given = xp.result_type(X.dtype, self.rows.dtype)
        dtype = _computing_dtype(self.rows, given)
        rows, coef = (xp.astype(part, dtype, copy=False) for part in (self.rows, self.coef))
        out = xp.tile(xp.astype(self.intercept, given, copy=False), (X.shape[0], 1))
        entries = block_entries(self.rows) or get_config().score_entries
        for block in row_blocks(X.shape[0], self.rows.shape[0], entries):
            moved = moved_by(xp.astype(X[block, :], dtype, copy=False), self.origin)
            values = self.kernel.finish(self.kernel.base(moved, rows), self.width)
            out[block, :] += values @ coef
            report_progress(block.stop, X.shape[0])
        return out


Model = LinearModel | KernelModel


def _computing_dtype(like: Array, given: Any) -> Any:
    """Return the dtype in which rows are scored: float64 on the host, the given one on a device.

    Scores are often small differences of large terms, for which the digits of float32 are too few;
    on many devices, float64 is much slower.
    """
    return namespace(like).float64 if is_numpy(like) else given


def moved_by(X: Features, origin: Array | None) -> Features:
    """Return rows minus an origin in their precision; unchanged if the origin is None."""
    return X if origin is None else X - namespace(X).astype(origin, X.dtype)
