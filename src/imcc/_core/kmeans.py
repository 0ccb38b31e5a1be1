r"""k-means on a device: greedy k-means++ starts, then Lloyd's steps until nothing changes.

scikit-learn's k-means refuses arrays on a device, so this one is for those; NumPy's go to
scikit-learn.  Both do the same thing, with the same tolerance and the same way of filling empty
clusters, but draw their random numbers differently: they find different local optima.

The work is products of matrices in blocks of rows, in an order that does not change from run to
run: the same seed gives the same clusters on the same device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from imcc._backend.array import (
    Array,
    asarray,
    at_least,
    namespace,
    row_squares,
    take,
    take_rows,
    to_numpy,
)
from imcc._backend.device import block_entries

MAX_STEPS = 300
# Lloyd's steps end when the centres move, all together and squared, less than this part of the
# mean variance of a feature.
TOLERANCE = 1e-4


def k_means(X: Array, n_clusters: int, seed: int) -> np.ndarray:
    """Cluster rows.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Of any library.
    n_clusters : int
        At most ``n_rows``.
    seed : int

    Returns
    -------
    ndarray of int, shape (n_rows,)
        The nearest centre of each row, on the host.  Numbers of centres that no row is nearest to
        are missing: there are fewer distinct rows than clusters.
    """
    xp = namespace(X)
    X = X - xp.mean(X, axis=0)  # distances stay, the products they come from shrink
    squares = row_squares(X)
    still = TOLERANCE * float(xp.mean(squares)) / X.shape[1]
    centers = _start(X, squares, n_clusters, np.random.RandomState(seed))
    blocks = _blocks(X, max(n_clusters, X.shape[1]))
    numbers = xp.arange(n_clusters, device=X.device)
    before = xp.full((X.shape[0],), -1, dtype=xp.int64, device=X.device)
    for _ in range(MAX_STEPS):
        nearest = _nearest(X, centers, blocks)
        sums, sizes = _sums(X, nearest, numbers, blocks)
        moved = sums / at_least(sizes, 1.0)[:, None]
        # One look at the device a step.
        news = [
            xp.astype(xp.any(nearest != before), X.dtype),
            xp.astype(xp.any(sizes == 0), X.dtype),
            xp.sum((moved - centers) ** 2),
        ]
        changed, some_empty, shift = to_numpy(xp.stack(news))
        if not changed:
            return to_numpy(nearest)
        if some_empty:
            moved = _filled(X, nearest, centers, sums, sizes, blocks)
        centers, before = moved, nearest
        if shift <= still and not some_empty:
            break
    return to_numpy(_nearest(X, centers, blocks))


def _start(X: Array, squares: Array, n_clusters: int, random: np.random.RandomState) -> Array:
    """Choose rows as first centres: each the best of a few drawn with chances d^2 (k-means++).

    Random numbers are made on the host, all at once; nothing is read back.
    """
    xp, n_rows = namespace(X), X.shape[0]
    n_trials = 2 + int(np.log(n_clusters))
    first = asarray(np.array([random.randint(n_rows)]), X)
    draws = asarray(random.random_sample((n_clusters, n_trials)), X)
    draws = xp.astype(draws, X.dtype, copy=False)
    # |x - y|^2 as one product: [-2x, |x|^2, 1] . [y, 1, |y|^2].
    ones = xp.ones_like(squares)[:, None]
    left = xp.concat([-2 * X, squares[:, None], ones], axis=1)
    right = xp.concat([X, ones, squares[:, None]], axis=1)
    # The running sums that come with GPU libraries add up in an order that may change from run to
    # run; products with a triangular matrix do not.  So the rows are arranged in a square, filled
    # up with rows at a distance of zero, which are never drawn.
    side = int(np.ceil(np.sqrt(n_rows)))
    rest = xp.zeros((side * side - n_rows, right.shape[1]), dtype=X.dtype, device=X.device)
    right = xp.concat([right, rest], axis=0).T
    square = xp.ones((side, side), dtype=X.dtype, device=X.device)
    up_to, before = xp.triu(square), xp.triu(square, k=1)

    # Numbers that are on the device already: others keep it waiting.
    zero = xp.zeros((), dtype=X.dtype, device=X.device)
    last = xp.full((), n_rows - 1, dtype=xp.int64, device=X.device)

    chosen = [first]
    closest = xp.maximum(take(left, first, 0) @ right, zero)
    for k in range(1, n_clusters):
        within = xp.reshape(closest, (side, side)) @ up_to
        running = xp.reshape(within + (within[:, -1] @ before)[:, None], (-1,))
        drawn = xp.searchsorted(running, draws[k, :] * running[-1])
        drawn = xp.minimum(drawn, last)
        distances = xp.minimum(take(left, drawn, 0) @ right, closest)
        best = xp.reshape(xp.argmin(xp.sum(distances, axis=1)), (1,))
        closest = xp.maximum(take(distances, best, 0), zero)
        chosen.append(take(drawn, best, 0))
    return take(X, xp.concat(chosen), 0)


def _nearest(X: Array, centers: Array, blocks: list[slice]) -> Array:
    """Return the number of the nearest centre of each row, the first one of several."""
    xp = namespace(X)
    own, twice = row_squares(centers), -2 * centers.T
    return _joined([xp.argmin(X[block, :] @ twice + own, axis=1) for block in blocks])


def _sums(X: Array, nearest: Array, numbers: Array, blocks: list[slice]) -> tuple[Array, Array]:
    """Return the sum of the rows of each cluster, and their number."""
    xp = namespace(X)
    sums: Any = 0.0
    sizes: Any = 0.0
    for block in blocks:
        members = xp.astype(nearest[block] == numbers[:, None], X.dtype)
        sums = members @ X[block, :] + sums
        sizes = xp.sum(members, axis=1) + sizes
    return sums, sizes


def _joined(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts)


def _filled(
    X: Array,
    nearest: Array,
    centers: Array,
    sums: Array,
    sizes: Array,
    blocks: list[slice],
) -> Array:
    """Return new centres where each empty cluster has taken over one of the farthest rows."""
    parts = [row_squares(X[b, :] - take(centers, nearest[b], 0)) for b in blocks]
    # Seldom, and small: on the host.
    new_sums, new_sizes = np.array(to_numpy(sums)), np.array(to_numpy(sizes))
    empty = np.flatnonzero(new_sizes == 0)
    farthest = np.argsort(-to_numpy(_joined(parts)), kind="stable")[: len(empty)]
    for cluster, row in zip(empty, farthest, strict=True):
        values = to_numpy(take_rows(X, np.array([row])))[0]
        old = int(nearest[int(row)])
        if new_sizes[old] > 1:
            new_sums[old] -= values
            new_sizes[old] -= 1
        new_sums[cluster], new_sizes[cluster] = values, 1
    return asarray(new_sums / new_sizes[:, np.newaxis], X)


def _blocks(X: Array, n_columns: int) -> list[slice]:
    step = max(1, (block_entries(X) or X.shape[0] * n_columns) // n_columns)
    n_rows = X.shape[0]
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
