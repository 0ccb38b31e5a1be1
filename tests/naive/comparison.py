"""Ranks and tests, counted out."""

import itertools
import math

import numpy as np


def ranks(row, greater_is_better):
    """1 + how many are better + half of how many others are equal."""
    better = (lambda a, b: a > b) if greater_is_better else (lambda a, b: a < b)
    return [
        1 + sum(better(other, own) for other in row) + (sum(other == own for other in row) - 1) / 2
        for own in row
    ]


def friedman(values, greater_is_better):
    """Return chi-square and F_F by Demšar's formulas; F_F is None where it divides by zero."""
    table = [ranks(row, greater_is_better) for row in values]
    n, k = len(table), len(table[0])
    means = [sum(row[j] for row in table) / n for j in range(k)]
    chi = 12 * n / (k * (k + 1)) * (sum(r**2 for r in means) - k * (k + 1) ** 2 / 4)
    slack = n * (k - 1) - chi
    return means, chi, None if math.isclose(slack, 0, abs_tol=1e-9) else (n - 1) * chi / slack


def wilcoxon_p(differences):
    """Two-sided p: the share of all sign patterns whose smaller rank sum is as small."""
    kept = [d for d in differences if d != 0]
    sizes = ranks([abs(d) for d in kept], greater_is_better=False)
    observed = sum(r for d, r in zip(kept, sizes, strict=True) if d > 0)
    observed = min(observed, sum(sizes) - observed)
    hits = 0
    for signs in itertools.product((0, 1), repeat=len(kept)):
        positive = sum(r for on, r in zip(signs, sizes, strict=True) if on)
        hits += min(positive, sum(sizes) - positive) <= observed
    return hits / 2 ** len(kept)


def holm(p):
    """Each p against all: the largest (m - number of smaller ones) p_j among those not above it."""
    m = len(p)
    order = sorted(range(m), key=lambda i: p[i])
    adjusted = [None] * m
    for place, i in enumerate(order):
        adjusted[i] = min(1.0, max((m - q) * p[order[q]] for q in range(place + 1)))
    return adjusted


def cliques(different):
    """All groups of at least two in which no two differ and to which nobody can be added."""
    k = len(different)
    alike = {
        group
        for size in range(2, k + 1)
        for group in itertools.combinations(range(k), size)
        if not any(different[i][j] for i, j in itertools.combinations(group, 2))
    }
    return {g for g in alike if not any(set(g) < set(other) for other in alike)}


def wins(values, greater_is_better):
    k = len(values[0])
    table = np.zeros((k, k), dtype=int)
    for row in values:
        for i in range(k):
            for j in range(k):
                table[i, j] += row[i] > row[j] if greater_is_better else row[i] < row[j]
    return table


def signed_rank_posterior(differences, rope, weights):
    """How often each region has most of the weighted Walsh averages, pair by pair.

    ``weights`` has a row for each draw, the prior's difference of 0 first.
    """
    values = [0.0, *differences]
    won = [0.0, 0.0, 0.0]
    for w in weights:
        share = [0.0, 0.0, 0.0]
        for i, j in itertools.product(range(len(values)), repeat=2):
            total = values[i] + values[j]
            where = 0 if total < -2 * rope else 2 if total > 2 * rope else 1
            share[where] += w[i] * w[j]
        best = [math.isclose(s, max(share), rel_tol=1e-9) for s in share]
        for region in range(3):
            won[region] += best[region] / sum(best)
    return [count / len(weights) for count in won]


def hodges_lehmann(differences, level):
    """The median of all Walsh averages, and the shifts that Wilcoxon's test does not reject.

    A shift is tried between each two neighbouring averages, where the p does not change.
    """
    n = len(differences)
    walsh = sorted((differences[i] + differences[j]) / 2 for i in range(n) for j in range(i, n))
    kept = []
    edges = [-math.inf, *walsh, math.inf]
    for low, high in itertools.pairwise(edges):
        if low == high:
            continue
        inside = high - 1 if low == -math.inf else low + 1 if high == math.inf else (low + high) / 2
        if wilcoxon_p([d - inside for d in differences]) > 1 - level:
            kept.append((low, high))
    return float(np.median(walsh)), (min(low for low, _ in kept), max(high for _, high in kept))


def rank_biserial(differences):
    """The share of the rank sum of positive differences, minus that of negative ones."""
    kept = [d for d in differences if d != 0]
    sizes = ranks([abs(d) for d in kept], greater_is_better=False)
    return sum(math.copysign(r, d) for d, r in zip(kept, sizes, strict=True)) / sum(sizes)
