"""Checks of features, labels and parameters: the only place that does them.

Labels come in as people have them: ``{0, 1}``, ``{-1, +1}`` or boolean indicator matrices (NumPy,
pandas, polars, SciPy sparse), or a 1-D vector with one class per row.  They leave as a
:class:`Target`: a ``{-1, +1}`` matrix for the solver and what is needed to return the user's
language on the way out.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from imcc._backend.array import is_numpy, library, namespace, sum_of_squares, to_numpy
from imcc._utils.errors import InvalidArgumentError, given

Features = Any  # ndarray, CSR matrix/array, or an array of another library


@dataclass(frozen=True)
class Target:
    """What the training labels are, for the solver and for the user.

    Attributes
    ----------
    signs : ndarray of shape (n_samples, n_outputs)
        The labels as -1.0 and +1.0.  One column for a binary 1-D target, one per class for a
        multi-class one.
    kind : {"multilabel", "binary", "multiclass"}
        What came in: an indicator matrix, or a 1-D vector with at most two or with more classes.
    classes : ndarray
        The distinct values of a 1-D target, or ``arange(n_labels)``.
    label_names : ndarray of str or None
        The column names of a data frame.
    """

    signs: np.ndarray
    kind: str
    classes: np.ndarray
    label_names: np.ndarray | None = None


def check_features(estimator: BaseEstimator, X: Features, *, reset: bool) -> Features:
    """Return X as a finite float64 or float32 array or CSR matrix, names and width checked.

    Arrays of torch, CuPy and array_api_strict stay what and where they are; all else becomes
    NumPy's.  Entries that a sparse matrix stores more than once are summed, in a copy.  Values so
    large that their squares overflow are an error that names the column.
    """
    if is_numpy(X):
        X = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
        )
        X = without_duplicates(X)
    else:
        X = _check_device_features(estimator, X, reset)
    check_magnitude(X, getattr(estimator, "feature_names_in_", None))
    return X


def without_duplicates(X: Features) -> Features:
    """Return rows in which every entry of a sparse matrix is stored once; others as they are.

    SciPy reads entries that are stored twice as their sum, but not all code that works on the
    stored values does (squares of rows, for example).  The matrix that was given is not changed.
    """
    if not sp.issparse(X):
        return X
    # A new matrix on the same memory: what SciPy remembers of the given one may be out of date.
    shared = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
    if shared.has_canonical_format:
        return X
    summed = shared.copy()
    summed.sum_duplicates()
    if not np.isfinite(summed.data).all():
        raise ValueError(
            "X contains entries that are stored more than once and whose sum is infinite or NaN"
        )
    return summed


def check_magnitude(X: Features, names: Any = None, where: str = "X") -> None:
    """Refuse finite rows whose squares overflow, and name the column.

    Distances and products are sums of squares of at most twice the values.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    names : sequence of str, optional
        Names of the columns.
    where : str
        What to call the rows in the message.
    """
    dtype = str(X.dtype).rpartition(".")[-1]
    if 64.0 * sum_of_squares(X) <= np.finfo(dtype).max:
        return
    column, value = largest_entry(X)
    raise ValueError(
        f"{where} has values too large to compute with: {_column(column, names)} holds {value:g}, "
        f"and squares of such values overflow {dtype}; scale the features, or remove the value if "
        "it stands for a missing one"
    )


def check_finite_result(
    values: Any, what: str, *, X: Features | None = None, names: Any = None, remedy: str = ""
) -> Any:
    """Return computed numbers if all are finite, or raise a ValueError that says what is not.

    For every result that is shown, stored or compared: coefficients, scores of rows, scores of
    settings.  A fit, a search or a stream calls it before it stores or ranks anything.

    Parameters
    ----------
    values : array of any library, CSR matrix or number
    what : str
        What was computed, with the setting it was computed for: "the scores with alpha=0.1".
    X : array or CSR matrix of shape (n_samples, n_features), optional
        The rows that the values come from; the column with the largest value is named.
    names : sequence of str, optional
        Names of the columns of X.
    remedy : str
        What to do about it, if that is known.
    """
    stored = values.data if sp.issparse(values) else values
    if is_numpy(stored):
        finite = bool(np.isfinite(stored).all())
    else:
        xp = namespace(stored)
        finite = bool(xp.all(xp.isfinite(stored)))
    if finite:
        return values
    cause = ""
    if X is not None:
        column, value = largest_entry(X)
        cause = f"; the largest value of X is {value:g} in {_column(column, names)}"
    advice = remedy or "scale the features, or choose less extreme parameters"
    raise ValueError(f"{what} are not finite (NaN or infinite){cause}: {advice}")


def largest_entry(X: Features) -> tuple[int, float]:
    """Return the column and the value of the entry with the largest absolute value."""
    X = to_numpy(X)
    if sp.issparse(X):
        X = X.tocoo()
        if not X.nnz:
            return 0, 0.0
        place = int(np.abs(X.data).argmax())
        return int(X.col[place]), float(X.data[place])
    row, column = np.unravel_index(np.abs(X).argmax(), X.shape)
    return int(column), float(X[row, column])


def _column(column: int, names: Any) -> str:
    named = "" if names is None else f" ({names[column]!r})"
    return f"column {column}{named}, counted from 0,"


def _check_device_features(estimator: BaseEstimator, X: Any, reset: bool) -> Any:
    """Do for an array on a device what scikit-learn does for NumPy's."""
    X, name = check_device_rows(X), type(estimator).__name__
    xp = namespace(X)
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError(f"Input X contains NaN or infinity: {name} does not accept missing values")
    if reset:
        estimator.n_features_in_ = int(X.shape[1])
        estimator.__dict__.pop("feature_names_in_", None)
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {name} is expecting {estimator.n_features_in_} "
            "features as input"
        )
    return X


def check_device_rows(X: Any) -> Any:
    """Return an array on a device as float64 or float32 rows, finite or not."""
    xp = namespace(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"X must have two dimensions (rows x features) and at least one row and one feature, "
            f"got an array of {library(X)} of shape {tuple(X.shape)}"
        )
    if xp.isdtype(X.dtype, ("bool", "integral")):
        X = xp.astype(X, xp.float64)
    if X.dtype not in (xp.float64, xp.float32):
        raise ValueError(f"X must hold float64 or float32 numbers, got {X.dtype}")
    return X


def column_names(table: Any) -> np.ndarray | None:
    """Return the names of a data frame's columns, if they are names."""
    columns = getattr(table, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.asarray(list(columns), dtype=object)


def _is_indicator(values: np.ndarray) -> bool:
    if values.dtype == bool:
        return True
    if values.dtype.kind not in "iuf":
        return False
    on = values == 1
    return bool(np.all(on | (values == 0)) or np.all(on | (values == -1)))


def _as_table(labels: Any, name: str) -> np.ndarray:
    """Return the labels as an ndarray of one or two dimensions, nothing missing."""
    labels = to_numpy(labels)
    if sp.issparse(labels):
        return labels.toarray()
    try:
        values = np.asarray(labels)
    except ValueError as error:
        raise ValueError(
            f"{name} must be a table with one column per label, not lists of different lengths; "
            "turn lists of label names into one with sklearn.preprocessing.MultiLabelBinarizer"
        ) from error
    if values.dtype == object:
        values = _plain_numbers(values)
    if values.dtype.kind in "fc":
        check_array(values, ensure_2d=False, allow_nd=True, dtype=None, input_name=name)
    return values


def _plain_numbers(values: np.ndarray) -> np.ndarray:
    """Turn an object array of numbers or booleans (mixed data frames) into one of floats."""
    if all(isinstance(v, (numbers.Real, np.bool_)) for v in values.flat):
        return values.astype(np.float64)
    return values


def label_matrix(labels: Any, name: str = "Y") -> np.ndarray:
    """Return an indicator matrix as booleans.

    Parameters
    ----------
    labels : array-like, data frame or sparse matrix of shape (n_samples, n_labels)
        Labels coded {0, 1}, {-1, +1} or boolean.
    name : str
        How to call it in error messages.
    """
    values = _as_table(labels, name)
    if values.ndim != 2:
        raise ValueError(
            f"{name} must be two-dimensional (rows x labels), got an array of shape {values.shape}"
        )
    if values.shape[0] == 0 or values.shape[1] == 0:
        raise ValueError(f"{name} is empty: it has shape {values.shape}")
    if not _is_indicator(values):
        found = np.unique(values.astype(str) if values.dtype == object else values)
        shown = ", ".join(str(v) for v in found[:5]) + (", ..." if len(found) > 5 else "")
        raise ValueError(
            f"{name} must hold labels coded {{0, 1}}, {{-1, +1}} or boolean, "
            f"but its values are {shown}"
        )
    return values if values.dtype == bool else values > 0


def encode_target(y: Any, n_rows: int, estimator_name: str = "fit") -> Target:
    """Check the training labels and code them for the solver.

    Parameters
    ----------
    y : array-like
        An indicator matrix (see :func:`label_matrix`), or a vector with one class per row.
    n_rows : int
        Number of rows of X.
    estimator_name : str
        Named in the message when there is no y.
    """
    if y is None:
        raise ValueError(f"{estimator_name} requires y to be passed, but the target y is None")
    values = _as_table(y, "y")
    if values.ndim not in (1, 2):
        raise ValueError(f"y must have one or two dimensions, got an array of shape {values.shape}")
    if values.shape[0] != n_rows:
        raise ValueError(
            f"X and y must have as many rows: X has {n_rows}, y has {values.shape[0]} "
            "(Found input variables with inconsistent numbers of samples)"
        )
    if values.ndim == 2 and values.shape[1] == 1 and not _is_indicator(values):
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: it is taken as one class "
            "per row; pass y.ravel() to say so",
            DataConversionWarning,
            stacklevel=4,  # the caller of fit, which is wrapped (imcc.estimators.base)
        )
        values = values.ravel()
    if values.ndim == 1:
        return _encode_classes(values)
    on = label_matrix(values, "y")
    return Target(np.where(on, 1.0, -1.0), "multilabel", np.arange(on.shape[1]), column_names(y))


def _encode_classes(values: np.ndarray) -> Target:
    check_classification_targets(values)
    classes, index = np.unique(values, return_inverse=True)
    if len(classes) <= 2:
        # A single class is always on: the last (only) class is the positive one either way.
        signs = np.where(index == len(classes) - 1, 1.0, -1.0)[:, np.newaxis]
        return Target(signs, "binary", classes)
    signs = np.where(index[:, np.newaxis] == np.arange(len(classes)), 1.0, -1.0)
    return Target(signs, "multiclass", classes)


def check_number(
    name: str, value: Any, *, above: float | None = None, at_least: float | None = None
) -> float:
    """Return a finite real number within its bound, or say what was wrong."""
    bound = f"> {above:g}" if above is not None else f">= {at_least:g}"
    is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    number = float(value) if is_number else math.nan
    within = (above is None or number > above) and (at_least is None or number >= at_least)
    if not within or math.isinf(number):
        raise InvalidArgumentError(name, f"must be a finite number {bound}, got {value!r}")
    return number


def check_count(name: str, value: Any, *, at_least: int = 1) -> int:
    """Return a whole number of at least 1 (or another bound), or say what was wrong."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
    if not is_whole or value < at_least:
        raise InvalidArgumentError(name, f"must be a whole number >= {at_least}, got {value!r}")
    return int(value)


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return one of a few words, or say which there are."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise InvalidArgumentError(name, f"must be one of {listed}, got {value!r}")
    return value


def check_switch(name: str, value: Any) -> bool:
    """Return a parameter that is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidArgumentError(name, f"must be True or False, got {value!r}")
    return bool(value)


def check_share(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1, or say what was wrong."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    if not is_number or not 0 < float(value) < 1:
        raise InvalidArgumentError(name, f"must be a number between 0 and 1, got {value!r}")
    return float(value)


def check_thresholds(thresholds: Any, n_outputs: int, name: str = "thresholds") -> np.ndarray:
    """Return a threshold for each output: zeros for None, a number for all, or an array.

    Infinite ones are allowed (a label that is always or never predicted), NaN is not.  ``name`` is
    that of the argument, for messages.
    """
    if thresholds is None:
        return np.zeros(n_outputs)
    values = np.asarray(thresholds)
    if values.dtype.kind not in "iuf" or np.isnan(values).any():
        raise InvalidArgumentError(name, f"must be numbers, got {thresholds!r}")
    if values.ndim > 0 and values.shape != (n_outputs,):
        raise InvalidArgumentError(
            name,
            f"must be one number or one for each of the {n_outputs} labels, got an array of shape "
            f"{values.shape}",
        )
    return np.broadcast_to(values.astype(np.float64), (n_outputs,)).copy()


def check_probability_thresholds(thresholds: Any, n_outputs: int) -> np.ndarray:
    """Return a probability for each output from one number for all, or an array."""
    name = "probability_thresholds"
    values = check_thresholds(thresholds, n_outputs, name)
    if (values < 0).any() or (values > 1).any():
        raise InvalidArgumentError(
            name,
            f"must be probabilities, between 0 and 1, got {thresholds!r}; scores are given as "
            + given("thresholds"),
        )
    return values


def draw_seed(random_state: Any) -> int:
    """Return a seed that is the same whenever the same integer is given."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
