"""Members of an ensemble: models of a kernel on all rows, with and without coupled labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from imcc._array.array import Array, namespace, take_rows
from imcc._math.ensemble.job import Job
from imcc._math.ensemble.model import distances, make_kernel
from imcc._math.ensemble.records import Candidate, Kernel
from imcc._math.ensemble.scorers import Scorer, feature_scorer, kernel_scorer
from imcc._math.ensemble.tries import Tries, climb


class MemberMaker:
    """Fits candidates of one kernel after the other on all rows.

    Parameters
    ----------
    job : Job
    landmarks : ndarray of int, or None
        Rows to approximate kernels with; None for exact ones.
    """

    def __init__(self, job: Job, landmarks: np.ndarray | None) -> None:
        self._job, self._landmarks = job, landmarks
        self._held = job.data.held(job.all, job.folds)
        # Distances of the last view and kernel: the next kernel may differ in its width only.
        self._kept: tuple[Any, Any] = (None, None)

    @property
    def work(self) -> float:
        """How long one kernel takes."""
        n = self._job.data.n
        if self._landmarks is None:
            return self._job.work.member(n)
        return self._job.work.member_of_features(n, len(self._landmarks))

    def make(self, kernel: Kernel, start: int) -> list[Candidate]:
        """Return the plain member, and one with coupled labels if that is better."""
        job, held = self._job, self._held
        options, signs = job.options, held.labels.signs
        scorer = self._scorer(kernel)
        tries = Tries(
            scorer.held_out,
            signs,
            job.data.weight,
            job.data.criterion(job.all),
            options.penalties,
            options.calibrate,
            held.known,
        )
        plain = tries.best_penalty(start)
        chosen = [(plain, 0.0)]
        etas = [eta for eta in options.etas if eta > 0]
        if etas and signs.shape[1] > 1 and held.known is None:
            eta = etas[climb(lambda e: tries.value(plain, etas[e]), len(etas) // 2, len(etas))]
            coupled = tries.best_penalty(plain, eta)
            if tries.value(coupled, eta) > tries.value(plain):
                chosen.append((coupled, eta))
        members = []
        for i, eta in chosen:
            found, penalty = tries.found[i, eta], options.penalties[i]
            coef, intercept = scorer.coefficients(penalty, eta)
            members.append(
                Candidate(
                    kernel.setting(penalty, eta),
                    kernel.width,
                    found.held_out,
                    found.log_odds,
                    found.maps,
                    found.value,
                    coef,
                    intercept,
                )
            )
        job.trials += tries.trials("all rows", kernel)
        job.clock.worked(
            self.work,
            f"{kernel.view} {kernel.name} x {kernel.width_scale:g} on all rows",
        )
        return members

    def _scorer(self, kernel: Kernel) -> Scorer:
        penalties = self._job.options.penalties
        if self._landmarks is None:
            K = make_kernel(kernel.name).finish(self._base(kernel), kernel.width)
            return kernel_scorer(K, self._held, penalties)
        rows = self._job.data.rows(kernel.view)
        return feature_scorer(kernel, rows, take_rows(rows, self._landmarks), self._held, penalties)

    def _base(self, kernel: Kernel) -> Array:
        """Return the distances of all rows, as a copy; those of one view and kernel are kept."""
        key = (kernel.view, kernel.name)
        if self._kept[0] != key:
            self._kept = (None, None)  # the memory of the last one first
            self._kept = (key, distances(kernel.name, self._job.data.rows(kernel.view)))
        base = self._kept[1]
        return namespace(base).asarray(base, copy=True)
