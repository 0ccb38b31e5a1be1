"""Thresholds the slow, obvious way: try every one, count every time."""

import itertools

import numpy as np


def counts(on, predicted):
    tp = sum(bool(o and p) for o, p in zip(on, predicted, strict=True))
    fp = sum(bool(not o and p) for o, p in zip(on, predicted, strict=True))
    fn = sum(bool(o and not p) for o, p in zip(on, predicted, strict=True))
    return tp, fp, fn, len(on) - tp - fp - fn


def f1(tp, fp, fn, tn):
    return 2 * tp / (2 * tp + fp + fn) if 2 * tp + fp + fn else 0.0


def balanced_accuracy(tp, fp, fn, tn):
    return (tp / (tp + fn) + tn / (tn + fp)) / 2


def accuracy(tp, fp, fn, tn):
    return (tp + tn) / (tp + fp + fn + tn)


def candidates(scores):
    """A threshold for every way to cut the scores."""
    distinct = sorted(set(scores.tolist()))
    between = [(a + b) / 2 for a, b in itertools.pairwise(distinct)]
    return [distinct[0], *between, distinct[-1] + 1]


def best_value(on, scores, criterion):
    return max(criterion(*counts(on, scores >= t)) for t in candidates(scores))


def best_micro_f1(on, scores):
    """Try every combination of every label's cuts; NaN in ``on`` is not counted."""
    best, known = 0.0, ~np.isnan(on.astype(float))
    of_labels = [candidates(column[own]) for column, own in zip(scores.T, known.T, strict=True)]
    for thresholds in itertools.product(*of_labels):
        predicted = scores >= np.array(thresholds)
        best = max(best, f1(*counts(on[known], predicted[known])))
    return best
