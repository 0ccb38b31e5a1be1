"""The search for an ensemble: screen kernels, calibrate, couple, choose, fit.

1. **Screening** (:mod:`imcc._math.ensemble.screening`).  Every kernel (view x kernel x width) is
   scored on a part of the rows, by calibrated leave-one-out scores at its best penalty.  The best
   ones are scored on a larger part, and the best of those on all rows (successive halving).
2. **Members** (:mod:`imcc._math.ensemble.members`).  On all rows each kernel gives up to two
   members from one eigendecomposition: the best penalty, and the best penalty and coupling of the
   labels.
3. **Virtual examples** (:mod:`imcc._math.ensemble.competition`).  On the best kernels, models with
   virtual examples are compared with ridge regression on the same folds of the same rows.  Their
   share in this comparison is their share of the ensemble.
4. **Ensemble.**  Greedy selection with replacement on the held-out log-odds by their log loss,
   which depends on every entry and is less noisy than a ranking metric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from imcc._array.array import Array, asarray, take_rows, to_numpy, zeros
from imcc._array.threads import limited_threads
from imcc._math.ensemble.competition import (
    VIRTUAL_KERNELS,
    VIRTUAL_ROWS,
    compete,
    fit_virtual,
    may_compete,
)
from imcc._math.ensemble.job import Job
from imcc._math.ensemble.members import MemberMaker
from imcc._math.ensemble.model import EnsembleModel, Member
from imcc._math.ensemble.progress import Clock
from imcc._math.ensemble.records import Candidate, Fitted, Kernel, Options
from imcc._math.ensemble.rows import N_FOLDS, Rows, make_folds
from imcc._math.ensemble.screening import screen, screening_rounds
from imcc._math.ensemble.selection import choose_greedily, weighted_mean
from imcc._math.ensemble.tries import calibrate
from imcc._math.search.folds import Fold
from imcc._utils.validation import Features

#: Version of the search procedure; it changes with what is tried or how it is selected.
RECIPE = 1
#: Default number of landmarks, if there are too many rows for exact kernels.
N_LANDMARKS = 1000


def fit_ensemble(
    X: Features,
    signs: Array,
    binary: bool,
    options: Options,
    *,
    weight: np.ndarray | None = None,
    known: np.ndarray | None = None,
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
        Labels as -1.0 and +1.0, 0.0 where unknown; they determine library and device.
    binary : bool
        Whether the single output represents two classes.
    options : Options
    weight : ndarray of shape (n_samples,), optional
        Above 0.
    known : ndarray of bool, shape (n_samples, n_outputs), optional
        Which labels are known; None means all.
    folds : list of Fold, optional
        What to hold out in place of single rows.
    seed : int
    say : callable, optional
        Called with a line of text when a part is done.
    """
    signs_host = to_numpy(signs)
    base = _base_log_odds(signs_host, weight)
    varying = np.flatnonzero((signs_host > 0).any(axis=0) & (signs_host < 0).any(axis=0))
    nothing = EnsembleModel((), (), (), varying, asarray(base, signs))
    if not len(varying):
        return Fitted(nothing, (), np.nan, np.nan, 0.0, _name(options.scoring), 0, False)
    own = asarray(np.ascontiguousarray(signs_host[:, varying]), signs)
    if known is not None:
        known = None if known[:, varying].all() else np.ascontiguousarray(known[:, varying])
    data = Rows(X, own, binary, weight, known, options)
    job = Job(data, options, folds, seed, Clock(options.max_seconds, say))
    with limited_threads(data.n):
        return run(job, nothing)


def plan(job: Job, maker: MemberMaker) -> None:
    """Set the expected work of the clock, if virtual examples do not join."""
    sizes, keep = screening_rounds(job.data.n)
    options, n, work = job.options, job.data.n, job.work
    n_kernels = len(options.views) * len(options.kernels) * len(options.width_scales)
    counts = [n_kernels, *keep[:-1]]
    finalists = min(keep[-1], counts[-1])
    total = sum(count * work.screened(size) for size, count in zip(sizes, counts, strict=True))
    total += finalists * maker.work + work.cross_fitted(n, finalists)
    if may_compete(job):
        total += VIRTUAL_KERNELS * work.virtual(min(n, VIRTUAL_ROWS))
    job.clock.total = total


def run(job: Job, nothing: EnsembleModel) -> Fitted:
    """Run all stages; ``nothing`` is the model without members."""
    data, options, clock = job.data, job.options, job.clock
    landmarks = None
    if data.n > options.exact_rows:
        # Drawn at random, the same in all views.
        landmarks = np.sort(job.order[: min(options.n_landmarks, data.n)])
    maker = MemberMaker(job, landmarks)
    plan(job, maker)
    kernels, penalties = screen(job)
    if not kernels:
        # All rows are the same in every view: there is nothing to learn from.
        name = data.criterion(job.all).name
        return Fitted(nothing, (), np.nan, np.nan, 0.0, name, 0, clock.stopped)
    competed = None
    if may_compete(job) and not clock.must_skip():
        clock.begin_stage("trying virtual examples")
        competed = compete(job, kernels, penalties)
    if competed is not None:
        clock.total += len(competed[1]) * job.work.virtual_member(data.n)
    made: dict[Kernel, list[Candidate]] = {}
    for number, kernel in enumerate(sharing_order(kernels), 1):
        if made and clock.must_skip():
            break
        clock.begin_stage(f"fitting and calibrating kernel {number} of {len(kernels)}")
        made[kernel] = maker.make(kernel, penalties[kernel])
    del maker  # with the distances that it keeps
    pool = [candidate for kernel in kernels for candidate in made.get(kernel, ())]
    criterion = data.criterion(job.all)
    clock.begin_stage("choosing the weights of the members")
    shares, _ = choose_greedily(
        [member.log_odds for member in pool], data.weighting(job.all), options.n_members
    )
    cross_fitted = cross_fit(job, pool)
    clock.worked(job.work.cross_fitted(data.n, len(kernels)), "weights of the members")
    chosen = [(m, float(w)) for m, w in zip(pool, shares, strict=True) if w > 0]
    virtual_weight = 0.0
    if competed is not None:
        virtual_weight, settings = competed
        chosen = [(m, w * (1 - virtual_weight)) for m, w in chosen if virtual_weight < 1]
        for kernel, weights, share in settings:
            clock.begin_stage("fitting virtual examples")
            chosen.append((fit_virtual(job, kernel, weights), share))
            clock.worked(job.work.virtual_member(data.n), "member with virtual examples")
    held_out = weighted_mean([(m.log_odds, w) for m, w in chosen])
    chosen.sort(key=lambda pair: -pair[1])
    return Fitted(
        model=_model(job, nothing, chosen, landmarks),
        trials=tuple(job.trials),
        value=criterion.reported(criterion(held_out)),
        cross_fitted=criterion.reported(cross_fitted),
        virtual_weight=virtual_weight,
        criterion=criterion.name,
        n_landmarks=0 if landmarks is None else len(landmarks),
        stopped=clock.stopped,
        lower_is_better=criterion.reported(1.0) < 0,
        held_out=held_out,
    )


def sharing_order(kernels: list[Kernel]) -> list[Kernel]:
    """Return kernels, best first, but those of a view and name in a row: they share distances."""
    first: dict[tuple[str, str], int] = {}
    for i, kernel in enumerate(kernels):
        first.setdefault((kernel.view, kernel.name), i)
    return sorted(kernels, key=lambda kernel: first[kernel.view, kernel.name])


def cross_fit(job: Job, pool: list[Candidate]) -> float:
    """Return the criterion with calibration and weights from the other folds' rows."""
    data, options = job.data, job.options
    if data.n < 2 * N_FOLDS or job.clock.must_skip():
        return np.nan
    signs = data.signs
    out = zeros(tuple(signs.shape), signs)
    for fold in job.folds or make_folds(data.n, job.seed):
        weight = None if data.weight is None else data.weight[fold.train]
        known = None if data.known is None else data.known[fold.train]
        own = take_rows(signs, fold.train)
        inside, outside = [], []
        for member in pool:
            scores = take_rows(member.held_out, fold.train)
            maps = calibrate(scores, own, weight, options.calibrate, known)
            inside.append(maps.log_odds(scores))
            outside.append(maps.log_odds(take_rows(member.held_out, fold.test)))
        shares, _ = choose_greedily(inside, data.weighting(fold.train), options.n_members)
        mean = weighted_mean(zip(outside, shares, strict=True))
        out[asarray(fold.test, signs), :] = mean
    return data.criterion(job.all)(out)


def _model(
    job: Job,
    nothing: EnsembleModel,
    chosen: list[tuple[Candidate, float]],
    landmarks: np.ndarray | None,
) -> EnsembleModel:
    names = list(dict.fromkeys(member.setting.view for member, _ in chosen))
    anchors = [job.data.rows(name) for name in names]
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
        views=tuple(job.data.view(name) for name in names),
        anchors=tuple(anchors),
        members=members,
    )


def _base_log_odds(signs: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the log-odds of the smoothed base rates: half a row added to each side."""
    v = np.ones(len(signs)) if weight is None else weight
    positives, known = v @ (signs > 0), signs != 0
    total = v.sum() if known.all() else v @ known
    return np.log(positives + 0.5) - np.log(total - positives + 0.5)


def _name(scoring: Any) -> str:
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "scoring")
