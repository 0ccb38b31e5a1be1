r"""Contributions of the columns of a table to a score: Shapley values.

The score of a row x is compared with those of m background rows b.  For a set S of columns, let
x_S b be the background row b with the columns in S replaced by those of x.  The value of S is the
mean score over the background rows ::

    v(S) = 1/m sum_b f(x_S b),        v(all) = f(x),   v(none) = the baseline, 1/m sum_b f(b)

and the contribution of column i is its Shapley value, the mean over all orders of the columns of
the change when i is replaced (Shapley 1953; this v is called "marginal" or "interventional" by
Janzing, Minorics and Bloebaum 2020) ::

    phi_i = sum_{S without i} |S|! (k - |S| - 1)! / k!  (v(S + i) - v(S)),
    sum_i phi_i = f(x) - baseline.

It is a mean over background rows of the Shapley values for x and a single b.  For these, only the
columns matter in which x and b differ; the others contribute 0.  If all sets of these columns can
be evaluated, the values are exact.  Otherwise orders of the columns are sampled, each with its
reverse (antithetic pairs), equally many for every background row, so that the contributions still
sum to f(x) - baseline up to rounding.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
from scipy.special import expit

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.progress import report_progress
from imcc._utils.text import printable
from imcc._utils.validation import check_count
from imcc._utils.wrappers import layers
from imcc.estimators.base import LogOddsClassifierMixin
from imcc.estimators.cross_fit import label_scores, scoring_method
from imcc.estimators.thresholds import score_thresholds
from imcc.inspection._mixed import Mixer, as_rows, encoded, make_mixer, take_rows
from imcc.inspection._results import Result, as_frame, names_of_labels

# Maximum number of mixed rows, and of their cells, that are scored at a time.
_ROWS = 2048
_CELLS = 2**22
# Number of background rows used to find the most important columns.
_SCREENING_ROWS = 10


@dataclass(frozen=True)
class ColumnPart:
    """The contribution of one column, or group of columns, to a score.

    Attributes
    ----------
    column : str
        Name of the column or group.
    value : str
        The row's value, as text.
    contribution : float
        Shapley value.
    standard_error : float
        See :class:`ColumnAttribution`.
    """

    column: str
    value: str
    contribution: float
    standard_error: float


@dataclass(frozen=True, repr=False)
class ColumnAttribution(Result):
    """The scores of one row as sums over columns: ``score = baseline + sum of contributions``.

    Attributes
    ----------
    label_names : tuple of str
        Names of the labels.
    columns : tuple of str
        Names of the columns; the last one may be a group, "N other columns".
    values : tuple of str
        The row's values, as text; for a group, the number of columns.
    scale : {"log-odds", "score", "probability"}
        What is explained: the decision function, which is log-odds for a model of imcc with
        probabilities, or the probabilities of a model without ``decision_function``.
    scores : ndarray of shape (n_labels,)
        Scores of the row.
    thresholds : ndarray of shape (n_labels,)
        A label is predicted if its score is at least this value.
    baseline : ndarray of shape (n_labels,)
        Mean score of the background rows.
    contributions : ndarray of shape (n_columns, n_labels)
        Shapley values.
    standard_errors : ndarray of shape (n_columns, n_labels)
        Standard errors of the contributions, due to the choice of background rows (none if all
        given rows are used) and to the sampled orders.
    sampling_errors : ndarray of shape (n_columns, n_labels)
        Standard errors due to the sampled orders only; 0 if exact.
    n_background, n_rows : int
        Number of background rows used, and of the rows that they were drawn from.
    n_evaluations : int
        Number of mixed rows that were scored.
    n_pairs : int
        Number of pairs of orders sampled per background row; 0 if all sets of columns were
        evaluated, so that the values are exact.
    """

    label_names: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[str, ...]
    scale: str
    scores: np.ndarray
    thresholds: np.ndarray
    baseline: np.ndarray
    contributions: np.ndarray
    standard_errors: np.ndarray
    sampling_errors: np.ndarray
    n_background: int
    n_rows: int
    n_evaluations: int
    n_pairs: int

    def index(self, label: int | str | None = None) -> int:
        """Return the index of a label.

        Parameters
        ----------
        label : int or str, default=None
            Index or name; by default, the label whose score exceeds its threshold the most.
        """
        if label is None:
            return int(np.argmax(self.scores - self.thresholds))
        if label in self.label_names:
            return self.label_names.index(str(label))
        if isinstance(label, str) or not 0 <= label < len(self.label_names):
            listed = ", ".join(map(repr, self.label_names[:5]))
            listed += ", ..." if len(self.label_names) > 5 else ""
            raise InvalidArgumentError(
                "label",
                f"must be one of the model's labels ({listed}) or its index, got {label!r}",
            )
        return int(label)

    def parts(self, label: int | str | None = None, top: int | None = None) -> list[ColumnPart]:
        """Return the contributions to the score of a label, by decreasing absolute value.

        Parameters
        ----------
        label : int or str, default=None
            Index or name; by default, the label whose score exceeds its threshold the most.
        top : int, default=None
            Maximum number of contributions; all by default.

        Returns
        -------
        list of ColumnPart
        """
        j = self.index(label)
        if top is not None:
            check_count("top", top)
        order = np.argsort(-np.abs(self.contributions[:, j]), kind="stable")[:top]
        return [
            ColumnPart(
                self.columns[i],
                self.values[i],
                float(self.contributions[i, j]),
                float(self.standard_errors[i, j]),
            )
            for i in order
        ]

    def decision(self, label: int | str | None = None) -> str:
        """Return the score of a label and whether it is predicted, in words.

        Log-odds are shown as probabilities.
        """
        j = self.index(label)
        name, score, threshold = self.scale, self.scores[j], self.thresholds[j]
        predicted = "predicted" if score >= threshold else "not predicted"
        if self.scale == "log-odds":
            name, score, threshold = "probability", expit(score), expit(threshold)
        return f"{name} {score:.3f}, {predicted} (from {threshold:.3f} on)"

    def _title(self) -> str:
        j = self.index()
        return (
            f"ColumnAttribution of {printable(self.label_names[j])} (1 of {len(self.label_names)} "
            f"labels): {self.decision(j)}; {self.scale} "
            f"{self.scores[j] - self.baseline[j]:+.3f} from the mean "
            f"{self.baseline[j]:.3f} of {self.n_background:,} background rows"
        )

    def _table(self, label: int | str | None = None) -> dict[str, list[Any]]:
        parts = self.parts(label)
        names = ("column", "value", "contribution", "standard_error")
        return {name: [getattr(part, name) for part in parts] for name in names}

    def to_frame(self, label: int | str | None = None) -> Any:
        """Return a data frame of the contributions.

        Parameters
        ----------
        label : int or str, default=None
            Index or name of a label, for its contributions and their standard errors, by
            decreasing absolute value.  By default, the contributions to all labels.

        Returns
        -------
        pandas.DataFrame
            With the columns of :meth:`parts`; or with one column per label, indexed by the columns
            of the table and their values.
        """
        if label is not None:
            return as_frame(self._table(label))
        index = {"column": self.columns, "value": self.values}
        return as_frame(self.contributions, index, list(self.label_names))


def explain_columns(
    model: Any,
    x: Any,
    background: Any,
    *,
    n_background: int = 50,
    max_evaluations: int = 2**12,
    max_columns: int = 20,
    random_state: int = 0,
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
) -> ColumnAttribution:
    """Decompose the scores of a row into contributions of the model's input columns.

    The contributions are Shapley values.  They are defined for any classifier with
    ``decision_function`` or ``predict_proba``, including pipelines and wrappers.  For a
    :class:`imcc.tables.TableClassifier`, a column of text or dates counts as one column,
    regardless of the number of features derived from it.

    Parameters
    ----------
    model : classifier
        A fitted classifier.
    x : array-like, data frame, Arrow table or sparse matrix of one row
        The row to explain; may also be a vector or a dict of columns.
    background : array-like, data frame, Arrow table or sparse matrix
        Rows that the row is compared with: the training rows, or other typical rows.
    n_background : int, default=50
        Maximum number of background rows used, drawn without replacement.
    max_evaluations : int, default=4096
        Maximum number of mixed rows that are scored.  If this suffices for all sets of columns, the
        contributions are exact; this is usually so for up to 6 columns.  If it does not suffice for
        two pairs of orders per background row, fewer background rows are used.
    max_columns : int, default=20
        If there are more columns, >= 2, the least important ones form one group, "N other columns".
        Importance is estimated by replacing single columns, and all columns except one.
    random_state : int, default=0
        Seed for drawing background rows and orders.
    label_names : sequence of str, default=None
        Names of the labels; by default those stored by the model.
    feature_names : sequence of str, default=None
        Names of the columns of an array; by default those stored by the model.

    Returns
    -------
    ColumnAttribution
        Of all labels, which are computed from the same mixed rows: ``contributions`` and
        ``standard_errors`` of shape (n_columns, n_labels), ``baseline``, ``scores``, ``columns``
        and ``values``; ``parts(label)`` are the contributions to one label; ``to_frame()`` and
        ``to_dict()``.

    See Also
    --------
    explain_row : With the nearest rows.

    Notes
    -----
    For a set S of the k columns, v(S) is the mean score of the background rows with the columns
    in S replaced by those of x.  Column i contributes ::

        sum_{S without i} |S|! (k - |S| - 1)! / k!  (v(S + i) - v(S))

    [1]_, the mean over all orders of the columns of the change when i is replaced.  If columns are
    dependent, mixed rows may be unlike any real row: the values explain the model, not the data.
    Sampled orders are paired with their reverses, equally many for every background row, so that
    the contributions still sum to the score minus the baseline.

    References
    ----------
    .. [1] L. S. Shapley. "A value for n-person games." Contributions to the Theory of Games II,
       Princeton University Press, 1953.
    .. [2] D. Janzing, L. Minorics, P. Bloebaum. "Feature relevance quantification in explainable
       AI: a causal problem." AISTATS, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from imcc import IMCCClassifier
    >>> from imcc.inspection import explain_columns
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> Y = np.column_stack([X[:, 0] > 0, X[:, 0] + X[:, 1] > 0])
    >>> clf = IMCCClassifier(n_clusters=8, random_state=0).fit(X, Y)
    >>> found = explain_columns(clf, [2.0, 0.0, 0.0], X)
    >>> [part.column for part in found.parts("label0", top=1)]
    ['x0']
    >>> total = found.baseline + found.contributions.sum(axis=0)
    >>> bool(np.allclose(total, clf.decision_function([[2.0, 0.0, 0.0]])[0]))
    True
    """
    check_count("n_background", n_background)
    check_count("max_evaluations", max_evaluations)
    check_count("max_columns", max_columns, at_least=2)
    check_count("random_state", random_state, at_least=0)
    background = as_rows(background)
    n_rows = int(background.shape[0])
    if not n_rows:
        raise InvalidArgumentError("background", "has no rows")
    rng = np.random.default_rng(random_state)
    drawn = np.arange(n_rows)
    if n_background < n_rows:
        drawn = np.sort(rng.choice(n_rows, n_background, replace=False))
    mixer = make_mixer(model, x, take_rows(background, drawn), feature_names)
    columns, (values,) = list(mixer.columns), mixer.texts(1)
    of_row = _scores(model, take_rows(mixer.table, [0]))[0]
    of_background = _scores(model, take_rows(mixer.table, np.arange(1, len(drawn) + 1)))
    n_labels = len(of_row)
    names = names_of_labels(model, n_labels, label_names)
    game = _Game(*encoded(model, mixer), of_row, of_background)
    if len(columns) > max_columns:
        alone = _most_important(game, max_columns - 1, max_evaluations)
        n_others = len(columns) - len(alone)
        columns = [*(columns[g] for g in alone), f"{n_others:,} other columns"]
        values = [*(values[g] for g in alone), f"{n_others:,} columns"]
        group_of = np.full(len(mixer.columns), len(alone))
        group_of[alone] = np.arange(len(alone))
        game.regroup(group_of)
    left = max_evaluations - game.n_evaluations
    m = len(drawn)
    while (n_pairs := _count_pairs(game.differs, left)) == 1 and m > 1:
        # More orders of fewer rows: the standard errors then show what that costs.
        m = (m + 1) // 2
        game.keep(np.sort(rng.permutation(len(game.of_background))[:m]))
    if n_pairs == 1:
        raise InvalidArgumentError(
            "max_evaluations",
            f"leaves {left:,} mixed rows, too few for {game.n_groups} columns and one background "
            "row: increase it, or use fewer columns",
        )
    phi, variances = _shapley(game, n_pairs, rng)
    scale = "probability"
    if scoring_method(model) != "predict_proba":
        is_ours = any(isinstance(layer, LogOddsClassifierMixin) for layer in layers(model))
        scale = "log-odds" if is_ours and hasattr(model, "predict_proba") else "score"
    sampled = variances.sum(axis=0) / m**2
    total = phi.var(axis=0, ddof=1) / m if m > 1 else np.zeros_like(sampled)
    chosen = np.maximum(total - sampled, 0.0) * (1 - m / n_rows)
    return ColumnAttribution(
        label_names=names,
        columns=tuple(columns),
        values=tuple(values),
        scale=scale,
        scores=of_row,
        thresholds=score_thresholds(model, n_labels),
        baseline=game.of_background.mean(axis=0),
        contributions=phi.mean(axis=0),
        standard_errors=np.sqrt(sampled + chosen),
        sampling_errors=np.sqrt(sampled),
        n_background=m,
        n_rows=n_rows,
        n_evaluations=game.n_evaluations,
        n_pairs=n_pairs,
    )


def _scores(model: Any, rows: Any) -> np.ndarray:
    scores = label_scores(model, rows).astype(np.float64)
    if not np.isfinite(scores).all():
        raise InvalidArgumentError("model", "has scores for these rows that are not finite")
    return scores


class _Game:
    """The scores of mixed rows, for groups of columns.

    Attributes
    ----------
    group_of : ndarray of shape (n_columns,)
        Index of each column's group.
    n_groups : int
    differs : ndarray of bool of shape (n_background, n_groups)
        Where the background rows differ from the row.
    of_row : ndarray of shape (n_labels,)
        Scores of the row.
    of_background : ndarray of shape (n_background, n_labels)
        Scores of the background rows.
    n_evaluations : int
        Number of mixed rows scored.
    """

    def __init__(
        self, model: Any, mixer: Mixer, of_row: np.ndarray, of_background: np.ndarray
    ) -> None:
        self._model, self._mixer = model, mixer
        self._by_column, self._rows = mixer.differs(), np.arange(len(of_background))
        self.of_row, self.of_background = of_row, of_background
        self.n_evaluations = 0
        self.regroup(np.arange(len(mixer.columns)))

    def regroup(self, group_of: np.ndarray) -> None:
        """Assign the columns to other groups."""
        self.group_of, self.n_groups = group_of, int(group_of.max()) + 1
        self.differs = np.zeros((len(self.of_background), self.n_groups), dtype=bool)
        for column, group in enumerate(group_of):
            self.differs[:, group] |= self._by_column[:, column]

    def keep(self, rows: np.ndarray) -> None:
        """Keep some of the background rows only."""
        self._rows, self.of_background = self._rows[rows], self.of_background[rows]
        self._by_column, self.differs = self._by_column[rows], self.differs[rows]

    def scores(self, rows: np.ndarray, taken: np.ndarray) -> np.ndarray:
        """Return the scores of background rows with groups taken from the row, in blocks."""
        features = self.group_of if self._mixer.owners is None else self._mixer.owners
        block = max(1, min(_ROWS, _CELLS // max(len(features), 1)))
        found = np.empty((len(rows), len(self.of_row)))
        for start in range(0, len(rows), block):
            part = slice(start, start + block)
            with warnings.catch_warnings():
                # Warnings about these cells were given when the original rows were scored.
                warnings.simplefilter("ignore")
                mixed = self._mixer.mixed(self._rows[rows[part]], taken[part][:, self.group_of])
                found[part] = _scores(self._model, mixed)
            self.n_evaluations += len(rows[part])
            report_progress(start + block, len(rows))
        return found


def _most_important(game: _Game, count: int, max_evaluations: int) -> np.ndarray:
    """Return the indices of the most important columns, in increasing order.

    The importance of a column is the mean, over some background rows, of the change of the score
    when it is replaced first and when it is replaced last; the maximum over the labels is used.
    """
    per_row = 2 * game.differs.sum(axis=1)
    n_rows = min(_SCREENING_ROWS, len(per_row))
    while n_rows > 1 and per_row[:n_rows].sum() > max_evaluations // 2:
        n_rows -= 1
    if per_row[:n_rows].sum() > max_evaluations:
        raise InvalidArgumentError(
            "max_evaluations",
            f"is {max_evaluations:,}, too few to find the most important of {game.n_groups:,} "
            f"columns: use at least {int(per_row[0]):,}",
        )
    rows, columns = np.nonzero(game.differs[:n_rows])
    first = np.zeros((len(rows), game.n_groups), dtype=bool)
    first[np.arange(len(rows)), columns] = True
    taken_first = game.scores(rows, first) - game.of_background[rows]
    taken_last = game.of_row - game.scores(rows, ~first)
    sums = np.zeros((game.n_groups, taken_first.shape[1]))
    np.add.at(sums, columns, taken_first + taken_last)
    return np.sort(np.argsort(-np.abs(sums).max(axis=1), kind="stable")[:count])


def _count_pairs(differs: np.ndarray, max_evaluations: int) -> int:
    """Return the number of pairs of orders to sample.

    0 if all sets can be evaluated; 1 if there are too few evaluations for a standard error.
    """
    counts = differs.sum(axis=1).astype(np.float64)
    everything = np.maximum(2.0 ** np.minimum(counts, 1000) - 2, 0)  # more would overflow
    if everything.sum() <= max_evaluations:
        return 0
    per_pair = float(2 * np.maximum(counts - 1, 0).sum())
    return max(1, int(max_evaluations // per_pair))


def _shapley(game: _Game, n_pairs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return Shapley values per background row, and their variances due to sampling.

    Returns
    -------
    phi, variances : ndarray of shape (n_background, n_groups, n_labels)
    """
    players = [np.flatnonzero(differs) for differs in game.differs]
    orders: list[np.ndarray | None] = []
    masks: list[np.ndarray] = []
    for own in players:
        d = len(own)
        if n_pairs == 0 or d < 2 or 2**d - 2 <= n_pairs * 2 * (d - 1):
            orders.append(None)
            masks.append(_subsets(own, game.n_groups))
        else:
            drawn = np.array([rng.permutation(own) for _ in range(n_pairs)])
            both = np.stack([drawn, drawn[:, ::-1]], axis=1).reshape(-1, d)
            orders.append(both)
            masks.append(_prefixes(both, game.n_groups))
    rows = np.repeat(np.arange(len(players)), [len(mask) for mask in masks])
    scores = game.scores(rows, np.concatenate(masks))
    phi = np.zeros((len(players), game.n_groups, scores.shape[1]))
    variances = np.zeros_like(phi)
    start = 0
    for b, (own, order, mask) in enumerate(zip(players, orders, masks, strict=True)):
        asked = scores[start : start + len(mask)]
        start += len(mask)
        if not len(own):
            continue
        bounds = game.of_background[b], game.of_row
        if order is None:
            phi[b, own] = _from_subsets(asked, *bounds)
            continue
        steps = _steps(asked, order, *bounds)
        pairs = np.empty((n_pairs, game.n_groups, scores.shape[1]))
        pairs[:, own] = steps.reshape(n_pairs, 2, len(own), -1).mean(axis=1)
        phi[b, own] = pairs[:, own].mean(axis=0)
        variances[b, own] = pairs[:, own].var(axis=0, ddof=1) / n_pairs
    return phi, variances


def _subsets(own: np.ndarray, n_groups: int) -> np.ndarray:
    """Return all nonempty proper subsets of some groups, in the order of binary numbers."""
    d = len(own)
    numbers = np.arange(1, 2**d - 1)
    found = np.zeros((len(numbers), n_groups), dtype=bool)
    found[:, own] = (numbers[:, np.newaxis] >> np.arange(d)) & 1
    return found


def _from_subsets(asked: np.ndarray, none: np.ndarray, every: np.ndarray) -> np.ndarray:
    """Return Shapley values by their definition, shape (n_players, n_labels)."""
    values = np.vstack([none, asked, every])
    d = len(values).bit_length() - 1
    numbers = np.arange(len(values))
    sizes = ((numbers[:, np.newaxis] >> np.arange(d)) & 1).sum(axis=1)
    weights = np.array([factorial(s) * factorial(d - s - 1) / factorial(d) for s in range(d)])
    found = np.empty((d, values.shape[1]))
    for i in range(d):
        without = numbers[(numbers >> i) & 1 == 0]
        gains = values[without | (1 << i)] - values[without]
        found[i] = weights[sizes[without]] @ gains
    return found


def _prefixes(orders: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the nonempty proper prefixes of each order, as sets."""
    n_orders, d = orders.shape
    found = np.zeros((n_orders, d - 1, n_groups), dtype=bool)
    for step in range(d - 1):
        found[np.arange(n_orders)[:, np.newaxis], step, orders[:, : step + 1]] = True
    return found.reshape(-1, n_groups)


def _steps(
    asked: np.ndarray, orders: np.ndarray, none: np.ndarray, every: np.ndarray
) -> np.ndarray:
    """Return the change of the score by each group, shape (n_orders, n_players, n_labels)."""
    n_orders, d = orders.shape
    values = np.empty((n_orders, d + 1, asked.shape[1]))
    values[:, 0], values[:, -1] = none, every
    values[:, 1:-1] = asked.reshape(n_orders, d - 1, -1)
    gains = np.diff(values, axis=1)
    # Sort the changes by group: all orders have the same groups.
    places = np.argsort(orders, axis=1)
    return np.take_along_axis(gains, places[:, :, np.newaxis], axis=1)
