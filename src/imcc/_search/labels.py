"""Labels that a fold's training rows cannot tell apart, solved once and scored exactly alike.

The closed form is linear in the labels and centred: with columns y of the labels as -1 and +1, the
scores of -y are minus those of y, those of equal columns are equal, and those of a constant column
are that constant (W = 0 and b = +1 or -1 fulfil every term of the objective).  Computed one by one,
such scores differ by rounding, about 1e-15, in a way that changes with the number of threads, and
metrics that rank labels then see an order where there is a tie.  So only columns that differ are
solved for, and all others are read off them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from imcc._backend.array import Array, asarray, take


@dataclass(frozen=True)
class DistinctLabels:
    """The columns to solve for, and how the scores of all labels follow from theirs.

    Attributes
    ----------
    signs : ndarray of shape (n_samples, n_distinct)
        Columns of which none is constant, equal to another one or its opposite; a single constant
        column if there is nothing else.
    index : ndarray of int, shape (q,)
        For each label, the column of ``signs`` it is read off.
    factor : ndarray of shape (q,)
        +1, -1 for the opposite of that column, or 0 for a constant label.
    constant : ndarray of shape (q,)
        The score of a constant label, -1 or +1; 0 for others.
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
        # Opposite columns have the same key: which rows differ from the first one.
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
        """Return the scores of all labels, given those of the distinct ones (labels first)."""
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
