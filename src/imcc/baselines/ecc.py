"""ECC: an ensemble of classifier chains (Read, Pfahringer, Holmes and Frank, 2011)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from imcc._array.device import one_thread
from imcc._utils.validation import Features, check_count, check_number, draw_seed
from imcc.baselines._base import BaselineClassifier, is_constant
from imcc.baselines._platt import Sigmoid, fit_sigmoid
from imcc.baselines._svm import (
    Dual,
    check_svm,
    constant_machine,
    dense_weights,
    fits,
    linear_gram,
    train_on_gram,
    train_on_rows,
)

# Number of links whose weights are computed in one product.
_LINKS_AT_ONCE = 32


@dataclass(frozen=True)
class Chain:
    """One trained chain of linear machines.

    Attributes
    ----------
    order : ndarray of int, shape (q,)
        Labels in the order of the chain.
    coef : ndarray of shape (q, n_features + q)
        Link k scores label ``order[k]`` from the features and the k labels before it.
    intercept : ndarray of shape (q,)
    """

    order: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray

    def margins(self, X: Features) -> np.ndarray:
        """Return the margins, shape (n_samples, q); each link uses the labels predicted before."""
        n_features = X.shape[1]
        # The features' part of all links in one product; labels are added link by link.
        margins = X @ self.coef[:, :n_features].T + self.intercept
        earlier = np.zeros(margins.shape)
        for k in range(len(self.order)):
            margins[:, k] += earlier[:, :k] @ self.coef[k, n_features : n_features + k]
            earlier[:, k] = margins[:, k] > 0
        out = np.empty_like(margins)
        out[:, self.order] = margins
        return out


class EnsembleClassifierChains(BaselineClassifier):
    """Ensemble of classifier chains of linear support vector machines.

    Link k of a chain is a binary machine for the k-th label in the chain's order.  Its features are
    x and the k preceding labels: the true labels during training, the predicted ones at prediction
    time.  Every chain has its own random label order and its own random subset of the training
    rows.  The margins of a label are averaged over the chains.

    Parameters
    ----------
    n_chains : int, default=10
        Number of chains.
    C : float, default=1.0
        Weight of the training errors of the machines, > 0.
    sample_fraction : float, default=0.67
        Fraction of the training rows per chain, in (0, 1], drawn without replacement.
    scores : {"probability", "margin"}, default="probability"
        What ``decision_function`` returns: the log-odds of Platt's probabilities, or the averaged
        margins.  Platt's sigmoid is fitted to the out-of-sample margins of each row, averaged over
        the chains that were not trained on it, so it requires ``sample_fraction`` < 1.
    n_jobs : int or None, default=None
        Number of chains trained in parallel by joblib, in threads; each needs its own matrix of
        inner products.
    random_state : int, RandomState instance or None, default=None
        Seed for the label orders and the subsets of rows.

    Attributes
    ----------
    chains_ : list of Chain
        Label order, weights and intercepts of each chain.
    sigmoids_ : list of Sigmoid
        Slope and offset per label that map the averaged margin to the score.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    Notes
    -----
    The n_samples x n_samples matrix of inner products is computed once.  Each chain copies the part
    of its rows and adds the labels that become features one by one.  If the matrix would exceed
    1 GiB (more than 11,585 rows), the links of a chain are trained from the features, extended by
    one column per label; this takes much longer.  The scores depend neither on ``n_jobs`` nor on
    the number of threads.

    If all rows of a chain's subset or none of them have a label, its margin in that chain is the
    constant +1 or -1.

    References
    ----------
    .. [1] J. Read, B. Pfahringer, G. Holmes, E. Frank. "Classifier chains for multi-label
       classification." Machine Learning 85, 2011.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc.baselines import EnsembleClassifierChains
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> ensemble = EnsembleClassifierChains(n_chains=3, random_state=0).fit(X, Y)
    >>> ensemble.predict(X).shape, len(ensemble.chains_)
    ((100, 3), 3)
    """

    def __init__(
        self,
        n_chains: int = 10,
        *,
        C: float = 1.0,
        sample_fraction: float = 0.67,
        scores: str = "probability",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_chains = n_chains
        self.C = C
        self.sample_fraction = sample_fraction
        self.scores = scores
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_count("n_chains", self.n_chains)
        check_svm(self.C, self.scores)
        fraction = check_number("sample_fraction", self.sample_fraction, above=0, at_most=1)
        if fraction == 1 and self.scores == "probability":
            raise ValueError(
                "scores='probability' needs rows that a chain was not trained on: use "
                "sample_fraction < 1 or scores='margin'"
            )

    def _train(self, X: Features, on: np.ndarray, weights: np.ndarray | None = None) -> None:
        rng = np.random.default_rng(draw_seed(self.random_state))
        n_samples, q = on.shape
        orders = [rng.permutation(q) for _ in range(self.n_chains)]
        size = max(1, round(self.sample_fraction * n_samples))
        samples = [
            np.sort(rng.choice(n_samples, size, replace=False))
            if size < n_samples
            else np.arange(n_samples)
            for _ in range(self.n_chains)
        ]
        # libsvm releases the GIL: threads share X, processes would copy it.
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads")
        # One thread for matrix products, so that results do not depend on the number of threads.
        with one_thread():
            gram = linear_gram(X) if fits(n_samples) else None
            chains = parallel(
                delayed(train_chain)(X, on, rows, order, self.C, gram, weights)
                for rows, order in zip(samples, orders, strict=True)
            )
            sigmoids = [Sigmoid(1.0, 0.0)] * q
            if self.scores == "probability":
                sigmoids = _calibrate(chains, samples, X, on, weights)
        self.chains_, self.sigmoids_ = chains, sigmoids

    def _score_rows(self, X: Features) -> np.ndarray:
        margins = sum(chain.margins(X) for chain in self.chains_) / len(self.chains_)
        slopes, offsets = np.transpose(self.sigmoids_)
        return slopes * margins + offsets


def train_chain(
    X: Features,
    on: np.ndarray,
    rows: np.ndarray,
    order: np.ndarray,
    C: float,
    gram: np.ndarray | None,
    weights: np.ndarray | None = None,
) -> Chain:
    """Train one chain on a subset of the rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    on : ndarray of bool, shape (n_samples, q)
    rows : ndarray of int
        Indices of the rows to train on.
    order : ndarray of int, shape (q,)
    C : float
    gram : ndarray of shape (n_samples, n_samples) or None
        Inner products of all rows, not modified.  If None, links are trained from the rows.
    weights : ndarray of shape (n_samples,), optional
        Factors on C, one per row of X.

    Returns
    -------
    Chain
    """
    labels = on[np.ix_(rows, order)]
    X, weights = X[rows], None if weights is None else weights[rows]
    if gram is None:
        links = list(_links_from_rows(X, labels, C, weights))
    else:
        links = list(_links_from_gram(gram[np.ix_(rows, rows)], labels, C, weights))
    n_features, q = X.shape[1], len(order)
    coef = np.zeros((q, n_features + q))
    for start in range(0, q, _LINKS_AT_ONCE):
        stop = min(start + _LINKS_AT_ONCE, q)
        duals = dense_weights(links[start:stop], len(rows))
        coef[start:stop, :n_features] = (X.T @ duals).T
        # Label j is a feature of later links only.
        of_labels = duals.T @ labels[:, :stop].astype(np.float64)
        coef[start:stop, n_features : n_features + stop] = np.tril(of_labels, start - 1)
    return Chain(order, coef, np.array([link.intercept for link in links]))


def _links_from_gram(
    gram: np.ndarray, labels: np.ndarray, C: float, weights: np.ndarray | None
) -> Iterator[Dual]:
    """Train the links in order from the inner products of the rows, which are overwritten.

    A label that becomes a feature adds 1 to the inner product of two rows that both have it.
    """
    for on in labels.T:
        if is_constant(on):
            yield constant_machine(on[0])
        else:
            yield train_on_gram(gram, on, C, sample_weight=weights)
        both = np.flatnonzero(on)
        gram[np.ix_(both, both)] += 1.0


def _links_from_rows(
    X: Features, labels: np.ndarray, C: float, weights: np.ndarray | None
) -> Iterator[Dual]:
    """Train the links in order, each from the rows and the labels before it."""
    n_features = X.shape[1]
    features = X if sp.issparse(X) else np.hstack([X, np.zeros(labels.shape)])
    for k, on in enumerate(labels.T):
        if is_constant(on):
            yield constant_machine(on[0])
        else:
            yield train_on_rows(features, on, C, weights)
        if sp.issparse(X):
            features = sp.hstack([X, labels[:, : k + 1].astype(np.float64)], format="csr")
        else:
            features[:, n_features + k] = on


def _calibrate(
    chains: Sequence[Chain],
    samples: Sequence[np.ndarray],
    X: Features,
    on: np.ndarray,
    weights: np.ndarray | None = None,
) -> list[Sigmoid]:
    """Fit a sigmoid per label to the margins by the chains that were not trained on a row."""
    totals, n_chains = np.zeros(on.shape), np.zeros(len(on))
    for chain, rows in zip(chains, samples, strict=True):
        unseen = np.setdiff1d(np.arange(len(on)), rows)
        if len(unseen):
            totals[unseen] += chain.margins(X[unseen])
            n_chains[unseen] += 1
    judged = n_chains > 0
    if not judged.any():  # every chain was trained on all rows: there is only one
        return [Sigmoid(1.0, 0.0)] * on.shape[1]
    margins = totals[judged] / n_chains[judged, np.newaxis]
    weights = None if weights is None else weights[judged]
    return [fit_sigmoid(*pair, weights) for pair in zip(margins.T, on[judged].T, strict=True)]
