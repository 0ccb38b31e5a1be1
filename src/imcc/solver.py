r"""The closed form of IMCC: one factorisation, then only work of rank 2c.

With features Psi of the rows and Psi_z of the centres, labels Y in {-1, +1}, soft labels T, the
membership matrix P and D = P^T P, the objective (Eq. 7 and 16 of the paper) is ::

    1/2 |Psi W + 1b - Y|^2  +  alpha/2 |Psi_z W + 1b - T|^2  +  beta/2 |W|^2
                            +  gamma/2 |Psi W - P Psi_z W|^2

Put G = Psi^T Psi and V = [Psi_z^T, Psi^T P] (r x 2c).  The matrix P Psi_z has only c different
rows, so the last term is gamma (G + V S V^T) with S = [[D, -I], [-I, 0]] of size 2c.  Then ::

    B = (1 + gamma) G + beta I

is all there is to factorise, and the rest is eliminated one after the other:

1. The pull towards the centres::

       B' = B + gamma V S V^T
       V^T B'^-1 [..] = (I + gamma Gv S)^-1 V^T B^-1 [..],    Gv = V^T B^-1 V

2. The virtual examples, through their residuals U = T - 1b - Psi_z W, where G' = V^T B'^-1 V,
   h' = V^T B'^-1 Psi^T Y and g = V^T B'^-1 Psi^T 1::

       (I + alpha G'_zz) U = (T - h'_z) - (1 - g_z) b

3. The intercept::

       (n - 1^T Psi B'^-1 Psi^T 1 + alpha (1 - g_z)^T (I + alpha G'_zz)^-1 (1 - g_z)) b
           = 1^T Y - 1^T Psi B'^-1 Psi^T Y + alpha (1 - g_z)^T (I + alpha G'_zz)^-1 (T - h'_z)

What comes out is C (2c x q) and b, such that W = B^-1 (Psi^T Y + V C).

B depends on beta and gamma only through rho = beta / (1 + gamma): B = (1 + gamma) (G + rho I).
With several clusterings (their blocks stacked) gamma is shared out evenly over them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from imcc.features import KernelMap
from imcc.statistics import Statistics
from imcc.virtual import VirtualExamples


@dataclass(frozen=True)
class ClusterTerms:
    """What the elimination needs to know of the clusters, whatever the features.

    Attributes
    ----------
    soft_labels : ndarray of shape (c, q)
        T.
    sizes : ndarray of shape (c,)
        The diagonal of D.
    first : ndarray of shape (c,)
        1.0 for clusters of the first clustering: P first = 1, so Psi^T 1 = Psi^T P first.
    share : float
        1 / number of clusterings.
    n_rows : float
    label_totals : ndarray of shape (q,)
        1^T Y.
    """

    soft_labels: np.ndarray
    sizes: np.ndarray
    first: np.ndarray
    share: float
    n_rows: float
    label_totals: np.ndarray

    @classmethod
    def of(cls, virtual: VirtualExamples) -> ClusterTerms:
        """Read them off virtual examples."""
        sizes, first = virtual.sizes, virtual.first
        return cls(
            soft_labels=virtual.soft_labels,
            sizes=sizes,
            first=first,
            share=1.0 / virtual.assignment.shape[1],
            n_rows=float(first @ sizes),
            label_totals=(first * sizes) @ virtual.soft_labels,
        )


def eliminate(
    terms: ClusterTerms, gram: np.ndarray, cross: np.ndarray, alphas: np.ndarray, gamma: float
) -> tuple[np.ndarray, np.ndarray]:
    """Eliminate pull, virtual examples and intercept, for several alpha at once.

    Parameters
    ----------
    terms : ClusterTerms
    gram : ndarray of shape (2c, 2c)
        Gv = V^T B^-1 V, symmetric.
    cross : ndarray of shape (2c, q)
        V^T B^-1 Psi^T Y.
    alphas : ndarray of shape (a,)
    gamma : float

    Returns
    -------
    corrections : ndarray of shape (a, 2c, q)
        C, such that W = B^-1 (Psi^T Y + V C).
    intercepts : ndarray of shape (a, q)
        b.
    """
    # NumPy's solver, not SciPy's: each brings threads of its own, and in a search, where products
    # and systems take turns thousands of times, the two pools slow each other down threefold.
    c = len(terms.sizes)
    sizes, first = terms.sizes, terms.first
    pull = gamma * terms.share
    # Of V^T B^-1 [Psi_z^T, Psi^T P, Psi^T Y] only these are needed: the centres' block, the sum of
    # all rows, and the labels'.
    columns = np.hstack([gram[:, :c], gram[:, c:] @ first[:, np.newaxis], cross])
    if pull > 0:
        left = np.eye(2 * c)
        left[:, :c] += pull * (gram[:, :c] * sizes - gram[:, c:])
        left[:, c:] -= pull * gram[:, :c]
        columns = np.linalg.solve(left, columns)
    of_centers, of_ones, of_labels = columns[:, :c], columns[:, c], columns[:, c + 1 :]

    slack = 1.0 - of_ones[:c]
    systems = np.eye(c) + alphas[:, np.newaxis, np.newaxis] * of_centers[:c]
    residuals = np.linalg.solve(
        systems, np.column_stack([terms.soft_labels - of_labels[:c], slack])[np.newaxis]
    )
    by_labels, by_intercept = residuals[..., :-1], residuals[..., -1]

    above = terms.label_totals - first @ of_labels[c:] + alphas[:, np.newaxis] * (slack @ by_labels)
    below = terms.n_rows - first @ of_ones[c:] + alphas * (by_intercept @ slack)
    intercepts = above / below[:, np.newaxis]

    weighted = alphas[:, np.newaxis, np.newaxis] * (
        by_labels - by_intercept[..., np.newaxis] * intercepts[:, np.newaxis]
    )
    corrections = np.concatenate(
        [weighted, -first[:, np.newaxis] * intercepts[:, np.newaxis]], axis=1
    )
    if pull > 0:
        fitted = of_labels - of_ones[:, np.newaxis] * intercepts[:, np.newaxis]
        fitted += of_centers @ weighted
        corrections[:, :c] -= pull * (sizes[:, np.newaxis] * fitted[:, :c] - fitted[:, c:])
        corrections[:, c:] += pull * fitted[:, :c]
    return corrections, intercepts


@dataclass(frozen=True)
class SpectralProblem:
    """The problem in the eigenbasis of G = Psi^T Psi, where B is diagonal.

    Attributes
    ----------
    eigenvalues : ndarray of shape (r,)
        omega, those of G.
    factors : ndarray of shape (2c, r)
        V^T: the centres' features, then the sums of the rows' features over clusters.
    cross : ndarray of shape (q, r)
        (Psi^T Y)^T.
    terms : ClusterTerms
    outside : ndarray of shape (c, c) or None
        For the augmented span: K_zz - Psi_z Psi_z^T, the centres' inner products outside the
        span of the rows.  There B is beta.
    """

    eigenvalues: np.ndarray
    factors: np.ndarray
    cross: np.ndarray
    terms: ClusterTerms
    outside: np.ndarray | None = None


def kernel_problem(
    kernel_map: KernelMap,
    cross: np.ndarray,
    K_centers: np.ndarray,
    virtual: VirtualExamples,
    K_between: np.ndarray | None = None,
) -> SpectralProblem:
    """Set up the exact kernel model.

    Parameters
    ----------
    kernel_map : KernelMap
        Of the training rows; there G is diagonal already.
    cross : ndarray of shape (q, r)
        ``kernel_map.train_sums(Y^T)``; it does not depend on the clustering.
    K_centers : ndarray of shape (c, n_rows)
        Kernel values of the centres with the training rows.
    virtual : VirtualExamples
    K_between : ndarray of shape (c, c), optional
        Kernel values between the centres: asks for the augmented span.
    """
    of_centers = kernel_map.transform(K_centers)
    of_sums = kernel_map.train_sums(virtual.membership.T)
    return SpectralProblem(
        eigenvalues=kernel_map.eigenvalues,
        factors=np.vstack([of_centers, of_sums]),
        cross=cross,
        terms=ClusterTerms.of(virtual),
        outside=None if K_between is None else K_between - of_centers @ of_centers.T,
    )


@dataclass(frozen=True)
class Rotation:
    """The eigenbasis of G = Psi^T Psi for features of finite dimension.

    Attributes
    ----------
    eigenvalues : ndarray of shape (r,)
    vectors : ndarray of shape (r, r)
        E: weights in the features are E times those in the eigenbasis.
    """

    eigenvalues: np.ndarray
    vectors: np.ndarray

    @classmethod
    def of_gram(cls, gram: np.ndarray) -> Rotation:
        """Decompose G."""
        values, vectors = scipy.linalg.eigh(gram, driver="evd", check_finite=False)
        return cls(np.maximum(values, 0.0), vectors)

    def problem(
        self,
        cross: np.ndarray,
        of_centers: np.ndarray,
        cluster_sums: np.ndarray,
        terms: ClusterTerms,
    ) -> SpectralProblem:
        """Set up the model on the features.

        Parameters
        ----------
        cross : ndarray of shape (r, q)
            Psi^T Y.
        of_centers : ndarray of shape (c, r)
            Psi_z.
        cluster_sums : ndarray of shape (c, r)
            P^T Psi.
        terms : ClusterTerms
        """
        return SpectralProblem(
            eigenvalues=self.eigenvalues,
            factors=np.vstack([of_centers, cluster_sums]) @ self.vectors,
            cross=cross.T @ self.vectors,
            terms=terms,
        )


def solve_spectral(
    problem: SpectralProblem, alpha: float, beta: float, gamma: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve one setting in the eigenbasis.

    Returns
    -------
    weights : ndarray of shape (r, q)
        W, in the eigenbasis.
    intercept : ndarray of shape (q,)
    outer : ndarray of shape (c, q)
        For the augmented span, the weights on phi(z) less its projection on the span of the rows;
        zero for the paper's span.
    """
    diagonal = (1 + gamma) * problem.eigenvalues + beta
    scaled = problem.factors / diagonal
    gram = scaled @ problem.factors.T
    gram = (gram + gram.T) / 2
    c = len(problem.terms.sizes)
    if problem.outside is not None:
        gram[:c, :c] += problem.outside / beta
    corrections, intercepts = eliminate(
        problem.terms, gram, scaled @ problem.cross.T, np.array([alpha]), gamma
    )
    right = problem.cross.T + problem.factors.T @ corrections[0]
    weights = right / diagonal[:, np.newaxis]
    outer = corrections[0, :c] * (0.0 if problem.outside is None else 1 / beta)
    return weights, intercepts[0], outer


def solve_primal(
    sums: Statistics,
    of_centers: np.ndarray,
    terms: ClusterTerms,
    alpha: float,
    beta: float,
    gamma: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Solve one setting for features of which the statistics are known, by Cholesky.

    Parameters
    ----------
    sums : Statistics
    of_centers : ndarray of shape (c, r)
        Psi_z.
    terms : ClusterTerms
    alpha, beta, gamma : float

    Returns
    -------
    weights : ndarray of shape (r, q)
    intercept : ndarray of shape (q,)
    """
    B = (1 + gamma) * sums.gram
    B[np.diag_indices_from(B)] += beta
    factor = scipy.linalg.cho_factor(B, lower=True, overwrite_a=True, check_finite=False)
    V = np.vstack([of_centers, sums.cluster_sums]).T
    solved = scipy.linalg.cho_solve(factor, np.hstack([V, sums.cross]), check_finite=False)
    by_factors, by_labels = solved[:, : V.shape[1]], solved[:, V.shape[1] :]
    gram = V.T @ by_factors
    corrections, intercepts = eliminate(
        terms, (gram + gram.T) / 2, V.T @ by_labels, np.array([alpha]), gamma
    )
    return by_labels + by_factors @ corrections[0], intercepts[0]
