"""The range of F_F over all tie breaks: against trying all of them, and the paper's tables."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import rankdata

from imcc.metrics import METRICS
from imcc_paper.published import FRIEDMAN, friedman_range, table
from imcc_paper.published._ties import rank_difference_range


def statistic(ranks):
    """Return F_F by its formula."""
    n, k = np.shape(ranks)
    means = np.mean(ranks, axis=0)
    chi_square = 12 * n / (k * (k + 1)) * (np.sum(means**2) - k * (k + 1) ** 2 / 4)
    slack = n * (k - 1) - chi_square
    return (n - 1) * chi_square / slack if slack > 1e-9 else math.inf


def every_order(values, *, shared):
    """Yield the ranks of every way to order what is equal; the slow, obvious way."""
    rows = []
    for row in values:
        orders = set()
        for moves in itertools.product(range(len(row)), repeat=len(row)):
            # A tiny move of each method decides the ties, and nothing else.
            ranks = rankdata(row + 1e-9 * np.array(moves))
            if shared or len(set(ranks)) == len(ranks):
                orders.add(tuple(ranks))
        rows.append(orders)
    return itertools.product(*rows)


@pytest.mark.parametrize("seed", range(25))
def test_against_every_order(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(4, size=(rng.integers(2, 5), rng.integers(2, 5))).astype(float)
    found = friedman_range(values, greater_is_better=False)
    strict = [statistic(ranks) for ranks in every_order(values, shared=False)]
    assert found.low == pytest.approx(min(strict), abs=1e-9)
    assert found.high == pytest.approx(max(strict), abs=1e-9)
    shared = [statistic(ranks) for ranks in every_order(values, shared=True)]
    assert found.bound <= min(shared) + 1e-6
    assert max(shared) <= found.high + 1e-9
    turned = friedman_range(-values, greater_is_better=True)
    assert turned == found


@pytest.mark.parametrize("seed", range(10))
def test_differences_against_every_order(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(3, size=(3, 4)).astype(float)
    differences = [
        float(np.mean(np.array(ranks)[:, 2] - np.array(ranks)[:, 0]))
        for ranks in every_order(values, shared=True)
    ]
    low, high = rank_difference_range(values, 0, 2, greater_is_better=False)
    assert low == pytest.approx(min(differences))
    assert high == pytest.approx(max(differences))


def test_without_ties_there_is_one_value():
    values = np.random.default_rng(0).random((6, 4))
    found = friedman_range(values, greater_is_better=True)
    f = statistic(rankdata(-values, axis=1))
    assert found.low == pytest.approx(f)
    assert found.high == pytest.approx(f)
    assert found.bound == pytest.approx(f)


def test_extremes_of_all():
    assert friedman_range(np.ones((3, 3)), greater_is_better=True).high == math.inf
    with pytest.raises(ValueError, match="two rows and two methods"):
        friedman_range([[1.0, 2.0]], greater_is_better=True)


# As an independent program gives them.
@pytest.mark.parametrize(
    ("metric", "low", "high", "possible"),
    [
        ("one_error", 6.73, 9.74, False),
        ("hamming_loss", 7.19, 21.80, False),
        ("ranking_loss", 10.60, 16.12, True),
        ("coverage", 6.59, 10.20, True),
        ("average_precision", 10.32, 14.32, True),
    ],
)
def test_the_papers_tables(metric, low, high, possible):
    found = friedman_range(table(metric).means, greater_is_better=METRICS[metric].greater_is_better)
    assert (round(found.low, 2), round(found.high, 2)) == (low, high)
    assert found.contains(FRIEDMAN.f[metric], decimals=2) == possible
    # Shared ranks change nothing about that.
    assert found.low - 0.2 < found.bound <= found.low
