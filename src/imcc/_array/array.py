"""Library of an array, and differences between the libraries.

The rest of imcc uses the names of the Python array API.  Differences between the libraries are
handled only here, in :mod:`imcc._array.device` and in :mod:`imcc._array.linalg`:

=================  ================================  =======================================
operation          NumPy                             torch, CuPy, array_api_strict
=================  ================================  =======================================
namespace          NumPy                             array-api-compat
eigenvectors       LAPACK ``evd``, in place          function of the library
Cholesky, solves   LAPACK and BLAS, in place         function of the library
membership         CSR matrix                        dense 0/1 matrix
blocks             size of the cache of a core       large, limited by the free memory
=================  ================================  =======================================

NumPy arrays and SciPy sparse matrices need no package other than NumPy and SciPy.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.optional import require

Array = Any  # an array of any of the libraries

#: The libraries whose arrays are used directly; all others are converted to NumPy.
LIBRARIES = ("torch", "cupy", "array_api_strict")


class _Numpy:
    """NumPy with the names of the array API, some of which NumPy 1.26 lacks."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    concat = staticmethod(np.concatenate)
    permute_dims = staticmethod(np.transpose)

    @staticmethod
    def astype(x: Any, dtype: Any, copy: bool = True) -> Any:
        return x.astype(dtype, copy=copy)

    @staticmethod
    def asarray(x: Any, copy: bool = False) -> np.ndarray:
        return np.array(x) if copy else np.asarray(x)

    @staticmethod
    def matrix_transpose(x: np.ndarray) -> np.ndarray:
        return np.swapaxes(x, -1, -2)


_NUMPY = _Numpy()


def library(x: Any) -> str:
    """Return the name of the library of an array; "numpy" for all that is converted to NumPy."""
    name = type(x).__module__.partition(".")[0]
    return name if name in LIBRARIES else "numpy"


def is_numpy(x: Any) -> bool:
    """Whether an array is, or will be converted to, a NumPy or SciPy array."""
    return library(x) == "numpy"


def namespace(x: Any) -> Any:
    """Return the array API namespace of an array."""
    if is_numpy(x):
        return _NUMPY
    compat = require("array_api_compat", f"an array of {library(x)}")
    return compat.array_namespace(x)


# Moving arrays.


def to_numpy(x: Any) -> Any:
    """Copy an array to the host; NumPy and SciPy arrays are returned unchanged."""
    match library(x):
        case "torch":
            return x.detach().cpu().numpy()
        case "cupy":
            return x.get()
        case "array_api_strict":
            return np.from_dlpack(x)
    return x


def asarray(values: Any, like: Any, dtype: str | None = None) -> Any:
    """Return values as an array in the library and on the device of another array.

    Parameters
    ----------
    values : array of any library, sequence or number
        Sparse matrices become dense, except for NumPy.
    like : array
        Determines library and device.
    dtype : str, default=None
        Name of the dtype ("float64", ...); None keeps that of the values.
    """
    if is_numpy(like):
        return to_numpy(values) if dtype is None else np.asarray(to_numpy(values), dtype=dtype)
    xp = namespace(like)
    if library(values) == library(like):
        values = to_device(values, like)
        return values if dtype is None else xp.astype(values, getattr(xp, dtype), copy=False)
    host = to_numpy(values)
    host = host.toarray() if sp.issparse(host) else np.asarray(host, dtype=dtype)
    # A copy, because the libraries may share memory with NumPy arrays, which may be read-only.
    return to_device(xp.asarray(np.array(host)), like)


def to_device(x: Any, like: Any) -> Any:
    """Move an array to the device of another array of the same library."""
    compat = require("array_api_compat", f"an array of {library(x)}")
    where = compat.device(like)
    return x if compat.device(x) == where else compat.to_device(x, where)


def moved_record(record: Any, like: Any) -> Any:
    """Return a dataclass with all arrays in the library and on the device of another array.

    Nested dataclasses are converted as well.
    """
    moved = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if is_dataclass(value):
            moved[field.name] = moved_record(value, like)
        elif isinstance(value, np.ndarray) or sp.issparse(value) or not is_numpy(value):
            moved[field.name] = asarray(value, like)
    return replace(record, **moved)


# Making arrays.


def zeros(shape: tuple[int, ...], like: Any) -> Any:
    """Return float64 zeros in the library and on the device of another array."""
    if is_numpy(like):
        return np.zeros(shape)
    xp = namespace(like)
    return xp.zeros(shape, dtype=xp.float64, device=like.device)


def eye(n: int, like: Any) -> Any:
    """Return the float64 identity matrix in the library and on the device of another array."""
    if is_numpy(like):
        return np.eye(n)
    xp = namespace(like)
    return xp.eye(n, dtype=xp.float64, device=like.device)


def astype(x: Any, dtype: str) -> Any:
    """Return an array (or CSR matrix) with a dtype, without a copy if it already has it."""
    xp = namespace(x)
    return xp.astype(x, getattr(xp, dtype), copy=False)


def signs(on: Any) -> Any:
    """Return 1.0 where a boolean array is True and -1.0 elsewhere."""
    return np.where(on, 1.0, -1.0) if is_numpy(on) else 2.0 * astype(on, "float64") - 1.0


def one_hot(assignment: Any, n_columns: int, like: Any) -> Any:
    """Return the 0/1 matrix with a one for each (row, entry of the row).

    Parameters
    ----------
    assignment : array of int of shape (n_samples, n_clusterings)
        On the host or on the device of ``like``; the entries of a row are distinct.
    n_columns : int
    like : array
        Determines library and device: a CSR matrix for NumPy, otherwise a dense one.
    """
    n_rows, n_entries = assignment.shape
    if is_numpy(like):
        starts = np.arange(0, assignment.size + 1, n_entries)
        return sp.csr_array(
            (np.ones(assignment.size), assignment.ravel(), starts), shape=(n_rows, n_columns)
        )
    xp = namespace(like)
    columns = xp.arange(n_columns, device=like.device)
    out = zeros((n_rows, n_columns), like)
    for k in range(n_entries):
        entries = asarray(assignment[:, k], like, "int64")
        out += xp.astype(entries[:, None] == columns, xp.float64)
    return out


def dense(x: Any) -> Any:
    """Return a dense array; SciPy matrices are converted."""
    return x.toarray() if sp.issparse(x) else x


def side_by_side(parts: list[Any]) -> Any:
    """Concatenate matrices horizontally: a CSR matrix for NumPy, otherwise a dense one."""
    if is_numpy(parts[0]):
        return sp.hstack(parts, format="csr")
    return namespace(parts[0]).concat(parts, axis=1)


def transposed(x: Any) -> Any:
    """Return a transpose to be kept; for NumPy with rows next to each other in memory."""
    return np.ascontiguousarray(x.T) if is_numpy(x) else x.T


def take(x: Any, index: Any, axis: int) -> Any:
    """Return entries along an axis by non-negative indices on the device of the array."""
    if library(x) == "torch":
        # array-api-compat would check for negative indices, with three more calls.
        return importlib.import_module("torch").index_select(x, axis, index)
    return namespace(x).take(x, index, axis=axis)


def take_rows(x: Any, rows: np.ndarray) -> Any:
    """Return a copy of some rows by their indices on the host."""
    return x[rows] if is_numpy(x) else take(x, asarray(rows, x), 0)


def submatrix(x: Any, rows: np.ndarray, columns: np.ndarray) -> Any:
    """Return a copy of the submatrix of some rows and columns."""
    if is_numpy(x):
        return x[np.ix_(rows, columns)]
    return take(take_rows(x, rows), asarray(columns, x), 1)


# Arithmetic, in place where the library supports it.


def divided(x: Any, scale: Any) -> Any:
    """Return x / scale in C order."""
    return np.divide(x, scale, order="C") if is_numpy(x) else x / scale


def scaled_rows(x: Any, factors: Any) -> Any:
    """Return a dense array or CSR matrix with rows multiplied by factors of shape (n_rows,)."""
    if not sp.issparse(x):
        return x * factors[:, None]
    out = x.copy()
    out.data = out.data * np.repeat(factors, np.diff(out.indptr))
    return out


def exp_in_place(x: Any) -> None:
    """Overwrite an array with its exponential."""
    if is_numpy(x):
        np.exp(x, out=x)
    elif library(x) == "torch":
        x.exp_()
    else:
        x[...] = namespace(x).exp(x)


def at_least(x: Any, bound: float) -> Any:
    """Return the elementwise maximum of an array and a number."""
    if is_numpy(x):
        return np.maximum(x, bound)
    # The number is created on the device, because copying it there would synchronise.
    xp = namespace(x)
    return xp.maximum(x, xp.full((), bound, dtype=x.dtype, device=x.device))


def clip_in_place(x: Any) -> None:
    """Overwrite the negative entries of an array with zeros."""
    if is_numpy(x):
        np.maximum(x, 0, out=x)
    elif library(x) == "torch":
        x.clamp_(min=0)
    else:
        x[...] = at_least(x, 0.0)


def add_to_diagonal(x: Any, value: Any) -> None:
    """Add a number to the diagonal of a square matrix, in place."""
    if is_numpy(x):
        x[np.diag_indices_from(x)] += value
    elif library(x) == "torch":
        x.diagonal().add_(value)
    else:
        for block, own in _diagonal_blocks(x):
            x[block, block] = own + value * eye(own.shape[0], x)


def zero_diagonal(x: Any) -> None:
    """Put zeros on the diagonal of a square matrix."""
    if is_numpy(x):
        np.fill_diagonal(x, 0)
    elif library(x) == "torch":
        x.fill_diagonal_(0)
    else:
        for block, own in _diagonal_blocks(x):
            x[block, block] = own * (1.0 - eye(own.shape[0], x))


def _diagonal_blocks(x: Any, size: int = 1024) -> Iterator[tuple[slice, Any]]:
    for start in range(0, x.shape[0], size):
        block = slice(start, min(start + size, x.shape[0]))
        yield block, x[block, block]


def mean_of_rows(x: Any) -> Any:
    """Return the mean of the rows of a dense array, in float64."""
    if is_numpy(x):
        return x.mean(axis=0, dtype=np.float64)
    xp = namespace(x)
    return xp.mean(astype(x, "float64"), axis=0)


def column_sums(x: Any) -> Any:
    """Return the sum of the rows of a dense array or CSR matrix, in float64."""
    if is_numpy(x):
        return np.asarray(x.sum(axis=0, dtype=np.float64)).ravel()
    return namespace(x).sum(astype(x, "float64"), axis=0)


def column_squares(x: Any) -> Any:
    """Return the sum of the squares of each column of a dense array or CSR matrix, in float64."""
    if sp.issparse(x):
        return np.bincount(x.indices, weights=x.data.astype(np.float64) ** 2, minlength=x.shape[1])
    if is_numpy(x):
        return np.einsum("ij,ij->j", x, x).astype(np.float64)
    return astype(namespace(x).sum(x * x, axis=0), "float64")


def trace(x: Any) -> float:
    """Return the sum of the diagonal."""
    return float(np.trace(x) if is_numpy(x) else namespace(x).linalg.trace(x))


def row_squares(x: Any) -> Any:
    """Return the squared length of each row of a dense array."""
    return np.einsum("ij,ij->i", x, x) if is_numpy(x) else namespace(x).sum(x * x, axis=1)


def sum_of_squares(x: Any) -> float:
    """Return the sum of the squares of all entries; infinite where that overflows.

    Squares are taken in the precision of the array, sums over rows in float64.
    """
    with np.errstate(over="ignore"):
        if is_numpy(x):
            stored = x.data if sp.issparse(x) else x.ravel()
            return float(np.dot(stored, stored))
        return float(namespace(x).sum(row_squares(x)))
