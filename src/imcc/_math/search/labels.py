"""Labels that are equal, opposite or constant in the training rows of a fold.

The closed form is linear in the labels and centred: for columns y with entries -1 and +1, the
scores of -y are minus those of y, the scores of equal columns are equal, and the scores of a
constant column are that constant (W = 0 with b = +1 or -1 is optimal for every term of the
objective).  Computed separately, such scores differ by rounding errors of about 1e-15, which depend
on the number of threads, and ranking metrics would not see the ties.  Therefore only distinct
columns are solved for, and the scores of the others are derived from them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from imcc._array.array import Array, asarray, take


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
