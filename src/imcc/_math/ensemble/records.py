"""Records of the search: options, kernels, trials, candidates and the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from imcc._array.array import Array
from imcc._math.ensemble.model import EnsembleModel, Setting
from imcc._math.ensemble.virtual import Weights
from imcc._math.logistic import LogisticMaps


@dataclass(frozen=True)
class Options:
    """The parameters; see :class:`imcc.KernelEnsembleClassifier`."""

    views: tuple[str, ...]
    kernels: tuple[str, ...]
    width_scales: tuple[float, ...]
    penalties: tuple[float, ...]
    etas: tuple[float, ...]
    n_members: int
    weights: str
    calibrate: bool
    scoring: Any
    virtual: bool
    exact_rows: int
    n_landmarks: int
    max_seconds: float | None
    n_jobs: int | None


@dataclass(frozen=True)
class Kernel:
    """A kernel that is tried: view, name and width."""

    view: str
    name: str
    width_scale: float
    width: float

    def setting(self, penalty: float, eta: float = 0.0) -> Setting:
        """Return the setting of ridge regression with this kernel."""
        return Setting(self.view, self.name, self.width_scale, penalty, eta)

    def with_virtual(self, weights: Weights) -> Setting:
        """Return the setting of IMCC with this kernel."""
        alpha, beta, gamma, count = weights
        return replace(self.setting(beta), alpha=alpha, gamma=gamma, n_clusters=count)


@dataclass(frozen=True)
class Trial:
    """A setting that was tried.

    ``value`` is the criterion (greater is better) of held-out scores of ``n_samples`` rows.
    """

    stage: str
    n_samples: int
    setting: Setting
    value: float


@dataclass(frozen=True)
class Candidate:
    """A member before it has a weight, with its held-out scores."""

    setting: Setting
    width: float
    held_out: Array
    log_odds: Array
    maps: LogisticMaps
    value: float
    coef: Array
    intercept: Array


@dataclass(frozen=True)
class Fitted:
    """Result of the search.

    Attributes
    ----------
    model : EnsembleModel
    trials : tuple of Trial
    value : float
        The criterion of the ensemble's held-out log-odds, on which it was also chosen.
    cross_fitted : float
        The same with calibration and weights refitted without the rows that are judged.
    virtual_weight : float
    criterion : str
        Name of the criterion.
    n_landmarks : int
        0 if the kernels are exact.
    stopped : bool
        Whether something was skipped because of the time limit.
    lower_is_better : bool
        Whether the criterion is a loss, which trials have negated.
    held_out : array of shape (n_samples, n_varying) or None
        The ensemble's held-out log-odds of the labels that vary; None without members.
    """

    model: EnsembleModel
    trials: tuple[Trial, ...]
    value: float
    cross_fitted: float
    virtual_weight: float
    criterion: str
    n_landmarks: int
    stopped: bool
    lower_is_better: bool = False
    held_out: Array | None = None
