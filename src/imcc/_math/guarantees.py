r"""Thresholds that promise a recall or a precision, tested on rows that chose nothing else.

A threshold t promises a recall of r if the hypothesis "the recall at t is below r" is rejected, and
likewise for a precision ("learn then test").  Then P(the chosen threshold keeps the promise) is at
least the confidence, over the drawing of the calibration rows, whatever the model is.

* **One label.**  The rows with the label (recall) or those above t (precision) are independent
  trials, so that the tail of the binomial distribution is an exact p-value.
* **All labels together.**  Recall and precision are ratios of sums over rows, and the labels of a
  row depend on each other: the rows are the trials.  With a = 1 - r, the recall is at least r if
  and only if the mean of Z_i = FN_i - a (TP_i + FN_i) is at most 0 (for the precision, FP instead
  of FN).  The wealth of a gambler who bets on that, prod_i (1 - l_i Z_i) with l_i chosen before row
  i is seen, exceeds 1 / (1 - confidence) with a probability of at most 1 - confidence if the mean
  is above 0.  The bets must keep every factor positive.  For this, no row may have more labels
  (true ones for the recall, predicted ones for the precision) than the largest number seen.

The recall can only decrease with the threshold, so that all thresholds are tested from the lowest
one upwards, until the first that is not rejected, without correction for their number.  The
precision is not monotone.  A part of the rows therefore chooses where the tests begin, at the
threshold that this part promises most clearly, and the thresholds below are tested on the other
rows, one after another, until the first that is not rejected.

References
----------
A. N. Angelopoulos et al. "Learn then test: calibrating predictive algorithms to achieve risk
control." Annals of Applied Statistics 19, 2025.
I. Waudby-Smith and A. Ramdas. "Estimating means of bounded random variables by betting." Journal of
the Royal Statistical Society B 86, 2024.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import binom

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import check_choice, check_scores, check_share

# Part of the rows that chooses where the tests of a precision begin.
_TO_BEGIN = 0.25
# The most thresholds that are tested for a precision.
_MOST_TESTS = 200
# A bet never risks more than this part of the wealth.
_MOST_RISKED = 0.75


class NoGuaranteeWarning(UserWarning):
    """No threshold could be shown to keep a promise."""


def guarantee_thresholds(
    y_true: Any,
    scores: Any,
    *,
    recall: float | None = None,
    precision: float | None = None,
    per: str = "label",
    confidence: float = 0.9,
    label_names: Any = None,
) -> np.ndarray:
    """Choose thresholds that promise a recall or a precision, with a confidence.

    The promise is about new rows: if the calibration rows were drawn again and again, the
    thresholds would keep it in at least ``confidence`` of the cases.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels of the calibration rows, coded {0, 1}, {-1, +1} or boolean.  The rows must be
        independent, distributed like the rows to predict, and not have been used to train, tune or
        calibrate the model.  NaN in a dense matrix is an unknown label, which is not counted.
    scores : array-like of shape (n_samples, n_labels)
        Their scores.  With ``per="overall"``, the scores of different labels must be comparable,
        as probabilities are.
    recall : float, default=None
        Promise that at least this share of the true labels is predicted.  The highest such
        threshold is chosen.
    precision : float, default=None
        Promise that at least this share of the predicted labels is true.  Pass one of the two.
    per : {"label", "overall"}, default="label"
        Whether the promise is made for each label separately, or for the labels of all rows
        together, with one threshold for all labels.  The confidence of "label" is that of each
        single promise; use 1 - (1 - confidence) / n_labels if all should hold together.  "overall"
        assumes that no row has more labels than the calibration row with the most.
    confidence : float, default=0.9
        Probability, at least, that the promise is kept.
    label_names : sequence of str, default=None
        Names for the warning.

    Returns
    -------
    ndarray of shape (n_labels,)
        Thresholds; a label is predicted if its score is at least its threshold.  If no threshold
        can promise it, -inf for a recall (always predict the label) and inf for a precision (never
        predict it), which keep the promise.

    Warns
    -----
    NoGuaranteeWarning
        If no threshold can promise it, in most cases because there are too few rows: a recall or
        precision of 0.9 with a confidence of 0.9 takes at least 22 rows with the label.

    See Also
    --------
    GuaranteedThresholds : A classifier with such thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> from imcc.estimators import guarantee_thresholds
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((500, 2)) < 0.4
    >>> scores = truth + rng.normal(size=(500, 2)) / 2
    >>> found = scores >= guarantee_thresholds(truth, scores, recall=0.9)
    >>> [round(float(found[truth[:, j], j].mean()), 2) for j in range(2)]
    [0.94, 0.93]
    """
    promised = check_promise(recall, precision, per, confidence)
    on, scores, known = check_scores(y_true, scores)
    known = np.ones(on.shape, dtype=bool) if known is None else known
    # Rows may be sorted; every order of independent rows is as good.
    order = np.random.default_rng(0).permutation(len(on))
    on, known, scores = on[order], known[order], scores[order]
    risk, level = 1 - promised, 1 - confidence
    choose = _for_recall if precision is None else _for_precision
    if per == "overall":
        chosen = choose(on, known, scores, risk, level, _betting)
        thresholds = np.full(on.shape[1], chosen)
    else:
        columns = [slice(j, j + 1) for j in range(on.shape[1])]
        thresholds = np.array(
            [choose(on[:, j], known[:, j], scores[:, j], risk, level, _exact) for j in columns]
        )
    _warn_where_none(thresholds, "recall" if precision is None else "precision", per, label_names)
    return thresholds


def check_promise(recall: Any, precision: Any, per: Any, confidence: Any) -> float:
    """Check what is promised, and return the recall or precision."""
    if (recall is None) == (precision is None):
        raise InvalidArgumentError("recall", "or precision must be given, and not both")
    check_choice("per", per, ("label", "overall"))
    check_share("confidence", confidence)
    return check_share(*(("recall", recall) if precision is None else ("precision", precision)))


#: Whether the mean loss of rows is at most ``risk`` times that of their trials, at a level.
Test = Callable[[np.ndarray, np.ndarray, float, float], bool]


def _exact(losses: np.ndarray, trials: np.ndarray, risk: float, level: float) -> bool:
    """Test by the binomial distribution, for at most one trial per row."""
    return bool(binom.cdf(losses.sum(), trials.sum(), risk) <= level)


def _betting(losses: np.ndarray, trials: np.ndarray, risk: float, level: float) -> bool:
    """Test by the wealth of bets, for several trials per row that may depend on each other."""
    if not trials.any():
        return False
    z = losses - risk * trials
    # Bets that are best for the variance that independent trials would have, as many per row as in
    # the rows before, and one to begin with.
    before = np.append(1.0, 1.0 + np.cumsum(trials)[:-1]) / np.arange(1, len(z) + 1)
    bets = np.sqrt(2 * np.log(1 / level) / (len(z) * risk * (1 - risk) * before))
    bets = np.minimum(bets, _MOST_RISKED / ((1 - risk) * trials.max()))
    return bool(np.cumsum(np.log1p(-bets * z)).max() >= np.log(1 / level))


def _for_recall(
    on: np.ndarray, known: np.ndarray, scores: np.ndarray, risk: float, level: float, test: Test
) -> float:
    """Return the highest threshold that promises a recall; -inf if there is none."""
    del known  # what is unknown is not on
    trials = on.sum(axis=1)
    values = np.unique(scores[on])
    # The lowest value misses nothing; what is missed only grows, and with it all the p-values.
    passed, failed = -1, len(values)
    while failed - passed > 1:
        middle = (passed + failed) // 2
        losses = (on & (scores < values[middle])).sum(axis=1)
        if test(losses, trials, risk, level):
            passed = middle
        else:
            failed = middle
    return float(values[passed]) if passed >= 0 else -np.inf


def _for_precision(
    on: np.ndarray, known: np.ndarray, scores: np.ndarray, risk: float, level: float, test: Test
) -> float:
    """Return a low threshold that promises a precision; inf if there is none."""
    n_first = round(_TO_BEGIN * len(on))
    first, rest = slice(None, n_first), slice(n_first, None)
    values = np.unique(scores[first][known[first]])[::-1]
    if not len(values):
        return np.inf
    if len(values) > _MOST_TESTS:
        values = values[np.linspace(0, len(values) - 1, _MOST_TESTS).astype(int)]

    def counts(rows: slice, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        predicted = known[rows] & (scores[rows] >= threshold)
        return (predicted & ~on[rows]).sum(axis=1), predicted.sum(axis=1)

    # How many standard errors the precision is above the promised one, with one more error.
    wrong, marked = np.array([[c.sum() for c in counts(first, t)] for t in values]).T
    clear = (risk - (wrong + 1) / (marked + 1)) * np.sqrt(marked)
    chosen = np.inf
    for threshold in values[np.argmax(clear) :]:
        losses, trials = counts(rest, threshold)
        if not test(losses, trials, risk, level):
            break
        chosen = float(threshold)
    return chosen


def _warn_where_none(thresholds: np.ndarray, name: str, per: str, label_names: Any) -> None:
    without = np.flatnonzero(~np.isfinite(thresholds))
    if not len(without):
        return
    what = "always predicted" if name == "recall" else "never predicted"
    who = "all labels are"
    if per == "label":
        names = [repr(str(label_names[j])) if label_names is not None else str(j) for j in without]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        who = f"label{'s' if len(names) > 1 else ''} {', '.join(names[:5])}{more} "
        who += "are" if len(names) > 1 else "is"
    warnings.warn(
        f"no threshold can promise this {name} with this confidence, so that {who} {what}: use "
        f"more calibration rows, a lower {name} or a lower confidence",
        NoGuaranteeWarning,
        stacklevel=3,
    )
