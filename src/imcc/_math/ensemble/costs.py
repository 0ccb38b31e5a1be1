"""How long the parts of a search take, for the progress and for limits on the time."""

from __future__ import annotations

import time
from collections.abc import Callable

import scipy.sparse as sp

from imcc._math.ensemble.linear import INVERSE_PENALTIES, N_FOLDS, TRIED_LABELS
from imcc._math.ensemble.trees import TRIED_ROWS
from imcc._utils.progress import report_progress
from imcc._utils.validation import Features

# Trees that a label is expected to have.
_USUAL_TREES = 120
# Factor by which the costs may be wrong.
_OFF = 1.5


class Clock:
    """Time left, and progress in units of work."""

    def __init__(self, max_seconds: float | None, say: Callable[[str], None] | None) -> None:
        self._end = None if max_seconds is None else time.perf_counter() + max_seconds
        self._say, self._begin = say, time.perf_counter()
        self.done, self.total, self.stopped = 0.0, 1.0, False

    def must_stop(self, units: float = 0.0) -> bool:
        """Whether the time is over, or will be after so much work; remember that it is skipped."""
        if self._end is None:
            return False
        now = time.perf_counter()
        # Estimates are that far from the truth: what may be done in time is begun.
        expected = units * (now - self._begin) / self.done / _OFF if self.done else 0.0
        stop = now + expected > self._end
        self.stopped |= stop
        return stop

    def worked(self, units: float, what: str) -> None:
        """Count work that is done, and say so."""
        self.done += units
        report_progress(self.done, max(self.total, self.done), what)
        if self._say is not None:
            used = time.perf_counter() - self._begin
            left = used * max(self.total / self.done - 1.0, 0.0)
            share = min(100.0 * self.done / self.total, 100.0)
            self._say(f"{share:3.0f} % done, about {left:.0f} s left: {what}")


class Costs:
    """About how long fits take, in units of which only proportions matter.

    They were measured on yeast, image, arts, medical, enron, IMDb and the example table.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n_samples, n_features)
    n_labels : int
    """

    def __init__(self, rows: Features, n_labels: int) -> None:
        self._rows, self._n, self._n_labels = rows, rows.shape[0], n_labels

    def kernel(self, m: int, tries: int, precise: bool = False) -> float:
        """Return the cost of fits of m rows with some penalties, in float64 or float32."""
        per_try = 12e-12 * m**3 + 4e-7 * m * self._n_labels + 5e-3
        return m**2 * self._value(precise) + tries * per_try

    def landmarks(self, m: int) -> float:
        """Return the cost of a fit of all rows with m landmarks, in float64."""
        # Three products instead of 2/3 of one, in float64 instead of float32.
        return self._n * m * self._value(True) + 9 * 12e-12 * self._n * m**2

    def _value(self, precise: bool) -> float:
        """Return the cost of a kernel value."""
        # Products of sparse rows take about ten times as long per entry.  A dense column has one
        # coordinate for one kernel and six for the other (imcc._math.ensemble.views.Space).
        dense = not sp.issparse(self._rows)
        columns = 3.5 * self._rows.shape[1] if dense else 10.0 * self._rows.nnz / self._n
        return (2e-10 if precise else 1e-10) * columns + 1.5e-8

    def linear(self) -> tuple[float, float]:
        """Return the costs of trying linear models of sparse rows, and of fitting them."""
        one = 2e-7 * self._rows.nnz + 2e-3
        trial = len(INVERSE_PENALTIES) * min(self._n_labels, TRIED_LABELS) * one
        return trial, (N_FOLDS + 1) * self._n_labels * one

    def trying_trees(self) -> float:
        """Return the cost of trying trees, of a part of the rows and labels."""
        n = min(self._n, TRIED_ROWS)
        return min(self._n_labels, TRIED_LABELS) * _USUAL_TREES * self._tree(n)

    def trees(self, n_trees: int, n_labels: int) -> float:
        """Return the cost of trees of some labels, fitted once."""
        return n_labels * n_trees * self._tree(self._n)

    def _tree(self, n: int) -> float:
        """Return the cost of a tree of n rows."""
        sparse = sp.issparse(self._rows)
        columns = 2.0 * self._rows.nnz / self._n if sparse else self._rows.shape[1]
        return 2e-4 + 3e-9 * n * columns
