"""Logistic maps the slow, obvious way: write the objective down and let SciPy minimise it."""

import numpy as np
from scipy.optimize import minimize


def log_loss(z, y, w):
    return float(np.sum(w * (np.logaddexp(0, z) - y * z)))


def cells(scores, on, weight, known):
    """For each label: its known scores, labels and weights."""
    n, q = scores.shape
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    known = np.ones((n, q), dtype=bool) if known is None else known
    return [
        (scores[known[:, j], j], on[known[:, j], j].astype(float), weight[known[:, j]])
        for j in range(q)
    ]


def fit(scores, on, weight=None, known=None, precision=0.2, prior_count=1.0):
    """Return slopes and offsets per unit of the scores."""
    labels = cells(scores, on, weight, known)
    means = [np.sum(w * f) / np.sum(w) for f, _, w in labels]
    spread = sum(np.sum(w * (f - m) ** 2) for (f, _, w), m in zip(labels, means, strict=True))
    scale = np.sqrt(spread / sum(np.sum(w) for _, _, w in labels))
    labels = [((f - m) / scale, y, w) for (f, y, w), m in zip(labels, means, strict=True)]

    def with_offset(a, c, label):
        u, y, w = label
        return log_loss(a * u + c, y, w) + prior_count * (np.logaddexp(0, c) - c / 2)

    def shared(x):
        return (
            sum(with_offset(x[0], c, label) for c, label in zip(x[1:], labels, strict=True))
            + precision / 2 * x[0] ** 2
        )

    tight = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10000, "maxfun": 10**6}
    bounds = [(0, None)] + [(None, None)] * len(labels)
    common = minimize(shared, np.zeros(len(bounds)), bounds=bounds, options=tight).x[0]
    slopes, offsets = [], []
    for label, mean in zip(labels, means, strict=True):

        def own(x, label=label):
            return with_offset(x[0], x[1], label) + precision / 2 * (x[0] - common) ** 2

        a, c = minimize(own, [common, 0.0], bounds=[(0, None), (None, None)], options=tight).x
        slopes.append(a / scale)
        offsets.append(c - a / scale * mean)
    return np.array(slopes), np.array(offsets)
