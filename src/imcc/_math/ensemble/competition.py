"""Comparison of virtual examples with ridge regression, with the same kernel, rows and folds."""

from __future__ import annotations

import numpy as np

from imcc._array.array import Array, asarray, take_rows, zeros
from imcc._math.ensemble.held_out import FoldRidge, Labels
from imcc._math.ensemble.job import Job
from imcc._math.ensemble.model import distances, make_kernel
from imcc._math.ensemble.records import Candidate, Kernel, Trial
from imcc._math.ensemble.rows import N_FOLDS, make_folds, restricted
from imcc._math.ensemble.selection import Criterion, choose_greedily, weighted_mean
from imcc._math.ensemble.tries import Tries, Try, calibrate
from imcc._math.ensemble.virtual import Weights, fit_one, held_out_grid
from imcc._math.search.folds import Fold
from imcc._utils.validation import Features

#: Rows on which virtual examples compete at most, and the best kernels that they are tried on.
VIRTUAL_ROWS = 1500
VIRTUAL_KERNELS = 1
#: A gain of the criterion below this is none.
VIRTUAL_GAIN = 1e-3


def may_compete(job: Job) -> bool:
    """Whether virtual examples are tried."""
    # They are means of rows, without weights, their labels are known, and kernels are exact.
    return (
        job.options.virtual
        and job.data.weight is None
        and job.data.known is None
        and 4 * N_FOLDS <= job.data.n <= job.options.exact_rows
    )


def compete(
    job: Job, kernels: list[Kernel], starts: dict[Kernel, int]
) -> tuple[float, list[tuple[Kernel, Weights, float]]] | None:
    """Compare virtual examples with ridge regression on the same folds.

    Returns
    -------
    None if they do not improve the ensemble; otherwise their share and (kernel, weights, share).
    """
    part = np.sort(job.order[:VIRTUAL_ROWS])
    folds = make_folds(len(part), job.seed) if job.folds is None else restricted(job.folds, part)
    signs = take_rows(job.data.signs, part)
    labels = [Labels.of(take_rows(signs, fold.train)) for fold in folds]
    criterion = job.data.criterion(part)
    ridges: list[Array] = []
    virtuals: list[tuple[Kernel, Weights, Array]] = []
    for kernel in kernels[:VIRTUAL_KERNELS]:
        rows = take_rows(job.data.rows(kernel.view), part)
        own, weights, log_odds = _compete_on(
            job, kernel, rows, signs, folds, labels, criterion, starts[kernel]
        )
        ridges += own
        virtuals.append((kernel, weights, log_odds))
        job.clock.worked(
            job.work.virtual(len(part)), f"virtual examples, {kernel.view} {kernel.name}"
        )
    rounds, weighting = job.options.n_members, job.data.weighting(part)
    everyone = [*ridges, *(z for _, _, z in virtuals)]
    without, _ = choose_greedily(ridges, weighting, rounds)
    shares, _ = choose_greedily(everyone, weighting, rounds)
    gain = criterion(weighted_mean(zip(everyone, shares, strict=True))) - criterion(
        weighted_mean(zip(ridges, without, strict=True))
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
    job: Job,
    kernel: Kernel,
    rows: Features,
    signs: Array,
    folds: list[Fold],
    labels: list[Labels],
    criterion: Criterion,
    start: int,
) -> tuple[list[Array], Weights, Array]:
    """Return held-out log-odds of ridge regression, and the best of virtual examples."""
    penalties = job.options.penalties
    K = make_kernel(kernel.name).finish(distances(kernel.name, rows), kernel.width)
    ridge = FoldRidge(K, labels, folds)
    tries = Tries(ridge.held_out, signs, None, criterion, penalties, job.options.calibrate)
    best = tries.best_penalty(start)
    found = [tries.found[best, 0.0].log_odds]
    if signs.shape[1] > 1:
        for eta in (eta for eta in job.options.etas if eta > 0):
            tries.value(best, eta)
            found.append(tries.found[best, eta].log_odds)
    job.trials += tries.trials("folds", kernel)
    betas = list(penalties[max(best - 1, 0) : best + 2])
    top: tuple[Weights, Try] | None = None
    for weights, scores in held_out_grid(
        rows, signs, folds, ridge, kernel.name, kernel.width, betas, job.seed
    ):
        judged = tries.judged(scores)
        job.trials.append(Trial("folds", rows.shape[0], kernel.with_virtual(weights), judged.value))
        if top is None or judged.value > top[1].value:
            top = (weights, judged)
    assert top is not None
    return found, top[0], top[1].log_odds


def fit_virtual(job: Job, kernel: Kernel, weights: Weights) -> Candidate:
    """Fit a member with virtual examples on all rows, calibrated on folds of all rows."""
    folds = job.folds or make_folds(job.data.n, job.seed)
    rows, signs = job.data.rows(kernel.view), job.data.signs
    finish, name, width = make_kernel(kernel.name).finish, kernel.name, kernel.width
    scores = zeros(tuple(signs.shape), signs)
    for fold in folds:
        train = take_rows(rows, fold.train)
        own = take_rows(signs, fold.train)
        K = finish(distances(name, train), width)
        coef, intercept = fit_one(train, own, K, name, width, weights, job.seed)
        across = finish(distances(name, take_rows(rows, fold.test), train), width)
        scores[asarray(fold.test, signs), :] = across @ coef + intercept
    maps = calibrate(scores, signs, None, job.options.calibrate)
    z = maps.log_odds(scores)
    worth = job.data.criterion(job.all)(z)
    setting = kernel.with_virtual(weights)
    job.trials.append(Trial("folds", job.data.n, setting, worth))
    K = finish(distances(name, rows), width)
    coef, intercept = fit_one(rows, signs, K, name, width, weights, job.seed)
    return Candidate(setting, width, scores, z, maps, worth, coef, intercept)
