"""The fitted ensemble: its records, and the scores of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._array.array import Array, asarray, is_numpy, moved_record, namespace, zeros
from imcc._array.device import block_entries
from imcc._math.ensemble.views import View
from imcc._math.kernels import LaplacianKernel, RBFKernel, WidthKernel, row_blocks
from imcc._utils.progress import report_progress
from imcc._utils.validation import Features

#: The kernels that members may have.
KERNELS = ("rbf", "laplacian")
# Kernel values held at a time when rows are scored, 32 MiB.
_SCORE_ENTRIES = 2**22


@dataclass(frozen=True)
class Setting:
    """The selected parameters of a member.

    Attributes
    ----------
    view, kernel : str
    width_scale : float
        The kernel's width as a multiple of the mean distance of the training rows in that view.
    penalty : float
        lambda (beta, for members with virtual examples).
    eta : float
        Coupling of the labels, from 0 (none).
    alpha, gamma : float
        Weights of the virtual examples and of the gamma term of IMCC; 0 without virtual examples.
    n_clusters : int
        Number of virtual examples; 0 without any.
    """

    view: str
    kernel: str
    width_scale: float
    penalty: float
    eta: float = 0.0
    alpha: float = 0.0
    gamma: float = 0.0
    n_clusters: int = 0


@dataclass(frozen=True)
class Member:
    """A fitted member: log-odds ``slope * (k(x, rows) coef + intercept) + offset``.

    Attributes
    ----------
    setting : Setting
    weight : float
        Its share of the ensemble; the shares of all members sum to one.
    width : float
        The kernel's width.
    coef : array of shape (n_anchors, q)
    intercept, slope, offset : array of shape (q,)
    """

    setting: Setting
    weight: float
    width: float
    coef: Array
    intercept: Array
    slope: Array
    offset: Array


@dataclass(frozen=True)
class EnsembleModel:
    """The mean log-odds of some members.

    Attributes
    ----------
    views : tuple of View
        Those that members use.
    anchors : tuple of array or CSR matrix of shape (n_anchors, n_view_features)
        For each view, the training rows (or landmarks) in it.
    members : tuple of Member
    varying : ndarray of int, shape (q,)
        The outputs that members score; all others have the same label in every training row.
    base : array of shape (n_outputs,)
        The log-odds of the smoothed base rates, which are the scores of the other outputs.
    """

    views: tuple[View, ...]
    anchors: tuple[Features, ...]
    members: tuple[Member, ...]
    varying: np.ndarray
    base: Array

    def moved(self, like: Array) -> EnsembleModel:
        """Return the model with its arrays in the library and on the device of another array."""
        return replace(
            self,
            anchors=tuple(asarray(rows, like) for rows in self.anchors),
            members=tuple(moved_record(member, like) for member in self.members),
            base=asarray(self.base, like),
        )

    def log_odds(self, X: Features) -> Array:
        """Return the log-odds of host rows, (n_samples, n_outputs), on the model's device."""
        xp, n = namespace(self.base), X.shape[0]
        out = zeros((n, self.base.shape[0]), self.base) + self.base
        if not self.members:
            return out
        found = zeros((n, len(self.varying)), self.base)
        for member in self.members:
            found = found + member.weight * (member.slope * member.intercept + member.offset)
        n_anchors = self.members[0].coef.shape[0]
        for block in row_blocks(n, n_anchors, block_entries(self.base) or _SCORE_ENTRIES):
            for view, anchors in zip(self.views, self.anchors, strict=True):
                rows = on_host_or_device(view.transform(X[block]), self.base)
                found[block, :] += self._of_view(view.name, rows, anchors)
            report_progress(block.stop, n)
        # By columns: most often all of them.
        if len(self.varying) == out.shape[1]:
            return found
        columns = [out[:, j] for j in range(out.shape[1])]
        for i, j in enumerate(self.varying.tolist()):
            columns[j] = found[:, i]
        return xp.stack(columns, axis=1)

    def _of_view(self, name: str, rows: Features, anchors: Features) -> Array:
        """Sum over the members of a view; kernels share distances, members share kernels."""
        total: Any = 0.0
        for kernel_name in KERNELS:
            members = [
                member
                for member in self.members
                if (member.setting.view, member.setting.kernel) == (name, kernel_name)
            ]
            widths = sorted({member.width for member in members})
            if not widths:
                continue
            kernel = make_kernel(kernel_name)
            base = distances(kernel_name, rows, anchors)
            for i, width in enumerate(widths):
                last = i == len(widths) - 1
                values = kernel.finish(base if last else _copied(base), width)
                coef: Any = 0.0
                for member in members:
                    if member.width == width:
                        coef = coef + member.coef * (member.weight * member.slope)
                total = total + values @ coef
        return total


def make_kernel(name: str) -> WidthKernel:
    """Return one of KERNELS."""
    return RBFKernel(name) if name == "rbf" else LaplacianKernel(name)


def distances(kernel: str, X: Features, Y: Features | None = None) -> Array:
    """Return what a kernel is a function of: squared Euclidean or Manhattan distances.

    For entries of 0 and 1 the two are the same, and the first follow from products, which is much
    faster.
    """
    binary = kernel == "laplacian" and _is_binary(X) and (Y is None or _is_binary(Y))
    return make_kernel("rbf" if binary else kernel).base(X, Y)


def on_host_or_device(rows: Features, like: Array) -> Features:
    """Return host rows where another array is; sparse rows stay sparse on the host."""
    return rows if is_numpy(like) else asarray(rows, like)


def small_indices(X: Features) -> Features:
    """Return sparse rows with 32-bit indices, which scikit-learn's distances need, if they fit."""
    if not sp.issparse(X) or X.indices.dtype == np.int32:
        return X
    if max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return sp.csr_matrix(parts, shape=X.shape)


def _is_binary(X: Features) -> bool:
    values = X.data if sp.issparse(X) else X
    return bool(namespace(values).all((values == 0) | (values == 1)))


def _copied(x: Array) -> Array:
    return namespace(x).asarray(x, copy=True)
