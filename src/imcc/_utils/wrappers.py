"""Access to the model inside pipelines, searches and meta-estimators.

A wrapper is an estimator around one fitted estimator:

* a scikit-learn ``Pipeline``, around its last step;
* a meta-estimator of imcc, around its ``estimator_`` (:class:`imcc.estimators.TunedThresholds`,
  :class:`imcc.estimators.MultilabelCalibrator`, :class:`imcc.tables.TableClassifier`);
* a search, around its ``best_estimator_`` (of imcc, ``GridSearchCV`` and others).

Other meta-estimators (``RFE``, ``OneVsRestClassifier``) may change the rows or contain several
models, and count as models.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.names import name_of


def layers(model: Any, *, searches: bool = True) -> Iterator[Any]:
    """Yield a model and the estimators inside it, outermost first.

    Parameters
    ----------
    model : estimator
        If it is not fitted, only pipelines are entered.
    searches : bool, default=True
        Whether to continue from a search to its ``best_estimator_``.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> pipeline = make_pipeline(StandardScaler(), RidgeClassifier())
    >>> [type(layer).__name__ for layer in layers(pipeline)]
    ['Pipeline', 'RidgeClassifier']
    """
    while model is not None:
        yield model
        if isinstance(model, Pipeline):
            model = model.steps[-1][1] if model.steps else None
        elif _is_our_wrapper(model):
            model = model.estimator_
        else:
            model = getattr(model, "best_estimator_", None) if searches else None


def innermost(model: Any, *, searches: bool = True) -> Any:
    """Return the model inside all wrappers; see :func:`layers`."""
    *_, last = layers(model, searches=searches)
    return last


def first_with(model: Any, attribute: str) -> Any | None:
    """Return the outermost layer that has an attribute, or None."""
    return next((layer for layer in layers(model) if hasattr(layer, attribute)), None)


def transformers(model: Any) -> list[Any]:
    """Return the transformers that are applied before the innermost model, in order."""
    pipelines = [layer for layer in layers(model) if isinstance(layer, Pipeline)]
    return [pipeline[:-1] for pipeline in pipelines if len(pipeline.steps) > 1]


def transformed(model: Any, X: Any) -> Any:
    """Return rows as the innermost model is given them."""
    for step in transformers(model):
        X = step.transform(X)
    return X


def best_setting(model: Any) -> Any:
    """Return an unfitted model with the setting that a fitted search has selected.

    A model without a search is cloned; a pipeline keeps its other steps, and a meta-estimator of
    imcc is kept around the setting.  A calibrated search is kept with only this setting in its
    grid, because its scores are log-odds, unlike those of its ``best_estimator_``.
    """
    if isinstance(model, Pipeline):
        steps = [(name, clone(step)) for name, step in model.steps[:-1]]
        name, last = model.steps[-1]
        return Pipeline([*steps, (name, best_setting(last))])
    if _is_our_wrapper(model) and without_search(model)[1] is not None:
        return clone(model).set_params(estimator=best_setting(model.estimator_))
    if _is_calibrated_search(model):
        return model.at_setting(model.best_params_)
    return clone(getattr(model, "best_estimator_", model))


def without_search(model: Any) -> tuple[Any, Any]:
    """Return a fitted model with the best setting instead of the search, and the search.

    The results of all settings are not needed for predictions and would be most of a model file.

    Parameters
    ----------
    model : fitted estimator
        A search, or a pipeline or meta-estimator of imcc around one; it is not modified.

    Returns
    -------
    model : fitted estimator
        The same wrappers around ``best_estimator_`` of the search; fitted parts are shared.  A
        calibrated search, which has the probabilities, is kept without its results.
    search : estimator or None
        None if there is no search; the model is then returned unchanged.
    """
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        best, search = without_search(last)
        return (model if search is None else Pipeline([*model.steps[:-1], (name, best)])), search
    if _is_our_wrapper(model):
        best, search = without_search(model.estimator_)
        if search is None:
            return model, None
        if hasattr(model, "_with_fitted"):  # it transforms the input of its estimator
            return model._with_fitted(best), search
        found = copy.copy(model)
        found.estimator_, found.estimator = best, clone(best)
        return found, search
    if _is_calibrated_search(model):
        found = copy.copy(model)
        found.__dict__.pop("cv_results_", None)
        return found, model
    if hasattr(model, "best_estimator_"):
        return model.best_estimator_, model
    return model, None


def uses_groups(estimator: Any) -> bool:
    """Return whether ``fit`` of an estimator, or of a pipeline's last step, uses ``groups``."""
    last, _ = _last_step(estimator)
    return bool(getattr(last, "_uses_groups", has_fit_parameter(last, "groups")))


def fit_with(
    estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None
) -> Any:
    """Fit an estimator, or a pipeline that ends in one, with row weights and groups.

    Parameters
    ----------
    estimator : estimator
    X, y
        Training rows and labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights; an error if the estimator does not support them.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, for estimators that use them; others hold out no rows.
    """
    last, prefix = _last_step(estimator)
    more = {}
    if sample_weight is not None:
        if not has_fit_parameter(last, "sample_weight"):
            raise InvalidArgumentError(
                "sample_weight",
                f"was passed, but {type(last).__name__}.fit does not support it: omit it, or use a "
                "classifier that supports weights",
            )
        more[f"{prefix}sample_weight"] = sample_weight
    if groups is not None and uses_groups(last):
        more[f"{prefix}groups"] = groups
    return estimator.fit(X, y, **more)


def _last_step(estimator: Any) -> tuple[Any, str]:
    """Return the last step of a pipeline, also of nested ones, and the prefix of its arguments."""
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return estimator, prefix


def describe(model: Any) -> str:
    """Return the class names of a model, outermost first.

    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> describe(make_pipeline(StandardScaler(), RidgeClassifier()))
    'StandardScaler -> RidgeClassifier'
    """
    if isinstance(model, Pipeline):
        return " -> ".join(describe(step) for _, step in model.steps)
    name = type(model).__name__
    return f"{name}({describe(model.estimator_)})" if _is_our_wrapper(model) else name


def _is_calibrated_search(model: Any) -> bool:
    """Return whether a model is a calibrated search of imcc."""
    return name_of(type(model)) is not None and hasattr(model, "calibration_")


def _is_our_wrapper(model: Any) -> bool:
    return name_of(type(model)) is not None and hasattr(model, "estimator_")
