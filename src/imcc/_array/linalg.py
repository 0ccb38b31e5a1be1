"""Factorisations and solvers, with the fastest function of each library."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import blas, lapack

from imcc._array.array import asarray, astype, is_numpy, library, namespace
from imcc._array.device import limited_threads
from imcc._utils.config import get_config

# Entries of dense rows, or of their products with sparse ones, on a device; 512 MiB in float64.
_DENSE_ENTRIES = 2**26


def eigh(A: Any) -> tuple[Any, Any]:
    """Return ascending eigenvalues and eigenvectors; a NumPy matrix is overwritten."""
    if is_numpy(A):
        with limited_threads(A.shape[0]):
            return scipy.linalg.eigh(A, driver="evd", overwrite_a=True, check_finite=False)
    values, vectors = namespace(A).linalg.eigh(A)
    return values, vectors


def solve(A: Any, B: Any) -> Any:
    """Solve A X = B for stacks of matrices.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular.
    """
    # NumPy's solver instead of SciPy's: each has its own thread pool, and in a search, where
    # products and solves alternate thousands of times, two pools take three times as long.
    if is_numpy(A):
        with limited_threads(A.shape[-1]):
            return np.linalg.solve(A, B)
    xp = namespace(A)
    if library(A) == "cupy":  # does not broadcast right-hand sides
        B = xp.broadcast_to(B, (*A.shape[:-2], *B.shape[-2:]))
    try:
        return xp.linalg.solve(A, B)
    except Exception as error:
        if not _is_singular(error):
            raise
        raise np.linalg.LinAlgError("Singular matrix") from error


def _is_singular(error: Exception) -> bool:
    """Return whether an error is the LinAlgError of a library."""
    return type(error).__name__ in ("LinAlgError", "_LinAlgError")


def cholesky(A: Any) -> Any:
    """Return the lower Cholesky factor of a symmetric matrix, which is overwritten.

    Entries above the diagonal are not changed.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix is not positive definite.
    """
    if is_numpy(A):
        # The transpose is the same matrix in the order of LAPACK, so that nothing is copied.
        factorise = lapack.get_lapack_funcs("potrf", (A,))
        with limited_threads(A.shape[0]):
            factor, info = factorise(A.T, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return factor
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    # The libraries would allocate further matrices of the same size.  So the factor is computed one
    # block of columns at a time: subtract the contribution of previous columns, then factorise.
    n, step = A.shape[0], get_config().device_columns
    for start in range(0, n, step):
        end = min(start + step, n)
        if start > 0:
            A[start:, start:end] -= A[start:, :start] @ A[start:end, :start].T
        own = _small_cholesky(A[start:end, start:end])
        A[start:end, start:end] = own
        if end < n:
            A[end:, start:end] = triangular_solve(own, A[end:, start:end].T).T
    return A


def _small_cholesky(A: Any) -> Any:
    xp = namespace(A)
    try:
        factor = xp.linalg.cholesky(A)
    except Exception as error:
        if not _is_singular(error):
            raise
        raise np.linalg.LinAlgError("the matrix is not positive definite") from error
    if not bool(xp.isfinite(factor[-1, -1])):  # CuPy returns NaN instead
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    return factor


def cholesky_solve(factor: Any, B: Any) -> Any:
    """Solve A X = B with the lower Cholesky factor of A."""
    if is_numpy(factor):
        with limited_threads(factor.shape[0]):
            return lapack.dpotrs(factor, B, lower=1)[0]
    return triangular_solve(factor, triangular_solve(factor, B), transposed=True)


def triangular_solve(L: Any, B: Any, transposed: bool = False) -> Any:
    """Solve L X = B, or L^T X = B, for a lower triangular matrix; the upper part is ignored."""
    match library(L):
        case "torch":
            linalg = importlib.import_module("torch.linalg")
            return linalg.solve_triangular(L.T if transposed else L, B, upper=transposed)
        case "cupy":
            linalg = importlib.import_module("cupyx.scipy.linalg")
            return linalg.solve_triangular(L, B, lower=True, trans=int(transposed))
    # The array API has no triangular solver.
    lower = namespace(L).tril(L)
    return solve(lower.T if transposed else lower, B)


def triangular_inverse(L: Any) -> Any:
    """Return the inverse of a lower triangular matrix, which is overwritten.

    Entries above the diagonal are neither used nor meaningful.
    """
    n, step = L.shape[0], get_config().device_columns
    if is_numpy(L):
        invert = lapack.get_lapack_funcs("trtri", (L,))
        with limited_threads(n):
            inverse, info = invert(L, lower=1, overwrite_c=1)
        if info:
            raise np.linalg.LinAlgError("the triangular matrix is singular")
        return inverse
    # One block of rows at a time, in the memory of the matrix: the rows of the inverse before it
    # are known, and [A 0; B C]^-1 = [A^-1 0; -C^-1 B A^-1, C^-1].
    xp = namespace(L)
    for start in range(0, n, step):
        block = slice(start, min(start + step, n))
        one = xp.eye(block.stop - start, dtype=L.dtype, device=L.device)
        own = triangular_solve(L[block, block], one)
        if start > 0:
            before = own @ L[block, :start]
            L[block, :start] = -lower_product(L[:start, :start], before.T, transposed=True).T
        L[block, block] = own
    return L


def lower_product(L: Any, B: Any, transposed: bool = False) -> Any:
    """Return L B, or L^T B, for a lower triangular matrix; the upper part is ignored."""
    if is_numpy(L):
        multiply = blas.get_blas_funcs("trmm", (L, B))
        with limited_threads(L.shape[0]):
            return multiply(1.0, L, B, lower=1, trans_a=int(transposed))
    xp, parts = namespace(L), []
    n, step = L.shape[0], get_config().device_columns
    for start in range(0, n, step):
        block = slice(start, min(start + step, n))
        own = xp.tril(L[block, block])
        if transposed:
            parts.append(own.T @ B[block, :] + L[block.stop :, block].T @ B[block.stop :, :])
        else:
            parts.append(own @ B[block, :] + L[block, :start] @ B[:start, :])
    return xp.concat(parts, axis=0)


def add_products(total: Any, rows: Any) -> Any:
    """Return ``total + rows^T rows`` for ``cholesky``; a NumPy matrix is overwritten.

    Only the half that ``cholesky`` reads is computed.
    """
    if is_numpy(total):
        # As there, the transposed matrices are in the order of LAPACK, so that nothing is copied.
        with limited_threads(total.shape[0]):
            return blas.dsyrk(1.0, rows.T, beta=1.0, c=total.T, lower=1, overwrite_c=1).T
    return total + rows.T @ rows


def squared_columns(L: Any) -> Any:
    """Return the sum of squares of each column of a lower triangular matrix, in float64."""
    xp, parts = namespace(L), []
    # Small blocks on the host: those on the diagonal are copied.
    n, step = L.shape[0], 256 if is_numpy(L) else get_config().device_columns
    for start in range(0, n, step):
        block = slice(start, min(start + step, n))
        own, below = xp.tril(L[block, block]), L[block.stop :, block]
        if is_numpy(L):
            squares = np.einsum("ij,ij->j", below, below)
        else:
            squares = xp.sum(below * below, axis=0)
        parts.append(astype(xp.sum(own * own, axis=0) + squares, "float64"))
    return xp.concat(parts, axis=0)


def symmetric_product(A: Any, B: Any) -> Any:
    """Return A B for a symmetric matrix A."""
    # SciPy's product instead of NumPy's: each has its own thread pool, whose threads stay busy for
    # a while after each call, so that alternating between them is slow.
    return blas.dsymm(1.0, A.T, B, lower=1) if is_numpy(A) else A @ B


def sparse_products(X: Any, Y: Any, like: Any) -> Any:
    """Return X Y^T of CSR matrices as a dense array on the device of another array."""
    if library(like) != "torch":
        return asarray(X, like) @ asarray(Y, like).T
    if Y.shape[0] > X.shape[0]:
        return sparse_products(Y, X, like).T
    torch = importlib.import_module("torch")

    def moved(rows: Any) -> Any:
        parts = [torch.from_numpy(np.array(x)) for x in (rows.indptr, rows.indices, rows.data)]
        with warnings.catch_warnings():
            # That CSR is new in torch, and that it does not check the indices; SciPy did.
            warnings.simplefilter("ignore", UserWarning)
            return torch.sparse_csr_tensor(*parts, size=rows.shape).to(like.device)

    left, dtype = moved(X), torch.from_numpy(np.empty(0, np.result_type(X, Y))).dtype
    out = torch.empty((X.shape[0], Y.shape[0]), dtype=dtype, device=like.device)
    # Some rows of Y are dense at a time, and their products are moved to their place.
    step = max(1, _DENSE_ENTRIES // max(1, *X.shape))
    for start in range(0, Y.shape[0], step):
        block = slice(start, start + step)
        out[:, block] = left @ moved(Y[block]).to_dense().T
    return out
