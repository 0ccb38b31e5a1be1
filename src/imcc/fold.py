r"""One fold of the exact search: every setting of a grid, in one eigenbasis.

The work is arranged by what it depends on (see :mod:`imcc.solver`):

1. the training rows: one eigenbasis;
2. the clustering: the factors V;
3. rho = beta / (1 + gamma): with B = (1 + gamma) (G + rho I), the products V^T B^-1 V and those of
   V with the held-out rows differ between settings of the same rho by a factor only;
4. beta, gamma, alpha: systems of size 2c and c, solved for all alpha in one batch.

In the paper's grid, 49 pairs (beta, gamma) have 34 different rho, because
1 + 10^k = 10^k (1 + 10^-k).  The result is exact: it is what fitting each setting separately gives.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._validation import Features
from imcc.approximations import Approximation
from imcc.features import IdentityMap, KernelMap
from imcc.kernels import Kernel, LinearKernel, choose_width
from imcc.metrics import METRICS, Judge
from imcc.models import approximate_statistics
from imcc.sampling import sample_rows
from imcc.solver import ClusterTerms, Rotation, SpectralProblem, eliminate, kernel_problem
from imcc.virtual import VirtualExamples, virtual_examples


@dataclass(frozen=True)
class Grid:
    """The axes that one fold shares its factorisation over."""

    alphas: np.ndarray
    betas: np.ndarray
    gammas: np.ndarray
    n_clusters: list[Any]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Number of values on each axis."""
        return len(self.alphas), len(self.betas), len(self.gammas), len(self.n_clusters)


@dataclass(frozen=True)
class Fold:
    """One split of the rows."""

    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class FoldResult:
    """What one fold gives for one kernel and width.

    Attributes
    ----------
    values : ndarray of shape (n_metrics, n_alphas, n_betas, n_gammas, n_clusterings)
    fit_seconds, score_seconds : float
        Time spent on solving and on the metrics, for all settings together.
    negative : float
        How far the kernel matrix is from being one (see :class:`imcc.features.KernelMap`).
    """

    values: np.ndarray
    fit_seconds: float
    score_seconds: float
    negative: float


@dataclass(frozen=True)
class _FoldProblem:
    """A fold in its eigenbasis.

    Attributes
    ----------
    problems : list of SpectralProblem
        One for each clustering; eigenvalues and cross are the same in all.
    held_out : ndarray of shape (n_test, r)
        Features of the held-out rows, in the eigenbasis.
    outside : list of ndarray of shape (c, n_test), or None
        For the augmented span: k(Z, x) less what the training rows' span has of it.
    negative : float
        As for :class:`FoldResult`.
    """

    problems: list[SpectralProblem]
    held_out: np.ndarray
    outside: list[np.ndarray] | None = None
    negative: float = 0.0


@dataclass(frozen=True)
class Shared:
    """What all folds and widths of one kernel share.

    Attributes
    ----------
    rows : ndarray or CSR matrix of shape (n_rows, n_features)
        In float64, moved by the kernel's origin.
    signs : ndarray of shape (n_rows, q)
    judged : ndarray of bool, shape (n_rows, q or 2)
        The label sets that scores are judged by.
    kernel : Kernel
    base : ndarray of shape (n_rows, n_rows), or None
        ``kernel.base(rows)``; None for models in the primal.
    approximation : Approximation or None
        What stands in for the kernel, if anything does; the rows are then as given.
    seed : int
        Of the approximation.
    """

    rows: Features
    signs: np.ndarray
    judged: np.ndarray
    kernel: Kernel
    base: np.ndarray | None
    approximation: Approximation | None = None
    seed: int = 0

    @classmethod
    def of(
        cls,
        X: Features,
        signs: np.ndarray,
        judged: np.ndarray,
        kernel: Kernel,
        folds: Sequence[Fold],
        approximation: Approximation | None = None,
        seed: int = 0,
    ) -> Shared:
        """Compute the base once, or decide to do without."""
        if approximation is not None:
            return cls(X, signs, judged, kernel, None, approximation, seed)
        rows = X.astype(np.float64, copy=False)
        origin = IdentityMap.fit(X).shift if isinstance(kernel, LinearKernel) else kernel.origin(X)
        if origin is not None:
            rows = rows - origin
        primal = isinstance(kernel, LinearKernel) and all(
            X.shape[1] < len(fold.train) for fold in folds
        )
        return cls(rows, signs, judged, kernel, None if primal else kernel.base(rows))


def search_fold(
    share: Shared,
    fold: Fold,
    assignments: list[np.ndarray],
    grid: Grid,
    metrics: Sequence[str],
    width: Any,
    width_scale: float,
    span: str,
    landmarks: Features | None = None,
) -> FoldResult:
    """Score the grid on one fold, for one kernel and width.

    Parameters
    ----------
    share : Shared
    fold : Fold
    assignments : list of ndarray of shape (n_train, n_clusterings)
        For every entry of ``grid.n_clusters``, the clusters of the training rows.
    grid : Grid
    metrics : sequence of str
    width, width_scale, span
        As for one fit.
    landmarks : ndarray or CSR matrix, optional
        Those of the fold, for an approximation that has them.
    """
    start = time.perf_counter()
    rows, signs = share.rows[fold.train], share.signs[fold.train]
    virtuals = [virtual_examples(rows, signs, assignment) for assignment in assignments]
    if share.approximation is not None:
        problem = _approximate_problem(share, fold, rows, signs, virtuals, width_scale, landmarks)
    elif share.base is None:
        problem = _feature_problem(rows, share.rows[fold.test], signs, virtuals)
    else:
        problem = _kernel_problem(share, fold, rows, signs, virtuals, width, width_scale, span)
    return _run(problem, Judge(share.judged[fold.test]), grid, metrics, start)


def _kernel_problem(
    share: Shared,
    fold: Fold,
    rows: Features,
    signs: np.ndarray,
    virtuals: list[VirtualExamples],
    width: Any,
    width_scale: float,
    span: str,
) -> _FoldProblem:
    kernel, base = share.kernel, share.base
    assert base is not None
    inner = base[np.ix_(fold.train, fold.train)]
    chosen = choose_width(kernel, inner, width, width_scale)
    kernel_map = KernelMap.fit(kernel.finish(inner, chosen))
    cross = kernel_map.train_sums(signs.T)
    held_out = kernel_map.transform(kernel.finish(base[np.ix_(fold.test, fold.train)], chosen))
    problems, outside = [], []
    for virtual in virtuals:
        centers = virtual.centers
        K_centers = kernel.finish(kernel.base(centers, rows), chosen)
        if span == "train":
            problems.append(kernel_problem(kernel_map, cross, K_centers, virtual))
            continue
        K_between = kernel.finish(kernel.base(centers), chosen)
        K_test = kernel.finish(kernel.base(centers, share.rows[fold.test]), chosen)
        problem = kernel_problem(kernel_map, cross, K_centers, virtual, K_between)
        problems.append(problem)
        outside.append(K_test - problem.factors[: len(centers)] @ held_out.T)
    return _FoldProblem(problems, held_out, outside or None, kernel_map.negative)


def _feature_problem(
    rows: Features, tests: Features, signs: np.ndarray, virtuals: list[VirtualExamples]
) -> _FoldProblem:
    """Set up the linear model in the primal."""
    gram = rows.T @ rows
    rotation = Rotation.of_gram(gram.toarray() if sp.issparse(gram) else gram)
    cross = rows.T @ signs
    problems = [
        # The centres are the means of their members, so the sums over members are sizes * centres.
        rotation.problem(cross, v.centers, v.centers * v.sizes[:, np.newaxis], ClusterTerms.of(v))
        for v in virtuals
    ]
    return _FoldProblem(problems, tests @ rotation.vectors)


def _approximate_problem(
    share: Shared,
    fold: Fold,
    rows: Features,
    signs: np.ndarray,
    virtuals: list[VirtualExamples],
    width_scale: float,
    landmarks: Features | None,
) -> _FoldProblem:
    """Set up the model on the features of an approximate kernel, fitted on the training rows."""
    asked, seed = share.approximation, share.seed
    assert asked is not None
    sample = sample_rows(rows, asked.sample_size, seed)
    feature_map = asked.fit(sample, width_scale, seed, landmarks)
    # One pass over the rows for all clusterings.
    P = sp.hstack([virtual.membership for virtual in virtuals], format="csr")
    sums = approximate_statistics(rows, signs, P, feature_map)
    rotation = Rotation.of_gram(sums.gram)
    ends = np.cumsum([len(virtual.sizes) for virtual in virtuals])
    problems = [
        rotation.problem(
            sums.cross,
            feature_map.transform(virtual.centers),
            sums.cluster_sums[end - len(virtual.sizes) : end],
            ClusterTerms.of(virtual),
        )
        for virtual, end in zip(virtuals, ends, strict=True)
    ]
    return _FoldProblem(problems, feature_map.transform(share.rows[fold.test]) @ rotation.vectors)


def _run(
    fold: _FoldProblem, judge: Judge, grid: Grid, metrics: Sequence[str], start: float
) -> FoldResult:
    """Solve and judge every setting of the grid in the eigenbasis of a fold."""
    values = np.empty((len(metrics), *grid.shape))
    score_seconds = 0.0
    eigenvalues, cross = fold.problems[0].eigenvalues, fold.problems[0].cross
    # The factors of all clusterings in one array: one product for all, and one buffer.
    stacked = np.vstack([problem.factors for problem in fold.problems])
    ends = np.cumsum([len(problem.factors) for problem in fold.problems])
    factors, held_out = np.empty_like(stacked), np.empty_like(fold.held_out)
    for rho, pairs in _pairs_by_rho(grid.betas, grid.gammas).items():
        scale = 1 / np.sqrt(eigenvalues + rho)
        np.multiply(stacked, scale, out=factors)
        np.multiply(fold.held_out, scale, out=held_out)
        labels = cross * scale
        plain, cross_all, reach_all = labels @ held_out.T, factors @ labels.T, factors @ held_out.T
        for k, (problem, end) in enumerate(zip(fold.problems, ends, strict=True)):
            block = slice(end - len(problem.factors), end)
            gram = factors[block] @ factors[block].T
            for i, j in pairs:
                beta, gamma = grid.betas[i], grid.gammas[j]
                corrections, intercepts = eliminate(
                    problem.terms,
                    _with_outside(gram / (1 + gamma), problem, beta),
                    cross_all[block] / (1 + gamma),
                    grid.alphas,
                    gamma,
                )
                scores = _scores(corrections / (1 + gamma), reach_all[block])
                if fold.outside is not None:
                    c = len(fold.outside[k])
                    scores += _scores(corrections[:, :c] / beta, fold.outside[k])
                scores += (plain / (1 + gamma))[:, np.newaxis]
                scores += intercepts.T[:, :, np.newaxis]
                before = time.perf_counter()
                values[:, :, i, j, k] = judge.means(_as_judged(scores, judge), metrics)
                score_seconds += time.perf_counter() - before
    fit_seconds = time.perf_counter() - start - score_seconds
    return FoldResult(values, fit_seconds, score_seconds, fold.negative)


def _pairs_by_rho(betas: np.ndarray, gammas: np.ndarray) -> dict[float, list[tuple[int, int]]]:
    """Group the pairs (beta, gamma), as indices, by rho up to rounding."""
    groups: dict[float, list[tuple[int, int]]] = defaultdict(list)
    for i, beta in enumerate(betas):
        for j, gamma in enumerate(gammas):
            groups[float(f"{beta / (1 + gamma):.13g}")].append((i, j))
    return groups


def _with_outside(gram: np.ndarray, problem: SpectralProblem, beta: float) -> np.ndarray:
    """Add what the centres have outside the span of the rows, where B is beta."""
    if problem.outside is not None:
        c = len(problem.outside)
        gram[:c, :c] += problem.outside / beta
    return gram


def _scores(corrections: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Return C^T reach for every alpha, labels first: (q, n_alphas, n_test)."""
    n_alphas, n_factors, q = corrections.shape
    stacked = corrections.transpose(2, 0, 1).reshape(q * n_alphas, n_factors)
    return (stacked @ reach).reshape(q, n_alphas, -1)


def judged_labels(signs: np.ndarray, kind: str) -> np.ndarray:
    """Return the label sets that scores are judged by.

    A binary 1-D target has one score; it is judged as the ranking of its two classes.
    """
    on = signs > 0
    return np.hstack([~on, on]) if kind == "binary" else on


def check_defined(metrics: Sequence[str], judged: np.ndarray, folds: Sequence[Fold]) -> None:
    """Refuse a metric that no fold has rows for, before any work is done."""
    ranking = [name for name in metrics if METRICS[name].ranked_rows_only]
    if ranking and not any(Judge(judged[fold.test]).ranked.any() for fold in folds):
        raise ValueError(
            f"scoring={ranking[0]!r} is undefined on every fold: each held-out row has either no "
            "label or all of them; use scoring='hamming_loss'"
        )


def _as_judged(scores: np.ndarray, judge: Judge) -> np.ndarray:
    return scores if len(scores) == judge.n_labels else np.concatenate([-scores, scores])
