"""Fitted models: from rows, labels and virtual examples to coefficients, and from rows to scores.

Here the pieces meet: kernel or feature map, statistics, solver.  Arrays in, arrays out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._backend.array import Array, astype, namespace, transposed
from imcc._backend.device import block_entries, require_memory
from imcc._core.approximations import FourierMap, NystroemMap
from imcc._core.dual import solve_dual
from imcc._core.features import IdentityMap, KernelMap, warn_if_indefinite
from imcc._core.kernels import Kernel, LinearKernel, choose_width, row_blocks
from imcc._core.solver import ClusterTerms, Rotation, kernel_problem, solve_primal, solve_spectral
from imcc._core.statistics import Statistics
from imcc._core.virtual import VirtualExamples
from imcc._utils.validation import Features, check_finite_result

SOLVERS = ("auto", "cholesky", "spectral")
SPANS = ("train", "augmented")
# Kernel values held at a time when rows are scored: large enough for fast products, 32 MiB.
SCORE_ENTRIES = 2**22
# Features held at a time when they are summed over rows, 64 MiB.
SUM_ENTRIES = 2**23
# n x n matrices that an exact fit holds at a time, by solver, as measured: the kernel matrix and
# its factor, or the kernel matrix, its eigenvectors and what their computation needs.
FIT_MATRICES = {"auto": 2.2, "cholesky": 2.2, "spectral": 6.0}
#: What to do when the exact kernel model does not fit.
REMEDY = (
    "use approximation='nystroem', whose memory does not grow with the square of the rows, fewer "
    "rows, or NumPy's arrays and device=None for the memory of the host"
)


@dataclass(frozen=True)
class Setting:
    """The three weights of the objective."""

    alpha: float
    beta: float
    gamma: float

    def __str__(self) -> str:
        return f"alpha={self.alpha:g}, beta={self.beta:g}, gamma={self.gamma:g}"


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

    def scores(self, X: Features) -> Array:
        """Return the scores of rows, (n_rows, q), in the precision of the rows."""
        xp = namespace(X)
        weights, intercept = (xp.astype(part, X.dtype) for part in (self.coef.T, self.intercept))
        return X @ weights + intercept


@dataclass(frozen=True)
class KernelModel:
    """Scores k(x, X) A + k(x, Z) A_z + b.

    Attributes
    ----------
    kernel : Kernel
    width : float or None
    origin : array of shape (n_features,) or None
        Subtracted from all rows before they meet the kernel.
    rows : array or CSR matrix of shape (n_rows, n_features)
        The training rows, moved by the origin.
    centers : array of shape (c, n_features) or None
        The centres, moved likewise; None for the paper's span, where A_z = 0.
    coef : array of shape (n_rows, q)
    center_coef : array of shape (c, q) or None
    intercept : array of shape (q,)
    """

    kernel: Kernel
    width: float | None
    origin: Array | None
    rows: Features
    centers: Array | None
    coef: Array
    center_coef: Array | None
    intercept: Array

    def scores(self, X: Features) -> Array:
        """Return the scores of rows, (n_rows, q), in the precision of the rows."""
        xp = namespace(self.rows)
        dtype = xp.result_type(X.dtype, self.rows.dtype)
        parts = [(self.rows, self.coef)]
        if self.centers is not None and self.center_coef is not None:
            parts.append((self.centers, self.center_coef))
        parts = [
            (xp.astype(rows, dtype, copy=False), xp.astype(coef, dtype, copy=False))
            for rows, coef in parts
        ]
        intercept = xp.astype(self.intercept, dtype, copy=False)
        out = xp.tile(intercept, (X.shape[0], 1))
        entries = block_entries(self.rows) or SCORE_ENTRIES
        for block in row_blocks(X.shape[0], self.rows.shape[0], entries):
            moved = _moved(xp.astype(X[block, :], dtype, copy=False), self.origin)
            for rows, coef in parts:
                values = self.kernel.finish(self.kernel.base(moved, rows), self.width)
                out[block, :] += values @ coef
        return out


@dataclass(frozen=True)
class FourierModel:
    """Scores psi(x) W + b for random Fourier features psi.

    Attributes
    ----------
    feature_map : FourierMap
    coef : array of shape (q, n_components)
        W^T.
    intercept : array of shape (q,)
    """

    feature_map: FourierMap
    coef: Array
    intercept: Array

    @property
    def width(self) -> float:
        """The kernel's width."""
        return self.feature_map.width

    def scores(self, X: Features) -> Array:
        """Return the scores of rows, (n_rows, q), in the precision of the rows."""
        xp = namespace(self.coef)
        coef = xp.astype(self.coef.T, X.dtype, copy=False)
        out = xp.tile(xp.astype(self.intercept, X.dtype), (X.shape[0], 1))
        entries = block_entries(self.coef) or SCORE_ENTRIES
        for block in row_blocks(X.shape[0], coef.shape[0], entries):
            out[block, :] += self.feature_map.transform(X[block, :]) @ coef
        return out


Model = LinearModel | KernelModel | FourierModel


def check_model(
    model: Model, setting: Setting, X: Features | None = None, names: Any = None
) -> None:
    """Refuse a model that is not finite, and say what it comes from."""
    parts = (model.coef, model.intercept, getattr(model, "center_coef", None))
    for part in parts:
        if part is not None:
            check_finite_result(
                part, f"the coefficients of the model with {setting}", X=X, names=names
            )


def fit_linear(
    X: Features, signs: Array, virtual: VirtualExamples, setting: Setting, solver: str
) -> LinearModel:
    """Fit psi(x) = x.

    In the primal (d x d) when there are fewer features than rows, otherwise as a kernel model with
    K = X X^T (n x n).
    """
    n_rows, n_features = X.shape
    feature_map = IdentityMap.fit(X)
    if n_features >= n_rows:
        _require_room(X, solver)
        rows = feature_map.transform(X)
        centers = feature_map.transform(virtual.centers)
        kernel = LinearKernel("linear")
        coef, _, intercept = _solve_kernel(
            kernel.base(rows), kernel.base(centers, rows), None, signs, virtual, setting, solver
        )
        weights = rows.T @ coef
    else:
        problem = linear_statistics(X, signs, virtual, feature_map)
        of_centers = feature_map.transform(virtual.centers)
        terms = ClusterTerms.of(virtual)
        weights, intercept = solve_features(problem, of_centers, terms, setting, solver)
    if feature_map.shift is not None:
        intercept = intercept - feature_map.shift @ weights
    return LinearModel(transposed(weights), intercept)


def linear_statistics(
    X: Features, signs: Array, virtual: VirtualExamples, feature_map: IdentityMap
) -> Statistics:
    """Sum over the rows, block by block: no moved copy of all of X is made."""
    P = virtual.membership
    if sp.issparse(X):
        return Statistics.of_rows(feature_map.transform(X), signs, P)
    blocks = row_blocks(X.shape[0], X.shape[1], block_entries(X))
    parts = (
        Statistics.of_rows(feature_map.transform(X[b, :]), signs[b, :], P[b, :]) for b in blocks
    )
    total = next(parts)
    for part in parts:
        total = total + part
    return total


def solve_features(
    sums: Statistics,
    of_centers: Array,
    terms: ClusterTerms,
    setting: Setting,
    solver: str,
) -> tuple[Array, Array]:
    """Return W and b for features of which the sums are known; "auto" is Cholesky."""
    weights = (setting.alpha, setting.beta, setting.gamma)
    if solver != "spectral":
        return solve_primal(sums, of_centers, terms, *weights)
    rotation = Rotation.of_gram(sums.gram)
    problem = rotation.problem(sums.cross, of_centers, sums.cluster_sums, terms)
    rotated, intercept, _ = solve_spectral(problem, *weights)
    return rotation.vectors @ rotated, intercept


def fit_approximate(
    X: Features,
    signs: Array,
    virtual: VirtualExamples,
    setting: Setting,
    feature_map: NystroemMap | FourierMap,
    solver: str,
) -> KernelModel | FourierModel:
    """Fit the model on the features of an approximate kernel, summing over blocks of rows."""
    sums = approximate_statistics(X, signs, virtual.membership, feature_map)
    weights, intercept = solve_features(
        sums, feature_map.transform(virtual.centers), ClusterTerms.of(virtual), setting, solver
    )
    return approximate_model(feature_map, weights, intercept)


def approximate_statistics(
    X: Features, signs: Array, P: Array, feature_map: NystroemMap | FourierMap
) -> Statistics:
    """Sum the features of an approximate kernel over the rows, block by block."""
    blocks = row_blocks(X.shape[0], feature_map.n_summed, block_entries(X) or SUM_ENTRIES)
    parts = (Statistics.of_rows(feature_map.to_sum(X[b, :]), signs[b, :], P[b, :]) for b in blocks)
    return feature_map.of_sums(sum(parts, start=next(parts)))


def approximate_model(
    feature_map: NystroemMap | FourierMap, weights: Array, intercept: Array
) -> KernelModel | FourierModel:
    """Make a model of weights on features; Nyström's become those of the landmarks."""
    if isinstance(feature_map, FourierMap):
        return FourierModel(feature_map, transposed(weights), intercept)
    m = feature_map
    coef = m.basis @ weights
    return KernelModel(m.kernel, m.width, m.origin, m.landmarks, None, coef, None, intercept)


def fit_kernel(
    X: Features,
    signs: Array,
    virtual: VirtualExamples,
    setting: Setting,
    *,
    kernel: Kernel,
    width: Any,
    width_scale: float,
    span: str,
    solver: str,
) -> KernelModel:
    """Fit the exact kernel model.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
    signs : array of shape (n_rows, q)
    virtual : VirtualExamples
    setting : Setting
    kernel : Kernel
    width : "mean_distance" or float
    width_scale : float
    span : {"train", "augmented"}
    solver : {"auto", "cholesky", "spectral"}
    """
    if solver == "auto" and not kernel.is_semidefinite:
        solver = "spectral"
    _require_room(X, solver)
    origin = kernel.origin(X)
    kept = _moved(X, origin)
    rows, centers = astype(kept, "float64"), _moved(virtual.centers, origin)
    base = kernel.base(rows)
    chosen = choose_width(kernel, base, width, width_scale)
    K = kernel.finish(base, chosen)
    K_centers = kernel.finish(kernel.base(centers, rows), chosen)
    K_between = kernel.finish(kernel.base(centers), chosen) if span == "augmented" else None
    coef, center_coef, intercept = _solve_kernel(
        K, K_centers, K_between, signs, virtual, setting, solver
    )
    if span == "train":
        return KernelModel(kernel, chosen, origin, kept, None, coef, None, intercept)
    return KernelModel(kernel, chosen, origin, kept, centers, coef, center_coef, intercept)


def _solve_kernel(
    K: Array,
    K_centers: Array,
    K_between: Array | None,
    signs: Array,
    virtual: VirtualExamples,
    setting: Setting,
    solver: str,
) -> tuple[Array, Array, Array]:
    """Return A, A_z and b; "auto" is Cholesky, and spectral where that would lose digits."""
    weights = (setting.alpha, setting.beta, setting.gamma)
    if solver != "spectral":
        try:
            solution = solve_dual(K, K_centers, signs, virtual, *weights, K_between)
            return solution.coef, solution.center_coef, solution.intercept
        except np.linalg.LinAlgError as error:
            if solver == "cholesky":
                raise np.linalg.LinAlgError(
                    f"solver='cholesky': {error}; use solver='auto' or 'spectral'"
                ) from error
    kernel_map = KernelMap.fit(K)
    warn_if_indefinite(kernel_map.negative)
    cross = kernel_map.train_sums(signs.T)
    problem = kernel_problem(kernel_map, cross, K_centers, virtual, K_between)
    inner, intercept, outer = solve_spectral(problem, *weights)
    # phi(z) outside the span is phi(z) less its projection, which the rows express.
    inner = inner - problem.factors[: outer.shape[0], :].T @ outer
    return kernel_map.basis @ inner, outer, intercept


def _require_room(X: Features, solver: str) -> None:
    n_bytes = 8.0 * FIT_MATRICES[solver] * X.shape[0] ** 2
    require_memory(n_bytes, X, f"the exact model of {X.shape[0]} rows", REMEDY)


def _moved(X: Features, origin: Array | None) -> Features:
    return X if origin is None else X - namespace(X).astype(origin, X.dtype)
