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

from collections.abc import Callable, Sequence
from typing import NamedTuple

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
        In float64.
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
    xp = namespace(K)
    precision = "float32" if K.dtype == xp.float32 else "float64"
    root = xp.ones_like(y[:, 0]) if weight is None else xp.sqrt(weight)
    if weight is not None:
        scale = astype(root, precision)
        K *= scale[:, None]
        K *= scale
    add_to_diagonal(K, penalty)
    inverse = triangular_inverse(cholesky(K))

    def inverse_times(B: Array) -> Array:
        moved = lower_product(inverse, astype(B, precision))
        return astype(lower_product(inverse, moved, transposed=True), "float64")

    both = xp.concat([y * root[:, None], root[:, None]], axis=1)
    solved = inverse_times(both)
    if product is not None and _rounding(solved) > _NEGLIGIBLE:
        for _ in range(_REFINEMENTS):
            scores = product(solved * root[:, None]) * root[:, None]
            residual = both - scores - penalty * solved
            solved = solved + inverse_times(residual)
            # A step divides the error by about as much as the first one found.
            if float(xp.max(xp.abs(residual))) <= _SMALL:
                break
    u = solved[:, -1]
    total = xp.sum(root * u)
    intercept = xp.sum(root[:, None] * solved[:, :-1], axis=0) / total
    t = solved[:, :-1] - u[:, None] * intercept
    if groups is None:
        errors = t / (squared_columns(inverse) - u**2 / total)[:, None]
    else:
        parts = []
        for rows in groups:
            at = asarray(rows, y)
            own, ends = _columns(inverse, rows), take(u, at, 0)
            inner = own.T @ own - ends[:, None] * ends[None, :] / total
            parts.append(solve(inner, take_rows(t, rows)))
        errors = _in_order(parts, groups)
    return Solution(y - errors / root[:, None], t * root[:, None], intercept)


def _rounding(coef: Array) -> float:
    """Return the error of scores if kernel values are rounded to float32, about."""
    xp = namespace(coef)
    return float(np.finfo(np.float32).eps) / 2 * float(xp.max(xp.sum(coef**2, axis=0))) ** 0.5


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
    xp, n = namespace(Z), Z.shape[0]
    precision = "float32" if Z.dtype == xp.float32 else "float64"
    root = xp.ones_like(y[:, 0]) if weight is None else xp.sqrt(weight)
    total = xp.sum(root**2)
    center = astype((root**2)[None, :], precision) @ Z / astype(total, precision)
    mean = xp.sum(root[:, None] ** 2 * y, axis=0) / total
    rows = (Z - center) * astype(root, precision)[:, None]
    labels = (y - mean) * root[:, None]
    gram = rows.T @ rows
    add_to_diagonal(gram, penalty)
    inverse = triangular_inverse(cholesky(gram))
    whitened = lower_product(inverse, rows.T).T
    inner = whitened.T @ astype(labels, precision)
    coef = astype(lower_product(inverse, inner, transposed=True), "float64")
    residual = labels - astype(whitened @ inner, "float64")
    if groups is None:
        leverage = zeros((n,), y)
        for block in row_blocks(n, whitened.shape[1], block_entries(Z)):
            leverage[block] = astype(xp.sum(whitened[block, :] ** 2, axis=1), "float64")
        errors = residual / (1 - leverage - root**2 / total)[:, None]
    else:
        parts = []
        for members in groups:
            at = asarray(members, y)
            own, ends = astype(take(whitened, at, 0), "float64"), take(root, at, 0)
            hat = own @ own.T + ends[:, None] * ends[None, :] / total
            add_to_diagonal(hat, -1.0)
            parts.append(solve(-hat, take_rows(residual, members)))
        errors = _in_order(parts, groups)
    intercept = mean - astype(center, "float64")[0, :] @ coef
    return Solution(y - errors / root[:, None], coef, intercept)


def _in_order(parts: list[Array], groups: Sequence[np.ndarray]) -> Array:
    """Return the rows of several arrays in their places; each row occurs once."""
    order = np.argsort(np.concatenate(groups), kind="stable")
    return take_rows(namespace(parts[0]).concat(parts, axis=0), order)
