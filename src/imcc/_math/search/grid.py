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

from imcc._array.array import Array, asarray, is_numpy, multiplied, namespace, take, take_rows
from imcc._math.solver import SpectralProblem, eliminate
from imcc._utils.validation import check_number

# Index of a rho in its batch, and indices of a beta and a gamma.
Pair = tuple[int, int, int]


@dataclass(frozen=True)
class Grid:
    """The axes of the settings that share the factorisation of a fold."""

    alphas: np.ndarray
    betas: np.ndarray
    gammas: np.ndarray
    n_clusters: list[Any]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Number of values of each axis."""
        return len(self.alphas), len(self.betas), len(self.gammas), len(self.n_clusters)


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
    """The clusterings and the held-out rows of a fold, in its eigenbasis.

    Attributes
    ----------
    problems : list of SpectralProblem
        One per clustering; eigenvalues and cross are the same in all.
    held_out : array of shape (n_test, r)
        Features of the held-out rows in the eigenbasis.
    negative : float
        How far the kernel matrix is from being positive semidefinite (see
        :class:`imcc._math.maps.KernelMap`).
    """

    problems: list[SpectralProblem]
    held_out: Array
    negative: float = 0.0


def grid_scores(
    fold: EigenProblem,
    grid: Grid,
    distinct: DistinctLabels,
    entries: int = 1,
    entries_of_metrics: int = 0,
) -> Iterator[tuple[int, list[Pair], Array]]:
    """Solve all settings of a grid and score the held-out rows.

    Parameters
    ----------
    fold : EigenProblem
        Problem of the distinct labels, ``distinct.signs``.
    grid : Grid
    distinct : DistinctLabels
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
    eigenvalues, cross = fold.problems[0].eigenvalues, fold.problems[0].cross
    # The factors of all clusterings are in one array, for a single product and buffer.
    stacked = xp.concat([problem.factors for problem in fold.problems], axis=0)
    ends = np.cumsum([problem.factors.shape[0] for problem in fold.problems])
    buffers = [np.empty((1, *x.shape)) if is_numpy(x) else None for x in (stacked, like)]
    n_factors, rank = stacked.shape
    n_rho = max(1, entries // ((n_factors + like.shape[0]) * rank))
    for rhos, pairs in _batches(grid, n_rho):
        scale = 1 / xp.sqrt(eigenvalues + asarray(np.array(rhos), like)[:, None])[:, None, :]
        factors = multiplied(stacked, scale, buffers[0])
        held_out = multiplied(like, scale, buffers[1])
        labels = cross * scale
        # Products that the settings with the same rho share, all times 1 + gamma: the scores
        # without virtual examples, V^T B^-1 Psi^T Y, and V^T B^-1 of the held-out rows.
        plain = labels @ xp.matrix_transpose(held_out)
        of_labels = factors @ xp.matrix_transpose(labels)
        of_held_out = factors @ xp.matrix_transpose(held_out)
        for k, (problem, end) in enumerate(zip(fold.problems, ends, strict=True)):
            block = slice(int(end) - problem.factors.shape[0], int(end))
            own = factors[:, block, :]
            gram = own @ xp.matrix_transpose(own)
            of_pair = _entries_of_pair(problem, entries_of_metrics, len(grid.alphas))
            step = max(1, entries // of_pair)
            for some in [pairs[i : i + step] for i in range(0, len(pairs), step)]:
                # Scores that overflow are an error with the setting's name, not a warning.
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    scores = _scores(
                        problem,
                        grid,
                        some,
                        (gram, plain, of_labels[:, block, :], of_held_out[:, block, :]),
                    )
                yield k, some, distinct.expand(scores)


def _batches(grid: Grid, n_rho: int) -> Iterator[tuple[list[float], list[Pair]]]:
    """Yield ``n_rho`` values of rho at a time, with their pairs (beta, gamma)."""
    groups = list(_pairs_by_rho(grid.betas, grid.gammas).items())
    for start in range(0, len(groups), n_rho):
        batch = groups[start : start + n_rho]
        yield (
            [rho for rho, _ in batch],
            [(r, i, j) for r, (_, pairs) in enumerate(batch) for i, j in pairs],
        )


def _entries_of_pair(problem: SpectralProblem, of_metrics: int, n_alphas: int) -> int:
    """Return the approximate number of entries needed for a pair (beta, gamma)."""
    n_factors, q = problem.factors.shape[0], problem.cross.shape[0]
    return 4 * n_factors**2 + n_alphas * (n_factors * (n_factors + 4 * q) + of_metrics)


def _scores(
    problem: SpectralProblem,
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
        problem.virtual, gram / by_gamma, of_labels / by_gamma, grid.alphas, gammas
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
