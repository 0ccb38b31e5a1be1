r"""The scores of the held-out rows for all settings of a grid, in one eigenbasis.

The computation is ordered by what its parts depend on (see :mod:`imcc._math.solver`):

1. training rows: one eigenbasis;
2. clustering: the factors V;
3. rho = beta / (1 + gamma): with B = (1 + gamma) (G + rho I), the products V^T B^-1 V and those of
   V with the held-out rows differ only by a factor between settings with the same rho;
4. beta, gamma, alpha: systems of size 2c and c, solved for all alpha in one batch.

In the grid of the paper, 49 pairs (beta, gamma) have 34 different rho, because
1 + 10^k = 10^k (1 + 10^-k).  The result is exact: it is the same as for separate fits.

The CPU processes one rho and one pair (beta, gamma) at a time, so that the data stay in the cache.
A device processes as many at a time as its memory allows.

Labels that are equal, opposite or constant in the training rows are solved for once.  The closed
form is linear in the labels and centred: for columns y with entries -1 and +1, the scores of -y are
minus those of y, the scores of equal columns are equal, and those of a constant column are that
constant (W = 0 with b = +1 or -1 is optimal for every term of the objective).  Computed separately,
such scores differ by rounding errors of about 1e-15, which depend on the number of threads, and
ranking metrics would not see the ties.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from imcc._array.array import Array, asarray, namespace, take, take_rows
from imcc._math.clustering import VirtualExamples
from imcc._math.kernels import Kernel
from imcc._math.solver import eliminate
from imcc._utils.validation import check_number

# Index of a rho in its batch, and indices of a beta and a gamma.
Pair = tuple[int, int, int]


@dataclass(frozen=True)
class Grid:
    """The axes of a search.

    Attributes
    ----------
    alphas, betas, gammas : ndarray
    n_clusters : list
    kernels : list of (object, Kernel)
        Each kernel as passed by the user, and the corresponding :class:`Kernel`.
    width_scales : list of float
        Only used for kernels that have a width.
    """

    alphas: np.ndarray
    betas: np.ndarray
    gammas: np.ndarray
    n_clusters: list[Any]
    kernels: list[tuple[Any, Kernel]]
    width_scales: list[float]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Number of values of each axis whose settings share the factorisation of a fold."""
        return len(self.alphas), len(self.betas), len(self.gammas), len(self.n_clusters)

    def scales(self, kernel: Kernel) -> list[float]:
        """Return the factors of the width to try with a kernel."""
        return self.width_scales if kernel.has_width else [1.0]


@dataclass(frozen=True)
class DistinctLabels:
    """The columns to solve for, and how the scores of all labels are derived from them.

    Attributes
    ----------
    signs : ndarray of shape (n_samples, n_distinct)
        Columns that are not constant, equal or opposite to each other; a single constant column if
        there are no others.
    index : ndarray of int of shape (q,)
        Column of ``signs`` for each label.
    factor : ndarray of shape (q,)
        +1, -1 for the opposite of the column, or 0 for a constant label.
    constant : ndarray of shape (q,)
        Score of a constant label, -1 or +1; 0 for others.
    """

    signs: np.ndarray
    index: np.ndarray
    factor: np.ndarray
    constant: np.ndarray

    @classmethod
    def of(cls, signs: np.ndarray) -> DistinctLabels:
        """Compare the columns of a label matrix with entries -1 and +1."""
        n_labels = signs.shape[1]
        index, factor = np.zeros(n_labels, dtype=np.intp), np.zeros(n_labels)
        constant = np.where((signs == signs[:1]).all(axis=0), signs[0], 0.0)
        # The key, which rows differ from the first one, is the same for opposite columns.
        keys = np.packbits(signs != signs[:1], axis=0).T
        seen: dict[bytes, int] = {}
        columns: list[int] = []
        for label in np.flatnonzero(constant == 0):
            index[label] = at = seen.setdefault(keys[label].tobytes(), len(columns))
            if at == len(columns):
                columns.append(int(label))
            factor[label] = signs[0, label] * signs[0, columns[at]]
        return cls(signs[:, columns or [0]], index, factor, constant)

    def expand(self, scores: Array) -> Array:
        """Return the scores of all labels from those of the distinct ones (labels first)."""
        if self.signs.shape[1] == len(self.index) and self.factor.all():
            return scores
        shape = (-1,) + (1,) * (scores.ndim - 1)
        factor, constant = (
            asarray(part.reshape(shape), scores) for part in (self.factor, self.constant)
        )
        found = take(scores, asarray(self.index, scores), 0)
        found *= factor
        found += constant
        return found


@dataclass(frozen=True)
class EigenProblem:
    """Some labels, the clusterings and the held-out rows of a fold, in its eigenbasis.

    Attributes
    ----------
    eigenvalues : array of shape (r,)
        omega, those of G.
    cross : array of shape (q, r)
        (Psi^T Y)^T, of the distinct labels.
    factors : list of array of shape (2c, r)
        V^T of each clustering.
    virtuals : list of VirtualExamples
        Those of each clustering.
    held_out : array of shape (n_test, r)
        Features of the held-out rows in the eigenbasis.
    distinct : DistinctLabels
    labels : ndarray of int
        Which labels of the target these are.
    negative : float
        How far the kernel matrix is from being positive semidefinite (see
        :class:`imcc._math.maps.KernelMap`).
    """

    eigenvalues: Array
    cross: Array
    factors: list[Array]
    virtuals: list[VirtualExamples]
    held_out: Array
    distinct: DistinctLabels
    labels: np.ndarray
    negative: float = 0.0


def grid_scores(
    fold: EigenProblem, grid: Grid, entries: int, entries_of_metrics: int
) -> Iterator[tuple[int, list[Pair], Array]]:
    """Solve all settings of a grid and score the held-out rows.

    Parameters
    ----------
    fold : EigenProblem
    grid : Grid
    entries : int
        Number of array entries that may be in memory at once; 1 means one rho and one pair (beta,
        gamma) at a time.
    entries_of_metrics : int
        Number of entries that the metrics of a setting need.

    Yields
    ------
    clustering : int
        Index of an entry of ``grid.n_clusters``.
    pairs : list of (rho, beta, gamma)
        Indices of the pairs (beta, gamma).
    scores : array of shape (q, n_pairs * n_alphas, n_test)
    """
    xp, like = namespace(fold.held_out), fold.held_out
    # The factors of all clusterings are in one array, for a single product.
    stacked = xp.concat(fold.factors, axis=0)
    ends = np.cumsum([factors.shape[0] for factors in fold.factors]).tolist()
    (n_factors, rank), q = stacked.shape, fold.cross.shape[0]
    n_rho = max(1, entries // ((n_factors + like.shape[0]) * rank))
    by_rho = list(_pairs_by_rho(grid.betas, grid.gammas).items())
    for first in range(0, len(by_rho), n_rho):
        batch = by_rho[first : first + n_rho]
        rhos = asarray(np.array([rho for rho, _ in batch]), like)
        pairs = [(r, i, j) for r, (_, of_rho) in enumerate(batch) for i, j in of_rho]
        scale = 1 / xp.sqrt(fold.eigenvalues + rhos[:, None])[:, None, :]
        factors = stacked * scale
        held_out = like * scale
        labels = fold.cross * scale
        # Products that the settings with the same rho share, all times 1 + gamma: the scores
        # without virtual examples, V^T B^-1 Psi^T Y, and V^T B^-1 of the held-out rows.
        plain = labels @ xp.matrix_transpose(held_out)
        of_labels = factors @ xp.matrix_transpose(labels)
        of_held_out = factors @ xp.matrix_transpose(held_out)
        for k, (virtual, start, end) in enumerate(
            zip(fold.virtuals, [0, *ends], ends, strict=False)
        ):
            block, size = slice(start, end), end - start
            own = factors[:, block, :]
            gram = own @ xp.matrix_transpose(own)
            # About how many entries a pair (beta, gamma) needs.
            of_alpha = size * (size + 4 * q) + entries_of_metrics
            step = max(1, entries // (4 * size**2 + len(grid.alphas) * of_alpha))
            for some in [pairs[i : i + step] for i in range(0, len(pairs), step)]:
                # Scores that overflow are an error with the setting's name, not a warning.
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    scores = _scores(
                        virtual,
                        grid,
                        some,
                        (gram, plain, of_labels[:, block, :], of_held_out[:, block, :]),
                    )
                yield k, some, fold.distinct.expand(scores)


def _scores(
    virtual: VirtualExamples,
    grid: Grid,
    pairs: list[Pair],
    products: tuple[Array, Array, Array, Array],
) -> Array:
    """Return the scores of all alphas with some pairs: (q, n_pairs * n_alphas, n_test).

    ``products`` are those of :func:`grid_scores`, the first with the factors themselves.
    """
    xp = namespace(products[0])
    numbers, _, of_gamma = (np.array(part) for part in zip(*pairs, strict=True))
    gammas = grid.gammas[of_gamma]
    by_gamma = asarray(1 + gammas, products[0])[:, None, None]
    # A single rho is broadcast to all pairs.
    gram, plain, of_labels, of_held_out = (
        x if x.shape[0] == 1 else take_rows(x, numbers) for x in products
    )
    corrections, intercepts = eliminate(
        virtual, gram / by_gamma, of_labels / by_gamma, grid.alphas, gammas
    )
    # C^T for each pair, labels first, then alphas.
    n_pairs, n_alphas, n_factors, q = corrections.shape
    weights = xp.permute_dims(corrections, (0, 3, 1, 2))
    weights = xp.reshape(weights, (n_pairs, q * n_alphas, n_factors))
    scores = (weights / by_gamma) @ of_held_out
    scores = xp.reshape(scores, (n_pairs, q, n_alphas, -1))
    scores += (plain / by_gamma)[:, :, None, :]
    scores += xp.permute_dims(intercepts, (0, 2, 1))[..., None]
    return xp.reshape(xp.permute_dims(scores, (1, 0, 2, 3)), (q, n_pairs * n_alphas, -1))


def _pairs_by_rho(betas: np.ndarray, gammas: np.ndarray) -> dict[float, list[tuple[int, int]]]:
    """Group the pairs (beta, gamma), as indices, by rho up to rounding."""
    groups: dict[float, list[tuple[int, int]]] = defaultdict(list)
    for i, beta in enumerate(betas):
        for j, gamma in enumerate(gammas):
            groups[float(f"{beta / (1 + gamma):.13g}")].append((i, j))
    return groups


def check_list(name: str, values: Any) -> list[Any]:
    """Return the values of an axis as a list; a single value becomes a list of one."""
    single = isinstance(values, str) or not isinstance(values, Iterable)
    listed = [values] if single else list(values)
    if not listed:
        raise ValueError(f"{name} must contain at least one value, got none")
    return listed


def check_axis(name: str, values: Any, **bound: float) -> np.ndarray:
    """Return the numbers of an axis, after checking their bound."""
    return np.array([check_number(name, value, **bound) for value in check_list(name, values)])
