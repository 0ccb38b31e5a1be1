"""Kernel ridge regression with coupled labels, and leaving rows out, the slow and obvious way."""

import numpy as np


def fit(K, Y, penalty, weight=None, L=None):
    """Return A and b that minimise sum v |y - f|^2 + penalty tr(A' K A L^-1), as one system."""
    n, q = Y.shape
    V = np.diag(np.ones(n) if weight is None else weight)
    Linv = np.eye(q) if L is None else np.linalg.inv(L)
    # Unknowns: A (columns stacked), then b.  Where V is invertible the minimum satisfies
    # V (K A + 1 b') + penalty A L^-1 = V Y and 1' V (K A + 1 b' - Y) = 0.
    left = np.zeros((n * q + q, n * q + q))
    right = np.zeros(n * q + q)
    for j in range(q):
        rows = slice(j * n, (j + 1) * n)
        left[rows, rows] += V @ K
        for k in range(q):
            left[rows, k * n : (k + 1) * n] += penalty * Linv[k, j] * np.eye(n)
        left[rows, n * q + j] = V @ np.ones(n)
        right[rows] = V @ Y[:, j]
        left[n * q + j, rows] = np.ones(n) @ V @ K
        left[n * q + j, n * q + j] = V.sum()
        right[n * q + j] = np.ones(n) @ V @ Y[:, j]
    found = np.linalg.solve(left, right)
    return found[: n * q].reshape(q, n).T, found[n * q :]


def leave_out(K, Y, penalty, groups, weight=None, L=None):
    """Fit without each group of rows, and score the group."""
    out = np.empty_like(Y, dtype=float)
    for group in groups:
        rest = np.setdiff1d(np.arange(len(Y)), group)
        w = None if weight is None else weight[rest]
        A, b = fit(K[np.ix_(rest, rest)], Y[rest], penalty, w, L)
        out[group] = K[np.ix_(group, rest)] @ A + b
    return out


def greedy(members, judge, rounds):
    """Add, with replacement, the member that makes the mean best; return the best of all rounds."""
    chosen, history = [], []
    for _ in range(rounds):
        values = []
        for candidate in range(len(members)):
            mean = np.mean([members[i] for i in [*chosen, candidate]], axis=0)
            values.append(judge(mean))
        chosen.append(int(np.argmax(values)))
        history.append(max(values))
    size = int(np.argmax(history)) + 1
    return chosen[:size], history[size - 1]
