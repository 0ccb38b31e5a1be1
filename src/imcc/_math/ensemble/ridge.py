r"""Ridge regression with an intercept, and the scores of rows by models without them.

**Kernels.**  With a kernel matrix K, weights w of the rows (W = diag(w)) and a penalty lambda, the
coefficients c and the intercept b of the score ``k(x, rows) c + b`` solve ::

    (K + lambda W^-1) c + 1 b = y,        1' c = 0.

Let S = W^(1/2), C = (S K S + lambda I)^-1 = L^-T L^-1, s = S 1 and t = S^-1 c.  Then ::

    t = P S y,    P = C - C s s' C / (s' C s),    b = s' C S y / (s' C s).

The error of the model without the rows G, at these rows, is ``S_G^-1 P_GG^-1 t_G``: for a single
row ``t_i / (s_i P_ii)``, and for a group the solution of a small system.  One Cholesky factor and
its triangular inverse, 2/3 n^3 operations, give the model and all of these.

**Features.**  With features Z (of landmarks), centred by their weighted means, and ``y`` likewise,
the coefficients are ``(Z' W Z + lambda I)^-1 Z' W y``.  The hat matrix of the scaled rows,
``H = S Z (Z' W Z + lambda I)^-1 Z' S + s s' / (s' s)``, gives the errors without the rows G:
``S_G^-1 (I - H_GG)^-1 r_G`` with the scaled residuals r.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from imcc._array.array import (
    Array,
    add_to_diagonal,
    asarray,
    astype,
    namespace,
    take,
    take_rows,
    zeros,
)
from imcc._array.device import block_entries
from imcc._array.linalg import (
    add_products,
    cholesky,
    lower_product,
    solve,
    squared_columns,
    triangular_inverse,
)
from imcc._math.kernels import row_blocks

# Errors of scores, whose labels are -1 and +1, that change probabilities by less than 1e-4; errors
# that one step of refinement makes as small; and steps at most.
_NEGLIGIBLE, _SMALL, _REFINEMENTS = 3e-6, 3e-3, 3
# Entries of the blocks that are worked on, which stay in the cache of a core.
_ENTRIES = 2**20
#: The same on a device, 512 MiB in float64.
DEVICE_ENTRIES = 2**26


def entries_of_blocks(like: Array) -> int:
    """Return the entries of blocks of kernel values, features or labels.

    On a device they are fewer than it has room for, since a kernel matrix is there as well.
    """
    there = block_entries(like)
    return _ENTRIES if there is None else min(there, DEVICE_ENTRIES)


class Solution(NamedTuple):
    """A ridge regression model.

    Attributes
    ----------
    held_out : array of shape (n_samples, n_labels)
        The scores of each row by the model without the row, or without its group.
    coef : array of shape (n_samples or n_features, n_labels)
    intercept : array of shape (n_labels,)
    """

    held_out: Array
    coef: Array
    intercept: Array


def solve_kernel(
    K: Array,
    y: Array,
    penalty: float,
    weight: Array | None = None,
    groups: Sequence[np.ndarray] | None = None,
    product: Callable[[Array], Array] | None = None,
) -> Solution:
    """Fit ridge regression to a kernel matrix, which is overwritten.

    Parameters
    ----------
    K : array of shape (n_samples, n_samples)
        Its precision is that of the factor.
    y : array of shape (n_samples, n_labels)
        In float32 or float64.
    penalty : float
        lambda.
    weight : array of shape (n_samples,), optional
        Above 0.
    groups : sequence of ndarray of int, optional
        Rows that are left out together; every row is in one of them.  None leaves out single rows.
    product : callable, optional
        The product of the kernel matrix in float64 and a matrix.  With it, the solution that a
        matrix in float32 gives is refined, unless its error is negligible.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix is not positive definite in its precision.
    """
    xp, (n, q) = namespace(K), y.shape
    precision = "float32" if K.dtype == xp.float32 else "float64"
    root = zeros((n,), y) + 1.0 if weight is None else xp.sqrt(weight)
    if weight is not None:
        scale = astype(root, precision)
        K *= scale[:, None]
        K *= scale
    add_to_diagonal(K, penalty)
    inverse = triangular_inverse(cholesky(K))

    def inverse_times(B: Array) -> Array:
        moved = lower_product(inverse, astype(B, precision))
        return astype(lower_product(inverse, moved, transposed=True), "float64")

    def scaled_labels(block: slice) -> Array:
        """Return some columns of S y; s comes after the last one."""
        own = astype(y[:, block.start : min(block.stop, q)], "float64") * root[:, None]
        return own if block.stop <= q else xp.concat([own, root[:, None]], axis=1)

    # Of all labels there are two matrices at a time, the coefficients and the scores.
    entries = entries_of_blocks(K)
    blocks = list(row_blocks(q + 1, n, entries))
    solved = zeros((n, q + 1), y)
    for block in blocks:
        solved[:, block] = inverse_times(scaled_labels(block))
    if product is not None and _rounding(solved, blocks) > _NEGLIGIBLE:
        for _ in range(_REFINEMENTS):
            scores = product(solved if weight is None else solved * root[:, None])
            largest = 0.0
            for block in blocks:
                residual = scaled_labels(block) - scores[:, block] * root[:, None]
                residual -= penalty * solved[:, block]
                solved[:, block] += inverse_times(residual)
                largest = max(largest, float(xp.max(xp.abs(residual))))
            # A step divides the error by about as much as the first one found.
            if largest <= _SMALL:
                break
        del scores
    u = xp.asarray(solved[:, q], copy=True)
    total = xp.sum(root * u)
    norms = squared_columns(inverse) - u**2 / total
    held_out, intercept = zeros((n, q), y), zeros((q,), y)
    for block in row_blocks(q, n, entries):
        own = solved[:, block]
        intercept[block] = xp.sum(root[:, None] * own, axis=0) / total
        t = own - u[:, None] * intercept[block]
        if groups is None:
            errors = t / norms[:, None]
        else:
            parts = []
            for rows in groups:
                L, ends = _columns(inverse, rows), take(u, asarray(rows, y), 0)
                inner = L.T @ L - ends[:, None] * ends[None, :] / total
                parts.append(solve(inner, take_rows(t, rows)))
            errors = _in_order(parts, groups)
        held_out[:, block] = astype(y[:, block], "float64") - errors / root[:, None]
        solved[:, block] = t * root[:, None]
    return Solution(held_out, solved[:, :q], intercept)


def _rounding(coef: Array, blocks: Sequence[slice]) -> float:
    """Return the error of scores if kernel values are rounded to float32, about."""
    xp = namespace(coef)
    largest = max(float(xp.max(xp.sum(coef[:, block] ** 2, axis=0))) for block in blocks)
    return float(np.finfo(np.float32).eps) / 2 * largest**0.5


def _columns(L: Array, at: np.ndarray) -> Array:
    """Return columns of a lower triangular matrix in float64, with zeros above the diagonal."""
    columns = astype(take(L, asarray(at, L), 1), "float64")
    below = np.arange(L.shape[0])[:, None] >= at
    return namespace(L).where(asarray(below, L, "bool"), columns, 0.0 * columns)


def solve_features(
    Z: Array,
    y: Array,
    penalty: float,
    weight: Array | None = None,
    groups: Sequence[np.ndarray] | None = None,
) -> Solution:
    """Fit ridge regression to features; the parameters are those of :func:`solve_kernel`.

    Parameters
    ----------
    Z : array of shape (n_samples, n_features)
    y, penalty, weight, groups
        As for :func:`solve_kernel`.
    """
    xp, (n, m) = namespace(Z), Z.shape
    root = zeros((n,), y) + 1.0 if weight is None else xp.sqrt(weight)
    total = xp.sum(root**2)
    blocks = list(row_blocks(n, m, entries_of_blocks(Z)))
    center: Any = 0.0
    for block in blocks:
        center = center + (root[block] ** 2) @ astype(Z[block, :], "float64") / total
    mean = (root**2) @ astype(y, "float64") / total

    def scaled(rows: np.ndarray) -> tuple[Array, Array, Array]:
        """Return the root weights, features and labels of some rows, centred and weighted."""
        own = take(root, asarray(rows, y), 0)
        features = (astype(take_rows(Z, rows), "float64") - center) * own[:, None]
        return own, features, (astype(take_rows(y, rows), "float64") - mean) * own[:, None]

    gram, products = zeros((m, m), y), zeros((m, y.shape[1]), y)
    for block in blocks:
        _, rows, labels = scaled(np.arange(n)[block])
        gram = add_products(gram, rows)
        products += rows.T @ labels
    add_to_diagonal(gram, penalty)
    inverse = triangular_inverse(cholesky(gram))
    inner = lower_product(inverse, products)
    coef = lower_product(inverse, inner, transposed=True)
    held_out = []
    singles = ([np.arange(n)[block]] for block in blocks)
    batches = singles if groups is None else _batches(groups, blocks[0].stop)
    for batch in batches:
        own, rows, labels = scaled(np.concatenate(batch))
        whitened = lower_product(inverse, rows.T).T
        errors = labels - whitened @ inner
        if groups is None:
            errors /= (1 - xp.sum(whitened**2, axis=1) - own**2 / total)[:, None]
        else:
            parts, ends = [], np.cumsum([len(members) for members in batch]).tolist()
            for start, end in zip([0, *ends], ends, strict=False):
                W, r = whitened[start:end, :], own[start:end]
                hat = W @ W.T + r[:, None] * r[None, :] / total
                add_to_diagonal(hat, -1.0)
                parts.append(solve(-hat, errors[start:end, :]))
            errors = xp.concat(parts, axis=0)
        held_out.append((labels - errors) / own[:, None] + mean)
    scores = xp.concat(held_out, axis=0)
    scores = scores if groups is None else _in_order([scores], groups)
    intercept = mean - center @ coef
    return Solution(scores, coef, intercept)


def _batches(groups: Sequence[np.ndarray], n_rows: int) -> Iterator[list[np.ndarray]]:
    """Yield lists of groups, each with about so many rows."""
    ends = np.cumsum([len(rows) for rows in groups])
    number = (ends - 1) // max(1, n_rows)
    for at in np.split(np.arange(len(groups)), np.flatnonzero(np.diff(number)) + 1):
        yield [groups[i] for i in at]


def _in_order(parts: list[Array], groups: Sequence[np.ndarray]) -> Array:
    """Return the rows of several arrays in their places; each row occurs once."""
    order = np.argsort(np.concatenate(groups), kind="stable")
    return take_rows(namespace(parts[0]).concat(parts, axis=0), order)
