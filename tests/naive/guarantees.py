"""Exact tests of a recall, by adding up the probabilities of the binomial distribution."""

from math import comb


def tail(n_missed, n_rows, risk):
    """Probability of at most so many misses if each row is missed with probability ``risk``."""
    return sum(comb(n_rows, k) * risk**k * (1 - risk) ** (n_rows - k) for k in range(n_missed + 1))


def highest_threshold(on, scores, recall, confidence):
    """The highest score of a row with the label from which on the recall is promised, or None."""
    values = sorted(score for score, is_on in zip(scores, on, strict=True) if is_on)
    found = None
    for n_missed, value in enumerate(values):
        if tail(n_missed, len(values), 1 - recall) > 1 - confidence:
            break
        found = value
    return found
