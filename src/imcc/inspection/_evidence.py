r"""The weight of each training label in a score.

The closed-form solution is linear in the labels Y and in the soft labels T.  With rows Psi and
centres Psi_z, a column of ones appended to each, and the symmetric matrix M of the normal
equations ::

    score(x)  =  psi(x)^T M^-1 (Psi^T Y + alpha Psi_z^T T)
              =  sum_i a_i y_i + sum_k b_k t_k,

    a = Psi u,    b = alpha Psi_z u,    M u = psi(x)

so that one solve with the right-hand side psi(x) gives the weights of all rows and centres, which
are the values of the function with coefficients u at these points.  The weights do not depend on
the label, and they sum to one: labels that are all +1 are reproduced by W = 0, b = 1 without loss.
The term that pulls rows towards their centres has no target; it only affects the weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from imcc._math.clustering import VirtualExamples
from imcc._math.maps import KernelMap
from imcc._math.models import Setting
from imcc._math.solver import ClusterTerms, Rotation, eliminate_one


@dataclass(frozen=True)
class EvidenceProblem:
    """The training rows and centres in the eigenbasis of G = Psi^T Psi.

    Attributes
    ----------
    eigenvalues : ndarray of shape (r,)
    rows : ndarray of shape (n_samples, r)
        Psi.
    centers : ndarray of shape (c, r)
        Psi_z.
    sums : ndarray of shape (c, r)
        P^T Psi.
    terms : ClusterTerms
    setting : Setting
    """

    eigenvalues: np.ndarray
    rows: np.ndarray
    centers: np.ndarray
    sums: np.ndarray
    terms: ClusterTerms
    setting: Setting

    def weights(self, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of rows and centres in the scores of new rows.

        Parameters
        ----------
        new : ndarray of shape (m, r)
            psi of the new rows.

        Returns
        -------
        of_rows : ndarray of shape (m, n_samples)
        of_centers : ndarray of shape (m, c)
        """
        alpha, beta, gamma = self.setting.alpha, self.setting.beta, self.setting.gamma
        c, m = len(self.centers), len(new)
        diagonal = (1 + gamma) * self.eigenvalues + beta
        factors = np.vstack([self.centers, self.sums])
        scaled = factors / diagonal
        gram = scaled @ factors.T
        gram = (gram + gram.T) / 2
        cross = scaled @ new.T
        # The right-hand side is psi(x) and a one: zero soft labels, and a sum of labels of 1.
        terms = replace(self.terms, soft_labels=np.zeros((c, m)), label_totals=np.ones(m))
        corrections, intercept = eliminate_one(terms, gram, cross, alpha, gamma)
        solution = (new.T + factors.T @ corrections) / diagonal[:, np.newaxis]
        at_rows = self.rows @ solution + intercept
        at_centers = self.centers @ solution + intercept
        return at_rows.T, alpha * at_centers.T


def kernel_evidence(
    kernel_map: KernelMap,
    K_centers: np.ndarray,
    virtual: VirtualExamples,
    setting: Setting,
) -> EvidenceProblem:
    """Set up the exact kernel model; see :func:`imcc._math.solver.kernel_problem`."""
    of_centers = kernel_map.transform(K_centers)
    return EvidenceProblem(
        eigenvalues=kernel_map.eigenvalues,
        rows=kernel_map.basis * kernel_map.eigenvalues,
        centers=of_centers,
        sums=kernel_map.train_sums(virtual.membership.T),
        terms=ClusterTerms.of(virtual),
        setting=setting,
    )


def feature_evidence(
    psi: np.ndarray, psi_centers: np.ndarray, virtual: VirtualExamples, setting: Setting
) -> tuple[EvidenceProblem, np.ndarray]:
    """Set up a model on finite-dimensional features; also return the eigenbasis, shape (d, r)."""
    rotation = Rotation.of_gram(psi.T @ psi)
    rows = psi @ rotation.vectors
    return (
        EvidenceProblem(
            eigenvalues=rotation.eigenvalues,
            rows=rows,
            centers=psi_centers @ rotation.vectors,
            sums=virtual.membership.T @ rows,
            terms=ClusterTerms.of(virtual),
            setting=setting,
        ),
        rotation.vectors,
    )
