r"""The closed form of IMCC: one factorisation, followed by computations of rank 2c.

With features Psi of the rows and Psi_z of the centres, labels Y in {-1, +1}, soft labels T, the
membership matrix P and D = P^T P, the objective (Eq. 7 and 16 of the paper) is ::

    1/2 |Psi W + 1b - Y|^2  +  alpha/2 |Psi_z W + 1b - T|^2  +  beta/2 |W|^2
                            +  gamma/2 |Psi W - P Psi_z W|^2

Put G = Psi^T Psi and V = [Psi_z^T, Psi^T P] (r x 2c).  The matrix P Psi_z has only c different
rows, so the last term is gamma (G + V S V^T) with S = [[D, -I], [-I, 0]] of size 2c.  Then ::

    B = (1 + gamma) G + beta I

is the only matrix of size r that is factorised.  The rest is eliminated in three steps:

1. The gamma term, which pulls rows towards the centres::

       B' = B + gamma V S V^T
       V^T B'^-1 [..] = (I + gamma Gv S)^-1 V^T B^-1 [..],    Gv = V^T B^-1 V

2. The virtual examples, through their residuals U = T - 1b - Psi_z W, where G' = V^T B'^-1 V,
   h' = V^T B'^-1 Psi^T Y and g = V^T B'^-1 Psi^T 1::

       (I + alpha G'_zz) U = (T - h'_z) - (1 - g_z) b

3. The intercept::

       (n - 1^T Psi B'^-1 Psi^T 1 + alpha (1 - g_z)^T (I + alpha G'_zz)^-1 (1 - g_z)) b
           = 1^T Y - 1^T Psi B'^-1 Psi^T Y + alpha (1 - g_z)^T (I + alpha G'_zz)^-1 (T - h'_z)

The results are C (2c x q) and b, such that W = B^-1 (Psi^T Y + V C).

Row weights w multiply the first and the last sum.  With R = diag(sqrt(w)) and R Psi, R Y, R P and
R 1 instead of rows, labels, memberships and ones, the objective and the solution have the form
above: D contains the weights of the clusters, n is their sum, and Z and T are weighted means.  A
row of weight 2 is equivalent to two rows.

B depends on beta and gamma only through rho = beta / (1 + gamma): B = (1 + gamma) (G + rho I).
With several clusterings, whose blocks are stacked, gamma is divided evenly among them.

There are three ways to the same solution.  :func:`solve_spectral` uses the eigenbasis of G, in
which B is diagonal: the exact search shares it between all settings, and it never loses accuracy.
:func:`solve_features` (primal) and :func:`solve_kernel` (dual) factorise B for a single setting,
which is faster.  In the dual, W = phi(X)^T A, and with M = (1 + gamma) K + beta I the closed form
reads ::

    A = M^-1 (Y + [J, P] C),        J = K^-1 k(X, Z),

where J contains the coefficients of the projections of the centres on the span of the rows.  K may
be singular (duplicate rows): J is solved with K + eps I and refined, and the missing part of the
centres is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from imcc._array.array import (
    Array,
    add_to_diagonal,
    asarray,
    at_least,
    dense,
    eye,
    namespace,
    scaled_rows,
    trace,
    zeros,
)
from imcc._array.linalg import (
    cholesky,
    cholesky_solve,
    eigh,
    solve,
    symmetric_product,
)
from imcc._math.clustering import VirtualExamples
from imcc._math.maps import KernelMap, Statistics, warn_if_indefinite
from imcc._utils.validation import ExplainedLinAlgError

SOLVERS = ("auto", "cholesky", "spectral")
# Maximum relative difference of sums of the same weights in another order.  Different counts of up
# to 10^11 rows differ by more.
SAME_TOTAL = 1e-11
# eps, relative to the mean diagonal of K: small enough that one or two refinements reach rounding
# precision if eigenvalues of K are above 1e-6, large enough that K + eps I can be factorised.
JITTER = 1e-10
MAX_REFINEMENTS = 4
# Maximum relative influence of the missing part of a centre on the solution.
TOLERANCE = 1e-9


def constant_labels(totals: Array, n_rows: float) -> Array:
    """Return -1.0 or +1.0 for labels of no row or of all rows, and 0.0 for all others.

    The optimum for a constant label has zero coefficients and the constant as intercept.  The
    closed form is linear in the labels, so a fit subtracts the constants from the labels (the
    columns are then exactly zero) and adds them to the intercept.  Otherwise, the scores of these
    labels would have rounding errors, and their order would depend on the number of threads.

    Parameters
    ----------
    totals : array of shape (q,)
        1^T Y, the sums of labels that are -1 and +1, or of their weights.
    n_rows : float
        Number of rows, or the sum of their weights.
    """
    xp = namespace(totals)
    constant = n_rows - xp.abs(totals) <= SAME_TOTAL * n_rows
    return xp.where(constant, xp.sign(totals), xp.zeros_like(totals))


def label_patterns(known: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Group the labels that are known in the same rows.

    Parameters
    ----------
    known : ndarray of bool of shape (n_samples, q)

    Returns
    -------
    list of (rows, labels)
        Indices of the rows of each pattern, and of the labels that are known in just these.
    """
    patterns, pattern_of = np.unique(known, axis=1, return_inverse=True)
    return [
        (np.flatnonzero(patterns[:, p]), np.flatnonzero(pattern_of.ravel() == p))
        for p in range(patterns.shape[1])
    ]


@dataclass(frozen=True)
class Setting:
    """The three weights of the objective."""

    alpha: float
    beta: float
    gamma: float

    def __str__(self) -> str:
        return f"alpha={self.alpha:g}, beta={self.beta:g}, gamma={self.gamma:g}"


def eliminate(
    virtual: VirtualExamples, gram: Array, cross: Array, alphas: np.ndarray, gammas: np.ndarray
) -> tuple[Array, Array]:
    """Eliminate gamma term, virtual examples and intercept, for several settings at once.

    Parameters
    ----------
    virtual : VirtualExamples
    gram : array of shape (g, 2c, 2c)
        Gv = V^T B^-1 V, symmetric, for g pairs of beta and gamma.
    cross : array of shape (g, 2c, q)
        V^T B^-1 Psi^T Y.
    alphas : ndarray of shape (a,)
        On the host; each is used with each pair.
    gammas : ndarray of shape (g,)
        On the host.

    Returns
    -------
    corrections : array of shape (g, a, 2c, q)
        C, such that W = B^-1 (Psi^T Y + V C).
    intercepts : array of shape (g, a, q)
        b.
    """
    xp = namespace(gram)
    sizes, first = virtual.sizes, virtual.first
    c = sizes.shape[0]
    pulled = bool((gammas > 0).any())
    alpha = asarray(alphas, gram)[:, None]
    pull = asarray(gammas * (1.0 / virtual.n_clusterings), gram)[:, None, None]
    # Of V^T B^-1 [Psi_z^T, Psi^T P, Psi^T Y] only these are needed: the centres' block, the sum of
    # all rows, and the labels'.
    of_centers, of_members = gram[:, :, :c], gram[:, :, c:]
    columns = xp.concat([of_centers, of_members @ first[:, None], cross], axis=2)
    if pulled:
        left = xp.concat(
            [pull * (of_centers * sizes - of_members), -pull * of_centers], axis=2
        ) + eye(2 * c, gram)
        columns = solve(left, columns)
    of_centers, of_ones, of_labels = columns[:, :, :c], columns[:, :, c], columns[:, :, c + 1 :]

    slack = 1.0 - of_ones[:, :c]
    systems = eye(c, gram) + alpha[:, :, None] * of_centers[:, None, :c, :]
    right = xp.concat([virtual.soft_labels - of_labels[:, :c, :], slack[:, :, None]], axis=2)
    residuals = solve(systems, right[:, None, :, :])
    by_labels, by_intercept = residuals[..., :-1], residuals[..., -1]

    pulls = xp.sum(slack[:, None, :] * by_intercept, axis=-1)
    below = (virtual.n_rows - of_ones[:, c:] @ first)[:, None] + alpha[:, 0] * pulls
    above = virtual.label_totals - first @ of_labels[:, c:, :]
    above = above[:, None, :] + alpha * (slack[:, None, None, :] @ by_labels)[:, :, 0, :]
    intercepts = above / below[:, :, None]

    spread = intercepts[:, :, None, :]
    weighted = alpha[:, :, None] * (by_labels - by_intercept[..., None] * spread)
    if not pulled:
        return xp.concat([weighted, -first[:, None] * spread], axis=2), intercepts
    fitted = of_labels[:, None, :, :] - of_ones[:, None, :, None] * spread
    fitted += of_centers[:, None, :, :] @ weighted
    near, far, pull = fitted[:, :, :c, :], fitted[:, :, c:, :], pull[..., None]
    corrections = [
        weighted - pull * (sizes[:, None] * near - far),
        pull * near - first[:, None] * spread,
    ]
    return xp.concat(corrections, axis=2), intercepts


def eliminate_one(
    virtual: VirtualExamples, gram: Array, cross: Array, setting: Setting
) -> tuple[Array, Array]:
    """Do the same for a single setting, without the stacked axes; the Gram matrix is averaged."""
    corrections, intercepts = eliminate(
        virtual,
        ((gram + gram.T) / 2)[None, :, :],
        cross[None, :, :],
        np.array([setting.alpha]),
        np.array([setting.gamma]),
    )
    return corrections[0, 0, ...], intercepts[0, 0, ...]


def eigenbasis(gram: Array) -> tuple[Array, Array]:
    """Return the eigenvalues and the eigenvectors E of G = Psi^T Psi.

    Weights in the features are E times those in the eigenbasis.
    """
    values, vectors = eigh(namespace(gram).asarray(gram, copy=True))
    return at_least(values, 0.0), vectors


def kernel_factors(kernel_map: KernelMap, K_centers: Array, virtual: VirtualExamples) -> Array:
    """Return V^T of an exact kernel model in the basis of its map, where G is diagonal.

    Parameters
    ----------
    kernel_map : KernelMap
        Of the training rows.  Rows with weights are given as R K R, with R = diag(sqrt(w)).
    K_centers : array of shape (c, n_rows)
        Kernel values of the centres with the training rows, times R.
    virtual : VirtualExamples
    """
    of_centers = kernel_map.transform(K_centers)
    of_sums = kernel_map.train_sums(virtual.scaled_membership.T)
    return namespace(of_centers).concat([of_centers, of_sums], axis=0)


def solve_spectral(
    eigenvalues: Array, factors: Array, cross: Array, virtual: VirtualExamples, setting: Setting
) -> tuple[Array, Array]:
    """Solve one setting in the eigenbasis of G = Psi^T Psi, where B is diagonal.

    Parameters
    ----------
    eigenvalues : array of shape (r,)
        omega, those of G.
    factors : array of shape (2c, r)
        V^T: the centres' features, then the sums of the rows' features over clusters.
    cross : array of shape (q, r)
        (Psi^T Y)^T.
    virtual : VirtualExamples
    setting : Setting

    Returns
    -------
    weights : array of shape (r, q)
        W, in the eigenbasis.
    intercept : array of shape (q,)
    """
    diagonal = (1 + setting.gamma) * eigenvalues + setting.beta
    scaled = factors / diagonal
    corrections, intercept = eliminate_one(virtual, scaled @ factors.T, scaled @ cross.T, setting)
    return (cross.T + factors.T @ corrections) / diagonal[:, None], intercept


def solve_features(
    sums: Statistics, of_centers: Array, virtual: VirtualExamples, setting: Setting, solver: str
) -> tuple[Array, Array]:
    """Solve one setting for features of which the sums over the rows are known.

    Parameters
    ----------
    sums : Statistics
    of_centers : array of shape (c, r)
        Psi_z.
    virtual : VirtualExamples
    setting : Setting
    solver : {"auto", "cholesky", "spectral"}
        "auto" is Cholesky.

    Returns
    -------
    weights : array of shape (r, q)
    intercept : array of shape (q,)
    """
    xp = namespace(sums.gram)
    factors = xp.concat([of_centers, sums.cluster_sums], axis=0)
    if solver == "spectral":
        eigenvalues, vectors = eigenbasis(sums.gram)
        rotated, intercept = solve_spectral(
            eigenvalues, factors @ vectors, sums.cross.T @ vectors, virtual, setting
        )
        return vectors @ rotated, intercept
    B = (1 + setting.gamma) * sums.gram
    add_to_diagonal(B, setting.beta)
    V = factors.T
    solved = cholesky_solve(cholesky(B), xp.concat([V, sums.cross], axis=1))
    by_factors, by_labels = solved[:, : V.shape[1]], solved[:, V.shape[1] :]
    corrections, intercept = eliminate_one(virtual, V.T @ by_factors, V.T @ by_labels, setting)
    return by_labels + by_factors @ corrections, intercept


def solve_kernel(
    K: Array,
    K_centers: Array,
    signs: Array,
    virtual: VirtualExamples,
    setting: Setting,
    solver: str,
) -> tuple[Array, Array]:
    """Solve one setting of the exact kernel model.

    Rows with weights are scaled by their roots, kernel matrix, labels and coefficients alike.

    Parameters
    ----------
    K : array of shape (n_samples, n_samples)
        Kernel matrix of the training rows, which is overwritten.
    K_centers : array of shape (c, n_samples)
    signs : array of shape (n_samples, q)
    virtual : VirtualExamples
    setting : Setting
    solver : {"auto", "cholesky", "spectral"}
        "auto" is Cholesky, or spectral where that would lose accuracy.

    Returns
    -------
    coef : array of shape (n_samples, q)
        A: scores are k(x, X) A + b.
    intercept : array of shape (q,)
    """
    roots = virtual.roots
    if roots is not None:
        K *= roots[:, None]
        K *= roots
        K_centers, signs = K_centers * roots, scaled_rows(signs, roots)
    coef = None
    if solver != "spectral":
        try:
            coef, intercept = _solve_dual(K, K_centers, signs, virtual, setting)
        except np.linalg.LinAlgError as error:
            if solver == "cholesky":
                raise ExplainedLinAlgError(
                    f"solver='cholesky': {error}; use solver='auto' or 'spectral'"
                ) from error
    if coef is None:
        kernel_map = KernelMap.fit(K)
        warn_if_indefinite(kernel_map.negative)
        inner, intercept = solve_spectral(
            kernel_map.eigenvalues,
            kernel_factors(kernel_map, K_centers, virtual),
            kernel_map.train_sums(signs.T),
            virtual,
            setting,
        )
        coef = kernel_map.basis @ inner
    return (coef if roots is None else scaled_rows(coef, roots)), intercept


def _solve_dual(
    K: Array, K_centers: Array, signs: Array, virtual: VirtualExamples, setting: Setting
) -> tuple[Array, Array]:
    """Return A and b by Cholesky; K is overwritten, unless an error is raised.

    Raises
    ------
    numpy.linalg.LinAlgError
        If K has negative eigenvalues, or is so ill-conditioned that the solution would not be
        accurate to about nine digits.  Use the spectral solver then.
    """
    xp, n, c = namespace(K), K.shape[0], virtual.sizes.shape[0]
    alpha, beta, gamma = setting.alpha, setting.beta, setting.gamma
    inside = zeros((n, c), K)
    if alpha > 0 or gamma > 0:
        inside = _project(K, K_centers, (alpha + gamma * virtual.sizes) / beta)

    M = K
    M *= 1 + gamma
    add_to_diagonal(M, beta)
    factor = cholesky(M)

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

    corrections, intercept = eliminate_one(virtual, gram, cross, setting)
    of_centers, of_members = corrections[:c, :], corrections[c:, :]
    return by_labels + by_members @ of_members + by_centers @ of_centers, intercept


def _project(K: Array, K_centers: Array, weights: Array) -> Array:
    """Return J with K J = k(X, Z), with an accuracy that depends on the weights of the centres.

    With R = k(X, Z) - K J, the missing part of phi(z) in the span of the rows has the squared norm
    r^T K^+ r, measured with K + eps I; times the weight of z, it bounds the relative change of the
    solution.
    """
    xp = namespace(K)
    shifted = xp.asarray(K, copy=True)
    add_to_diagonal(shifted, JITTER * trace(K) / K.shape[0])
    factor = cholesky(shifted)
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
