r"""Feature maps psi, which reduce all models to a linear model.

===========  ===============================================================  ==========
map          psi(x)                                                           for
===========  ===============================================================  ==========
IdentityMap  ``x`` minus the mean of the training rows                        linear
KernelMap    ``diag(lam)^(-1/2) Q^T k(X, x)``, ``K = Q diag(lam) Q^T``        any kernel
NystroemMap  ``diag(lam)^(-1/2) Q^T k(L, x)``, ``k(L, L) = Q diag(lam) Q^T``  any kernel
===========  ===============================================================  ==========

The kernel map is the restriction W = phi(X)^T A of the paper to the span of the training rows: a
linear model W on psi has the scores of A = Q diag(lam)^(-1/2) W on k(X, x).  It is applied to
kernel values.  The Nyström map [1]_ is the kernel map of m landmarks L instead of all rows; with
all rows as landmarks, it is exact.

A fit only needs sums over the rows, which can be added up part by part (:class:`Statistics`), and
the methods of a :data:`FeatureMap`.  An approximation is fitted on a sample of the rows.

References
----------
.. [1] C. K. I. Williams, M. Seeger. "Using the Nyström method to speed up kernel machines."
   NIPS 2000.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._array.array import (
    Array,
    asarray,
    astype,
    dense,
    divided,
    namespace,
    scaled_rows,
    to_numpy,
    transposed,
)
from imcc._array.device import block_entries
from imcc._array.linalg import eigh
from imcc._math.clustering import check_n_features
from imcc._math.kernels import (
    Kernel,
    KernelModel,
    LinearKernel,
    LinearModel,
    WidthKernel,
    final_width,
    moved_by,
    row_blocks,
)
from imcc._math.landmarks import k_means_centers
from imcc._math.sampling import sample_rows, sample_weighted
from imcc._utils.config import get_config
from imcc._utils.validation import Features

# A kernel is indefinite if it has eigenvalues below -INDEFINITE times the largest one.
INDEFINITE = 1e-8


@dataclass(frozen=True)
class Statistics:
    """Sums over rows; ``a + b`` are the sums of the union.

    With row weights w, the sums are weighted: Psi^T diag(w) Psi and so on, P^T w, and sum(w).

    Attributes
    ----------
    gram : array of shape (r, r)
        Psi^T Psi.
    cross : array of shape (r, q)
        Psi^T Y.
    cluster_sums : array of shape (c, r)
        P^T Psi.
    cluster_labels : array of shape (c, q)
        P^T Y.
    sizes : array of shape (c,)
        P^T 1, members of each cluster (or their weights).
    n_rows : float
        Number of rows (or the sum of their weights).
    """

    gram: Array
    cross: Array
    cluster_sums: Array
    cluster_labels: Array
    sizes: Array
    n_rows: float

    @classmethod
    def of_rows(
        cls, psi: Features, signs: Array, membership: Array, weights: Array | None = None
    ) -> Statistics:
        """Sum over the rows of a block (dense, or CSR that is not densified)."""
        ones, n_rows = namespace(signs).ones_like(signs[:, 0]), float(psi.shape[0])
        if weights is not None:
            xp = namespace(weights)
            ones, n_rows = xp.sqrt(weights), float(xp.sum(weights))
            # Scaled on both sides, so that Psi^T Psi is exactly symmetric.
            psi, signs, membership = (scaled_rows(x, ones) for x in (psi, signs, membership))
        return cls(
            gram=dense(psi.T @ psi),
            cross=dense(psi.T @ signs),
            cluster_sums=dense(membership.T @ psi),
            cluster_labels=dense(membership.T @ signs),
            sizes=membership.T @ ones,
            n_rows=n_rows,
        )

    def rotated(self, basis: Array) -> Statistics:
        """Return the sums over the features Psi @ basis."""
        return replace(
            self,
            gram=basis.T @ self.gram @ basis,
            cross=basis.T @ self.cross,
            cluster_sums=self.cluster_sums @ basis,
        )

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        )


def feature_sums(
    feature_map: FeatureMap,
    X: Features,
    signs: Array,
    membership: Array,
    weights: Array | None = None,
) -> Statistics:
    """Sum the values ``feature_map.to_sum`` over rows, in blocks.

    Sums over parts of the rows can be added; ``feature_map.of_sums`` converts them to the sums over
    the features.

    Parameters
    ----------
    feature_map : FeatureMap
    X : array or CSR matrix of shape (n_samples, n_features)
    signs : array of shape (n_samples, q)
    membership : array or CSR matrix of shape (n_samples, c)
        P.
    weights : array of shape (n_samples,), optional
        How often each row counts.
    """
    entries = block_entries(X) or get_config().sum_entries
    total: Statistics | None = None
    for block in row_blocks(X.shape[0], feature_map.entries_per_row(X), entries):
        psi = feature_map.to_sum(X[block, :])
        of_block = None if weights is None else weights[block]
        part = Statistics.of_rows(psi, signs[block, :], membership[block, :], of_block)
        total = part if total is None else total + part
    assert total is not None
    return total


@dataclass(frozen=True)
class IdentityMap:
    """psi(x) = x - shift.

    The model has an unpenalised intercept, so moving the rows changes nothing but the rounding:
    products of centred rows lose fewer digits.  Sparse rows are left where they are.
    """

    shift: Array | None

    @classmethod
    def fit(cls, X: Features) -> IdentityMap:
        """Take the mean of dense rows as the shift."""
        return cls(LinearKernel("linear").origin(X))

    def entries_per_row(self, X: Features) -> int:
        """Return how many numbers a row is; sparse rows stay sparse."""
        return int(X.nnz // X.shape[0]) if sp.issparse(X) else int(X.shape[1])

    def transform(self, X: Features) -> Features:
        """Map rows, in float64."""
        return moved_by(_double(X), self.shift)

    def to_sum(self, X: Features) -> Features:
        """Map rows to what is summed over them: the features."""
        return self.transform(X)

    def of_sums(self, sums: Statistics) -> Statistics:
        """Return the sums over the features, which they are."""
        return sums

    def model(self, weights: Array, intercept: Array) -> LinearModel:
        """Make a model of weights on the features; the intercept takes up the shift."""
        if self.shift is not None:
            intercept = intercept - self.shift @ weights
        return LinearModel(transposed(weights), intercept)


@dataclass(frozen=True)
class KernelMap:
    """The empirical kernel map of the training rows.

    Attributes
    ----------
    basis : array of shape (n_samples, rank)
        Q diag(lam)^(-1/2).
    eigenvalues : array of shape (rank,)
        lam, those at or below ``n * eps * max(lam)`` left out.
    negative : float
        Size of the most negative eigenvalue, relative to the largest: rounding for a kernel, more
        for a similarity that is none.
    """

    basis: Array
    eigenvalues: Array
    negative: float

    @classmethod
    def fit(cls, K: Array) -> KernelMap:
        """Decompose a kernel matrix, which is overwritten."""
        values, vectors = eigh(K)
        on_host = to_numpy(values)
        largest = max(on_host[-1], np.finfo(np.float64).tiny)
        negative = float(max(-on_host[0], 0.0) / largest)
        # The values ascend, so the ones to keep are a tail.
        first = int(np.searchsorted(on_host, len(on_host) * np.finfo(np.float64).eps * largest))
        values, vectors = values[first:], vectors[:, first:]
        # LAPACK's vectors are in Fortran order, which sparse products would copy again and again.
        return cls(divided(vectors, namespace(values).sqrt(values)), values, negative)

    def transform(self, K: Array) -> Array:
        """Map rows given by their kernel values with the training rows, (n_new, n_rows)."""
        return K @ self.basis

    def train_sums(self, weights: Array) -> Array:
        """Return weights @ Psi for the training rows, where Psi = basis * lam."""
        return (weights @ self.basis) * self.eigenvalues


def warn_if_indefinite(negative: float) -> None:
    """Warn if a kernel matrix is indefinite; its negative part is ignored."""
    if negative > INDEFINITE:
        warnings.warn(
            "the kernel is not positive semi-definite: the negative part of its matrix "
            f"({negative:.1g} of the largest eigenvalue) is ignored",
            UserWarning,
            stacklevel=2,
        )


@dataclass(frozen=True)
class NystroemMap:
    """The kernel map of landmarks.

    Attributes
    ----------
    kernel : Kernel
    width : float or None
    origin : array of shape (n_features,) or None
        Subtracted from all rows before the kernel is computed.
    landmarks : array or CSR matrix of shape (m, n_features)
        The landmarks minus the origin.
    basis : array of shape (m, rank)
        Q diag(lam)^(-1/2).
    late : bool
        Whether kernel values are summed and the sums rotated at the end, which saves a product as
        expensive as the sums.  Only if k(L, L) is well-conditioned.
    """

    kernel: Kernel
    width: float | None
    origin: Array | None
    landmarks: Features
    basis: Array
    late: bool

    @classmethod
    def fit(
        cls, kernel: Kernel, width: float | None, origin: Array | None, landmarks: Features
    ) -> NystroemMap:
        """Decompose the kernel matrix of the landmarks."""
        moved = moved_by(landmarks, origin)
        inner = KernelMap.fit(kernel.finish(kernel.base(_double(moved)), width))
        warn_if_indefinite(inner.negative)
        condition = inner.eigenvalues[-1] / inner.eigenvalues[0]
        late = (
            inner.basis.shape[0] == inner.basis.shape[1]
            and condition <= get_config().late_condition
        )
        return cls(kernel, width, origin, moved, inner.basis, bool(late))

    def entries_per_row(self, X: Features) -> int:
        """Return the number of landmarks."""
        return int(self.basis.shape[0])

    def to_sum(self, X: Features) -> Array:
        """Map rows to what is summed over them."""
        values = self._kernel_values(X)
        return values if self.late else values @ self.basis

    def of_sums(self, sums: Statistics) -> Statistics:
        """Turn the sums over :meth:`to_sum` into those over the features."""
        return sums.rotated(self.basis) if self.late else sums

    def transform(self, X: Features) -> Array:
        """Map rows to features, in float64."""
        return self._kernel_values(X) @ self.basis

    def model(self, weights: Array, intercept: Array) -> KernelModel:
        """Return the model with weights of the features, converted to weights of the landmarks."""
        return KernelModel(
            kernel=self.kernel,
            width=self.width,
            origin=self.origin,
            rows=self.landmarks,
            coef=self.basis @ weights,
            intercept=intercept,
        )

    def _kernel_values(self, X: Features) -> Array:
        moved = moved_by(_double(X), self.origin)
        return self.kernel.finish(self.kernel.base(moved, _double(self.landmarks)), self.width)


FeatureMap = IdentityMap | NystroemMap


@dataclass(frozen=True)
class Approximation:
    """The Nyström approximation of a kernel, before it is fitted.

    Attributes
    ----------
    kernel : Kernel
    width : "mean_distance" or float
    n_components : int
        m.
    landmarks : {"kmeans", "random"} or ndarray of shape (m, n_features)
    """

    kernel: Kernel
    width: Any
    n_components: int
    landmarks: Any

    @property
    def sample_size(self) -> int:
        """Number of rows that the map is fitted on."""
        config = get_config()
        return max(config.width_rows, config.rows_per_landmark * self.n_components)

    def choose_landmarks(self, X: Features, seed: int) -> Features:
        """Return the landmarks, on the device of the rows; they do not depend on the kernel.

        They come from a sample.  "random" draws rows; "kmeans" uses k-means centres, which cover
        the rows more evenly.  All rows are used if there are at most ``n_components``.  k-means
        always runs on the host, since the sample is small, so that the landmarks do not depend on
        the device.
        """
        sample = sample_rows(X, self.sample_size, seed)
        if not isinstance(self.landmarks, str):
            check_n_features("landmarks", self.landmarks, sample.shape[1])
            return asarray(self.landmarks, sample)
        if sample.shape[0] <= self.n_components:
            return sample
        if self.landmarks == "random":
            return sample_rows(sample, self.n_components, seed + 1)
        random = np.random.RandomState([seed, 2])
        centers = k_means_centers(to_numpy(sample), self.n_components, random)
        return asarray(np.unique(centers, axis=0), sample)

    def fit(
        self,
        X: Features,
        width_scale: float,
        seed: int,
        landmarks: Features | None = None,
        weights: Array | None = None,
    ) -> NystroemMap:
        """Fit the map on a sample of the rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            The map is of the same library and on the same device.
        width_scale : float
        seed : int
        landmarks : array or CSR matrix, optional
            Result of :meth:`choose_landmarks`, if it was called before.
        weights : array of shape (n,), optional
            Weights of the rows, for the width.
        """
        sample, weights = sample_weighted(X, weights, self.sample_size, seed)
        kernel, width = self.kernel, None
        if isinstance(kernel, WidthKernel):
            width = self.width
            if isinstance(width, str):  # the paper's rule, for a part of the sample
                part, of_part = sample_weighted(sample, weights, get_config().width_rows, seed)
                rows = _double(part)
                width = kernel.mean_distance_of(moved_by(rows, kernel.origin(rows)), of_part)
            width = final_width(width, width_scale, sample.shape[0])
        if landmarks is None:
            landmarks = self.choose_landmarks(sample, seed)
        return NystroemMap.fit(kernel, width, kernel.origin(sample), landmarks)


def _double(X: Features) -> Features:
    return astype(X, "float64")
