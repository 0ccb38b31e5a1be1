"""Gradient boosting: LightGBM with one booster per label, XGBoost with one for all labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs

from imcc_paper.methods._base import LogOddsLabels, draw_seed, is_constant, prior_log_odds

# Fraction of the training rows held out to choose the number of trees.
_HELD_OUT = 0.2
# Rows that a label needs of each class, so that a fifth of each can be held out.
_ENOUGH = 5
# Number of trees if no rows can be held out.
_TREES_UNTRIED = 20


class LightGBMBaseline(LogOddsLabels):
    """LightGBM's gradient boosted trees, one booster per label.

    Not part of the paper's comparison.  For each label, trees are added that reduce the log loss::

        sum_i log(1 + exp(-y_i f(x_i))),    f = sum of the trees, y_i in {-1, +1}

    A fifth of the rows, stratified by the label, is held out; boosting stops when the log loss on
    them has not improved for ``patience`` trees.  A booster with the best number of trees is then
    trained on all rows.  Scores are log-odds, so they are comparable across labels.

    Parameters
    ----------
    max_trees : int, default=300
        Maximum number of trees per label.
    learning_rate : float, default=0.1
        Factor that each tree is multiplied by, > 0.
    num_leaves : int, default=15
        Maximum number of leaves of a tree, >= 2.
    min_data_in_leaf : int, default=5
        Minimum number of training rows in a leaf.
    lambda_l2 : float, default=1.0
        L2 penalty on the leaf values, >= 0.
    feature_fraction : float, default=0.5
        Fraction of the features that a tree may use, in (0, 1].
    patience : int, default=20
        Boosting stops after this many trees without improvement on the held-out rows.
    n_jobs : int or None, default=None
        Number of threads that LightGBM uses; None means 1.  The scores do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of held-out rows and of features.

    Attributes
    ----------
    n_trees_ : ndarray of int of shape (n_labels,)
        Number of trees per label; 0 for a constant label.
    boosters_ : list of str
        The booster of each label in LightGBM's text format; empty for a constant label.

    See Also
    --------
    XGBoostBaseline : One booster for all labels.

    Notes
    -----
    The score of a constant label, which all training rows or none have, is the log-odds of its
    smoothed relative frequency.  A label with fewer than five rows of either class has too few rows
    to hold out; it gets the median number of trees of the other labels, or, if there are none,
    ``min(20, max_trees)``.

    References
    ----------
    .. [1] G. Ke et al. "LightGBM: a highly efficient gradient boosting decision tree." NeurIPS,
       2017.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc_paper.methods import LightGBMBaseline
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> clf = LightGBMBaseline(random_state=0).fit(X, Y)
    >>> clf.predict_proba(X).shape
    (100, 3)
    """

    def __init__(
        self,
        max_trees: int = 300,
        *,
        learning_rate: float = 0.1,
        num_leaves: int = 15,
        min_data_in_leaf: int = 5,
        lambda_l2: float = 1.0,
        feature_fraction: float = 0.5,
        patience: int = 20,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.max_trees = max_trees
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_data_in_leaf = min_data_in_leaf
        self.lambda_l2 = lambda_l2
        self.feature_fraction = feature_fraction
        self.patience = patience
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _train(self, X: Any, on: np.ndarray) -> None:
        import lightgbm

        seed = draw_seed(self.random_state)
        params = {
            "objective": "binary",
            "learning_rate": float(self.learning_rate),
            "num_leaves": int(self.num_leaves),
            "min_data_in_leaf": int(self.min_data_in_leaf),
            "lambda_l2": float(self.lambda_l2),
            "feature_fraction": float(self.feature_fraction),
            "seed": seed % 2**31,
            "num_threads": effective_n_jobs(self.n_jobs),
            "deterministic": True,
            "force_col_wise": True,  # otherwise LightGBM chooses by measuring which is faster
            "verbosity": -1,
        }
        learned = [j for j in range(on.shape[1]) if not is_constant(on[:, j])]
        trees = np.zeros(on.shape[1], dtype=int)
        boosters = [""] * on.shape[1]
        if learned:
            # Features are binned once for all labels.
            rows = lightgbm.Dataset(_plain(X), params=params)
            rows.set_label(on[:, learned[0]].astype(np.float32)).construct()
            rng = np.random.default_rng(seed)
            for j in learned:
                trees[j] = self._count_trees(lightgbm, rows, on[:, j], params, rng)
            trees[learned] = _fill_untried(trees[learned], self.max_trees)
            for j in learned:
                rows.set_label(on[:, j].astype(np.float32))
                booster = lightgbm.train(params, rows, num_boost_round=int(trees[j]))
                boosters[j] = booster.model_to_string()
        self._constant_scores = prior_log_odds(on)
        self.n_trees_ = trees
        self.boosters_ = boosters

    def _count_trees(
        self,
        lightgbm: Any,
        rows: Any,
        on: np.ndarray,
        params: dict[str, Any],
        rng: np.random.Generator,
    ) -> int:
        """Return the best number of trees on held-out rows; 0 if no rows can be held out."""
        held_out = []
        for kind in (True, False):
            of_kind = rng.permutation(np.flatnonzero(on == kind))
            if len(of_kind) < _ENOUGH:
                return 0
            held_out.append(of_kind[: int(_HELD_OUT * len(of_kind))])
        outside = np.sort(np.concatenate(held_out))
        inside = np.setdiff1d(np.arange(len(on)), outside)
        rows.set_label(on.astype(np.float32))
        train, test = (rows.subset(part, params=params) for part in (inside, outside))
        booster = lightgbm.train(
            params,
            train,
            num_boost_round=self.max_trees,
            valid_sets=[test],
            callbacks=[lightgbm.early_stopping(self.patience, verbose=False)],
        )
        return max(1, booster.best_iteration)

    def _score_rows(self, X: Any) -> np.ndarray:
        scores = np.tile(self._constant_scores, (X.shape[0], 1))
        learned = [j for j, text in enumerate(self.boosters_) if text]
        if learned:
            import lightgbm

            rows = _plain(X)
            for j in learned:
                booster = lightgbm.Booster(model_str=self.boosters_[j])
                scores[:, j] = booster.predict(
                    rows, raw_score=True, num_threads=effective_n_jobs(self.n_jobs)
                )
        return scores


class XGBoostBaseline(LogOddsLabels):
    """XGBoost's gradient boosted trees, one booster for all labels.

    Not part of the paper's comparison.  Each boosting step adds one tree per label or, with
    ``multi_output=True``, a single tree with a vector of values per leaf, one per label, whose
    splits reduce the log loss of all labels together.  The number of steps is the one with the
    lowest mean log loss on a fifth of the rows, which is held out; a booster with that many steps
    is then trained on all rows.  Boosting starts at the log-odds of each label's smoothed relative
    frequency.  Scores are log-odds, so they are comparable across labels.

    Parameters
    ----------
    max_steps : int, default=300
        Maximum number of boosting steps.
    multi_output : bool, default=False
        Whether to grow one tree for all labels per step, instead of one tree per label.
    learning_rate : float, default=0.1
        Factor that each tree is multiplied by, > 0.
    max_depth : int, default=6
        Maximum depth of a tree.
    min_child_weight : float, default=1.0
        Minimum sum of the second derivatives of the loss in a leaf, >= 0.
    max_bins : int, default=32
        Maximum number of bins per feature, >= 2.  The training time of multi-output trees is
        proportional to it.
    feature_fraction : float, default=0.5
        Fraction of the features that a tree may use, in (0, 1].
    patience : int, default=20
        Boosting stops after this many steps without improvement on the held-out rows.
    n_jobs : int or None, default=None
        Number of threads that XGBoost uses; None means 1.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of held-out rows and of features.

    Attributes
    ----------
    n_steps_ : int
        Number of boosting steps; 0 if every label is constant.
    booster_ : str
        The booster in XGBoost's JSON format; empty if every label is constant.

    See Also
    --------
    LightGBMBaseline : One booster per label.

    Notes
    -----
    Zeros are treated as missing values, for which each split learns a default direction, so that
    dense and sparse matrices with the same values give the same trees.

    The score of a constant label, which all training rows or none have, is the log-odds of its
    smoothed relative frequency.  With fewer than ten training rows, none are held out and the
    number of steps is ``min(20, max_steps)``.

    References
    ----------
    .. [1] T. Chen, C. Guestrin. "XGBoost: a scalable tree boosting system." KDD, 2016.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc_paper.methods import XGBoostBaseline
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> clf = XGBoostBaseline(random_state=0).fit(X, Y)
    >>> clf.predict_proba(X).shape
    (100, 3)
    """

    def __init__(
        self,
        max_steps: int = 300,
        *,
        multi_output: bool = False,
        learning_rate: float = 0.1,
        max_depth: int = 6,
        min_child_weight: float = 1.0,
        max_bins: int = 32,
        feature_fraction: float = 0.5,
        patience: int = 20,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.max_steps = max_steps
        self.multi_output = multi_output
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.min_child_weight = min_child_weight
        self.max_bins = max_bins
        self.feature_fraction = feature_fraction
        self.patience = patience
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _train(self, X: Any, on: np.ndarray) -> None:
        import xgboost

        seed = draw_seed(self.random_state)
        params = {
            "objective": "binary:logistic",
            "eval_metric": "logloss",
            "tree_method": "hist",
            "multi_strategy": "multi_output_tree" if self.multi_output else "one_output_per_tree",
            "learning_rate": float(self.learning_rate),
            "max_depth": int(self.max_depth),
            "min_child_weight": float(self.min_child_weight),
            "max_bin": int(self.max_bins),
            "colsample_bytree": float(self.feature_fraction),
            "base_score": 0.5,  # log-odds 0: the starting point is in each row's base margin
            "seed": seed % 2**31,
            "nthread": effective_n_jobs(self.n_jobs),
            "verbosity": 0,
        }
        learned = np.array([j for j in range(on.shape[1]) if not is_constant(on[:, j])], dtype=int)
        start = prior_log_odds(on)
        steps, text = 0, ""
        if len(learned):
            labels = on[:, learned].astype(np.float32)

            def matrix(part: np.ndarray) -> Any:
                return self._matrix(xgboost, X[part], start[learned], label=labels[part])

            everything = np.arange(len(on))
            steps = min(_TREES_UNTRIED, self.max_steps)
            if len(on) >= 2 * _ENOUGH:
                order = np.random.default_rng(seed).permutation(len(on))
                n_held_out = int(_HELD_OUT * len(on))
                found = xgboost.train(
                    params,
                    matrix(np.sort(order[n_held_out:])),
                    num_boost_round=self.max_steps,
                    evals=[(matrix(np.sort(order[:n_held_out])), "held_out")],
                    early_stopping_rounds=self.patience,
                    verbose_eval=False,
                )
                steps = found.best_iteration + 1
            booster = xgboost.train(params, matrix(everything), num_boost_round=steps)
            text = bytes(booster.save_raw("json")).decode()
        self._learned = learned
        self._constant_scores = start
        self.n_steps_ = steps
        self.booster_ = text

    def _matrix(self, xgboost: Any, X: Any, start: np.ndarray, **given: Any) -> Any:
        return xgboost.DMatrix(
            _plain(X),
            missing=0.0,
            base_margin=np.tile(start, (X.shape[0], 1)),
            nthread=effective_n_jobs(self.n_jobs),
            **given,
        )

    def _score_rows(self, X: Any) -> np.ndarray:
        scores = np.tile(self._constant_scores, (X.shape[0], 1))
        if self.booster_:
            import xgboost

            booster = xgboost.Booster({"nthread": effective_n_jobs(self.n_jobs)})
            booster.load_model(bytearray(self.booster_.encode()))
            rows = self._matrix(xgboost, X, self._constant_scores[self._learned])
            found = booster.predict(rows, output_margin=True)
            scores[:, self._learned] = found.reshape(X.shape[0], -1)
        return scores


def _plain(X: Any) -> Any:
    """Return rows in a form that both libraries accept."""
    return sp.csr_matrix(X) if sp.issparse(X) else np.asarray(X)


def _fill_untried(trees: np.ndarray, max_trees: int) -> np.ndarray:
    """Replace zeros by the median of the other numbers of trees."""
    tried = trees[trees > 0]
    usual = int(np.median(tried)) if len(tried) else min(_TREES_UNTRIED, max_trees)
    return np.where(trees > 0, trees, usual)
