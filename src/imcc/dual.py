r"""One setting of the exact kernel model, by Cholesky: no eigenvectors needed.

In the dual, W = phi(X)^T A, and with M = (1 + gamma) K + beta I the closed form of
:mod:`imcc.solver` reads ::

    A = M^-1 (Y + [J, P] C),        J = K^-1 k(X, Z),

where J holds the coefficients of the centres' projections on the span of the rows.  So a fit is a
Cholesky factorisation of M and one of K.  K may be singular (rows that occur twice): J is solved
with K + eps I and refined, and the part of the centres that is missed is measured.
For the augmented span no J is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack

from imcc.solver import ClusterTerms, eliminate
from imcc.virtual import VirtualExamples

# eps, relative to the mean diagonal of K: small enough for a refinement or two to reach rounding
# where K has eigenvalues above 1e-6, large enough for K + eps I to be factorised always.
JITTER = 1e-10
MAX_REFINEMENTS = 4
# Largest influence on the solution, relative, that a missed part of a centre may have.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class DualSolution:
    """Coefficients of the exact kernel model.

    Attributes
    ----------
    coef : ndarray of shape (n_rows, q)
        A: scores are k(x, X) A + k(x, Z) A_z + b.
    center_coef : ndarray of shape (c, q)
        A_z: zero for the paper's span.
    intercept : ndarray of shape (q,)
    """

    coef: np.ndarray
    center_coef: np.ndarray
    intercept: np.ndarray


def solve_dual(
    K: np.ndarray,
    K_centers: np.ndarray,
    signs: np.ndarray,
    virtual: VirtualExamples,
    alpha: float,
    beta: float,
    gamma: float,
    K_between: np.ndarray | None = None,
) -> DualSolution:
    """Solve one setting.

    Parameters
    ----------
    K : ndarray of shape (n_rows, n_rows)
        Kernel matrix of the training rows.  It is overwritten, except when an error is raised.
    K_centers : ndarray of shape (c, n_rows)
    signs : ndarray of shape (n_rows, q)
    virtual : VirtualExamples
    alpha, beta, gamma : float
    K_between : ndarray of shape (c, c), optional
        Kernel values between the centres: asks for the augmented span.

    Raises
    ------
    numpy.linalg.LinAlgError
        If K has negative eigenvalues, or is so ill-conditioned that the solution would not be
        good to about nine digits: the spectral solver is then the one to use.
    """
    n, c = K.shape[0], len(virtual.sizes)
    terms = ClusterTerms.of(virtual)
    inside = np.zeros((n, c))
    if K_between is None and (alpha > 0 or gamma > 0):
        inside = _project(K, K_centers, (alpha + gamma * terms.sizes) / beta)

    M = K
    M *= 1 + gamma
    M[np.diag_indices_from(M)] += beta
    factor = _factorise(M)

    P = virtual.membership.toarray()
    first_block = inside if K_between is None else K_centers.T
    solved = _solve(factor, np.hstack([first_block, P, signs]))
    by_centers, by_members, by_labels = np.split(solved, [c, 2 * c], axis=1)

    # V^T B^-1 V, from K J = k(X, Z) and K M^-1 = (I - beta M^-1) / (1 + gamma).
    gram = np.empty((2 * c, 2 * c))
    gram[:c, :c] = K_centers @ by_centers
    if K_between is not None:
        gram[:c, :c] = (K_between - (1 + gamma) * gram[:c, :c]) / beta
    gram[:c, c:] = K_centers @ by_members
    gram[c:, :c] = gram[:c, c:].T
    members = virtual.membership.T
    gram[c:, c:] = (members @ P - beta * (members @ by_members)) / (1 + gamma)
    cross = np.vstack(
        [K_centers @ by_labels, (members @ signs - beta * (members @ by_labels)) / (1 + gamma)]
    )

    corrections, intercepts = eliminate(terms, (gram + gram.T) / 2, cross, np.array([alpha]), gamma)
    of_centers, of_members = corrections[0, :c], corrections[0, c:]
    coef = by_labels + by_members @ of_members
    if K_between is None:
        coef += by_centers @ of_centers
        return DualSolution(coef, np.zeros((c, signs.shape[1])), intercepts[0])
    coef -= ((1 + gamma) / beta) * (by_centers @ of_centers)
    return DualSolution(coef, of_centers / beta, intercepts[0])


def _project(K: np.ndarray, K_centers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return J with K J = k(X, Z), good enough for the weights that the centres have.

    With R = k(X, Z) - K J, the part of phi(z) within the span of the rows that J misses has the
    squared norm r^T K^+ r, measured with K + eps I; times the weight of z, it bounds the relative
    change of the solution.
    """
    factor = _factorise(_with_jitter(K))
    inside = _solve(factor, K_centers.T)
    for _ in range(MAX_REFINEMENTS):
        # SciPy's product, not NumPy's: the two have threads of their own that keep a core busy for
        # a while after each call, and slow each other down when they take turns.
        residual = K_centers.T - blas.dsymm(1.0, K.T, inside, lower=1)
        step = _solve(factor, residual)
        influence = float(np.max(weights * np.einsum("ij,ij->j", residual, step)))
        inside += step
        if influence < TOLERANCE:
            return inside
    raise np.linalg.LinAlgError(
        "the kernel matrix is too ill-conditioned for a Cholesky factorisation: "
        f"the solution would be off by about {influence:.0e} of its size"
    )


def _with_jitter(K: np.ndarray) -> np.ndarray:
    shifted = K.copy()
    shifted[np.diag_indices_from(shifted)] += JITTER * np.trace(K) / len(K)
    return shifted


def _factorise(A: np.ndarray) -> np.ndarray:
    """Return the lower Cholesky factor of a symmetric matrix in C order, in place."""
    # Its transpose is the same matrix in LAPACK's order: nothing is copied.
    factor, info = lapack.dpotrf(A.T, lower=1, clean=0, overwrite_a=1)
    if info != 0:
        raise np.linalg.LinAlgError("the kernel matrix is not positive semi-definite")
    return factor


def _solve(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    solved, _ = lapack.dpotrs(factor, right, lower=1)
    return solved
