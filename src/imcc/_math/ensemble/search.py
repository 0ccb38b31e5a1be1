"""The search for an ensemble, from top to bottom.

1. **Screening.**  Every kernel (view x kernel x width) is compared on a part of the rows, by the
   calibrated leave-one-out scores at its best penalty; the best ones on a larger part.
2. **Members.**  The best kernels are fitted to all rows, with leave-one-out scores of every row.
   For the best two, neighbouring penalties are fitted as well, and labels may be coupled.
3. **Blend.**  The scores of each member are calibrated per label, and a greedy selection finds the
   members and weights whose mean log-odds have the lowest log loss.  Linear models of words are
   candidates if that lowers the log loss clearly.
4. **Trees.**  Boosted trees of the columns are averaged with the others if that lowers the log loss
   clearly.

All comparisons use scores of rows by models without them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit

from imcc._array.array import (
    Array,
    asarray,
    astype,
    moved_record,
    namespace,
    to_numpy,
)
from imcc._array.device import limited_threads
from imcc._math.ensemble.costs import Clock, Costs
from imcc._math.ensemble.linear import (
    INVERSE_PENALTIES,
    N_FOLDS,
    TRIED_LABELS,
    fit_linear,
    held_out_linear,
)
from imcc._math.ensemble.members import (
    KERNELS,
    Gram,
    Labels,
    distances,
    fit_kernel,
    fit_landmarks,
    make_kernel,
)
from imcc._math.ensemble.model import EnsembleModel, Member, TreeMember, centered
from imcc._math.ensemble.plan import FEW_ROWS, ROUNDS, Plan, n_finalists
from imcc._math.ensemble.ridge import Solution
from imcc._math.ensemble.selection import (
    Criterion,
    best_share,
    choose_greedily,
    helps,
    log_losses,
    weighted_mean,
)
from imcc._math.ensemble.trees import MOST_LABELS, TRIED_ROWS, Boosting
from imcc._math.ensemble.trees import N_FOLDS as TREE_FOLDS
from imcc._math.ensemble.views import Space, View, fit_space, fit_view
from imcc._math.kernels import row_blocks
from imcc._math.logistic import LogisticMaps, fit_logistic_maps
from imcc._utils.validation import Features

#: Version of the search procedure; it changes with what is tried or how it is selected.
RECIPE = 3
#: Penalties that are tried, and widths as multiples of the mean distance of rows.
PENALTIES = tuple(float(p) for p in 10.0 ** np.arange(-3, 2.75, 0.5))
WIDTH_SCALES = (0.25, 0.5, 1.0, 2.0)
#: Couplings of labels that are tried.
COUPLINGS = (0.1, 0.4, 0.7)
# A round of the screening takes place if there are clearly more rows.
_MORE = 1.3
# At most so many widths of one view and kernel go on: kernels that differ make better ensembles.
_SAME = 2
# Penalties that a screening tries per kernel, and where it begins.
_TRIES, _MIDDLE = 3, PENALTIES.index(min(PENALTIES, key=lambda p: abs(p - 0.3)))
# Labels that a screening looks at, those with the most rows.
_SCREENED_LABELS = 128
# Probabilities that differ by less are the same.
_NEGLIGIBLE = 1e-6
# Rounds of the greedy selection.
_SELECTIONS = 12
# Columns from which on linear models are tried.
_LINEAR_COLUMNS = 300
# Rows, or groups, from which on trees are tried.
_FEWEST_FOR_TREES = 40


class Kernel(NamedTuple):
    """A kernel of a view; the width is a multiple of the mean distance of rows."""

    view: str
    kernel: str
    width_scale: float

    @property
    def name(self) -> str:
        """What progress calls it."""
        return f"{self.kernel} kernel of {self.view} rows, {self.width_scale:g} x mean distance"


@dataclass(frozen=True)
class Options:
    """What is searched; see :class:`imcc.KernelEnsembleClassifier`."""

    views: Sequence[str]
    scoring: Any
    binary: bool
    linear: bool
    exact: bool  # whether unknown labels are left out, not replaced
    trees: bool
    max_seconds: float | None
    seed: int
    plan: Plan
    threads: int = 1
    say: Callable[[str], None] | None = None


class Trial(NamedTuple):
    """A setting that was tried."""

    n_samples: int
    kernel: Kernel
    penalty: float
    coupling: float
    score: float


class Candidate(NamedTuple):
    """A fitted model that may become a member."""

    setting: dict[str, Any]
    width: float
    coef: Array
    intercept: Array
    maps: LogisticMaps
    log_odds: Array
    value: float


@dataclass
class Fitted:
    """The result of a search.

    Attributes
    ----------
    model : EnsembleModel
    held_out : array of shape (n_samples, q), or None
        Held-out log-odds of the ensemble, for the labels that vary.
    score : float
        The criterion of them.
    criterion : str
    trials : list of Trial
    stopped : bool
        Whether something was skipped because the time was over.
    lower_is_better : bool
        Whether the score is a loss.
    """

    model: EnsembleModel
    held_out: Array | None = None
    score: float = np.nan
    criterion: str = ""
    trials: list[Trial] = field(default_factory=list)
    stopped: bool = False
    lower_is_better: bool = False


def fit_ensemble(X: Features, labels: Labels, options: Options) -> Fitted:
    """Search and fit an ensemble.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        On the host.
    labels : Labels
        Of all outputs; they determine library and device.
    options : Options
    """
    signs = to_numpy(labels.signs)
    base = _base_log_odds(signs, labels.weight)
    varying = np.flatnonzero((signs > 0).any(axis=0) & (signs < 0).any(axis=0))
    own = labels.columns(varying)
    known = None if own.known is None or own.known.all() else own.known
    center = None if sp.issparse(X) else X.mean(axis=0, dtype=np.float64)
    search = _Search(centered(X, center), own._replace(known=known), options)
    nothing = EnsembleModel(
        *(center, search.rows[:0], (), (), varying, asarray(base, labels.signs), None),
    )
    if not len(varying):
        return Fitted(nothing, criterion=_name(options.scoring))
    with limited_threads(X.shape[0]):
        return search.run(nothing)


class _Search:
    """The state of a search: rows, labels, and the spaces that were fitted."""

    def __init__(self, rows: Features, labels: Labels, options: Options) -> None:
        self.rows, self.labels, self.options = rows, labels, options
        self.n = rows.shape[0]
        self.order = np.random.RandomState([options.seed, 1]).permutation(self.n)
        self.clock = Clock(options.max_seconds, options.say)
        self.costs = Costs(rows, labels.signs.shape[1])
        self.trials: list[Trial] = []
        self._views: dict[str, View] = {}
        self._spaces: dict[tuple[str, str], Space] = {}
        self._widths: dict[tuple[str, str], float] = {}

    def run(self, nothing: EnsembleModel) -> Fitted:
        """Run all stages; ``nothing`` is the model without members."""
        criterion = self.criterion(self.labels)
        ranked = self.screen()
        if not ranked:
            # All rows are the same in every view: there is nothing to learn from.
            return Fitted(nothing, criterion=criterion.name, stopped=self.clock.stopped)
        marks = None
        if self.options.plan.n_landmarks:
            marks = np.sort(self.order[: self.options.plan.n_landmarks])
        pool: list[Candidate] = []
        for place, (kernel, start) in enumerate(ranked):
            if pool and self.clock.must_stop(self._member_cost(place)):
                break
            pool += self.candidates(kernel, start, marks, self._several(place))
            self.clock.worked(self._member_cost(place), f"fitting {kernel.name}")
        pool += self.linear_candidates(pool)
        loss = self.criterion(self.labels, "log_loss")
        shares, _ = choose_greedily([c.log_odds for c in pool], loss, _SELECTIONS)
        chosen = [(c, float(w)) for c, w in zip(pool, shares, strict=True) if w > 0]
        chosen.sort(key=lambda pair: -pair[1])
        held_out = weighted_mean([(c.log_odds, w) for c, w in chosen])
        members = tuple(
            Member(c.setting, w, c.width, _stored(c, w), c.intercept, c.maps.slope, c.maps.offset)
            for c, w in chosen
        )
        keys = dict.fromkeys(member.key for member in members)
        anchors = self.rows if marks is None else self.rows[marks]
        if all(kernel == "linear" for _, kernel in keys):
            anchors = self.rows[:0]
        fitted = Fitted(
            EnsembleModel(
                nothing.center,
                anchors,
                tuple(self.space(key) for key in keys),
                members,
                *(nothing.varying, nothing.base, None),
            ),
            held_out,
            criterion=criterion.name,
            trials=self.trials,
        )
        if self.options.trees:
            self.add_trees(fitted)
        fitted.stopped = self.clock.stopped
        fitted.score = criterion.reported(criterion(fitted.held_out))
        fitted.lower_is_better = criterion.reported(1.0) < 0
        return fitted

    # Rows in the spaces of kernels.

    def view(self, name: str) -> View:
        """Return a view, fitted when it is first needed."""
        if name not in self._views:
            self._views[name] = fit_view(name, self.rows.astype(np.float64))
        return self._views[name]

    def space(self, key: tuple[str, str]) -> Space:
        """Return the space of a view and kernel, fitted when it is first needed."""
        if key not in self._spaces:
            view, kernel = key
            kind = "rbf" if kernel == "linear" else kernel
            self._spaces[key] = fit_space(self.view(view), kind, self.rows.astype(np.float64))
        return self._spaces[key]

    def placed(self, key: tuple[str, str], part: np.ndarray | None = None) -> Features:
        """Return rows in a space, on the device of the labels; sparse ones on the host."""
        rows = self.space(key).transform(self.rows if part is None else self.rows[part])
        return rows if sp.issparse(rows) else asarray(rows, self.labels.signs)

    # Screening.

    def screen(self) -> list[tuple[Kernel, int]]:
        """Return the best kernels, best first, each with the place of its best penalty."""
        rounds = [(min(self.n, ROUNDS[0][0]), ROUNDS[0][1])]
        largest = min(self.n / _MORE, self.options.plan.screened_rows)
        rounds += [(m, keep) for m, keep in ROUNDS[1:] if m <= largest]
        finalists = n_finalists(self.n)
        n_kernels = len(self.options.views) * len(KERNELS) * len(WIDTH_SCALES)
        counts = [n_kernels, *(keep for _, keep in rounds)]
        work = [
            count * self.costs.kernel(m, _TRIES)
            for count, (m, _) in zip(counts[:-1], rounds, strict=True)
        ]
        last = sum(self._member_cost(place) for place in range(finalists))
        self.clock.total = sum(work) + last
        if self._tries_linear():
            self.clock.total += self.costs.linear()[0]
        if self.options.trees:
            self.clock.total += self.costs.trying_trees()
        ranked: list[tuple[Kernel, int]] = []
        for number, (m, keep) in enumerate(rounds):
            if ranked and self.clock.must_stop():
                break
            with limited_threads(m):
                ranked = self._screen_part(np.sort(self.order[:m]), ranked)
            ranked = ranked[: finalists if number == len(rounds) - 1 else keep]
        return ranked[:finalists]

    def _screen_part(
        self, part: np.ndarray, kernels: list[tuple[Kernel, int]]
    ) -> list[tuple[Kernel, int]]:
        """Compare kernels on some rows, all of them if none are given; return them best first."""
        labels = self.labels.part(part)
        labels = labels.columns(most_frequent(labels, _SCREENED_LABELS))
        starts, criterion = dict(kernels), self.criterion(labels)
        found: list[tuple[float, Kernel, int]] = []
        keys = list(dict.fromkeys(kernel[:2] for kernel, _ in kernels)) or [
            (view, kernel) for view in self.options.views for kernel in KERNELS
        ]
        for key in keys:
            if found and not kernels and self.clock.must_stop():
                break
            rows = self.placed(key, part)
            base = distances(rows, like=self.labels.signs)
            mean = self._widths.setdefault(key, make_kernel(key[1]).mean_distance(base))
            if mean <= 0:
                continue
            start = _MIDDLE
            for scale in WIDTH_SCALES:
                kernel = Kernel(*key, scale)
                if kernels and kernel not in starts:
                    continue
                gram = Gram(key[1], scale * mean, rows, self.labels.signs)
                own = starts.get(kernel, start)
                value, start = self._screen_kernel(kernel, gram, base, labels, criterion, own)
                found.append((value, kernel, start))
                self.clock.worked(self.costs.kernel(len(part), _TRIES), f"screening {kernel.name}")
        found.sort(key=lambda entry: -entry[0])
        counts = Counter[tuple[str, str]]()
        spread = []
        for _, kernel, place in found:
            counts[kernel[:2]] += 1
            if counts[kernel[:2]] <= _SAME:
                spread.append((kernel, place))
        return spread

    def _screen_kernel(
        self,
        kernel: Kernel,
        gram: Gram,
        base: Array,
        labels: Labels,
        criterion: Criterion,
        start: int,
    ) -> tuple[float, int]:
        """Return the criterion at the best penalty of a kernel, and the place of the penalty."""
        K = make_kernel(kernel.kernel).finish(namespace(base).asarray(base, copy=True), gram.width)
        filled = labels.filled()
        tried: dict[int, float] = {}

        def value(i: int) -> float:
            if i not in tried:
                tried[i] = -np.inf  # if float32 is too coarse for the penalty
                with suppress(np.linalg.LinAlgError):
                    held_out = fit_kernel(gram, filled, PENALTIES[i], "float32", K).held_out
                    tried[i] = criterion(calibrated(held_out, labels, same_slope=True)[1])
                self.trials.append(Trial(K.shape[0], kernel, PENALTIES[i], 0.0, tried[i]))
            return tried[i]

        best = climb(value, start, len(PENALTIES), _TRIES)
        return tried[best], best

    def criterion(self, labels: Labels, scoring: Any = None) -> Criterion:
        """Return the criterion of log-odds of some rows."""
        on = to_numpy(labels.signs) > 0
        scoring = self.options.scoring if scoring is None else scoring
        binary = self.options.binary
        return Criterion(on, scoring, binary, labels.weight, labels.signs, labels.known)

    # Members.

    def candidates(
        self, kernel: Kernel, start: int, marks: np.ndarray | None, several: bool
    ) -> list[Candidate]:
        """Fit a kernel to all rows; if wanted, with several penalties and coupled labels."""
        key = kernel[:2]
        width = kernel.width_scale * self._widths[key]
        gram = Gram(key[1], width, self.placed(key), self.labels.signs)
        criterion = self.criterion(self.labels)
        fitted: dict[int, tuple[Solution, Candidate]] = {}

        def value(i: int) -> float:
            if i not in fitted:
                solution = self._fit(gram, PENALTIES[i], marks)
                candidate = self._candidate(kernel, gram.width, i, 0.0, solution, criterion)
                # Of several penalties, only the log-odds of the best one are needed again.
                fitted[i] = solution, candidate._replace(log_odds=None)
            return fitted[i][1].value

        place = climb(value, start, len(PENALTIES), 3) if several else start
        value(place)
        solution, top = fitted[place]
        found = [top._replace(log_odds=top.maps.log_odds(solution.held_out))]
        signs = self.labels.signs
        if len(fitted) == 1 or self.labels.known is not None or signs.shape[1] == 1:
            return found
        solutions = {i: solution for i, (solution, _) in fitted.items()}
        for eta in COUPLINGS:
            solution = couple(solutions, place, eta, to_numpy(signs))
            coupled = self._candidate(kernel, gram.width, place, eta, solution, criterion)
            top = max(top, coupled, key=lambda candidate: candidate.value)
        return found if top.log_odds is None else [*found, top]

    def _several(self, place: int) -> bool:
        """Return whether several penalties of a kernel are fitted to all rows."""
        return place < 2 and self.n <= FEW_ROWS

    def _member_cost(self, place: int) -> float:
        """Return about how long it takes to fit the kernel at a place to all rows."""
        fits = 3 if self._several(place) else 1
        if self.options.plan.n_landmarks:
            return fits * self.costs.landmarks(self.options.plan.n_landmarks)
        return fits * self.costs.kernel(self.n, 1, precise=True)

    def _fit(self, gram: Gram, penalty: float, marks: np.ndarray | None) -> Solution:
        labels, precision = self.labels, self.options.plan.precision
        labels = labels if self.options.exact else labels.filled()
        if marks is not None:
            return fit_landmarks(gram, labels, penalty, marks)
        try:
            return fit_kernel(gram, labels, penalty, precision)
        except np.linalg.LinAlgError:
            if precision == "float64":
                raise
            # Too coarse for so small a penalty.
            return fit_kernel(gram, labels, penalty, "float64")

    def _candidate(
        self,
        kernel: Kernel,
        width: float,
        place: int,
        eta: float,
        solution: Solution,
        criterion: Criterion,
    ) -> Candidate:
        maps, log_odds = calibrated(solution.held_out, self.labels)
        value = criterion(log_odds)
        self.trials.append(Trial(self.n, kernel, PENALTIES[place], eta, value))
        setting = {**kernel._asdict(), "penalty": PENALTIES[place], "coupling": eta}
        coef, intercept = solution.coef, solution.intercept
        return Candidate(setting, width, coef, intercept, maps, log_odds, value)

    # Members that are not kernels.

    def linear_candidates(self, pool: list[Candidate]) -> list[Candidate]:
        """Return linear models of words, if they lower the log loss of the best kernel clearly.

        First some labels are fitted without a part of the rows, and compared there.
        """
        rows, options = self.rows, self.options
        if not self._tries_linear():
            return []
        trial, rest = self.costs.linear()
        if self.clock.must_stop(trial):
            return []
        labels = self._host_labels
        view = "tfidf" if "tfidf" in options.views else options.views[-1]
        X = self.space((view, "linear")).transform(rows)
        best = to_numpy(max(pool, key=lambda candidate: candidate.value).log_odds)
        few = most_frequent(labels, TRIED_LABELS)
        train, test = self._divided(labels)
        own, before = labels.part(test).columns(few), best[np.ix_(test, few)]
        losses = {}
        for C in INVERSE_PENALTIES:
            some = labels.part(train).columns(few)
            coef, intercept = fit_linear(X[train], some.signs > 0, some.known, some.weight, C)
            _, log_odds = calibrated(X[test] @ coef + intercept, own)
            mean = (before + log_odds) / 2
            if helps(before, mean, own):
                losses[C] = log_losses(mean, own).sum()
            self.clock.worked(trial / len(INVERSE_PENALTIES), "trying linear models")
        if not losses or self.clock.must_stop(rest):
            return []
        self.clock.total += rest
        C = min(losses, key=losses.__getitem__)
        on, known, weight = labels.signs > 0, labels.known, labels.weight
        folds = held_out_linear(X, on, known, weight, labels.groups, C, N_FOLDS, options.seed)
        held_out = np.zeros(on.shape)
        for test, scores in folds:
            held_out[test] = scores
            self.clock.worked(rest / (N_FOLDS + 1), "fitting linear models")
        maps, log_odds = calibrated(held_out, labels)
        if not helps(best, (best + log_odds) / 2, labels):
            return []
        coef, intercept = fit_linear(X, on, known, weight, C)
        self.clock.worked(rest / (N_FOLDS + 1), "fitting linear models")
        setting = {**Kernel(view, "linear", 0.0)._asdict(), "penalty": 1.0 / C, "coupling": 0.0}
        like = self.labels.signs
        moved = asarray(log_odds, like)
        value = self.criterion(self.labels)(moved)
        coef, intercept = asarray(coef, like), asarray(intercept, like)
        return [Candidate(setting, 0.0, coef, intercept, moved_record(maps, like), moved, value)]

    def _divided(self, labels: Labels) -> tuple[np.ndarray, np.ndarray]:
        """Return four fifths of the rows and others, at most so many as the second screening."""
        splitter: Any = ShuffleSplit if labels.groups is None else GroupShuffleSplit
        splits = splitter(1, test_size=0.2, random_state=self.options.seed)
        train, test = next(splits.split(labels.signs, groups=labels.groups))
        if labels.groups is not None:  # in the order of the rows
            rng = np.random.RandomState([self.options.seed, 2])
            train, test = rng.permutation(train), rng.permutation(test)
        return train, test[: ROUNDS[1][0]]

    # Trees.

    def add_trees(self, fitted: Fitted) -> None:
        """Average log-odds with those of trees, where that lowers the log loss clearly.

        First they are tried on rows that are left out, for some labels; then they are fitted to all
        rows, with held-out log-odds.

        Trees do not see the held-out log-odds of other members: the score of a row by a model
        without it is lower if the row has the label than if it has not, all the more if other rows
        are like it.  Trees would read the label from that, and new rows have no such shift.
        """
        labels, n_trees = self._host_labels, self._best_number_of_trees(fitted)
        if not n_trees:
            return
        boosting = self._boosting()
        which = boosting.labels(MOST_LABELS)
        step = self.costs.trees(n_trees, len(which))
        if self.clock.must_stop((TREE_FOLDS + 1) * step):
            return
        self.clock.total += (TREE_FOLDS + 1) * step
        own, before = labels.columns(which), np.array(to_numpy(fitted.held_out))
        held_out = np.empty((self.n, len(which)))
        for fold, (test, scores) in enumerate(boosting.held_out(which, n_trees)):
            held_out[test] = scores
            self.clock.worked(step, "fitting trees")
            if fold == 0:
                part = own.part(test)
                log_odds = calibrated(scores, part)[1]
                if not best_share(before[np.ix_(test, which)], log_odds, part)[1]:
                    # Some labels gain, but not all of them together.
                    self.clock.total -= TREE_FOLDS * step
                    return
        maps, log_odds = calibrated(held_out, own)
        share, gain = best_share(before[:, which], log_odds, own)
        if gain:
            trees, start = boosting.fit(np.arange(self.n), which, n_trees)
            member = TreeMember.averaged(trees, start, which, maps, share, before.shape[1])
            fitted.model = replace(fitted.model, trees=member)
            before[:, which] += share * (log_odds - before[:, which])
            fitted.held_out = asarray(before, self.labels.signs)
        self.clock.worked(step, "fitting trees")

    def _best_number_of_trees(self, fitted: Fitted) -> int:
        """Return how many trees per label are best on rows that are left out; 0 if none help."""
        cost, labels = self.costs.trying_trees(), self._host_labels
        n_together = self.n if labels.groups is None else len(np.unique(labels.groups))
        if n_together < _FEWEST_FOR_TREES or self.clock.must_stop(cost):
            return 0
        train, test = self._divided(labels)
        train, boosting = np.sort(train[:TRIED_ROWS]), self._boosting()
        few = boosting.labels(TRIED_LABELS, train)
        if labels.known is not None:
            few = few[labels.known[np.ix_(test, few)].any(axis=0)]
        if not len(few):
            return 0
        n_trees, log_odds = boosting.trial(train, test, few)
        self.clock.worked(cost, "trying trees")
        own, before = labels.part(test).columns(few), to_numpy(fitted.held_out)[np.ix_(test, few)]
        return n_trees if best_share(before, log_odds, own)[1] else 0

    def _boosting(self) -> Boosting:
        labels, options = self._host_labels, self.options
        on = labels.signs > 0
        return Boosting(self.rows, on, *labels[1:], seed=options.seed, threads=options.threads)

    @cached_property
    def _host_labels(self) -> Labels:
        return self.labels._replace(signs=to_numpy(self.labels.signs))

    def _tries_linear(self) -> bool:
        """Return whether the rows are words."""
        wide = sp.issparse(self.rows) and self.rows.shape[1] >= _LINEAR_COLUMNS
        return self.options.linear and wide


def best_average_precision(X: Features, labels: Labels) -> float:
    """Return the average precision per row of held-out scores, with the best of a few kernels.

    For choosing between features of the same rows, which should be few.
    """
    base = distances(X)
    mean = make_kernel("rbf").mean_distance(base)
    if mean <= 0:
        return -np.inf  # all rows are the same
    on = to_numpy(labels.signs) > 0
    criterion = Criterion(on, "average_precision", False, labels.weight, None, labels.known)
    values = []
    for scale in (0.5, 1.0):
        gram = Gram("rbf", scale * mean, X)
        K = make_kernel("rbf").finish(base.copy(), gram.width)
        for penalty in (0.01, 0.1, 1.0, 10.0):
            held_out = fit_kernel(gram, labels.filled(), penalty, "float32", K).held_out
            values.append(criterion(held_out))
    return max(values)


def climb(value: Callable[[int], float], start: int, count: int, most: int) -> int:
    """Return the place of the best of ordered settings, found by steps to better neighbours."""
    best, tried = start, {start}
    value(start)
    for step in (1, -1):
        while 0 <= best + step < count and len(tried | {best + step}) <= most:
            tried.add(best + step)
            if value(best + step) <= value(best):
                break
            best += step
        if best != start:
            break
    return best


def calibrated(
    held_out: Array, labels: Labels, same_slope: bool = False
) -> tuple[LogisticMaps, Array]:
    """Return maps from scores to log-odds, and the log-odds."""
    on = labels.signs > 0
    maps = fit_logistic_maps(held_out, on, labels.weight, labels.known, same_slope=same_slope)
    return maps, maps.log_odds(held_out)


def most_frequent(labels: Labels, count: int) -> np.ndarray:
    """Return the labels that most rows have, at most so many, in their order."""
    counts = (to_numpy(labels.signs) > 0).sum(axis=0)
    return np.sort(np.argsort(-counts, kind="stable")[:count])


def couple(solutions: dict[int, Solution], place: int, eta: float, signs: np.ndarray) -> Solution:
    r"""Return a model whose labels share information, mixed from models of several penalties.

    With the correlation matrix R of the labels, the penalty ``lambda |W|^2`` becomes
    ``lambda tr(W ((1 - eta) I + eta R)^-1 W')``: along an eigenvector of R with eigenvalue r, the
    penalty is ``lambda / (1 - eta + eta r)``.  It is interpolated, in logarithms, between the
    penalties that were fitted.

    Parameters
    ----------
    solutions : dict of int to Solution
        By the place of the penalty.
    place : int
        The penalty lambda.
    eta : float
    signs : ndarray of shape (n_samples, n_labels)
    """
    first = solutions[place].coef
    values, vectors = np.linalg.eigh(np.corrcoef(signs.T))
    places = sorted(solutions)
    grid = np.log([PENALTIES[i] for i in places])
    wanted = np.log(PENALTIES[place] / (1 - eta + eta * values))
    U = asarray(vectors, first)
    mixed: list[Any] = [0.0, 0.0, 0.0]
    for number, i in enumerate(places):
        share = asarray(np.interp(wanted, grid, np.eye(len(places))[number]), first)
        turn = (U * share) @ U.T
        mixed = [total + part @ turn for total, part in zip(mixed, solutions[i], strict=True)]
    return Solution(*mixed)


def _stored(candidate: Candidate, weight: float) -> Array:
    """Return the coefficients of a member in float32, unless rounding could move probabilities.

    The error of a score is about that of a coefficient, eps / sqrt(12), times the length of all of
    them, since kernel values and rows of words are at most 1.
    """
    xp, coef = namespace(candidate.coef), candidate.coef
    squares = sum(
        xp.sum(coef[block, :] ** 2, axis=0) for block in row_blocks(coef.shape[0], coef.shape[1])
    )
    steepest = float(xp.max(xp.sqrt(squares) * candidate.maps.slope)) * weight / 4
    error = float(np.finfo(np.float32).eps) / 12**0.5 * steepest
    return astype(coef, "float32") if error <= _NEGLIGIBLE else coef


def _base_log_odds(signs: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the log-odds of the smoothed base rates: half a row added to each side."""
    v = np.ones(len(signs)) if weight is None else weight
    positives, known = v @ (signs > 0), signs != 0
    total = v.sum() if known.all() else v @ known
    return np.log(positives + 0.5) - np.log(total - positives + 0.5)


def _name(scoring: Any) -> str:
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "scoring")
