"""Methods with a parameter search: the setting chosen by each metric, from a single search."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV

from imcc.baselines import UnboundedError
from imcc.experiment._plan import Task
from imcc.experiment._scores import centred_scores, predictions
from imcc.metrics import METRICS, evaluate

# Searches of scikit-learn with several metrics; others (successive halving) support only one.
SKLEARN_SEARCHES = (GridSearchCV, RandomizedSearchCV)


def prepare(task: Task, seed: int, device: str | None = None) -> tuple[Any, bool]:
    """Return the estimator of a task with the folds, metrics and seed of the experiment.

    ``device`` is set if the estimator has this parameter.  A method with a grid becomes a
    ``GridSearchCV``.  If the estimator is a search, its folds and metrics are replaced by those of
    the experiment: all methods are compared under the same protocol.

    Returns
    -------
    estimator : estimator
    calibrate : bool
        Whether the settings that a search chooses are to be calibrated (see :func:`fit_choice`),
        which the search itself is not.
    """
    protocol = task.protocol
    estimator, grid = task.method.build()
    parameters = estimator.get_params(deep=True)
    seeds = {
        name: seed
        for name, value in parameters.items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    estimator.set_params(**seeds)
    if device is not None and "device" in estimator.get_params(deep=False):
        estimator.set_params(device=device)
    if grid is not None:
        estimator = GridSearchCV(estimator, grid)
    if not searches(estimator):
        return estimator, False
    folds = KFold(protocol.cv, shuffle=True, random_state=seed)
    if isinstance(estimator, SKLEARN_SEARCHES):
        estimator.set_params(cv=folds, scoring=_score_all, refit=False, error_score="raise")
        return estimator, False
    calibrate = bool(getattr(estimator, "calibrate", False))
    if calibrate:
        estimator.set_params(calibrate=False)
    halving = getattr(estimator, "halving", False)  # needs a metric to rank settings by
    refit = protocol.scoring if halving else False
    return estimator.set_params(cv=folds, scoring=list(METRICS), refit=refit), calibrate


def searches(estimator: Any) -> bool:
    """Return whether an estimator chooses its parameters by cross-validation."""
    return isinstance(estimator, SKLEARN_SEARCHES) or hasattr(estimator, "estimator_for")


def fit_choice(
    search: Any,
    metric: str,
    fitted: dict[str, Any],
    X: Any,
    Y: Any,
    calibrate: bool = False,
) -> tuple[dict[str, Any], float]:
    """Fit the setting chosen by a metric on all training rows, unless it is already fitted.

    Parameters
    ----------
    search : estimator
        The fitted search.
    metric : str
    fitted : dict
        Fitted models by the ``repr`` of their settings; a new model is added.
    X, Y
        Training rows and labels.
    calibrate : bool, default=False
        Whether to calibrate the model on the folds of the search.

    Returns
    -------
    setting : dict
        If a setting is unbounded on all rows (LLSF, JFSC), the next best is used.
    cv_score : float
        Its cross-validated value of the metric.
    """
    results, greater = search.cv_results_, METRICS[metric].greater_is_better
    # scikit-learn negates losses.
    sign = -1.0 if isinstance(search, SKLEARN_SEARCHES) and not greater else 1.0
    means = results[f"mean_test_{metric}"]
    unbounded: Exception | None = None
    for index in np.argsort(results[f"rank_test_{metric}"], kind="stable"):
        if np.isnan(means[index]):
            break
        setting = results["params"][index]
        name = repr(setting)
        if name not in fitted:
            try:
                fitted[name] = _estimator_for(search, setting, calibrate).fit(X, Y)
            except UnboundedError as error:
                unbounded = error
                continue
        return setting, sign * float(means[index])
    message = f"{metric} is undefined on every fold: it cannot choose a setting"
    raise unbounded or ValueError(message)


def _estimator_for(search: Any, setting: dict[str, Any], calibrate: bool) -> Any:
    if calibrate:  # a search with one setting, by a metric that is defined for all rows
        alone = search.at_setting(setting)
        return alone.set_params(calibrate=True, scoring="hamming_loss", refit=True)
    if isinstance(search, SKLEARN_SEARCHES):
        return clone(search.estimator).set_params(**clone(setting, safe=False))
    return search.estimator_for(setting)


def _score_all(estimator: Any, X: Any, Y: np.ndarray) -> dict[str, float]:
    """Return the five metrics on a fold for ``GridSearchCV``, losses negated."""
    scores = centred_scores(estimator, X, Y.shape[1])
    metrics = evaluate(Y, scores)
    metrics["hamming_loss"] = float((predictions(estimator, X, scores) != (Y > 0)).mean())
    return {
        name: value if METRICS[name].greater_is_better else -value
        for name, value in metrics.items()
    }
