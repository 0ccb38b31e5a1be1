"""How far a search is: how long its parts take, and what is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from imcc._utils.progress import report_progress

# Settings of a kernel that are tried, on average, where labels are not coupled, and where they are.
_TRIES, _COUPLED_TRIES = 4, 11
# What virtual examples try: penalties and couplings of ridge regression, and their own grid.
_VIRTUAL_TRIES = 45


@dataclass(frozen=True)
class Rates:
    """Seconds that things take; only their proportions count.

    Attributes
    ----------
    eigen : float
        Of an eigendecomposition, per cubed row.
    setting : float
        Of calibrating and judging one setting, whatever the size.
    cell : float
        The same, per row and label.
    pair, pair_label : float
        Of held-out scores, per pair of rows, and per pair and label.
    distance : float
        Of distances, per pair of rows and feature.
    """

    eigen: float
    setting: float
    cell: float
    pair: float
    pair_label: float
    distance: float


#: Measured on one core, and (roughly) on a GPU.
HOST = Rates(1.6e-10, 4e-3, 1e-7, 4e-9, 1e-10, 2e-10)
DEVICE = Rates(4e-12, 1e-2, 1e-9, 1e-11, 1e-12, 2e-12)


@dataclass(frozen=True)
class Work:
    """About how long the parts of a search take.

    Attributes
    ----------
    n_labels : int
    n_features : float
        Entries per row that are not zero.
    coupled : bool
        Whether couplings of labels are tried.
    n_patterns : int
        Different sets of rows in which labels are known.
    rates : Rates
    """

    n_labels: int
    n_features: float
    coupled: bool
    n_patterns: int = 1
    rates: Rates = HOST

    def screened(self, n: int) -> float:
        """Return the work for a kernel that is screened on n rows."""
        own = self.rates.distance * n**2 * self.n_features
        return own + self._spectra(n) + _TRIES * self._try(n, n)

    def member(self, n: int) -> float:
        """Return the work for the members of an exact kernel on all n rows."""
        own = self.rates.distance * n**2 * self.n_features
        return own + self._spectra(n) + self._tries * self._try(n, n)

    def member_of_features(self, n: int, m: int) -> float:
        """Return the work for the members of a kernel with m landmarks on all n rows."""
        products = 3 * self.rates.eigen * n * m**2 * self.n_patterns
        own = self.rates.distance * n * m * self.n_features
        return own + products + self._tries * self._try(n, m)

    def virtual(self, n: int) -> float:
        """Return the work for the competition of virtual examples on n rows."""
        rates = self.rates
        judged = rates.setting + rates.cell * n * self.n_labels
        return 5 * rates.eigen * (0.8 * n) ** 3 + _VIRTUAL_TRIES * (judged + 4 * rates.setting)

    def virtual_member(self, n: int) -> float:
        """Return the work for fitting a member with virtual examples on all rows and on folds."""
        return 6 * (0.1 * self.rates.eigen * n**3 + 20 * self.rates.setting)

    def cross_fitted(self, n: int, n_kernels: int) -> float:
        """Return the work for the cross-fitted score."""
        rates, n_candidates = self.rates, (1 + self.coupled) * n_kernels
        return 5 * n_candidates * (rates.setting + 0.8 * rates.cell * n * self.n_labels)

    @property
    def _tries(self) -> int:
        return _COUPLED_TRIES if self.coupled else _TRIES

    def _spectra(self, n: int) -> float:
        # With unknown labels, one on the rows of each pattern, and once more for coefficients.
        return self.rates.eigen * n**3 * (1 if self.n_patterns == 1 else 2 * self.n_patterns)

    def _try(self, n: int, m: int) -> float:
        rates = self.rates
        scores = n * m * (rates.pair + rates.pair_label * self.n_labels)
        return rates.setting + rates.cell * n * self.n_labels + scores


@dataclass
class Clock:
    """Time left, whether work was skipped to save time, and progress in units of work."""

    max_seconds: float | None
    say: Callable[[str], None] | None
    begin: float = field(default_factory=time.perf_counter)
    done: float = 0.0
    total: float = 0.0
    stage: str = ""
    stopped: bool = False

    def must_skip(self) -> bool:
        """Whether the time that was allowed is used up; if so, remember that work was skipped."""
        if self.max_seconds is None or time.perf_counter() - self.begin <= self.max_seconds:
            return False
        self.stopped = True
        return True

    def begin_stage(self, what: str) -> None:
        """Say what is done from now on."""
        self.stage = what
        report_progress(self.done, self.total, what)

    def worked(self, units: float, what: str) -> None:
        """Count work that is done, and say so."""
        self.done += units
        report_progress(self.done, max(self.total, self.done), self.stage)
        if self.say is not None:
            used = time.perf_counter() - self.begin
            left = used * max(self.total - self.done, 0.0) / self.done
            share = min(100 * self.done / max(self.total, self.done), 100)
            self.say(f"{share:3.0f} % done, about {left:.0f} s left: {what}")
