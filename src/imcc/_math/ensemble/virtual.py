"""Members with virtual examples, evaluated on the same folds as ridge regression."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from imcc._array.array import Array, divided, is_numpy, namespace, take_rows
from imcc._math.clustering import VirtualExamples, assign_rows, virtual_examples
from imcc._math.ensemble.held_out import FoldRidge, put_rows
from imcc._math.ensemble.model import distances, make_kernel
from imcc._math.maps import KernelMap
from imcc._math.search.folds import Fold
from imcc._math.solver import kernel_problem, solve_dual, solve_spectral
from imcc._utils.validation import Features

#: What is tried for members with virtual examples, for each kernel.
ALPHAS = (0.1, 1.0, 10.0)
GAMMAS = (0.1, 1.0)
N_CLUSTERS = (16, 64)

Weights = tuple[float, float, float, int]  # alpha, beta, gamma, n_clusters


def cluster(rows: Features, signs: Array, n_clusters: int, seed: int) -> VirtualExamples:
    """Cluster rows of a view; fewer distinct rows than clusters give fewer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assignment = assign_rows(rows, min(n_clusters, rows.shape[0]), None, seed)
    return virtual_examples(rows, signs, assignment)


def held_out_grid(
    rows: Features,
    signs: Array,
    folds: list[Fold],
    ridge: FoldRidge,
    kernel: str,
    width: float,
    betas: list[float],
    seed: int,
) -> Iterator[tuple[Weights, Array]]:
    """Yield settings with the scores of all rows, each from the model of the fold without it.

    The folds' eigendecompositions are those of ridge regression.
    """
    settings = [
        (alpha, beta, gamma, count)
        for count in N_CLUSTERS
        for beta in betas
        for gamma in GAMMAS
        for alpha in ALPHAS
    ]
    parts: list[list[Array]] = [[] for _ in settings]
    # One fold at a time: its basis is as large as its kernel matrix.
    for fold, own, across in zip(folds, ridge.ridges, ridge.across, strict=True):
        kernel_map = _kernel_map(own.spectrum.values, own.spectrum.vectors)
        train, y = take_rows(rows, fold.train), take_rows(signs, fold.train)
        cross, tests = kernel_map.train_sums(y.T), kernel_map.transform(across)
        problems = {}
        for count in N_CLUSTERS:
            virtual = cluster(train, y, count, seed)
            K_centers = make_kernel(kernel).finish(distances(kernel, virtual.centers, train), width)
            problems[count] = kernel_problem(kernel_map, cross, K_centers, virtual)
        for found, (alpha, beta, gamma, count) in zip(parts, settings, strict=True):
            W, b = solve_spectral(problems[count], alpha, beta, gamma)
            found.append(tests @ W + b)
    held_out = [fold.test for fold in folds]
    for setting, found in zip(settings, parts, strict=True):
        yield setting, put_rows(found, held_out, tuple(signs.shape))


def fit_one(
    rows: Features,
    signs: Array,
    K: Array,
    kernel: str,
    width: float,
    weights: Weights,
    seed: int,
) -> tuple[Array, Array]:
    """Fit one setting; return coefficients (n, q) and intercepts (q,).

    Cholesky factorisation is used, or the eigenbasis where that would lose accuracy (duplicate
    rows).  K is overwritten.
    """
    alpha, beta, gamma, count = weights
    virtual = cluster(rows, signs, count, seed)
    K_centers = make_kernel(kernel).finish(distances(kernel, virtual.centers, rows), width)
    try:
        return solve_dual(K, K_centers, signs, virtual, alpha, beta, gamma)
    except np.linalg.LinAlgError:
        kernel_map = KernelMap.fit(K)
    problem = kernel_problem(kernel_map, kernel_map.train_sums(signs.T), K_centers, virtual)
    W, intercept = solve_spectral(problem, alpha, beta, gamma)
    return kernel_map.basis @ W, intercept


def _kernel_map(values: Array, vectors: Array) -> KernelMap:
    """Return the kernel map of an eigendecomposition that is known."""
    xp = namespace(values)
    on_host = np.asarray(values) if is_numpy(values) else None
    largest = float(values[-1])
    bound = values.shape[0] * np.finfo(np.float64).eps * largest
    first = (
        int(np.searchsorted(on_host, bound, side="right"))
        if on_host is not None
        else int(xp.sum(xp.astype(values <= bound, xp.int64)))
    )
    values, vectors = values[first:], vectors[:, first:]
    return KernelMap(divided(vectors, xp.sqrt(values)), values, 0.0)
