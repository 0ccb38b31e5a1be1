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
    """How often differences are mostly above, within and below the region, pair by pair.

    ``weights`` has a row for each draw, the prior's difference of 0 first.
    """
    values = [0.0, *differences]
    share = np.zeros((len(weights), 3))
    for i, j in itertools.product(range(len(values)), repeat=2):
        total = values[i] + values[j]
        where = 0 if total > 2 * rope else 2 if total < -2 * rope else 1
        share[:, where] += weights[:, i] * weights[:, j]
    best = np.isclose(share, share.max(axis=1, keepdims=True), rtol=1e-9, atol=0)
    return (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
