"""The rivals: settings to draw from, and a function that fits.

A fit is called with training rows and labels (bool), a setting and a seed.  In tuning it also gets
held-out rows, on which methods that are trained step by step (trees, epochs) find the number of
steps; later fits get it in the setting as ``steps``.  It returns a function from new rows to
log-odds of all labels, and what it found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold
from sklearn.multioutput import ClassifierChain
from sklearn.neighbors import NearestNeighbors
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from imcc import KernelEnsembleClassifier
from imcc_paper.methods._base import is_constant, prior_log_odds
from imcc_paper.rivals.fitting import (
    DENSE_VIEWS,
    SPARSE_VIEWS,
    Learned,
    View,
    clipped,
    log_odds,
    loss,
    platt,
)

Scores = Callable[[Any], np.ndarray]
Setting = dict[str, Any]


class Held(NamedTuple):
    """Held-out rows and their labels."""

    X: Any
    on: np.ndarray


class Fit(NamedTuple):
    """What a fit returns.

    Attributes
    ----------
    scores : callable
        From rows to log-odds, shape (n_rows, n_labels); in tuning, of the held-out rows only.
    found : dict
        What the held-out rows gave, to be added to the setting; empty without them.
    held_out : ndarray or None
        Log-odds of the training rows, if the method has them anyway from fits without them.
    """

    scores: Scores
    found: Mapping[str, Any] = MappingProxyType({})
    held_out: np.ndarray | None = None


@dataclass(frozen=True)
class Rival:
    """A method.

    Attributes
    ----------
    fit : callable
        ``fit(X, on, setting, seed, held)``; see the module.
    choices : mapping of str to sequence
        The values of each parameter; the first ones are the setting that is tried first.
    views : bool
        Whether the view of the rows is a parameter: those of the ensemble, or, for trees, which
        need no scaling, rows as they are and (mostly zero) TF-IDF.
    needs : str
        A package beyond scikit-learn.
    """

    fit: Callable[[Any, np.ndarray, Setting, int, Held | None], Fit]
    choices: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    views: str = ""
    needs: str = ""

    def settings(self, n: int, X: Any, seed: int) -> list[Setting]:
        """Return at most n different settings: the first choices, then random ones."""
        choices = dict(self.choices)
        if self.views:
            for_trees = ("raw", "tfidf") if sp.issparse(X) else ("raw",)
            for_all = SPARSE_VIEWS if sp.issparse(X) else DENSE_VIEWS
            choices["view"] = for_trees if self.views == "trees" else for_all
        count = int(np.prod([len(values) for values in choices.values()]))
        rng = np.random.default_rng(seed)
        drawn = [{name: values[0] for name, values in choices.items()}]
        while len(drawn) < min(n, count):
            setting = {name: values[rng.integers(len(values))] for name, values in choices.items()}
            if setting not in drawn:
                drawn.append(setting)
        return drawn


def fit_svm(X: Any, on: np.ndarray, setting: Setting, seed: int, _held: Held | None = None) -> Fit:
    """One support vector machine per label; Platt's sigmoid on scores of three folds."""
    view, learned = View(setting["view"], X), Learned(on)
    rows, labels = view(X), on[:, learned.labels]
    gamma = setting["width"] / mean_squared_distance(rows)
    K = rbf_kernel(rows, gamma=gamma)
    out = np.zeros(labels.shape)
    for train, test in KFold(3, shuffle=True, random_state=seed).split(K):
        within, between = np.ascontiguousarray(K[np.ix_(train, train)]), K[np.ix_(test, train)]
        for j in range(labels.shape[1]):
            dual, intercept = _support_vectors(within, labels[train, j], setting["C"])
            out[test, j] = between @ dual + intercept
    weights, intercepts = np.zeros(labels.shape), np.zeros(labels.shape[1])
    for j in range(labels.shape[1]):
        slope, shift = platt(out[:, j], labels[:, j])
        dual, intercept = _support_vectors(K, labels[:, j], setting["C"])
        weights[:, j], intercepts[j] = slope * dual, slope * intercept + shift

    def scores(new: Any) -> np.ndarray:
        return learned.all_labels(rbf_kernel(view(new), rows, gamma=gamma) @ weights + intercepts)

    return Fit(scores)


def _support_vectors(K: np.ndarray, on: np.ndarray, C: float) -> tuple[np.ndarray, float]:
    """Return the coefficients of all rows, and the intercept."""
    dual = np.zeros(len(on))
    if is_constant(on):
        return dual, 1.0 if on[0] else -1.0
    machine = SVC(kernel="precomputed", C=C).fit(K, on)
    dual[machine.support_] = machine.dual_coef_.ravel()
    return dual, float(machine.intercept_[0])


def mean_squared_distance(rows: Any) -> float:
    """Return the mean squared distance of two rows, drawn with replacement."""
    squares = rows.multiply(rows) if sp.issparse(rows) else rows * rows
    middle = np.asarray(rows.mean(axis=0)).ravel()
    return float(2 * (squares.sum() / rows.shape[0] - middle @ middle)) or 1.0


def fit_extra_trees(
    X: Any, on: np.ndarray, setting: Setting, seed: int, _held: Held | None = None
) -> Fit:
    """Extra-trees on bootstrap samples; Platt's sigmoid per label on the out-of-bag votes.

    200 trees, fewer (at least 50) where the leaves of so many would need more than 4 GB.
    """
    view, learned = View(setting["view"], X), Learned(on)
    labels = on[:, learned.labels].astype(np.int8)
    per_tree = 32 * labels.size  # two nodes per row, two numbers of 8 bytes per node and label
    forest = ExtraTreesClassifier(
        int(np.clip(4e9 / max(per_tree, 1), 50, 200)),
        min_samples_leaf=setting["min_samples_leaf"],
        max_features=setting["max_features"],
        bootstrap=True,
        oob_score=True,
        random_state=seed,
    )
    if not labels.shape[1]:
        return Fit(lambda new: learned.all_labels(np.zeros((new.shape[0], 0))))
    forest.fit(view(X), labels.ravel() if labels.shape[1] == 1 else labels)
    votes = forest.oob_decision_function_.reshape(len(labels), 2, -1)[:, 1, :]
    votes = _voted(np.nan_to_num(votes), setting["calibrate"])
    lines = np.array([platt(votes[:, j], labels[:, j] > 0) for j in range(labels.shape[1])])

    def scores(new: Any) -> np.ndarray:
        votes = forest.predict_proba(view(new))
        votes = [votes] if labels.shape[1] == 1 else votes
        shares = np.column_stack([vote[:, 1] for vote in votes])
        return learned.all_labels(_voted(shares, setting["calibrate"]) * lines[:, 0] + lines[:, 1])

    return Fit(scores)


def _voted(shares: np.ndarray, form: str) -> np.ndarray:
    """Return shares of votes, or their log-odds (one vote in 200 at least)."""
    return shares if form == "votes" else log_odds(shares, 0.005)


class _Logistic(ClassifierMixin, BaseEstimator):
    """Logistic regression for a label that may be constant, with the prior as probability."""

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit(self, X: Any, y: np.ndarray) -> _Logistic:
        on = np.asarray(y) > 0
        self.classes_ = np.array([0, 1])
        self.coef_, self.intercept_ = np.zeros(X.shape[1]), float(prior_log_odds(on[:, None])[0])
        if not is_constant(on):
            model = LogisticRegression(C=self.C, max_iter=200).fit(X, on)
            self.coef_, self.intercept_ = model.coef_.ravel(), float(model.intercept_[0])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef_).ravel() + self.intercept_

    def predict(self, X: Any) -> np.ndarray:
        return (self.decision_function(X) >= 0).astype(int)

    def predict_proba(self, X: Any) -> np.ndarray:
        p = expit(self.decision_function(X))
        return np.column_stack([1 - p, p])


def fit_logistic(
    X: Any, on: np.ndarray, setting: Setting, _seed: int, _held: Held | None = None
) -> Fit:
    """One logistic regression per label."""
    view = View(setting["view"], X)
    rows = view(X)
    models = [_Logistic(setting["C"]).fit(rows, labels) for labels in on.T]
    coef = np.column_stack([model.coef_ for model in models])
    intercept = np.array([model.intercept_ for model in models])
    return Fit(lambda new: clipped(np.asarray(view(new) @ coef) + intercept))


def fit_chains(
    X: Any, on: np.ndarray, setting: Setting, seed: int, _held: Held | None = None
) -> Fit:
    """Mean probabilities of five classifier chains in random orders, over logistic regression."""
    view = View(setting["view"], X)
    rows, labels = view(X), on.astype(int)
    chains = [
        ClassifierChain(_Logistic(setting["C"]), order="random", random_state=seed + k)
        for k in range(5)
    ]
    for chain in chains:
        chain.fit(rows, labels)

    def scores(new: Any) -> np.ndarray:
        new = view(new)
        return clipped(log_odds(np.mean([chain.predict_proba(new) for chain in chains], axis=0)))

    return Fit(scores)


def fit_mlp(X: Any, on: np.ndarray, setting: Setting, seed: int, held: Held | None = None) -> Fit:
    """Mean log-odds of three networks with one hidden layer, of one network in tuning.

    At most 60 epochs in tuning; it ends when the held-out log loss has not fallen in 6 of them.
    """
    view, learned = View(setting["view"], X), Learned(on)
    rows, labels = view(X), on[:, learned.labels].astype(int)
    if not labels.shape[1]:
        return Fit(lambda new: learned.all_labels(np.zeros((new.shape[0], 0))))
    labels = labels.ravel() if labels.shape[1] == 1 else labels

    def network(k: int, epochs: int) -> MLPClassifier:
        return MLPClassifier(
            (setting["hidden"],),
            alpha=setting["alpha"],
            learning_rate_init=setting["learning_rate"],
            batch_size=min(len(labels), setting["batch"]),
            max_iter=epochs,
            n_iter_no_change=epochs + 1,
            random_state=seed + k,
        )

    def odds(models: list[MLPClassifier], new: Any) -> np.ndarray:
        found = [model.predict_proba(new).reshape(new.shape[0], -1) for model in models]
        found = [p[:, 1:] if labels.ndim == 1 else p for p in found]
        return learned.all_labels(np.mean([log_odds(p) for p in found], axis=0))

    if held is None:
        models = [network(k, setting.get("steps", 30)).fit(rows, labels) for k in range(3)]
        return Fit(lambda new: odds(models, view(new)))
    model, new, curve = network(0, 60), view(held.X), []
    best: np.ndarray = np.empty(0)
    while len(curve) < 60 and len(curve) - np.argmin(curve or [0]) <= 6:
        model.partial_fit(rows, labels, classes=np.arange(max(2, len(learned.labels))))
        now = odds([model], new)
        curve.append(loss(held.on, now))
        if curve[-1] == min(curve):
            best = now
    return Fit(lambda _: best, {"steps": int(np.argmin(curve)) + 1})


def fit_mlknn(
    X: Any, on: np.ndarray, setting: Setting, _seed: int, _held: Held | None = None
) -> Fit:
    """ML-kNN (M.-L. Zhang, Z.-H. Zhou, 2007), smoothed by 1.

    The probability of a label given how many of the k nearest rows have it, by Bayes' rule from
    how often the training rows with and without the label have as many such neighbours.
    """
    view, n = View(setting["view"], X), len(on)
    rows = view(X)
    k = min(setting["k"], n - 1)
    near = NearestNeighbors(n_neighbors=k).fit(rows)
    votes = _neighbour_votes(near.kneighbors(return_distance=False), on)
    prior = (1 + on.sum(axis=0)) / (2 + n)
    odds = np.empty((k + 1, on.shape[1]))
    for j in range(on.shape[1]):
        with_label = np.bincount(votes[on[:, j], j], minlength=k + 1) + 1
        without = np.bincount(votes[~on[:, j], j], minlength=k + 1) + 1
        ratio = (with_label / with_label.sum()) / (without / without.sum())
        odds[:, j] = np.log(ratio) + np.log(prior[j] / (1 - prior[j]))

    def scores(new: Any) -> np.ndarray:
        found = _neighbour_votes(near.kneighbors(view(new), return_distance=False), on)
        return clipped(np.take_along_axis(odds, found, axis=0))

    return Fit(scores)


def _neighbour_votes(neighbours: np.ndarray, on: np.ndarray) -> np.ndarray:
    """Return how many neighbours have each label, shape (n_rows, n_labels)."""
    n, k = neighbours.shape
    chosen = sp.csr_matrix(
        (np.ones(n * k), neighbours.ravel(), np.arange(0, n * k + 1, k)), (n, len(on))
    )
    return np.asarray(chosen @ on.astype(float)).astype(int)


# Boosting: learning rate 0.1, at most 300 steps in tuning, which ends after 20 without improvement.
_RATE, _MOST, _PATIENCE = 0.1, 300, 20
# Steps if tuning found none, since no setting was finished before the cap.
_USUAL = 60
# Labels with fewer held-out rows share one number of trees.
_FEW = 10


def fit_lightgbm(
    X: Any, on: np.ndarray, setting: Setting, seed: int, held: Held | None = None
) -> Fit:
    """LightGBM, one booster per label; ``steps`` has the number of trees of each label."""
    import lightgbm

    view, learned = View(setting["view"], X), Learned(on)
    params = {
        "objective": "binary",
        "learning_rate": _RATE,
        "num_leaves": setting["num_leaves"],
        "min_data_in_leaf": setting["min_data_in_leaf"],
        "lambda_l2": setting["lambda_l2"],
        "feature_fraction": setting["feature_fraction"],
        "seed": seed,
        "num_threads": 1,
        "deterministic": True,
        "force_col_wise": True,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(plain(view(X)), params=params)
    boosters, curves = [], []
    steps = setting.get("steps", [_USUAL] * on.shape[1])
    if held is not None:
        valid = lightgbm.Dataset(plain(view(held.X)), reference=data, params=params)
    for j in learned.labels:
        data.set_label(on[:, j].astype(np.float32))
        if held is None:
            boosters.append(lightgbm.train(params, data, num_boost_round=int(steps[j])))
            continue
        valid.set_label(held.on[:, j].astype(np.float32))
        curve: dict[str, Any] = {}
        watch = [
            lightgbm.early_stopping(_PATIENCE, verbose=False),
            lightgbm.record_evaluation(curve),
        ]
        booster = lightgbm.train(params, data, _MOST, valid_sets=[valid], callbacks=watch)
        boosters.append(booster)
        curves.append(curve["valid_0"]["binary_logloss"])
    found: Setting = {}
    if held is not None and curves:
        steps = _label_steps(curves, held.on[:, learned.labels].sum(axis=0))
        found["steps"] = np.full(on.shape[1], int(np.median(steps)))
        found["steps"][learned.labels] = steps
        found["steps"] = steps = found["steps"].tolist()

    def scores(new: Any) -> np.ndarray:
        rows, out = plain(view(new)), np.zeros((new.shape[0], len(learned.labels)))
        for at, (j, booster) in enumerate(zip(learned.labels, boosters, strict=True)):
            out[:, at] = booster.predict(rows, raw_score=True, num_iteration=int(steps[j]))
        return learned.all_labels(out)

    return Fit(scores, found)


def _label_steps(curves: list[list[float]], positives: np.ndarray) -> np.ndarray:
    """Return the best number of steps per label from held-out losses; rare labels share one."""
    longest = max(map(len, curves))
    whole = np.array([curve + [curve[-1]] * (longest - len(curve)) for curve in curves])
    steps = whole.argmin(axis=1) + 1
    rare = positives < _FEW
    # After the last step a loss counts as constant, so that rare labels get more trees than the
    # median of their best numbers.  On splits that are not reported that costs medical 0.0045 of
    # average precision, and cal500, genbase, enron and arts at most 0.0002.
    if rare.any():
        steps[rare] = whole[rare].sum(axis=0).argmin() + 1
    return steps


def fit_xgboost(
    X: Any, on: np.ndarray, setting: Setting, seed: int, held: Held | None = None
) -> Fit:
    """XGBoost with a tree per label in each step; ``steps`` is one number for all labels."""
    import xgboost

    view, learned = View(setting["view"], X), Learned(on)
    start = prior_log_odds(on)[learned.labels]
    params = {
        "objective": "binary:logistic",
        "eval_metric": "logloss",
        "tree_method": "hist",
        "learning_rate": _RATE,
        "max_depth": setting["max_depth"],
        "min_child_weight": setting["min_child_weight"],
        "colsample_bytree": setting["colsample_bytree"],
        "subsample": setting["subsample"],
        "lambda": setting["lambda"],
        "max_bin": 64,
        "base_score": 0.5,  # log-odds 0: the starting point is in each row's base margin
        "seed": seed,
        "nthread": 1,
        "verbosity": 0,
    }
    if not len(learned.labels):
        return Fit(lambda new: learned.all_labels(np.zeros((new.shape[0], 0))))

    def matrix(rows: Any, labels: np.ndarray | None = None) -> Any:
        margin = np.tile(start, (rows.shape[0], 1))
        if labels is not None:
            labels = labels[:, learned.labels].astype(np.float32)
        rows = plain(view(rows))
        return xgboost.DMatrix(rows, labels, base_margin=margin, nthread=1)

    found: Setting = {}
    if held is None:
        booster = xgboost.train(params, matrix(X, on), setting.get("steps", _USUAL))
    else:
        booster = xgboost.train(
            params,
            matrix(X, on),
            _MOST,
            evals=[(matrix(held.X, held.on), "held_out")],
            early_stopping_rounds=_PATIENCE,
            verbose_eval=False,
        )
        found["steps"] = booster.best_iteration + 1

    def scores(new: Any) -> np.ndarray:
        steps = (0, found.get("steps", 0))
        out = booster.predict(matrix(new), output_margin=True, iteration_range=steps)
        return learned.all_labels(out.reshape(new.shape[0], -1))

    return Fit(scores, found)


def fit_catboost(
    X: Any, on: np.ndarray, setting: Setting, seed: int, held: Held | None = None
) -> Fit:
    """CatBoost with its loss for several labels, one tree for all of them in each step."""
    import catboost

    view, learned = View(setting["view"], X), Learned(on)
    if not len(learned.labels):
        return Fit(lambda new: learned.all_labels(np.zeros((new.shape[0], 0))))

    def pool(rows: Any, labels: np.ndarray) -> Any:
        return catboost.Pool(plain(view(rows)), labels[:, learned.labels].astype(int))

    model = catboost.CatBoost(
        {
            "loss_function": "MultiLogloss" if len(learned.labels) > 1 else "Logloss",
            "learning_rate": _RATE,
            "iterations": _MOST if held is not None else setting.get("steps", _USUAL),
            "depth": setting["depth"],
            "l2_leaf_reg": setting["l2_leaf_reg"],
            "rsm": setting["rsm"],
            "random_seed": seed,
            "thread_count": 1,
            "border_count": 64,
            "verbose": False,
            "allow_writing_files": False,
        }
    )
    found: Setting = {}
    if held is None:
        model.fit(pool(X, on))
    else:
        model.fit(pool(X, on), eval_set=pool(held.X, held.on), early_stopping_rounds=_PATIENCE)
        found["steps"] = int(model.best_iteration_) + 1

    def scores(new: Any) -> np.ndarray:
        out = model.predict(plain(view(new)), prediction_type="RawFormulaVal", thread_count=1)
        return learned.all_labels(np.reshape(out, (new.shape[0], -1)))

    return Fit(scores, found)


def fit_boomer(
    X: Any, on: np.ndarray, setting: Setting, seed: int, _held: Held | None = None
) -> Fit:
    """Rules for several labels, boosted (MLRL-Boomer).

    Of rows that are mostly zero, each rule may use every feature: with a sample of them, Boomer's
    default, training ends at the first sample in which there is no rule.
    """
    from mlrl.boosting import BoomerClassifier

    view, learned = View(setting["view"], X), Learned(on)
    options = {"feature_sampling": "none"} if sp.issparse(X) else {}
    model = BoomerClassifier(
        random_state=1 + seed % (2**31 - 1),
        loss=setting["loss"],
        max_rules=setting["max_rules"],
        shrinkage=setting["shrinkage"],
        l2_regularization_weight=setting["l2"],
        parallel_rule_refinement="false",
        parallel_statistic_update="false",
        parallel_prediction="false",
        **options,
    )
    model.fit(plain(view(X)).astype(np.float32), on[:, learned.labels].astype(np.uint8))

    def scores(new: Any) -> np.ndarray:
        p = np.asarray(model.predict_proba(plain(view(new)).astype(np.float32)), dtype=float)
        return learned.all_labels(log_odds(p))

    return Fit(scores)


def plain(X: Any) -> Any:
    """Return rows in a form that the libraries of boosted trees accept."""
    return sp.csr_matrix(X) if sp.issparse(X) else np.asarray(X)


def fit_ensemble(
    X: Any, on: np.ndarray, _setting: Setting, seed: int, _held: Held | None = None
) -> Fit:
    """Fit the ensemble of imcc as it is; it has held-out scores of its training rows."""
    model = KernelEnsembleClassifier(random_state=seed)
    held_out = model.fit_held_out(X, on.astype(int))
    return Fit(model.decision_function, held_out=held_out)


ENSEMBLE = "ensemble"
RIVALS: dict[str, Rival] = {
    ENSEMBLE: Rival(fit_ensemble),
    "svm": Rival(
        fit_svm, {"C": (3.0, 1.0, 10.0, 0.3, 30.0), "width": (1.0, 0.5, 2.0, 0.25, 4.0)}, "all"
    ),
    "extra_trees": Rival(
        fit_extra_trees,
        {
            "min_samples_leaf": (2, 1, 4),
            "max_features": ("sqrt", 0.1, 0.3),
            "calibrate": ("log-odds", "votes"),
        },
        "trees",
    ),
    "lightgbm": Rival(
        fit_lightgbm,
        {
            "num_leaves": (15, 7, 31),
            "min_data_in_leaf": (5, 2, 10, 20),
            "lambda_l2": (1.0, 0.1, 10.0),
            "feature_fraction": (0.5, 0.2, 0.8),
        },
        "trees",
        "lightgbm",
    ),
    "xgboost": Rival(
        fit_xgboost,
        {
            "max_depth": (6, 3, 4, 8),
            "min_child_weight": (0.1, 0.01, 1.0, 5.0),
            "colsample_bytree": (0.5, 0.2, 0.8),
            "subsample": (1.0, 0.7),
            "lambda": (1.0, 0.1, 10.0),
        },
        "trees",
        "xgboost",
    ),
    "logistic": Rival(fit_logistic, {"C": (1.0, 0.01, 0.03, 0.1, 0.3, 3.0, 10.0, 30.0)}, "all"),
    "mlp": Rival(
        fit_mlp,
        {
            "hidden": (128, 64, 256),
            "alpha": (1e-3, 1e-5, 1e-1, 1.0),
            "learning_rate": (1e-3, 3e-3),
            "batch": (100, 32),
        },
        "all",
    ),
    "mlknn": Rival(fit_mlknn, {"k": (10, 5, 15, 20, 30, 50)}, "all"),
    "ecc": Rival(fit_chains, {"C": (1.0, 0.01, 0.03, 0.1, 0.3, 3.0, 10.0, 30.0)}, "all"),
    "catboost": Rival(
        fit_catboost,
        {"depth": (6, 4, 8), "l2_leaf_reg": (3.0, 1.0, 10.0), "rsm": (0.5, 0.2, 1.0)},
        "trees",
        "catboost",
    ),
    "boomer": Rival(
        fit_boomer,
        {
            "loss": ("logistic-decomposable", "logistic-non-decomposable"),
            "shrinkage": (0.3, 0.1),
            "l2": (1.0, 10.0, 0.1),
            "max_rules": (1000, 300),
        },
        "trees",
        "mlrl.boosting",
    ),
}
#: The members of the stack: the rivals whose packages are small enough to be anywhere.
STACKED = ("svm", "extra_trees", "lightgbm", "xgboost", "logistic", "mlp", "mlknn", "ecc")
STACK = "stack"
METHODS = (*RIVALS, STACK)
