"""IMCC the slow, obvious way: as the paper prints it, and as one big least-squares problem."""

import numpy as np
from scipy.spatial.distance import cdist, pdist


def rbf(X, Z, sigma):
    return np.exp(-(cdist(X, Z) ** 2) / (2 * sigma**2))


def laplacian(X, Z, sigma):
    return np.exp(-cdist(X, Z, "cityblock") / sigma)


def linear(X, Z, sigma=None):
    return X @ Z.T


def mean_distance(X, metric="euclidean"):
    return pdist(X, metric).mean()


def centers_and_soft_labels(X, Y, assignment):
    """Eq. 1 and 2, cluster by cluster."""
    clusters = np.unique(assignment)
    Z = np.array([X[assignment == j].mean(axis=0) for j in clusters])
    T = np.array([Y[assignment == j].mean(axis=0) for j in clusters])
    return Z, T, np.searchsorted(clusters, assignment)


def equation_20(K, K_centers, Y, T, assignment, alpha, beta, gamma, jitter=0.0):
    """Eq. 20 and 21 as printed; the authors' program adds 1e-10 to the diagonal."""
    n, c = len(Y), len(T)
    K_hat = K_centers[assignment]
    ones_n, ones_c = np.ones((n, 1)), np.ones((c, 1))
    u = K.T @ ones_n + alpha * K_centers.T @ ones_c
    left = (
        K.T @ K
        + alpha * K_centers.T @ K_centers
        + beta * K
        + gamma * (K - K_hat).T @ (K - K_hat)
        - u @ u.T / (n + alpha * c)
        + jitter * np.eye(n)
    )
    totals = ones_n.T @ Y + alpha * ones_c.T @ T
    right = K.T @ Y + alpha * K_centers.T @ T - u @ totals / (n + alpha * c)
    A = np.linalg.solve(left, right)
    b = (totals - ones_n.T @ K @ A - alpha * ones_c.T @ K_centers @ A) / (n + alpha * c)
    return A, b[0]


def stacked_least_squares(psi, blocks, Y, alpha, beta, gamma):
    """Minimise the objective as one least-squares problem in (W, b).

    ``blocks`` is a list of (features of the centres, soft labels, assignment), one for each
    clustering; gamma is shared out over them.
    """
    n, r = psi.shape
    q = Y.shape[1]
    rows = [np.column_stack([psi, np.ones(n)])]
    targets = [Y]
    for psi_z, T, assignment in blocks:
        share = gamma / len(blocks)
        rows.append(np.sqrt(alpha) * np.column_stack([psi_z, np.ones(len(psi_z))]))
        targets.append(np.sqrt(alpha) * T)
        rows.append(np.sqrt(share) * np.column_stack([psi - psi_z[assignment], np.zeros(n)]))
        targets.append(np.zeros((n, q)))
    rows.append(np.sqrt(beta) * np.column_stack([np.eye(r), np.zeros(r)]))
    targets.append(np.zeros((r, q)))
    solution = np.linalg.lstsq(np.vstack(rows), np.vstack(targets), rcond=None)[0]
    return solution[:-1], solution[-1]


def objective(psi, blocks, Y, W, b, alpha, beta, gamma):
    """The objective, term by term (Eq. 7 and 16)."""
    value = 0.5 * np.sum((psi @ W + b - Y) ** 2) + 0.5 * beta * np.sum(W**2)
    for psi_z, T, assignment in blocks:
        value += 0.5 * alpha * np.sum((psi_z @ W + b - T) ** 2)
        pull = psi @ W - (psi_z @ W)[assignment]
        value += 0.5 * gamma / len(blocks) * np.sum(pull**2)
    return value


def kernel_features(K, *others):
    """Features whose inner products are K, for the training rows and for others by their kernel."""
    values, vectors = np.linalg.eigh(K)
    kept = values > len(K) * np.finfo(float).eps * values[-1]
    basis = vectors[:, kept] / np.sqrt(values[kept])
    return [M @ basis for M in (K, *others)]


def scores(X, Y, X_new, assignments, alpha, beta, gamma, kernel, sigma):
    """Scores of new rows, from the stacked least-squares problem.

    ``assignments`` is a list of assignment vectors, one for each clustering.
    """
    virtual = [centers_and_soft_labels(X, Y, a) for a in assignments]
    psi, psi_new, *psi_z = kernel_features(
        kernel(X, X, sigma),
        kernel(X_new, X, sigma),
        *[kernel(z, X, sigma) for z, _, _ in virtual],
    )
    blocks = [(pz, T, a) for pz, (_, T, a) in zip(psi_z, virtual, strict=True)]
    W, b = stacked_least_squares(psi, blocks, Y, alpha, beta, gamma)
    return psi_new @ W + b


def linear_scores(X, Y, X_new, assignments, alpha, beta, gamma):
    """Scores of the linear model, with X itself as the features."""
    virtual = [centers_and_soft_labels(X, Y, a) for a in assignments]
    W, b = stacked_least_squares(X, virtual, Y, alpha, beta, gamma)
    return X_new @ W + b


def repeated(weights, *arrays):
    """Rows, each as often as its whole weight says."""
    return [np.repeat(values, weights, axis=0) for values in arrays]


def weighted_mean_distance(X, weights, metric="euclidean"):
    """The paper's width rule for weighted rows, pair by pair."""
    above = below = 0.0
    distances = cdist(X, X, metric)
    for i in range(len(X)):
        for j in range(len(X)):
            if i != j:
                above += weights[i] * weights[j] * distances[i, j]
                below += weights[i] * weights[j]
        # A row of weight 3 is three rows, and those make 3 * 2 pairs at no distance.
        below += weights[i] * max(weights[i] - 1, 0)
    return above / below


def weighted_scores(X, Y, X_new, assignment, weights, alpha, beta, gamma, kernel, sigma):
    """Scores of the exact kernel model of weighted rows, from one least-squares problem."""
    clusters = np.unique(assignment)
    Z = np.array([np.average(X[assignment == j], 0, weights[assignment == j]) for j in clusters])
    T = np.array([np.average(Y[assignment == j], 0, weights[assignment == j]) for j in clusters])
    a = np.searchsorted(clusters, assignment)
    psi, psi_new, psi_z = kernel_features(
        kernel(X, X, sigma), kernel(X_new, X, sigma), kernel(Z, X, sigma)
    )
    n, r, q = len(X), psi.shape[1], Y.shape[1]
    root = np.sqrt(weights)[:, np.newaxis]
    rows = np.vstack(
        [
            root * np.column_stack([psi, np.ones(n)]),
            np.sqrt(alpha) * np.column_stack([psi_z, np.ones(len(Z))]),
            np.sqrt(gamma) * root * np.column_stack([psi - psi_z[a], np.zeros(n)]),
            np.sqrt(beta) * np.column_stack([np.eye(r), np.zeros(r)]),
        ]
    )
    targets = np.vstack([root * Y, np.sqrt(alpha) * T, np.zeros((n, q)), np.zeros((r, q))])
    solution = np.linalg.lstsq(rows, targets, rcond=None)[0]
    return psi_new @ solution[:-1] + solution[-1]
