"""Landmarks of Nyström's approximation: centres of a few steps of k-means.

With one landmark per few rows, nearly all of the time goes into the nearest centre of each row.
:func:`k_means_centers` finds these on all threads, and adds up rows in their order on one: the
numbers are those of scikit-learn's ``KMeans`` on one thread, whatever the number of threads.
"""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from imcc._array.device import one_thread
from imcc._utils.validation import Features

# Landmarks need to be spread out, not to be the best of all: a few steps from a random start do as
# well as many from k-means++, whose start alone takes longer.
MAX_STEPS = 10
# The steps end when the centres move, all together and squared, by no more than this part of the
# mean variance of the columns.
TOLERANCE = 1e-4


def k_means_centers(X: Features, n_centers: int, random: np.random.RandomState) -> np.ndarray:
    """Return the centres of k-means from a random start, after at most ten steps.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        More rows than centres.
    n_centers : int
    random : RandomState
        Draws the rows that are the first centres.

    Returns
    -------
    ndarray of shape (n_centers, n_features)
        Fewer distinct rows than centres give the same centre twice.
    """
    if sp.issparse(X):
        return _sparse_centers(X, n_centers, random)
    X = np.array(X, order="C")
    still = TOLERANCE * np.mean(np.var(X, axis=0))
    origin = np.mean(X, axis=0)
    X -= origin  # distances stay, the products they come from shrink
    equal = np.ones(X.shape[0], dtype=X.dtype) / X.dtype.type(X.shape[0])
    centers = X[random.choice(X.shape[0], size=n_centers, replace=False, p=equal)]
    return _steps(X, centers, still) + origin


def _sparse_centers(X: Features, n_centers: int, random: np.random.RandomState) -> np.ndarray:
    # On one thread: the order in which several add up their rows is not even the same from run to
    # run.
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(
            n_centers,
            init="random",
            n_init=1,
            max_iter=MAX_STEPS,
            tol=TOLERANCE,
            random_state=random,
        )
        return model.fit(X).cluster_centers_


def _steps(X: np.ndarray, centers: np.ndarray, still: float) -> np.ndarray:
    """Take Lloyd's steps until no row changes its centre, or the centres all but stand still."""
    # scikit-learn computes the nearest centres of 256 rows at a time, on one thread each, so that
    # no row depends on the number of threads.
    assigner = KMeans(1, n_init=1).fit(X[:1])
    before: np.ndarray | None = None
    for _ in range(MAX_STEPS):
        assigner.cluster_centers_ = centers
        nearest = assigner.predict(X)
        moved = _means(X, nearest, centers)
        shift = np.sum((moved - centers) ** 2)
        centers = moved
        if shift <= still or (before is not None and np.array_equal(nearest, before)):
            break
        before = nearest
    return centers


def _means(X: np.ndarray, nearest: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the mean of the rows of each centre, added up in their order."""
    n_samples, n_centers = X.shape[0], centers.shape[0]
    sizes = np.bincount(nearest, minlength=n_centers)
    members = sp.csr_matrix(
        (
            np.ones(n_samples, dtype=X.dtype),
            np.argsort(nearest, kind="stable"),
            np.concatenate([[0], np.cumsum(sizes)]),
        ),
        shape=(n_centers, n_samples),
    )
    sums = members @ X
    if not sizes.all():
        _fill_empty(X, nearest, centers, sums, sizes)
    means = sums * (1.0 / np.maximum(sizes, 1)).astype(X.dtype)[:, None]
    # A centre that is left without rows joins that of the most.
    means[sizes == 0] = means[np.argmax(sizes)]
    return means


def _fill_empty(
    X: np.ndarray, nearest: np.ndarray, centers: np.ndarray, sums: np.ndarray, sizes: np.ndarray
) -> None:
    """Move the rows that are farthest from their centres to the centres without rows, in place."""
    empty = np.flatnonzero(sizes == 0)
    distances = np.sum((X - centers[nearest]) ** 2, axis=1)
    if np.max(distances) == 0:  # fewer distinct rows than centres
        return
    farthest = np.argpartition(distances, -len(empty))[-len(empty) :][::-1]
    for center, row in zip(empty, farthest, strict=True):
        sums[nearest[row]] -= X[row]
        sums[center] = X[row]
        sizes[nearest[row]] -= 1
        sizes[center] = 1
