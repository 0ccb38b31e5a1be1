"""The search for an ensemble: screen kernels, calibrate, couple, choose, fit.

1. **Screening.**  Every kernel (view x kernel x width) is scored on a part of the rows, by
   calibrated leave-one-out scores at its best penalty.  The best ones proceed to a larger part, the
   best of those to all rows (successive halving).
2. **Members.**  On all rows each kernel gives up to two members from one eigendecomposition: the
   best penalty, and the best penalty and coupling of the labels.
3. **Virtual examples.**  On the best kernels, IMCC's own weights compete with ridge regression: all
   by the same folds of the same rows.  The share that they get there is their share of the
   ensemble.
4. **Ensemble.**  Greedy choice with replacement on the held-out log-odds, by their log loss, which
   changes with every entry and so is less noisy than a metric of ranks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import KFold

from imcc._backend.array import Array, asarray, is_numpy, namespace, take_rows, to_numpy, zeros
from imcc._core.logistic import LogisticMaps, fit_logistic_maps
from imcc._core.maps import NystroemMap
from imcc._ensemble.held_out import FoldRidge, Labels, Ridge
from imcc._ensemble.model import (
    EnsembleModel,
    Member,
    Setting,
    distances,
    make_kernel,
    on_host_or_device,
)
from imcc._ensemble.selection import Criterion, choose_greedily
from imcc._ensemble.spectrum import Spectrum
from imcc._ensemble.views import View, fit_view
from imcc._ensemble.virtual import Weights, fit_one, held_out_grid
from imcc._search.folds import Fold
from imcc._utils.config import get_config
from imcc._utils.validation import Features

#: Which recipe this is: a change of what is tried or how it is chosen gets a new number.
RECIPE = 1
#: At most so many widths of one view and kernel go on: kernels that differ make better ensembles.
SCREEN_WIDTHS = 2
#: Rows on which virtual examples compete at most, and the best kernels that they are tried on.
VIRTUAL_ROWS = 1500
VIRTUAL_KERNELS = 1
#: A gain of the criterion below this is none.
VIRTUAL_GAIN = 1e-3
N_FOLDS = 5
#: Landmarks where the rows are too many for exact kernels.
N_LANDMARKS = 1000


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


@dataclass(frozen=True)
class Trial:
    """One line of the table of what was tried.

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
    """What the search gives.

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
        What decided.
    n_landmarks : int
        0 if the kernels are exact.
    stopped : bool
        Whether the time ran out before all was tried.
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


@dataclass
class _Clock:
    """Time left, and progress in units of work."""

    max_seconds: float | None
    say: Callable[[str], None] | None
    begin: float = field(default_factory=time.perf_counter)
    done: float = 0.0
    total: float = 0.0

    def is_up(self) -> bool:
        return self.max_seconds is not None and time.perf_counter() - self.begin > self.max_seconds

    def worked(self, units: float, what: str) -> None:
        self.done += units
        if self.say is not None:
            used = time.perf_counter() - self.begin
            left = used * max(self.total - self.done, 0.0) / self.done
            share = min(100 * self.done / max(self.total, self.done), 100)
            self.say(f"{share:3.0f} % done, about {left:.0f} s left: {what}")


class _Rows:
    """The training rows in every view, and the labels that vary."""

    def __init__(
        self, X: Features, signs: Array, binary: bool, weight: np.ndarray | None, options: Options
    ) -> None:
        self.n = X.shape[0]
        self.binary, self.weight, self.options = binary, weight, options
        self.signs = signs
        self.on = to_numpy(signs) > 0
        self._X = X
        self._views: dict[str, View] = {}
        self._rows: dict[str, Features] = {}

    def view(self, name: str) -> View:
        if name not in self._views:
            self._views[name] = fit_view(name, self._X)
        return self._views[name]

    def rows(self, name: str) -> Features:
        """Return all rows in a view, where the labels are."""
        if name not in self._rows:
            moved = self.view(name).transform(self._X)
            self._rows[name] = on_host_or_device(moved, self.signs)
        return self._rows[name]

    def weight_of(self, part: np.ndarray) -> Array | None:
        return None if self.weight is None else asarray(self.weight[part], self.signs)

    def weighting(self, part: np.ndarray) -> Criterion:
        """Return what the weights of the members are chosen by."""
        if self.options.weights == "scoring":
            return self.criterion(part)
        weight = None if self.weight is None else self.weight[part]
        return Criterion(self.on[part], "log_loss", self.binary, weight, self.signs)

    def criterion(self, part: np.ndarray) -> Criterion:
        """Return what kernels, penalties and couplings are chosen by."""
        weight = None if self.weight is None else self.weight[part]
        return Criterion(self.on[part], self.options.scoring, self.binary, weight, self.signs)


def fit_ensemble(
    X: Features,
    signs: Array,
    binary: bool,
    options: Options,
    *,
    weight: np.ndarray | None = None,
    folds: list[Fold] | None = None,
    seed: int = 0,
    say: Callable[[str], None] | None = None,
) -> Fitted:
    """Search and fit an ensemble.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        On the host.
    signs : array of shape (n_samples, n_outputs)
        Labels as -1.0 and +1.0; they decide where the work is done.
    binary : bool
        Whether the one output stands for two classes.
    options : Options
    weight : ndarray of shape (n_samples,), optional
        Above 0.
    folds : list of Fold, optional
        What to hold out in place of single rows.
    seed : int
    say : callable, optional
        Called with a line of text when a part is done.
    """
    signs_host = to_numpy(signs)
    base = _base_log_odds(signs_host > 0, weight)
    varying = np.flatnonzero((signs_host > 0).any(axis=0) & (signs_host < 0).any(axis=0))
    nothing = EnsembleModel((), (), (), varying, asarray(base, signs))
    if not len(varying):
        return Fitted(nothing, (), np.nan, np.nan, 0.0, _name(options.scoring), 0, False)
    own = asarray(np.ascontiguousarray(signs_host[:, varying]), signs)
    data = _Rows(X, own, binary, weight, options)
    search = _Search(data, options, folds, seed, _Clock(options.max_seconds, say))
    return search.run(nothing)


class _Search:
    def __init__(
        self, data: _Rows, options: Options, folds: list[Fold] | None, seed: int, clock: _Clock
    ) -> None:
        self.data, self.options, self.folds, self.clock = data, options, folds, clock
        self.seed = seed
        self.trials: list[Trial] = []
        self.order = np.random.RandomState([seed, 11]).permutation(data.n)
        self.all = np.arange(data.n)
        # A device is shared by all that use it, and its arrays do not travel between processes.
        self.n_jobs = options.n_jobs if is_numpy(data.signs) else 1

    def run(self, nothing: EnsembleModel) -> Fitted:
        kernels, penalties = self._screen()
        if not kernels:
            # All rows are the same in every view: there is nothing to learn from.
            name = self.data.criterion(self.all).name
            return Fitted(nothing, (), np.nan, np.nan, 0.0, name, 0, False)
        competed = None if self.clock.is_up() else self._compete(kernels, penalties)
        approximate = self.data.n > self.options.exact_rows
        landmarks = self._landmarks() if approximate else None
        pool: list[Candidate] = []
        for kernel in kernels:
            if pool and self.clock.is_up():
                break
            pool += self._members(kernel, penalties[kernel], landmarks)
        criterion = self.data.criterion(self.all)
        shares, _ = choose_greedily(
            [member.log_odds for member in pool],
            self.data.weighting(self.all),
            self.options.n_members,
        )
        cross_fitted = self._cross_fit(pool)
        chosen = [(m, float(w)) for m, w in zip(pool, shares, strict=True) if w > 0]
        virtual_weight = 0.0
        if competed is not None:
            virtual_weight, settings = competed
            chosen = [(m, w * (1 - virtual_weight)) for m, w in chosen]
            chosen += [
                (self._fit_virtual(kernel, weights), share) for kernel, weights, share in settings
            ]
        held_out = _weighted_mean([(m.log_odds, w) for m, w in chosen])
        value = criterion(held_out)
        chosen.sort(key=lambda pair: -pair[1])
        model = self._model(nothing, chosen, landmarks)
        return Fitted(
            model,
            tuple(self.trials),
            criterion.reported(value),
            criterion.reported(cross_fitted),
            virtual_weight,
            criterion.name,
            0 if landmarks is None else len(landmarks),
            self.clock.is_up(),
            criterion.reported(1.0) < 0,
            held_out,
        )

    # Screening.

    def _screen(self) -> tuple[list[Kernel], dict[Kernel, int]]:
        """Return the best kernels, best first, and the index of the best penalty of each."""
        n = self.data.n
        rounds, kept = get_config().screen_rows, get_config().screen_keep
        sizes = [min(n, rounds[0])] + [rows for rows in rounds[1:] if rows < n]
        keep = [*kept[: len(sizes) - 1], kept[-1]]
        groups = [(view, name) for view in self.options.views for name in self.options.kernels]
        n_kernels = len(groups) * len(self.options.width_scales)
        counts = [n_kernels, *keep[:-1]]
        self._plan(sizes, counts, keep[-1])
        kernels: list[Kernel] = []
        found: dict[Kernel, tuple[float, int]] = {}
        for size, count in zip(sizes, keep, strict=True):
            part = np.sort(self.order[:size])
            found = self._round(part, kernels, {k: i for k, (_, i) in found.items()})
            ranked = sorted(found, key=lambda kernel: -found[kernel][0])
            kernels = spread(ranked)[:count]
            if self.clock.is_up():
                break
        return kernels, {kernel: found[kernel][1] for kernel in kernels}

    def _plan(self, sizes: list[int], counts: list[int], finalists: int) -> None:
        """Report how much work there is, in units of that of one kernel on all rows."""
        finalists = min(finalists, counts[-1])
        rounds = sum(count * self._work(size) for size, count in zip(sizes, counts, strict=True))
        self.clock.total = rounds + finalists * self._work(min(self.data.n, self._exact_limit))
        if self._may_compete:
            self.clock.total += VIRTUAL_KERNELS * self._virtual_work

    @property
    def _exact_limit(self) -> int:
        return self.options.exact_rows

    @property
    def _virtual_work(self) -> float:
        return 5 * self._work(min(self.data.n, VIRTUAL_ROWS))

    def _work(self, size: int) -> float:
        """Return about how long a kernel takes: eigenvectors, and calibrated scores."""
        return float(size) ** 3 + 4e3 * size * self.data.signs.shape[1] * 20

    def _round(
        self, part: np.ndarray, kernels: list[Kernel], starts: dict[Kernel, int]
    ) -> dict[Kernel, tuple[float, int]]:
        """Score kernels on a part of the rows; all of them if none are given."""
        held = self._held(part)
        criterion = self.data.criterion(part)
        found: dict[Kernel, tuple[float, int]] = {}
        parallel = Parallel(n_jobs=self.n_jobs)
        for view in self.options.views:
            for name in self.options.kernels:
                own = [k for k in kernels if (k.view, k.name) == (view, name)]
                if kernels and not own:
                    continue
                if found and self.clock.is_up() and not kernels:
                    return found
                rows = take_rows(self.data.rows(view), part)
                base = distances(name, rows)
                if not kernels:
                    width = make_kernel(name).mean_distance(base)
                    if not width > 0:
                        continue  # all rows are the same here
                    own = [
                        Kernel(view, name, scale, scale * width)
                        for scale in self.options.width_scales
                    ]
                results = parallel(
                    delayed(_try_kernel)(
                        base,
                        kernel,
                        held,
                        criterion,
                        self.options.penalties,
                        starts.get(kernel, _middle(self.options.penalties)),
                        self.options.calibrate,
                    )
                    for kernel in own
                )
                for kernel, (value, best, trials) in zip(own, results, strict=True):
                    self.trials += trials
                    found[kernel] = (value, best)
                self.clock.worked(
                    len(own) * self._work(len(part)), f"{view} {name} on {len(part)} rows"
                )
        return found

    def _held(self, part: np.ndarray) -> _Held:
        """Return labels and folds for a part of the rows."""
        labels = Labels.of(take_rows(self.data.signs, part), self.data.weight_of(part))
        if self.folds is None:
            return _Held(labels, None, None)
        folds = restricted(self.folds, part)
        return _Held(labels, folds, [labels.of_rows(fold.train) for fold in folds])

    # Members.

    def _members(self, kernel: Kernel, start: int, landmarks: np.ndarray | None) -> list[Candidate]:
        """Return the members that a kernel gives on all rows: plain, and with coupled labels."""
        if not hasattr(self, "_held_all"):
            self._held_all = self._held(self.all)
        held, criterion = self._held_all, self.data.criterion(self.all)
        rows = self.data.rows(kernel.view)
        if landmarks is None:
            K = make_kernel(kernel.name).finish(self._base(kernel), kernel.width)
            scorer: Any = _ExactScorer(K, held)
        else:
            scorer = _FeatureScorer.of(kernel, rows, take_rows(rows, landmarks), held)
        penalties, signs = self.options.penalties, held.labels.signs
        tries = _Tries(
            scorer.held_out,
            signs,
            self.data.weight,
            criterion,
            penalties,
            self.options.calibrate,
        )
        plain = tries.best_penalty(start)
        chosen = [(plain, 0.0)]
        etas = [eta for eta in self.options.etas if eta > 0]
        if etas and signs.shape[1] > 1:
            eta = etas[climb(lambda e: tries.value(plain, etas[e]), len(etas) // 2, len(etas))]
            coupled = tries.best_penalty(plain, eta)
            if tries.value(coupled, eta) > tries.value(plain):
                chosen.append((coupled, eta))
        members = []
        for i, eta in chosen:
            found = tries.found[i, eta]
            coef, intercept = scorer.coefficients(penalties[i], eta)
            members.append(
                Candidate(
                    kernel.setting(penalties[i], eta),
                    kernel.width,
                    found.held_out,
                    found.log_odds,
                    found.maps,
                    found.value,
                    coef,
                    intercept,
                )
            )
        self.trials += tries.trials("all rows", kernel)
        self.clock.worked(
            self._work(min(self.data.n, self._exact_limit)),
            f"{kernel.view} {kernel.name} x {kernel.width_scale:g} on all rows",
        )
        return members

    def _base(self, kernel: Kernel) -> Array:
        """Return the distances of all rows, as a copy; those of one view and kernel are kept."""
        key = (kernel.view, kernel.name)
        if getattr(self, "_kept", (None, None))[0] != key:
            self._kept: tuple[Any, Any] = (None, None)  # the memory of the last one first
            self._kept = (key, distances(kernel.name, self.data.rows(kernel.view)))
        base = self._kept[1]
        return namespace(base).asarray(base, copy=True)

    def _landmarks(self) -> np.ndarray:
        """Return a sample of the rows: drawn at random, the same in all views."""
        return np.sort(self.order[: min(self.options.n_landmarks, self.data.n)])

    # Virtual examples.

    @property
    def _may_compete(self) -> bool:
        # Virtual examples are means of rows, without weights, and kernels are exact.
        return (
            self.options.virtual
            and self.data.weight is None
            and 4 * N_FOLDS <= self.data.n <= self.options.exact_rows
        )

    def _compete(
        self, kernels: list[Kernel], starts: dict[Kernel, int]
    ) -> tuple[float, list[tuple[Kernel, Weights, float]]] | None:
        """Let virtual examples compete with ridge regression by the same folds.

        Returns
        -------
        None if they do not help, or their share of the ensemble and (kernel, weights, share).
        """
        if not self._may_compete:
            return None
        part = np.sort(self.order[:VIRTUAL_ROWS])
        if self.folds is None:
            folds = make_folds(len(part), self.seed)
        else:
            folds = restricted(self.folds, part)
        signs = take_rows(self.data.signs, part)
        labels = [Labels.of(take_rows(signs, fold.train)) for fold in folds]
        criterion = self.data.criterion(part)
        ridges: list[Array] = []
        virtuals: list[tuple[Kernel, Weights, Array]] = []
        for kernel in kernels[:VIRTUAL_KERNELS]:
            rows = take_rows(self.data.rows(kernel.view), part)
            own, weights, log_odds = self._compete_on(
                kernel, rows, signs, folds, labels, criterion, starts[kernel]
            )
            ridges += own
            virtuals.append((kernel, weights, log_odds))
            self.clock.worked(self._virtual_work, f"virtual examples, {kernel.view} {kernel.name}")
        rounds, weighting = self.options.n_members, self.data.weighting(part)
        everyone = [*ridges, *(z for _, _, z in virtuals)]
        without, _ = choose_greedily(ridges, weighting, rounds)
        shares, _ = choose_greedily(everyone, weighting, rounds)
        gain = criterion(_weighted_mean(zip(everyone, shares, strict=True))) - criterion(
            _weighted_mean(zip(ridges, without, strict=True))
        )
        if not gain > VIRTUAL_GAIN:
            return None
        joined = shares[len(ridges) :]
        settings = [
            (kernel, weights, float(share))
            for (kernel, weights, _), share in zip(virtuals, joined, strict=True)
            if share > 0
        ]
        return float(joined.sum()), settings

    def _compete_on(
        self,
        kernel: Kernel,
        rows: Features,
        signs: Array,
        folds: list[Fold],
        labels: list[Labels],
        criterion: Criterion,
        start: int,
    ) -> tuple[list[Array], Weights, Array]:
        """Return held-out log-odds of ridge regression, and the best of virtual examples."""
        penalties = self.options.penalties
        K = make_kernel(kernel.name).finish(distances(kernel.name, rows), kernel.width)
        ridge = FoldRidge(K, labels, folds)
        tries = _Tries(ridge.held_out, signs, None, criterion, penalties, self.options.calibrate)
        best = tries.best_penalty(start)
        found = [tries.found[best, 0.0].log_odds]
        if signs.shape[1] > 1:
            for eta in (eta for eta in self.options.etas if eta > 0):
                tries.value(best, eta)
                found.append(tries.found[best, eta].log_odds)
        self.trials += tries.trials("folds", kernel)
        betas = list(penalties[max(best - 1, 0) : best + 2])
        top: tuple[Weights, _Try] | None = None
        for weights, scores in held_out_grid(
            rows, signs, folds, ridge, kernel.name, kernel.width, betas, self.seed
        ):
            judged = tries.judged(scores)
            self.trials.append(
                Trial("folds", rows.shape[0], with_virtual(kernel, weights), judged.value)
            )
            if top is None or judged.value > top[1].value:
                top = (weights, judged)
        assert top is not None
        return found, top[0], top[1].log_odds

    def _fit_virtual(self, kernel: Kernel, weights: Weights) -> Candidate:
        """Fit a member with virtual examples on all rows, calibrated on folds of all rows."""
        folds = self.folds or make_folds(self.data.n, self.seed)
        rows, signs = self.data.rows(kernel.view), self.data.signs
        finish, name, width = make_kernel(kernel.name).finish, kernel.name, kernel.width
        scores = zeros(tuple(signs.shape), signs)
        for fold in folds:
            train = take_rows(rows, fold.train)
            own = take_rows(signs, fold.train)
            K = finish(distances(name, train), width)
            coef, intercept = fit_one(train, own, K, name, width, weights, self.seed)
            across = finish(distances(name, take_rows(rows, fold.test), train), width)
            scores[asarray(fold.test, signs), :] = across @ coef + intercept
        maps = calibrate(scores, signs, None, self.options.calibrate)
        z = maps.log_odds(scores)
        worth = self.data.criterion(self.all)(z)
        setting = with_virtual(kernel, weights)
        self.trials.append(Trial("folds", self.data.n, setting, worth))
        K = finish(distances(name, rows), width)
        coef, intercept = fit_one(rows, signs, K, name, width, weights, self.seed)
        return Candidate(setting, width, scores, z, maps, worth, coef, intercept)

    # The end.

    def _cross_fit(self, pool: list[Candidate]) -> float:
        """Return the criterion with calibration and weights from the other folds' rows."""
        n, rounds = self.data.n, self.options.n_members
        if n < 2 * N_FOLDS or self.clock.is_up():
            return np.nan
        parts = self.folds or make_folds(n, self.seed)
        signs, weight = self.data.signs, self.data.weight
        out = zeros(tuple(signs.shape), signs)
        for fold in parts:
            own = None if weight is None else weight[fold.train]
            inside, outside = [], []
            for member in pool:
                scores = take_rows(member.held_out, fold.train)
                maps = calibrate(scores, take_rows(signs, fold.train), own, self.options.calibrate)
                inside.append(maps.log_odds(scores))
                outside.append(maps.log_odds(take_rows(member.held_out, fold.test)))
            shares, _ = choose_greedily(inside, self.data.weighting(fold.train), rounds)
            mean = _weighted_mean(zip(outside, shares, strict=True))
            out[asarray(fold.test, signs), :] = mean
        return self.data.criterion(self.all)(out)

    def _model(
        self,
        nothing: EnsembleModel,
        chosen: list[tuple[Candidate, float]],
        landmarks: np.ndarray | None,
    ) -> EnsembleModel:
        names = list(dict.fromkeys(member.setting.view for member, _ in chosen))
        anchors = [self.data.rows(name) for name in names]
        if landmarks is not None:
            anchors = [take_rows(rows, landmarks) for rows in anchors]
        members = tuple(
            Member(
                member.setting,
                share,
                member.width,
                member.coef,
                member.intercept,
                member.maps.slope,
                member.maps.offset,
            )
            for member, share in chosen
        )
        return replace(
            nothing,
            views=tuple(self.data.view(name) for name in names),
            anchors=tuple(anchors),
            members=members,
        )


@dataclass(frozen=True)
class _Try:
    """Held-out scores of one penalty and coupling, calibrated and judged."""

    value: float
    held_out: Array
    log_odds: Array
    maps: LogisticMaps


class _Tries:
    """Held-out scores of one kernel: each penalty and coupling is computed once, when needed.

    Parameters
    ----------
    held_out : callable
        Gives the scores for a penalty and a coupling.
    signs, weight
        Of the rows that are scored.
    criterion : Criterion
    penalties : tuple of float
    calibrated : bool
    """

    def __init__(
        self,
        held_out: Callable[[float, float], Array],
        signs: Array,
        weight: np.ndarray | None,
        criterion: Criterion,
        penalties: tuple[float, ...],
        calibrated: bool,
    ) -> None:
        self._held_out, self._signs, self._weight = held_out, signs, weight
        self._criterion, self._penalties, self._calibrated = criterion, penalties, calibrated
        self.found: dict[tuple[int, float], _Try] = {}

    def judged(self, scores: Array) -> _Try:
        """Calibrate and judge held-out scores."""
        maps = calibrate(scores, self._signs, self._weight, self._calibrated)
        log_odds = maps.log_odds(scores)
        return _Try(self._criterion(log_odds), scores, log_odds, maps)

    def value(self, i: int, eta: float = 0.0) -> float:
        """Return the value of the i-th penalty."""
        if (i, eta) not in self.found:
            self.found[i, eta] = self.judged(self._held_out(self._penalties[i], eta))
        return self.found[i, eta].value

    def best_penalty(self, start: int, eta: float = 0.0) -> int:
        """Return the best penalty near a start."""
        return climb(lambda i: self.value(i, eta), start, len(self._penalties))

    def trials(self, stage: str, kernel: Kernel) -> list[Trial]:
        """Return what was tried."""
        n = int(self._signs.shape[0])
        return [
            Trial(stage, n, kernel.setting(self._penalties[i], eta), found.value)
            for (i, eta), found in self.found.items()
        ]


@dataclass(frozen=True)
class _Held:
    """Labels of some rows, and the folds and labels of their training rows, if any."""

    labels: Labels
    folds: list[Fold] | None
    fold_labels: list[Labels] | None


class _ExactScorer:
    """Held-out scores and coefficients for an exact kernel matrix, which is overwritten."""

    def __init__(self, K: Array, held: _Held) -> None:
        self._folds: FoldRidge | None = None
        if held.folds is not None and held.fold_labels is not None:
            self._folds = FoldRidge(K, held.fold_labels, held.folds)
        self._held, self._K = held, K
        self._ridge: Ridge | None = None

    @property
    def ridge(self) -> Ridge:
        if self._ridge is None:
            labels = self._held.labels
            self._ridge = Ridge(Spectrum.of_kernel(self._K, labels.weight), labels)
        return self._ridge

    def held_out(self, penalty: float, eta: float = 0.0) -> Array:
        if self._folds is not None:
            return self._folds.held_out(penalty, eta)
        return self.ridge.leave_one_out(penalty, eta)

    def coefficients(self, penalty: float, eta: float = 0.0) -> tuple[Array, Array]:
        return self.ridge.coefficients(penalty, eta)


class _FeatureScorer:
    """The same for features of landmarks (Nyström), for many rows."""

    def __init__(self, nystroem: NystroemMap, features: Array, held: _Held) -> None:
        self._map, self._held = nystroem, held
        self._parts: list[tuple[Ridge, Array, Array, np.ndarray]] = []
        if held.folds is not None and held.fold_labels is not None:
            for fold, labels in zip(held.folds, held.fold_labels, strict=True):
                train = take_rows(features, fold.train)
                spectrum, basis = Spectrum.of_features(train, labels.weight)
                ridge = Ridge(spectrum, labels)
                self._parts.append((ridge, basis, take_rows(features, fold.test), fold.test))
        spectrum, self._basis = Spectrum.of_features(features, held.labels.weight)
        self._ridge = Ridge(spectrum, held.labels)

    @classmethod
    def of(cls, kernel: Kernel, rows: Features, landmarks: Features, held: _Held) -> _FeatureScorer:
        nystroem = NystroemMap.fit(make_kernel(kernel.name), kernel.width, None, landmarks)
        n = rows.shape[0]
        features = zeros((n, nystroem.basis.shape[1]), held.labels.signs)
        step = max(1, 2**22 // landmarks.shape[0])
        for start in range(0, n, step):
            block = slice(start, min(start + step, n))
            features[block, :] = nystroem.transform(rows[block, :])
        return cls(nystroem, features, held)

    def held_out(self, penalty: float, eta: float = 0.0) -> Array:
        if not self._parts:
            return self._ridge.leave_one_out(penalty, eta)
        signs = self._held.labels.signs
        out = zeros(tuple(signs.shape), signs)
        for ridge, basis, tests, rows in self._parts:
            weights, intercept = _feature_weights(ridge, basis, penalty, eta)
            out[asarray(rows, signs), :] = tests @ weights + intercept
        return out

    def coefficients(self, penalty: float, eta: float = 0.0) -> tuple[Array, Array]:
        weights, intercept = _feature_weights(self._ridge, self._basis, penalty, eta)
        return self._map.basis @ weights, intercept


def _feature_weights(ridge: Ridge, basis: Array, penalty: float, eta: float) -> tuple[Array, Array]:
    """Return W = Phi' alpha: with S Phi = U diag(w) basis^+, that is basis diag(w) U' t."""
    alpha, intercept = ridge.coefficients(penalty, eta)
    spectrum = ridge.spectrum
    t = alpha if spectrum.root is None else alpha / spectrum.root
    return (basis * spectrum.values) @ (spectrum.vectors.T @ t), intercept


def _try_kernel(
    base: Array,
    kernel: Kernel,
    held: _Held,
    criterion: Criterion,
    penalties: tuple[float, ...],
    start: int,
    calibrated: bool,
) -> tuple[float, int, list[Trial]]:
    """Return the best value and penalty of a kernel on some rows, and all that was tried."""
    K = make_kernel(kernel.name).finish(namespace(base).asarray(base, copy=True), kernel.width)
    scorer = _ExactScorer(K, held)
    weight = None if held.labels.weight is None else to_numpy(held.labels.weight)
    tries = _Tries(scorer.held_out, held.labels.signs, weight, criterion, penalties, calibrated)
    best = tries.best_penalty(start)
    return tries.value(best), best, tries.trials("screen", kernel)


def with_virtual(kernel: Kernel, weights: Weights) -> Setting:
    """Return the setting of IMCC with a kernel."""
    alpha, beta, gamma, count = weights
    return replace(kernel.setting(beta), alpha=alpha, gamma=gamma, n_clusters=count)


def calibrate(
    scores: Array, signs: Array, weight: np.ndarray | None, calibrated: bool
) -> LogisticMaps:
    """Return the maps from held-out scores to log-odds; the identity if that is requested."""
    if calibrated:
        return fit_logistic_maps(scores, signs > 0, weight)
    q = scores.shape[1]
    return LogisticMaps(asarray(np.ones(q), scores), asarray(np.zeros(q), scores), 1.0, 1.0)


def climb(value: Callable[[int], float], start: int, n: int) -> int:
    """Return the place of a local maximum of a function on 0 .. n - 1, near a start."""
    at = min(max(start, 0), n - 1)
    for direction in (1, -1):
        moved = False
        while 0 <= at + direction < n and value(at + direction) > value(at):
            at += direction
            moved = True
        if moved:
            break
    value(at)
    return at


def spread(kernels: list[Kernel]) -> list[Kernel]:
    """Return ranked kernels, those beyond the best SCREEN_WIDTHS of a view and kernel last."""
    seen: dict[tuple[str, str], int] = {}
    first: list[Kernel] = []
    last: list[Kernel] = []
    for kernel in kernels:
        key = (kernel.view, kernel.name)
        seen[key] = seen.get(key, 0) + 1
        (first if seen[key] <= SCREEN_WIDTHS else last).append(kernel)
    return first + last


def restricted(folds: list[Fold], part: np.ndarray) -> list[Fold]:
    """Return folds of a part of the rows, as places in it; without empty ones."""
    found = []
    for fold in folds:
        test = np.flatnonzero(np.isin(part, fold.test))
        train = np.flatnonzero(np.isin(part, fold.train))
        if len(test) and len(train):
            found.append(Fold(train, test))
    return found


def make_folds(n: int, seed: int) -> list[Fold]:
    """Return shuffled folds of rows."""
    splitter = KFold(min(N_FOLDS, n), shuffle=True, random_state=np.random.RandomState([seed, 12]))
    return [Fold(train, test) for train, test in splitter.split(np.empty((n, 0)))]


def _weighted_mean(members: Iterable[tuple[Array, float]]) -> Any:
    total: Any = 0.0
    for log_odds, share in members:
        if share > 0:
            total = total + log_odds * share
    return total


def _base_log_odds(on: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the log-odds of the smoothed base rates: half a row added to each side."""
    v = np.ones(len(on)) if weight is None else weight
    positives = v @ on
    return np.log(positives + 0.5) - np.log(v.sum() - positives + 0.5)


def _middle(penalties: tuple[float, ...]) -> int:
    return len(penalties) // 2


def _name(scoring: Any) -> str:
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "scoring")
