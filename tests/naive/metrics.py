"""The five metrics, row by row and label by label."""

import numpy as np


def rank(scores, label):
    return sum(1 for s in scores if s >= scores[label])


def row_metrics(relevant, scores):
    """Return the five values of one row; None where the row is left out."""
    q = len(scores)
    on = [k for k in range(q) if relevant[k]]
    off = [k for k in range(q) if not relevant[k]]
    hamming = sum((scores[k] >= 0) != bool(relevant[k]) for k in range(q)) / q
    coverage = (max(rank(scores, k) for k in on) - 1) / q if on else 0.0
    values = {"hamming_loss": hamming, "coverage": coverage}
    if not on or not off:
        return {**values, "one_error": None, "ranking_loss": None, "average_precision": None}
    top = max(scores)
    values["one_error"] = float(not any(scores[k] == top for k in on))
    wrong = sum(scores[k] <= scores[m] for k in on for m in off)
    values["ranking_loss"] = wrong / (len(on) * len(off))
    precisions = [sum(scores[m] >= scores[k] for m in on) / rank(scores, k) for k in on]
    values["average_precision"] = sum(precisions) / len(on)
    return values


def evaluate(relevant, scores):
    rows = [row_metrics(r, s) for r, s in zip(relevant, scores, strict=True)]
    names = ["one_error", "hamming_loss", "ranking_loss", "coverage", "average_precision"]
    result = {}
    for name in names:
        kept = [row[name] for row in rows if row[name] is not None]
        result[name] = float(np.mean(kept)) if kept else float("nan")
    return result


def evaluate_known(truth, scores, weights=None):
    """The same where labels that are NaN are not known: a row has only the labels known of it."""
    names = ["one_error", "hamming_loss", "ranking_loss", "coverage", "average_precision"]
    weights = np.ones(len(truth)) if weights is None else weights
    totals = dict.fromkeys(names, 0.0)
    below = dict.fromkeys(names, 0.0)
    for row, own, weight in zip(truth, scores, weights, strict=True):
        known = ~np.isnan(row)
        if not known.any():
            continue
        for name, value in row_metrics(row[known] == 1, own[known]).items():
            if value is not None:
                totals[name] += weight * value
                below[name] += weight
    return {n: totals[n] / below[n] if below[n] else float("nan") for n in names}


def best_labels(scores, k):
    """Return the k labels with the highest scores of each row; of equal ones, the first."""
    return np.array([sorted(range(len(row)), key=lambda j: (-row[j], j))[:k] for row in scores])
