r"""A single setting of the exact kernel model by Cholesky factorisation, without eigenvectors.

In the dual, W = phi(X)^T A, and with M = (1 + gamma) K + beta I the closed form of
:mod:`imcc._core.solver` reads ::

    A = M^-1 (Y + [J, P] C),        J = K^-1 k(X, Z),

where J contains the coefficients of the projections of the centres on the span of the rows.  A fit
needs a Cholesky factorisation of M and one of K.  K may be singular (duplicate rows): J is solved
with K + eps I and refined, and the missing part of the centres is measured.

For rows with weights w and R = diag(sqrt(w)), the same holds with R K R, k(Z, X) R, R Y and R P
instead of K, k(Z, X), Y and P; the coefficients of the rows are then R A.
"""

from __future__ import annotations

import numpy as np

from imcc._backend.array import Array, add_to_diagonal, dense, namespace, trace, zeros
from imcc._backend.linalg import cholesky, cholesky_solve, symmetric_product
from imcc._core.clustering import VirtualExamples
from imcc._core.solver import ClusterTerms, eliminate_one

# eps, relative to the mean diagonal of K: small enough that one or two refinements reach rounding
# precision if eigenvalues of K are above 1e-6, large enough that K + eps I can be factorised.
JITTER = 1e-10
MAX_REFINEMENTS = 4
# Maximum relative influence of the missing part of a centre on the solution.
TOLERANCE = 1e-9


def solve_dual(
    K: Array,
    K_centers: Array,
    signs: Array,
    virtual: VirtualExamples,
    alpha: float,
    beta: float,
    gamma: float,
) -> tuple[Array, Array]:
    """Solve a single setting.

    If ``virtual`` has weights, K, K_centers and signs are those of rows scaled by the square roots
    of their weights.

    Parameters
    ----------
    K : array of shape (n_samples, n_samples)
        Kernel matrix of the training rows.  It is overwritten, unless an error is raised.
    K_centers : array of shape (c, n_samples)
    signs : array of shape (n_samples, q)
    virtual : VirtualExamples
    alpha, beta, gamma : float

    Returns
    -------
    coef : array of shape (n_samples, q)
        A: scores are k(x, X) A + b.
    intercept : array of shape (q,)

    Raises
    ------
    numpy.linalg.LinAlgError
        If K has negative eigenvalues, or is so ill-conditioned that the solution would not be
        accurate to about nine digits.  Use the spectral solver then.
    """
    xp, n, c = namespace(K), K.shape[0], virtual.sizes.shape[0]
    terms = ClusterTerms.of(virtual)
    inside = zeros((n, c), K)
    if alpha > 0 or gamma > 0:
        inside = _project(K, K_centers, (alpha + gamma * terms.sizes) / beta)

    M = K
    M *= 1 + gamma
    add_to_diagonal(M, beta)
    factor = _factorise(M)

    P = dense(virtual.scaled_membership)
    solved = cholesky_solve(factor, xp.concat([inside, P, signs], axis=1))
    by_centers, by_members, by_labels = solved[:, :c], solved[:, c : 2 * c], solved[:, 2 * c :]

    # V^T B^-1 V, from K J = k(X, Z) and K M^-1 = (I - beta M^-1) / (1 + gamma).
    gram = zeros((2 * c, 2 * c), K)
    gram[:c, :c] = K_centers @ by_centers
    gram[:c, c:] = K_centers @ by_members
    gram[c:, :c] = gram[:c, c:].T
    members = virtual.scaled_membership.T
    gram[c:, c:] = (members @ P - beta * (members @ by_members)) / (1 + gamma)
    of_members = (members @ signs - beta * (members @ by_labels)) / (1 + gamma)
    cross = xp.concat([K_centers @ by_labels, of_members], axis=0)

    corrections, intercept = eliminate_one(terms, (gram + gram.T) / 2, cross, alpha, gamma)
    of_centers, of_members = corrections[:c, :], corrections[c:, :]
    return by_labels + by_members @ of_members + by_centers @ of_centers, intercept


def _project(K: Array, K_centers: Array, weights: Array) -> Array:
    """Return J with K J = k(X, Z), with an accuracy that depends on the weights of the centres.

    With R = k(X, Z) - K J, the missing part of phi(z) in the span of the rows has the squared norm
    r^T K^+ r, measured with K + eps I; times the weight of z, it bounds the relative change of the
    solution.
    """
    xp = namespace(K)
    factor = _factorise(_with_jitter(K))
    inside = cholesky_solve(factor, K_centers.T)
    for _ in range(MAX_REFINEMENTS):
        residual = K_centers.T - symmetric_product(K, inside)
        step = cholesky_solve(factor, residual)
        influence = float(xp.max(weights * xp.sum(residual * step, axis=0)))
        inside += step
        if influence < TOLERANCE:
            return inside
    raise np.linalg.LinAlgError(
        "the kernel matrix is too ill-conditioned for a Cholesky factorisation: "
        f"the relative error of the solution would be about {influence:.0e}"
    )


def _with_jitter(K: Array) -> Array:
    shifted = namespace(K).asarray(K, copy=True)
    add_to_diagonal(shifted, JITTER * trace(K) / K.shape[0])
    return shifted


def _factorise(A: Array) -> Array:
    try:
        return cholesky(A)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError("the kernel matrix is not positive semi-definite") from error
