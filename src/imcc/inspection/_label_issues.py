r"""Labels that look wrong: entries whose held-out probability contradicts the given label.

Let labels be added and forgotten with the rates

    r0 = P(given 1 | true 0),    r1 = P(given 0 | true 1).

For an entry whose true label is 1 with probability t, the given label is by Bayes' rule wrong with
the probability ::

    given 1:   (1 - t) r0 / ((1 - t) r0 + t (1 - r1))
    given 0:   t r1 / (t r1 + (1 - t) (1 - r0))

A model that repeats the errors it has learned from has the probability of the given label,
``p = r0 + t (1 - r0 - r1)``; one that sees through them has p = t.  Models are in between, and the
score is the mean of both.

The rates are the shares of contradictions where the model is surest, as in confident learning
(Northcutt, Jiang and Chuang 2021): r0 among the entries with the lowest p, r1 among those with the
highest p, of all labels together, since few rows tell those of one.  There are hard rows among
these too, so that the rates are too high rather than too low; what matters most is which of the two
is higher.  If labels were only ever forgotten, a row that has a label against all odds is rarely
wrong, although its probability is as low as it gets.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.text import escaped_formula
from imcc._utils.validation import binarize_sets, check_number, encode_target, label_sets
from imcc._utils.wrappers import first_with
from imcc.inspection._results import Result, names_of_labels

# Share of the entries where the model is surest, and their least numbers.
_SUREST, _FEWEST_WITHOUT, _FEWEST_WITH = 0.02, 100, 30
# Where half of the surest entries contradict, the model knows nothing about the labels.
_HIGHEST_RATE = 0.45


@dataclass(frozen=True, repr=False)
class LabelIssues(Result):
    """Entries of a label matrix that look wrong, the most suspicious first.

    Attributes
    ----------
    rows : ndarray of int, shape (n_issues,)
        Index of the row.
    label_indices : ndarray of int, shape (n_issues,)
        Index of the label.
    labels : tuple of str
        Name of the label.
    given : ndarray of int, shape (n_issues,)
        The given label, 0 or 1.
    probabilities : ndarray of shape (n_issues,)
        Held-out probability that the row has the label.
    scores : ndarray of shape (n_issues,)
        Estimated probability that the given label is wrong.
    n_entries : int
        Number of entries with a known label and a probability.
    """

    rows: np.ndarray
    label_indices: np.ndarray
    labels: tuple[str, ...]
    given: np.ndarray
    probabilities: np.ndarray
    scores: np.ndarray
    n_entries: int

    def __len__(self) -> int:
        return len(self.rows)

    def _title(self) -> str:
        return f"LabelIssues: {len(self):,} of {self.n_entries:,} labels look wrong"

    def _table(self) -> dict[str, list[Any]]:
        return {
            "row": self.rows.tolist(),
            "label": list(self.labels),
            "given": self.given.tolist(),
            "probability": self.probabilities.tolist(),
            "score": self.scores.tolist(),
        }

    def to_csv(self, row_names: Sequence[object] | None = None) -> str:
        """Return the entries as CSV, with the columns row, label, given, probability and score.

        Parameters
        ----------
        row_names : sequence, default=None
            Identifiers of all rows, instead of their indices.

        Returns
        -------
        str
            Text that a spreadsheet would take for a formula is preceded by an apostrophe.
        """
        table, text = self._table(), io.StringIO()
        if row_names is not None:
            table["row"] = [escaped_formula(str(row_names[i])) for i in table["row"]]
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(table)
        for row, label, given, probability, score in zip(*table.values(), strict=True):
            name = escaped_formula(label)
            writer.writerow([row, name, given, f"{probability:.4f}", f"{score:.4f}"])
        return text.getvalue()


def find_label_issues(
    held_out: Any,
    y: Any = None,
    *,
    min_score: float = 0.4,
    label_names: Sequence[str] | None = None,
) -> LabelIssues:
    """Find labels that look wrong, because held-out probabilities contradict them.

    Parameters
    ----------
    held_out : array-like of shape (n_samples, n_labels), or fitted classifier
        Probability of each label for each row by a model that was not trained on the row, NaN where
        there is none; or a model that keeps them as ``held_out_proba_``, as
        :class:`imcc.KernelEnsembleClassifier`, :class:`imcc.TableClassifier` and
        :class:`imcc.estimators.MultilabelCalibrator` do.
    y : array-like of shape (n_samples, n_labels), default=None
        The given labels, coded {0, 1}, {-1, +1} or boolean, or a set of labels per row.  NaN is an
        unknown label, which cannot be wrong.  By default the training labels, if the model keeps
        them.
    min_score : float, default=0.4
        Minimum of the estimated probability that a label is wrong, between 0 and 1; 0 lists all
        suspect entries.
    label_names : sequence of str, default=None
        Names of the labels; by default those of ``y`` or of the model.

    Returns
    -------
    LabelIssues
        ``rows``, ``labels``, ``given``, ``probabilities`` and ``scores``, the most suspicious
        first; ``to_frame()`` and ``to_csv()``.

    See Also
    --------
    model_page : Shows the list with the rows.

    Notes
    -----
    An entry is suspect if its probability is on the other side of one half than the given label.
    The score is by Bayes' rule, with the rates at which labels were added and forgotten, which are
    estimated as in confident learning [1]_ by the shares of contradictions where the model is
    surest: the fiftieth of all entries with the lowest probabilities, and a fiftieth as many as
    there are given labels with the highest.

    References
    ----------
    .. [1] C. G. Northcutt, L. Jiang, I. L. Chuang. "Confident learning: estimating uncertainty in
       dataset labels." Journal of Artificial Intelligence Research 70, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from imcc.inspection import find_label_issues
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((300, 2)) < 0.5
    >>> chances = np.where(truth, 0.9, 0.1)
    >>> given = truth.astype(int)
    >>> given[7, 1] = 1 - given[7, 1]
    >>> issues = find_label_issues(chances, given, label_names=["cat", "dog"], min_score=0)
    >>> [(int(row), label) for row, label in zip(issues.rows, issues.labels)]
    [(7, 'dog')]
    """
    check_number("min_score", min_score, at_least=0)
    model = None if isinstance(held_out, (list, np.ndarray)) else held_out
    if hasattr(model, "fit"):
        keeps = first_with(model, "held_out_proba_")
        if keeps is None:
            raise InvalidArgumentError(
                "held_out",
                f"{type(model).__name__} keeps no held-out probabilities: pass those of "
                "cross_val_predict, or wrap the classifier in a MultilabelCalibrator",
            )
        chances, given = kept_probabilities(keeps)
        y = given if y is None else y
    else:
        model, chances = None, np.asarray(held_out, dtype=np.float64)
    if y is None:
        raise InvalidArgumentError("y", "is needed with probabilities: the given labels")
    signs, names = signs_and_names(model, y, len(chances), label_names)
    if chances.shape != signs.shape:
        raise InvalidArgumentError(
            "held_out",
            f"must have the shape of the labels, {signs.shape}, got {chances.shape}",
        )
    if np.nanmin(chances, initial=0.0) < 0 or np.nanmax(chances, initial=1.0) > 1:
        raise InvalidArgumentError("held_out", "must be probabilities between 0 and 1")
    scores = _issue_scores(signs, chances)
    rows, labels = np.nonzero(scores >= max(min_score, np.nextafter(0.0, 1.0)))
    order = np.argsort(-scores[rows, labels], kind="stable")
    rows, labels = rows[order], labels[order]
    return LabelIssues(
        rows=rows,
        label_indices=labels,
        labels=tuple(names[j] for j in labels),
        given=(signs[rows, labels] > 0).astype(np.int64),
        probabilities=chances[rows, labels],
        scores=scores[rows, labels],
        n_entries=int(((signs != 0) & ~np.isnan(chances)).sum()),
    )


def kept_probabilities(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the held-out probabilities that a model keeps, and their labels, NaN if unknown."""
    chances, labels = np.asarray(model.held_out_proba_), np.asarray(model.held_out_labels_)
    # A file can contain anything.
    if (
        chances.ndim != 2
        or chances.dtype.kind != "f"
        or labels.shape != chances.shape
        or labels.dtype != np.int8
        or not np.isin(labels, (-1, 0, 1)).all()
        or not (np.isnan(chances) | ((chances >= 0) & (chances <= 1))).all()
    ):
        raise InvalidArgumentError(
            "model", "has invalid held-out probabilities or labels: it was changed after its fit"
        )
    return chances.astype(np.float64), np.where(labels < 0, np.nan, labels)


def signs_and_names(
    model: Any, y: Any, n_rows: int, label_names: Sequence[str] | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return labels as +1, -1 and 0 where unknown, in the order of a model's labels, and names."""
    holder = first_with(model, "label_names_")
    known = label_names if holder is None else holder.label_names_
    if (sets := label_sets(y)) is not None and known is not None:
        signs = 2.0 * binarize_sets(sets, np.asarray(known, dtype=object))[0] - 1
        return signs, names_of_labels(model, signs.shape[1], label_names)
    target = encode_target(y, n_rows, "find_label_issues", unknown=True)
    if target.kind == "multiclass":
        raise InvalidArgumentError("y", "must be labels or two classes, got more classes")
    signs = np.sign(target.signs).astype(np.float64)
    own = None if target.label_names is None else [str(name) for name in target.label_names]
    if own is not None and holder is not None and holder.label_names_ is not None:
        kept = [str(name) for name in holder.label_names_]
        if sorted(own) != sorted(kept):
            raise InvalidArgumentError("y", f"has other labels than the model: {own[:5]}")
        signs, own = signs[:, [own.index(name) for name in kept]], kept
    return signs, names_of_labels(
        model, signs.shape[1], own if label_names is None else label_names
    )


def _issue_scores(signs: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """Return the estimated probability that each label is wrong; 0 for those not suspect.

    The formulas are in the docstring of this module.

    Parameters
    ----------
    signs : ndarray of shape (n_samples, n_labels)
        +1 and -1; 0 where unknown.
    chances : ndarray of shape (n_samples, n_labels)
        Held-out probabilities, NaN where there are none.
    """
    known = (signs != 0) & ~np.isnan(chances)
    # Of a label that is always the same, nothing was learned.
    known &= ((signs > 0) & known).any(axis=0) & ((signs < 0) & known).any(axis=0)
    scores = np.zeros(chances.shape)
    if known.any():
        on, p = signs[known] > 0, chances[known]
        # The shares of contradictions where the model is surest.
        order = np.argsort(p, kind="stable")
        lowest = order[: max(_FEWEST_WITHOUT, int(_SUREST * len(p)))]
        highest = order[-max(_FEWEST_WITH, int(_SUREST * on.sum())) :]
        r0 = min((on[lowest].sum() + 0.5) / (len(lowest) + 1), _HIGHEST_RATE)
        r1 = min(((~on[highest]).sum() + 0.5) / (len(highest) + 1), _HIGHEST_RATE)
        repeated = np.clip((p - r0) / (1 - r0 - r1), 0, 1)
        wrong = (_wrong(on, repeated, r0, r1) + _wrong(on, p, r0, r1)) / 2
        scores[known] = np.where(np.where(on, p < 0.5, p > 0.5), wrong, 0.0)
    return scores


def _wrong(on: np.ndarray, true: np.ndarray, r0: float, r1: float) -> np.ndarray:
    """Return the probability that given labels are wrong, by those of the true ones."""
    added, forgotten = (1 - true) * r0, true * r1
    return np.where(
        on, added / (added + true * (1 - r1)), forgotten / (forgotten + (1 - true) * (1 - r0))
    )
