"""Looking into a model the slow, obvious way."""

import numpy as np


def split_covariance(on, assignment):
    """The covariance of labels between clusters and within them, row by row."""
    n, q = on.shape
    mean = on.mean(axis=0)
    between, within = np.zeros((2, q, q))
    for i in range(n):
        cluster = on[assignment == assignment[i]].mean(axis=0)
        between += np.outer(cluster - mean, cluster - mean) / n
        within += np.outer(on[i] - cluster, on[i] - cluster) / n
    return between, within


def resampled_measures(Y, P, rows, edges):
    """Log loss, Brier score and calibration error of each label on the rows drawn, by loops."""
    out = np.zeros((3, Y.shape[1]))
    for j in range(Y.shape[1]):
        sums = dict.fromkeys(range(len(edges) - 1), 0.0)
        for i in rows:
            p, y = P[i, j], Y[i, j]
            inside = min(max(p, 1e-7), 1 - 1e-7)
            out[0, j] -= np.log(inside if y else 1 - inside) / len(rows)
            out[1, j] += (p - y) ** 2 / len(rows)
            # The last bin with its left edge at or below p.
            sums[max(b for b in sums if edges[b] <= p)] += p - y
        out[2, j] = sum(abs(gap) for gap in sums.values()) / len(rows)
    return out


def shapley(score, x, background, groups):
    """Shapley values by their definition: over all sets of groups, all background rows.

    ``score`` takes an array of rows, ``groups`` are lists of columns.
    """
    from functools import cache
    from itertools import combinations
    from math import factorial

    k = len(groups)

    @cache
    def value(chosen):
        rows = background.copy()
        for g in chosen:
            rows[:, groups[g]] = x[groups[g]]
        return score(rows).mean(axis=0)

    out = []
    for i in range(k):
        others = [g for g in range(k) if g != i]
        total = 0.0
        for size in range(k):
            weight = factorial(size) * factorial(k - size - 1) / factorial(k)
            for chosen in combinations(others, size):
                total = total + weight * (value(tuple(sorted((*chosen, i)))) - value(chosen))
        out.append(total)
    return np.array(out)


def resampled_diagnosis(Y, scores, limits, rows):
    """F1, AUC and average precision of each label on the rows drawn, by loops over rows."""
    out = np.full((3, Y.shape[1]), np.nan)
    for j in range(Y.shape[1]):
        y, s = [bool(Y[i, j]) for i in rows], [scores[i, j] for i in rows]
        marked = [v >= limits[j] for v in s]
        right = sum(a and b for a, b in zip(y, marked, strict=True))
        out[0, j] = 2 * right / (sum(y) + sum(marked)) if sum(y) + sum(marked) else 0.0
        positive = [v for v, on in zip(s, y, strict=True) if on]
        negative = [v for v, on in zip(s, y, strict=True) if not on]
        if positive and negative:
            wins = sum((p > n) + (p == n) / 2 for p in positive for n in negative)
            out[1, j] = wins / (len(positive) * len(negative))
        if positive:
            precisions = [sum(q >= p for q in positive) / sum(v >= p for v in s) for p in positive]
            out[2, j] = np.mean(precisions)
    return out
