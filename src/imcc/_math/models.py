"""Fitted models: records of arrays that compute scores of rows.

They are made by :mod:`imcc._math.fitting`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from imcc._array.array import Array, is_numpy, namespace
from imcc._array.device import block_entries
from imcc._math.kernels import Kernel, row_blocks
from imcc._utils.config import get_config
from imcc._utils.progress import report_progress
from imcc._utils.validation import Features

SOLVERS = ("auto", "cholesky", "spectral")
#: Remedy if the exact kernel model does not fit into memory.
REMEDY = (
    "use approximation='nystroem', whose memory is not quadratic in the number of rows, or fewer "
    "rows"
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

    @property
    def width(self) -> None:
        """There is no width."""

    @property
    def coefficients(self) -> dict[str, Array]:
        """The coefficients, by the names they have as attributes of an estimator."""
        return {"coef_": self.coef}

    def scores(self, X: Features) -> Array:
        """Return the scores of rows, (n_samples, q), in the precision of the rows."""
        xp = namespace(X)
        dtype = _computing_dtype(X, X.dtype)
        weights, intercept = (
            xp.astype(part, dtype, copy=False) for part in (self.coef.T, self.intercept)
        )
        if X.dtype == dtype:
            return X @ weights + intercept
        out = xp.tile(xp.astype(intercept, X.dtype), (X.shape[0], 1))
        for block in row_blocks(X.shape[0], X.shape[1], get_config().score_entries):
            out[block, :] = xp.astype(X[block, :], dtype) @ weights + intercept
        return out


@dataclass(frozen=True)
class KernelModel:
    """Scores k(x, X) A + b.

    Attributes
    ----------
    kernel : Kernel
    width : float or None
    origin : array of shape (n_features,) or None
        Subtracted from all rows before the kernel is computed.
    rows : array or CSR matrix of shape (n_samples, n_features)
        The training rows minus the origin.
    coef : array of shape (n_samples, q)
    intercept : array of shape (q,)
    """

    kernel: Kernel
    width: float | None
    origin: Array | None
    rows: Features
    coef: Array
    intercept: Array

    @property
    def coefficients(self) -> dict[str, Array]:
        """The coefficients, by the names they have as attributes of an estimator."""
        return {"dual_coef_": self.coef}

    def scores(self, X: Features) -> Array:
        """Return the scores of rows, (n_samples, q), in the precision of the rows."""
        xp = namespace(self.rows)
        given = xp.result_type(X.dtype, self.rows.dtype)
        dtype = _computing_dtype(self.rows, given)
        rows, coef = (xp.astype(part, dtype, copy=False) for part in (self.rows, self.coef))
        out = xp.tile(xp.astype(self.intercept, given, copy=False), (X.shape[0], 1))
        entries = block_entries(self.rows) or get_config().score_entries
        for block in row_blocks(X.shape[0], self.rows.shape[0], entries):
            moved = moved_by(xp.astype(X[block, :], dtype, copy=False), self.origin)
            values = self.kernel.finish(self.kernel.base(moved, rows), self.width)
            out[block, :] += values @ coef
            report_progress(block.stop, X.shape[0])
        return out


Model = LinearModel | KernelModel


def _computing_dtype(like: Array, given: Any) -> Any:
    """Return the dtype in which rows are scored: float64 on the host, the given one on a device.

    Scores are often small differences of large terms, for which the digits of float32 are too few;
    on many devices, float64 is much slower.
    """
    return namespace(like).float64 if is_numpy(like) else given


def moved_by(X: Features, origin: Array | None) -> Features:
    """Return rows minus an origin in their precision; unchanged if the origin is None."""
    return X if origin is None else X - namespace(X).astype(origin, X.dtype)
