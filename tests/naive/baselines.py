"""The baselines the slow, obvious way."""

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from imcc.baselines._platt import fit_sigmoid, prior_log_odds


class Stump(ClassifierMixin, BaseEstimator):
    """The stump with the smallest weighted error, found by trying every cut; classes 0 and 1."""

    def fit(self, X, y, sample_weight):
        self.classes_ = np.array([0, 1])
        signed = sample_weight * np.where(y == 1, 1.0, -1.0)
        best = -1.0
        for feature in range(X.shape[1]):
            values = np.unique(X[:, feature])
            for cut in [*(values[1:] + values[:-1]) / 2, np.inf]:
                left = X[:, feature] <= cut
                edge = abs(signed[left].sum()) + abs(signed[~left].sum())
                if edge > best + 1e-12:
                    best = edge
                    self.feature_, self.cut_ = feature, cut
                    self.sides_ = (signed[left].sum() >= 0, signed[~left].sum() >= 0)
        return self

    def predict(self, X):
        left = X[:, self.feature_] <= self.cut_
        return np.where(left, *self.sides_).astype(int)


def mahr(X, Y, n_rounds, X_new):
    """MAHR as its docstring says, one label and one row after the other."""
    n, q = Y.shape
    signs = np.where(Y, 1.0, -1.0)
    H, H_new, totals = np.zeros((n, q)), np.zeros((len(X_new), q)), np.zeros(q)
    influence = np.zeros((q, q))
    for _ in range(n_rounds):
        before, before_new, totals_before = H.copy(), H_new.copy(), totals.copy()
        for label in range(q):
            D = softmax(-signs[:, label] * before[:, label])
            stump = Stump().fit(X, Y[:, label], D)
            h, h_new = (np.where(stump.predict(rows) == 1, 1.0, -1.0) for rows in (X, X_new))
            # An edge of at most 1 - 1e-10, that is, an error of at least half of 1e-10.
            error = max(D[h != signs[:, label]].sum(), 0.5e-10)
            own = 0.5 * np.log((1 - error) / error)
            H[:, label] += own * h
            H_new[:, label] += own * h_new
            totals[label] += abs(own)
            D = softmax(-signs[:, label] * H[:, label])
            best, source = 0.0, None
            for other in range(q):
                if other == label or totals_before[other] == 0:
                    continue
                edge = np.sum(D * signs[:, label] * before[:, other] / totals_before[other])
                if abs(edge) > abs(best):
                    best, source = edge, other
            if source is None:
                continue
            best = np.clip(best, 1e-10 - 1, 1 - 1e-10)
            weight = 0.5 * np.log((1 + best) / (1 - best))
            H[:, label] += weight * before[:, source] / totals_before[source]
            H_new[:, label] += weight * before_new[:, source] / totals_before[source]
            totals[label] += abs(weight)
            influence[label, source] += abs(weight)
    return H_new, influence


def sparse_objective(X, Y, W, alpha, beta, gamma=0.0, scatter=None):
    """The objective of LLSF and JFSC, term by term; Y in {0, 1}."""
    ones = np.column_stack([X, np.ones(len(X))])
    value = 0.5 * np.sum((ones @ W - Y) ** 2) + beta * np.abs(W).sum()
    for j in range(Y.shape[1]):
        for k in range(Y.shape[1]):
            length = np.linalg.norm(Y[:, j]) * np.linalg.norm(Y[:, k])
            cosine = Y[:, j] @ Y[:, k] / length if length else 0.0
            value += 0.5 * alpha * (1 - cosine if j != k else 0.0) * (W[:, j] @ W[:, k])
    if scatter is not None:
        value += 0.5 * gamma * np.sum(scatter * W[:-1] ** 2)
    return value


def fisher_scatter(X, Y):
    """S_k(i, i), one number at a time."""
    S = np.zeros((X.shape[1], Y.shape[1]))
    for k in range(Y.shape[1]):
        P, N = X[Y[:, k] == 1], X[Y[:, k] == 0]
        if len(P) == 0 or len(N) == 0:
            continue
        for i in range(X.shape[1]):
            within_p = np.sum((P[:, i] - P[:, i].mean()) ** 2)
            within_n = np.sum((N[:, i] - N[:, i].mean()) ** 2)
            between = (P[:, i].mean() - N[:, i].mean()) ** 2
            S[i, k] = within_p + len(P) / len(N) * within_n - len(P) * between
    return S


def chain_margins(X, Y, order, X_new, C=1.0):
    """One classifier chain, with a new matrix for each link."""
    margins = np.empty((len(X_new), Y.shape[1]))
    seen, seen_new = X, X_new
    for label in order:
        machine = SVC(kernel="linear", C=C).fit(seen, Y[:, label])
        margins[:, label] = machine.decision_function(seen_new)
        seen = np.column_stack([seen, Y[:, label]])
        seen_new = np.column_stack([seen_new, machine.predict(seen_new)])
    return margins


def brsvm(X, Y, X_new, C=1.0, scores="margin", seed=0, **kernel):
    """One libsvm machine per label and calibration fold, each from its own copy of the rows."""
    out = np.empty((X_new.shape[0], Y.shape[1]))
    for k, on in enumerate(np.asarray(Y).T > 0):
        out[:, k] = svm_scores(X, on, X_new, C, scores, seed, **kernel)
    return out


def svm_scores(X, on, X_new, C, scores, seed, **kernel):
    """The scores of one label: margins, or log-odds of Platt's sigmoid on held-out margins."""

    def machine():
        return SVC(C=C, **{"kernel": "linear", **kernel})

    if on.all() or not on.any():
        margins = np.full(X_new.shape[0], 1.0 if on[0] else -1.0)
    else:
        margins = machine().fit(X, on).decision_function(X_new)
    if scores == "margin":
        return margins
    rarer = min(np.count_nonzero(on), np.count_nonzero(~on))
    if rarer < 2:
        return np.full(X_new.shape[0], prior_log_odds(on))
    folds = StratifiedKFold(min(5, rarer), shuffle=True, random_state=seed)
    held_out = np.empty(len(on))
    for inside, outside in folds.split(X, on):
        held_out[outside] = machine().fit(X[inside], on[inside]).decision_function(X[outside])
    sigmoid = fit_sigmoid(held_out, on)
    return sigmoid.slope * margins + sigmoid.offset


def lift_label(X, on, X_new, ratio=0.1, C=1.0, scores="probability", seed=0):
    """The scores of one label of LIFT, from dense rows and one libsvm machine per fold."""
    count = int(np.ceil(round(ratio * min(on.sum(), (~on).sum()), 9)))
    centers = []
    for rows in (X[on], X[~on]):
        k = min(count, len(np.unique(rows, axis=0)))
        centers.append(KMeans(k, n_init=1, random_state=seed).fit(rows).cluster_centers_)
    near, near_new = (cdist(rows, np.vstack(centers)) for rows in (X, X_new))
    return svm_scores(near, on, near_new, C, scores, seed)


def svm_objective(X, on, weights, intercept, C):
    """1/2 |w|^2 + C sum_i max(0, 1 - y_i (x_i w + b)) of a linear machine."""
    margins = np.where(on, 1.0, -1.0) * (X @ weights + intercept)
    return 0.5 * weights @ weights + C * np.maximum(0, 1 - margins).sum()
