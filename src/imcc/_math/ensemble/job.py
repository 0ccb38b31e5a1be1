"""Data shared by the stages of a search: rows, options, folds, order, clock and trials."""

from __future__ import annotations

import numpy as np

from imcc._array.array import is_numpy
from imcc._math.ensemble.progress import DEVICE, HOST, Clock, Work
from imcc._math.ensemble.records import Options, Trial
from imcc._math.ensemble.rows import Rows
from imcc._math.search.folds import Fold
from imcc._math.solver import label_patterns


class Job:
    """One search.

    Parameters
    ----------
    data : Rows
    options : Options
    folds : list of Fold or None
        What is held out in place of single rows.
    seed : int
    clock : Clock

    Attributes
    ----------
    trials : list of Trial
        What was tried so far.
    order : ndarray of int, shape (n_samples,)
        The rows in a random order: parts of the rows, and landmarks, are its beginning.
    all : ndarray of int, shape (n_samples,)
    work : Work
    """

    def __init__(
        self, data: Rows, options: Options, folds: list[Fold] | None, seed: int, clock: Clock
    ) -> None:
        self.data, self.options, self.folds, self.clock = data, options, folds, clock
        self.seed = seed
        self.trials: list[Trial] = []
        self.order = np.random.RandomState([seed, 11]).permutation(data.n)
        self.all = np.arange(data.n)
        n_patterns = 1 if data.known is None else len(label_patterns(data.known))
        q = data.signs.shape[1]
        self.work = Work(
            q,
            data.n_nonzero,
            coupled=q > 1 and data.known is None and any(eta > 0 for eta in options.etas),
            n_patterns=n_patterns,
            rates=HOST if is_numpy(data.signs) else DEVICE,
        )
        # A device is shared by all processes, and its arrays cannot be passed between them.
        self.n_jobs = options.n_jobs if is_numpy(data.signs) else 1
