r"""Virtual examples: the centres of clusters of training rows, with soft labels.

For clusters Z_1 .. Z_c of the training rows, the j-th virtual example is the pair ::

    z_j = mean of x_i over Z_j        (Eq. 1 of the paper)
    t_j = mean of y_i over Z_j        (Eq. 2)

Several clusterings can be used together; their virtual examples are stacked.  If rows have weights,
both means are weighted, and the size of a cluster is the total weight of its members: a row of
weight 2 is equivalent to two rows.

NumPy arrays are clustered by the k-means of scikit-learn, which does not support arrays on a
device.  These are clustered by :func:`k_means`: greedy k-means++ initialisation, then Lloyd steps
until nothing changes.  Both are the same algorithm, with the same tolerance, but they draw
different random numbers and find different local optima, and a cluster that loses all of its rows,
which seldom happens, stays empty on a device and is not used.  There, matrix products are computed
in blocks of rows in a fixed order, so that the same seed gives the same clusters on the same
device.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

from imcc._array.array import (
    Array,
    asarray,
    astype,
    column_sums,
    dense,
    is_numpy,
    namespace,
    one_hot,
    row_squares,
    scaled_rows,
    take,
    take_rows,
    to_numpy,
)
from imcc._array.device import block_entries, one_thread
from imcc._math.kernels import row_blocks
from imcc._utils.config import get_config
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import Features, check_count

DEFAULT_N_CLUSTERS = 32
# Of k-means on a device.
MAX_STEPS = 300
# Lloyd's steps end when the centres move, all together and squared, less than this part of the
# mean variance of a feature.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class VirtualExamples:
    """Centres and soft labels of clusters, and which rows are in them.

    Attributes
    ----------
    centers : array of shape (n_clusters, n_features)
    soft_labels : array of shape (n_clusters, n_outputs)
        T, the mean of the {-1, +1} labels of the members.
    sizes : array of shape (n_clusters,)
        The diagonal of D: numbers of members, or sums of their weights, as floats.
    first : array of shape (n_clusters,)
        1.0 for the clusters of the first clustering, 0.0 for the others: P first = 1.
    n_clusterings : int
    n_rows : float
        Number of rows, or the sum of their weights.
    membership : array of shape (n_samples, n_clusters) or None
        The 0/1 matrix P: CSR for NumPy, dense elsewhere.  None for a stream.
    weights : array of shape (n_samples,) or None
        Weights of the rows, all above zero; None if each has weight 1.
    """

    centers: Array
    soft_labels: Array
    sizes: Array
    first: Array
    n_clusterings: int
    n_rows: float
    membership: Array | None = None
    weights: Array | None = None

    @property
    def label_totals(self) -> Array:
        """1^T Y, the sums of the labels over the rows."""
        return (self.first * self.sizes) @ self.soft_labels

    @cached_property
    def roots(self) -> Array | None:
        """Square roots of the weights."""
        return None if self.weights is None else namespace(self.weights).sqrt(self.weights)

    @cached_property
    def scaled_membership(self) -> Array:
        """diag(sqrt(weights)) P, which is P without weights."""
        return self.membership if self.roots is None else scaled_rows(self.membership, self.roots)


def virtual_examples(
    X: Features, signs: Array, assignment: np.ndarray, weights: Array | None = None
) -> VirtualExamples:
    """Average rows and labels over clusters (Eq. 1 and 2).

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    signs : array of shape (n_samples, n_outputs)
        Labels as -1 and +1.
    assignment : ndarray of shape (n_samples, n_clusterings)
        As made by :func:`assign_rows`: every index from 0 to the largest occurs.
    weights : array of shape (n_samples,), default=None
        Row weights, on the device of the rows; means and sizes are then weighted.
    """
    n_clusters = int(assignment.max()) + 1
    membership = P = one_hot(assignment, n_clusters, X)
    # SciPy computes these products in float64 without a copy of the rows.
    rows = X if is_numpy(X) else astype(X, "float64")
    if weights is None:
        n_rows = float(X.shape[0])
        sizes = np.bincount(assignment.ravel(), minlength=n_clusters).astype(np.float64)
        sizes = asarray(sizes, X)
    else:
        n_rows = float(namespace(weights).sum(weights))
        P = scaled_rows(P, weights)
        sizes = column_sums(P)
    first = np.arange(n_clusters) <= assignment[:, 0].max()
    return VirtualExamples(
        centers=dense(P.T @ rows) / sizes[:, None],
        soft_labels=(P.T @ signs) / sizes[:, None],
        sizes=sizes,
        first=asarray(first.astype(np.float64), X),
        n_clusterings=assignment.shape[1],
        n_rows=n_rows,
        membership=membership,
        weights=weights,
    )


def assign_rows(
    X: Features,
    n_clusters: int | Sequence[int] | None,
    clusterer: Any,
    seed: int,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Cluster the rows, once or several times.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        NumPy arrays are clustered by the k-means of scikit-learn, arrays on a device by
        :func:`k_means`.
    n_clusters : int, sequence of int or None
        A sequence gives one clustering per entry.  None means the number that the clusterer is
        configured with (32 for k-means without a clusterer).
    clusterer : scikit-learn clusterer, ndarray of shape (n_clusters, n_features) or None
        None is k-means with k-means++ initialisation; an array contains prototypes, and each row
        belongs to the nearest one.  A clusterer is always fitted on the host.
    seed : int
        The k-th clustering is seeded with the k-th number drawn from it.
    weights : ndarray of shape (n_samples,), default=None
        Row weights, on the host, for k-means and for clusterers whose ``fit`` accepts
        ``sample_weight``.

    Returns
    -------
    ndarray of shape (n_samples, n_clusterings)
        Indices into the stacked clusters; each one occurs.
    """
    counts = split_n_clusters(n_clusters)
    draws = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=len(counts))
    columns: list[np.ndarray] = []
    offset = 0
    for count, draw in zip(counts, draws, strict=True):
        labels = _cluster_once(X, count, clusterer, int(draw), weights)
        columns.append(labels + offset)
        offset += int(labels.max()) + 1
    return np.stack(columns, axis=1)


def split_n_clusters(n_clusters: Any) -> list[int | None]:
    """Check and return the number of clusters of each clustering."""
    if n_clusters is None:
        return [None]
    if isinstance(n_clusters, (numbers.Number, str)):
        return [check_count("n_clusters", n_clusters)]
    counts = [check_count("n_clusters", count) for count in n_clusters]
    if not counts:
        raise ValueError("n_clusters must contain at least one number of clusters, got none")
    return list(counts)


def _cluster_once(
    X: Features,
    n_clusters: int | None,
    clusterer: Any,
    seed: int,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    if clusterer is None:
        return _k_means(X, n_clusters or DEFAULT_N_CLUSTERS, seed, weights)
    if isinstance(clusterer, np.ndarray):
        prototypes = check_prototypes(clusterer, n_clusters, X.shape[1])
        found, labels = np.unique(to_numpy(nearest(X, prototypes)), return_inverse=True)
        warn_if_empty(len(prototypes), len(found))
        return labels
    model = clone(clusterer, safe=False)
    parameters = model.get_params() if hasattr(model, "get_params") else {}
    if n_clusters is not None:
        if "n_clusters" not in parameters:
            raise ValueError(
                f"n_clusters={n_clusters} cannot be set: the clusterer "
                f"{type(model).__name__} has no parameter n_clusters; use n_clusters=None to let "
                "it decide"
            )
        model.set_params(n_clusters=min(n_clusters, X.shape[0]))
    if "random_state" in parameters and parameters["random_state"] is None:
        model.set_params(random_state=seed)
    X = to_numpy(X)
    if weights is not None and has_fit_parameter(model, "sample_weight"):
        model.fit(X, sample_weight=weights)
    else:
        model.fit(X)
    if not hasattr(model, "labels_") and not hasattr(model, "predict"):
        raise ValueError(
            f"the clusterer {type(model).__name__} sets no labels_ in fit and has no predict"
        )
    labels = model.labels_ if hasattr(model, "labels_") else model.predict(X)
    return _compact(labels, X.shape[0], type(model).__name__)


def _k_means(
    X: Features, n_clusters: int, seed: int, weights: np.ndarray | None = None
) -> np.ndarray:
    n_samples = X.shape[0]
    if is_numpy(X):
        # On one thread: the order in which several add up their rows is not even the same from run
        # to run, and a row that is as near to one centre as to another may then change sides.
        with warnings.catch_warnings(), one_thread():
            # Fewer distinct rows than clusters: reported below, with this library's message.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = KMeans(min(n_clusters, n_samples), n_init=1, random_state=seed)
            model.fit(X, sample_weight=weights)
        nearest = model.labels_
    else:
        nearest = k_means(X, min(n_clusters, n_samples), seed, weights)
    found, labels = np.unique(nearest, return_inverse=True)
    if len(found) < n_clusters:
        warnings.warn(
            f"n_clusters={n_clusters} is more than the distinct training rows allow: "
            f"{len(found)} clusters are used",
            ConvergenceWarning,
            stacklevel=2,
        )
    return labels


def check_prototypes(clusterer: np.ndarray, n_clusters: int | None, n_features: int) -> np.ndarray:
    """Check and return prototypes that were passed as the clusterer."""
    check_points("clusterer", clusterer, "n_clusters", n_clusters)
    check_n_features("clusterer", clusterer, n_features)
    return clusterer.astype(np.float64, copy=False)


def check_points(name: str, points: np.ndarray, name_of_count: str, count: int | None) -> None:
    """Raise an error for points, given as an array, that are not so many rows of numbers."""
    numbers_only = points.dtype.kind in "iuf" and np.isfinite(points).all()
    if points.ndim != 2 or not len(points) or not numbers_only:
        raise InvalidArgumentError(
            name,
            "must contain finite numbers, with one point per row, if it is an array; got an array "
            f"of shape {points.shape} and type {points.dtype}",
        )
    if count not in (None, len(points)):
        raise InvalidArgumentError(
            name_of_count, f"is {count}, but {len(points)} rows are passed as {name}: use None"
        )


def check_n_features(name: str, points: np.ndarray, n_features: int) -> None:
    """Raise an error for points with other features than the rows."""
    if points.shape[1] != n_features:
        raise InvalidArgumentError(
            name, f"must have {n_features} features, as the rows have, not {points.shape[1]}"
        )


def nearest(X: Features, prototypes: Array) -> Array:
    """Return the index of the nearest prototype (Euclidean) of each row, on their device."""
    xp, prototypes = namespace(X), asarray(prototypes, X)
    # Around their mean, the products that distances come from are small.  Sparse rows stay put.
    origin = None if sp.issparse(X) else xp.mean(prototypes, axis=0)
    moved = prototypes if origin is None else prototypes - origin
    halves = xp.sum(moved * moved, axis=1) / 2
    parts = []
    entries = block_entries(X) or get_config().nearest_entries
    for block in row_blocks(X.shape[0], max(moved.shape), entries):
        rows = X[block, :] if origin is None else X[block, :] - origin
        parts.append(xp.argmin(halves - rows @ moved.T, axis=1))
    return xp.concat(parts)


def warn_if_empty(n_clusters: int, n_found: int) -> None:
    """Warn if prototypes have no rows; they are not used."""
    if n_found < n_clusters:
        warnings.warn(
            f"{n_clusters - n_found} of {n_clusters} prototypes have no rows: "
            f"{n_found} clusters are used",
            ConvergenceWarning,
            stacklevel=3,
        )


def _compact(labels: Any, n_samples: int, name: str) -> np.ndarray:
    """Check the labels of a clusterer, and number the clusters 0, 1, ...

    A noise row (-1, as from DBSCAN) becomes a cluster with one member: it is its own centre, so
    that the gamma term has no effect on it.
    """
    labels = np.asarray(labels)
    if labels.shape != (n_samples,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"the clusterer {name} must give one integer for each of the {n_samples} rows, got "
            f"an array of shape {labels.shape} and type {labels.dtype}"
        )
    if labels.min() < -1:
        raise ValueError(
            f"the clusterer {name} gave the label {labels.min()}: labels are >= 0, or -1 for noise"
        )
    noise = labels == -1
    if noise.any():
        warnings.warn(
            f"the clusterer {name} marked {noise.sum()} of {n_samples} rows as noise (-1): each of "
            "them becomes a cluster",
            UserWarning,
            stacklevel=2,
        )
        labels = labels.astype(np.int64)
        labels[noise] = labels.max() + 1 + np.arange(noise.sum())
    return np.unique(labels, return_inverse=True)[1]


# k-means on a device.


def k_means(X: Array, n_clusters: int, seed: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Cluster rows.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Of any library.
    n_clusters : int
        At most ``n_samples``.
    seed : int
    weights : ndarray of shape (n_samples,), optional
        On the host; first centres are drawn with chances w d^2, and centres are weighted means.

    Returns
    -------
    ndarray of int, shape (n_samples,)
        The nearest centre of each row, on the host.  Numbers of centres that no row is nearest to
        are missing: there are fewer distinct rows than clusters.
    """
    xp = namespace(X)
    X = X - xp.mean(X, axis=0)  # distances stay, the products they come from shrink
    squares = row_squares(X)
    each = None
    if weights is not None:
        each = xp.astype(asarray(weights, X), X.dtype, copy=False)
    centers = _start(X, squares, n_clusters, np.random.RandomState(seed), each)
    # Of equal rows, one is a centre.
    _, distinct = np.unique(to_numpy(centers), axis=0, return_index=True)
    if len(distinct) < n_clusters:
        centers = take_rows(centers, np.sort(distinct))
    still = TOLERANCE * float(xp.mean(squares)) / X.shape[1]
    return lloyd(X, centers, still, each)


def lloyd(X: Array, centers: Array, still: float = 0.0, weights: Array | None = None) -> np.ndarray:
    """Take Lloyd's steps from given centres until nothing changes, or they are all but still.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Of any library.
    centers : array of shape (n_clusters, n_features)
    still : float
        The steps end when the centres move by no more than this, all together and squared.
    weights : array of shape (n_samples,), optional
        Of the rows, beside them and in their precision.

    Returns
    -------
    ndarray of int, shape (n_samples,)
        The nearest centre of each row, on the host.
    """
    xp, n_clusters = namespace(X), centers.shape[0]
    entries = block_entries(X) or get_config().nearest_entries
    blocks = list(row_blocks(X.shape[0], max(centers.shape), entries))
    numbers = xp.arange(n_clusters, device=X.device)
    before = xp.full((X.shape[0],), -1, dtype=xp.int64, device=X.device)
    for _ in range(MAX_STEPS):
        nearest = _nearest(X, centers, blocks)
        sums, sizes = _sums(X, nearest, numbers, blocks, weights)
        used = sizes[:, None] > 0
        divisors = xp.where(used, sizes[:, None], xp.ones_like(sizes)[:, None])
        moved = xp.where(used, sums / divisors, centers)
        # One value is read back from the device per step.
        news = [xp.astype(xp.any(nearest != before), X.dtype), xp.sum((moved - centers) ** 2)]
        changed, shift = to_numpy(xp.stack(news))
        if not changed:
            return to_numpy(nearest)
        centers, before = moved, nearest
        if shift <= still:
            break
    return to_numpy(_nearest(X, centers, blocks))


def _start(
    X: Array,
    squares: Array,
    n_clusters: int,
    random: np.random.RandomState,
    weights: Array | None = None,
) -> Array:
    """Choose rows as first centres: each the best of a few drawn with chances d^2 (k-means++).

    With weights, the chances are w d^2, and the first centre is drawn with chances w.

    Random numbers are made on the host, all at once; nothing is read back.
    """
    xp, n_samples = namespace(X), X.shape[0]
    n_trials = 2 + int(np.log(n_clusters))
    if weights is None:
        begin = random.randint(n_samples)
    else:
        shares = to_numpy(weights).astype(np.float64)
        begin = random.choice(n_samples, p=shares / shares.sum())
    first = asarray(np.array([begin]), X)
    draws = asarray(random.random_sample((n_clusters, n_trials)), X)
    draws = xp.astype(draws, X.dtype, copy=False)
    # |x - y|^2 as one product: [-2x, |x|^2, 1] . [y, 1, |y|^2].
    ones = xp.ones_like(squares)[:, None]
    left = xp.concat([-2 * X, squares[:, None], ones], axis=1)
    right = xp.concat([X, ones, squares[:, None]], axis=1)
    # The running sums that come with GPU libraries add up in an order that may change from run to
    # run; products with a triangular matrix do not.  So the rows are arranged in a square, filled
    # up with rows at a distance of zero, which are never drawn.
    side = int(np.ceil(np.sqrt(n_samples)))
    rest = xp.zeros((side * side - n_samples, right.shape[1]), dtype=X.dtype, device=X.device)
    right = xp.concat([right, rest], axis=0).T
    if weights is not None:
        # Columns times w: all distances below are then w d^2.
        right = right * xp.concat([weights, rest[:, 0]])
    square = xp.ones((side, side), dtype=X.dtype, device=X.device)
    up_to, before = xp.triu(square), xp.triu(square, k=1)

    # Numbers that are on the device already: others keep it waiting.
    zero = xp.zeros((), dtype=X.dtype, device=X.device)
    last = xp.full((), n_samples - 1, dtype=xp.int64, device=X.device)

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
    return xp.concat([xp.argmin(X[block, :] @ twice + own, axis=1) for block in blocks])


def _sums(
    X: Array, nearest: Array, numbers: Array, blocks: list[slice], weights: Array | None = None
) -> tuple[Array, Array]:
    """Return the (weighted) sum of the rows of each cluster, and their number (weight)."""
    xp = namespace(X)
    sums: Any = 0.0
    sizes: Any = 0.0
    for block in blocks:
        members = xp.astype(nearest[block] == numbers[:, None], X.dtype)
        if weights is not None:
            members = members * weights[block]
        sums = members @ X[block, :] + sums
        sizes = xp.sum(members, axis=1) + sizes
    return sums, sizes
