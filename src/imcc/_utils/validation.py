"""Checks of features, labels and parameters.

Labels are accepted as ``{0, 1}``, ``{-1, +1}`` or boolean indicator matrices (NumPy, pandas,
polars, SciPy sparse), a set of labels per row, or a 1-D vector with one class per row.  They are
converted to a :class:`Target`: a ``{-1, +1}`` matrix for the solver, and what is needed to return
predictions in the form of the input.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import _safe_indexing, check_array, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, _check_n_features, validate_data

from imcc._array.array import is_numpy, library, namespace, sum_of_squares, take_rows, to_numpy
from imcc._array.device import require_memory
from imcc._utils.errors import InvalidArgumentError

Features = Any  # ndarray, CSR matrix/array, or an array of another library

_LESS_EXTREME = "scale the features, or choose less extreme parameters"


@dataclass(frozen=True)
class Target:
    """The encoded training labels.

    Attributes
    ----------
    signs : ndarray of shape (n_samples, n_outputs)
        Labels as -1.0 and +1.0 (0.0 where unknown).  One column for a binary 1-D target, one per
        class for a multiclass one.
    kind : {"multilabel", "binary", "multiclass"}
        Type of the input: an indicator matrix (or sets), or a 1-D vector with at most two or with
        more classes.
    classes : ndarray
        Distinct values of a 1-D target, or ``arange(n_labels)``.
    label_names : ndarray of str or None
        Column names of a data frame, or the labels of sets.
    known : ndarray of bool of shape (n_samples, n_outputs), or None
        Which labels are known; None if all are.
    """

    signs: np.ndarray
    kind: str
    classes: np.ndarray
    label_names: np.ndarray | None = None
    known: np.ndarray | None = None


def check_features(estimator: BaseEstimator, X: Features, *, reset: bool) -> Features:
    """Return X as a finite float64 or float32 array or CSR matrix, after checking it.

    Arrays of torch, CuPy and array_api_strict keep their library and device; other input is
    converted to NumPy.  Duplicate entries of a sparse matrix are summed in a copy.  Values whose
    squares overflow raise an error that names the column.
    """
    if type(X).__module__.partition(".")[0] == "dask":
        raise InvalidArgumentError(
            "X",
            "is a Dask collection, which would be loaded into memory as a whole: pass X.compute(), "
            "or fit IMCCClassifier with an approximation on a stream of its parts",
        )
    if is_numpy(X):
        try:
            X = validate_data(
                estimator,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                order="C",
            )
        except ValueError as error:
            if "contains NaN" not in str(error):
                raise
            raise InvalidArgumentError(
                "X",
                "contains NaN: fill in missing values with sklearn.impute.SimpleImputer in a "
                "pipeline, or use imcc.TableClassifier, which accepts them",
            ) from error
        X = without_duplicates(X)
    else:
        X, xp = check_device_rows(X), namespace(X)
        if not bool(xp.all(xp.isfinite(X))):
            raise ValueError(
                "Input X contains NaN or infinity: "
                f"{type(estimator).__name__} does not accept missing values"
            )
        _check_feature_names(estimator, X, reset=reset)
        _check_n_features(estimator, X, reset=reset)
    check_magnitude(X, getattr(estimator, "feature_names_in_", None))
    return X


def without_duplicates(X: Features) -> Features:
    """Return a sparse matrix without duplicate entries; dense rows unchanged.

    Duplicate entries mean their sum in SciPy, but code that works on the stored values, such as
    squares of rows, may ignore this.  The input is not modified.
    """
    if not sp.issparse(X):
        return X
    # A new matrix with the same memory, because flags cached by SciPy may be out of date.
    shared = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
    if shared.has_canonical_format:
        return X
    summed = shared.copy()
    summed.sum_duplicates()
    return summed


def check_magnitude(X: Features, names: Any = None, where: str = "X") -> None:
    """Raise an error that names the column, if squares of finite values overflow.

    Distances and products are sums of squares of at most twice the values.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    names : sequence of str, default=None
        Names of the columns.
    where : str, default="X"
        Name of the rows in the message.
    """
    dtype = str(X.dtype).rpartition(".")[-1]
    if 64.0 * sum_of_squares(X) <= np.finfo(dtype).max:
        return
    column, value = largest_entry(X)
    raise ValueError(
        f"{where} has values that are too large: {_column(column, names)} contains {value:g}, and "
        f"squares of such values overflow {dtype}; scale the features, or remove the value if it "
        "represents a missing one"
    )


def check_finite_result(
    values: Any, what: str, *, X: Features | None = None, names: Any = None
) -> Any:
    """Return computed numbers if all are finite, or raise a ValueError that names them.

    Used for all results that are returned, stored or compared: coefficients, scores of rows and of
    settings.

    Parameters
    ----------
    values : array of any library, or CSR matrix
    what : str
        Name of the values, with the setting, such as "the scores with alpha=0.1".
    X : array or CSR matrix of shape (n_samples, n_features), default=None
        The rows; the message names the column with the largest value.
    names : sequence of str, default=None
        Names of the columns of X.
    """
    stored = values.data if sp.issparse(values) else values
    xp = namespace(stored)
    if bool(xp.all(xp.isfinite(stored))):
        return values
    raise ValueError(
        f"{what} are not finite (NaN or infinite){_largest_of(X, names)}: {_LESS_EXTREME}"
    )


class ExplainedLinAlgError(np.linalg.LinAlgError):
    """A matrix could not be factorised, and the message says what to do."""


@contextmanager
def explained_singularity(
    what: str, X: Features | None = None, names: Any = None
) -> Iterator[None]:
    """Turn the error of a matrix that is singular into one that names X and says what to do.

    An :class:`ExplainedLinAlgError` says so itself and is passed on.

    Parameters
    ----------
    what : str
        What is computed, such as "the model with alpha=0.1".
    X, names
        As for :func:`check_finite_result`.
    """
    try:
        yield
    except ExplainedLinAlgError:
        raise
    except np.linalg.LinAlgError as error:
        raise ValueError(
            f"{what} cannot be computed: a matrix is singular up to rounding, because the values "
            f"of X or the parameters are of very different magnitude{_largest_of(X, names)}: "
            + _LESS_EXTREME
        ) from error


def _largest_of(X: Features | None, names: Any) -> str:
    if X is None:
        return ""
    column, value = largest_entry(X)
    return f"; the largest value of X is {value:g} in {_column(column, names).rstrip(',')}"


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


def check_device_rows(X: Any) -> Any:
    """Return an array on a device as float64 or float32 rows, which may not be finite."""
    xp = namespace(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"X must have two dimensions (rows x features) and at least one row and one feature, "
            f"got an array of {library(X)} of shape {tuple(X.shape)}"
        )
    if xp.isdtype(X.dtype, ("bool", "integral")):
        X = xp.astype(X, xp.float64)
    if X.dtype not in (xp.float64, xp.float32):
        raise ValueError(f"X must have the dtype float64 or float32, got {X.dtype}")
    return X


def column_names(table: Any) -> np.ndarray | None:
    """Return the column names of a data frame, if all are strings."""
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


def _as_table(labels: Any, name: str, unknown: bool = False) -> np.ndarray:
    """Return the labels as an ndarray without missing values.

    With ``unknown``, 2-D arrays may contain NaN.
    """
    labels = to_numpy(labels)
    if sp.issparse(labels):
        # Dense labels take a byte each, and eight more when they are encoded.
        n_bytes = 9.0 * labels.shape[0] * labels.shape[-1]
        require_memory(n_bytes, np.empty(0), f"a dense {name}", "use fewer rows or labels")
        rows = labels.tocsr()
        with np.errstate(invalid="ignore"):
            small = rows.astype(np.int8)
        return (small if np.array_equal(small.data, rows.data) else rows).toarray()
    try:
        values = np.asarray(labels)
    except ValueError as error:
        raise ValueError(
            f"{name} must be an indicator matrix or a set of labels per row, not lists of "
            "different lengths; convert lists of labels with "
            "sklearn.preprocessing.MultiLabelBinarizer"
        ) from error
    if values.dtype == object and all(isinstance(v, (numbers.Real, np.bool_)) for v in values.flat):
        values = values.astype(np.float64)  # of a mixed data frame
    if unknown and values.dtype.kind == "f" and values.ndim == 2:
        check_array(
            np.where(np.isnan(values), 0, values), ensure_2d=False, dtype=None, input_name=name
        )
    elif values.dtype.kind in "fc":
        check_array(values, ensure_2d=False, allow_nd=True, dtype=None, input_name=name)
    return values


def known_labels(labels: Any, name: str = "Y") -> tuple[np.ndarray, np.ndarray | None]:
    """Return an indicator matrix as booleans, and which labels are known (not NaN).

    The second result is None if all are known; unknown labels are False in the first.  Sparse
    matrices have no unknown labels, since entries that are not stored are 0.
    """
    values = _as_table(labels, name, unknown=True)
    if values.dtype.kind != "f" or values.ndim != 2 or not (missing := np.isnan(values)).any():
        return label_matrix(values, name), None
    if missing.all():
        raise ValueError(f"{name} contains only NaN: no label is known")
    filled = np.where(missing, values[~missing].min(), values)
    return label_matrix(filled, name) & ~missing, ~missing


def check_scores(y_true: Any, scores: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return true labels as booleans, their scores as floats, and which labels are known."""
    on, known = known_labels(y_true, "y_true")
    if sp.issparse(scores):
        raise InvalidArgumentError("scores", "must be dense, got a sparse matrix; call .toarray()")
    scores = check_array(to_numpy(scores), dtype=[np.float64, np.float32], input_name="scores")
    if scores.shape != on.shape:
        raise InvalidArgumentError(
            "scores", f"must have the same shape as y_true, {on.shape}, got {scores.shape}"
        )
    return on, scores, known


def label_matrix(labels: Any, name: str = "Y") -> np.ndarray:
    """Return an indicator matrix as booleans.

    Parameters
    ----------
    labels : array-like, data frame or sparse matrix of shape (n_samples, n_labels)
        Labels coded {0, 1}, {-1, +1} or boolean.
    name : str, default="Y"
        Name of the argument in error messages.
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
            f"{name} must contain labels coded {{0, 1}}, {{-1, +1}} or boolean, got the values "
            f"{shown}"
        )
    return values if values.dtype == bool else values > 0


def encode_target(
    y: Any, n_rows: int, estimator_name: str = "fit", *, unknown: bool = False
) -> Target:
    """Check the training labels and encode them for the solver.

    Parameters
    ----------
    y : array-like
        An indicator matrix (see :func:`label_matrix`), a set or list of labels per row (see
        :func:`label_sets`), or a vector with one class per row.
    n_rows : int
        Number of rows of X.
    estimator_name : str, default="fit"
        Name of the estimator in error messages.
    unknown : bool, default=False
        Whether NaN in an indicator matrix is allowed as an unknown label.
    """
    if y is None:
        raise ValueError(f"{estimator_name} requires y to be passed, but the target y is None")
    sets = label_sets(y)
    values = np.array([]) if sets is not None else _as_table(y, "y", unknown=True)
    if not unknown and values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError(
            f"Input y contains NaN: {estimator_name} does not support unknown labels, but "
            "IMCCClassifier, IMCCClassifierCV, KernelEnsembleClassifier, KernelRidgeBaseline, "
            "MultilabelCalibrator, TunedThresholds and the metrics do"
        )
    if values.ndim not in (1, 2):
        raise ValueError(f"y must have one or two dimensions, got an array of shape {values.shape}")
    count = len(values) if sets is None else len(sets)
    if count != n_rows:
        raise ValueError(
            f"X and y must have the same number of rows: X has {n_rows}, y has {count} "
            "(Found input variables with inconsistent numbers of samples)"
        )
    if sets is not None:
        on, names = binarize_sets(sets)
        if not len(names):
            raise ValueError("y has no label at all: every row's set of labels is empty")
        return Target(np.where(on, 1.0, -1.0), "multilabel", np.arange(len(names)), names)
    if values.ndim == 2 and values.shape[1] == 1 and not _is_indicator(values):
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: it is interpreted as one "
            "class per row; pass y.ravel() to avoid this warning",
            DataConversionWarning,
            stacklevel=4,  # the caller of fit, which is wrapped (imcc.estimators.base)
        )
        values = values.ravel()
    if values.ndim == 1:
        check_classification_targets(values)
        classes, index = np.unique(values, return_inverse=True)
        if len(classes) <= 2:
            # The last class is the positive one, also if there is only one.
            signs = np.where(index == len(classes) - 1, 1.0, -1.0)[:, np.newaxis]
            return Target(signs, "binary", classes)
        signs = np.where(index[:, np.newaxis] == np.arange(len(classes)), 1.0, -1.0)
        return Target(signs, "multiclass", classes)
    on, known = known_labels(values, "y")
    signs = np.where(on, 1.0, -1.0)
    if known is not None:
        never = np.flatnonzero(~known.any(axis=0))
        if never.size:
            raise ValueError(
                f"y contains only NaN in {_column(int(never[0]), column_names(y))} so that this "
                "label is unknown in all rows: remove it"
            )
        signs[~known] = 0.0
    return Target(signs, "multilabel", np.arange(on.shape[1]), column_names(y), known)


def label_sets(y: Any) -> list[Any] | None:
    """Return labels that are given as a set or list per row; None for other input.

    Sets can contain any objects that can be sorted.  Lists and tuples must contain strings, since
    lists of numbers are rows of an indicator matrix.
    """
    if isinstance(y, (str, bytes)) or not hasattr(y, "__len__") or sp.issparse(y):
        return None
    if isinstance(y, (list, tuple)):
        rows = list(y)
    elif str(getattr(y, "dtype", "")) == "object" and getattr(y, "ndim", 0) == 1:
        rows = list(np.asarray(y))
    else:
        return None
    if not rows or not all(isinstance(row, (set, frozenset, list, tuple)) for row in rows):
        return None
    listed = [row for row in rows if isinstance(row, (list, tuple))]
    texts = all(isinstance(label, str) for row in listed for label in row)
    if not texts or (len(listed) == len(rows) and not any(listed)):
        return None
    return rows


def binarize_sets(rows: list[Any], names: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return label sets as a boolean matrix, and the labels' names as text.

    Parameters
    ----------
    rows : list of set, list or tuple
    names : sequence of str, optional
        The labels that a model knows; a row with another one is an error.  Unless given, all that
        occur, sorted.
    """
    try:
        found = sorted(set().union(*rows))
    except TypeError as error:
        raise ValueError(
            f"y, given as a set of labels per row, must contain labels that can be sorted "
            f"({error}); convert it to an indicator matrix with "
            "sklearn.preprocessing.MultiLabelBinarizer"
        ) from error
    texts = [str(label) for label in found]
    if len(set(texts)) < len(texts):
        raise ValueError(
            f"y, given as a set of labels per row, has labels with the same text: {texts}"
        )
    if names is not None and (unknown := sorted(set(texts) - set(names))):
        raise ValueError(f"y contains the label {unknown[0]!r}, which is unknown")
    columns = {name: k for k, name in enumerate(texts if names is None else names)}
    on = np.zeros((len(rows), len(columns)), dtype=bool)
    for i, row in enumerate(rows):
        on[i, [columns[str(label)] for label in row]] = True
    return on, np.array(list(columns), dtype=object)


def check_sample_weight(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Return row weights as float64 on the host; None if there are none.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), number or None
        Finite and >= 0, not all zero.
    n_rows : int
    """
    if sample_weight is None:
        return None
    weights = np.asarray(to_numpy(sample_weight))
    weights = np.full(n_rows, weights) if weights.ndim == 0 else weights
    if (
        weights.dtype.kind not in "biuf"
        or weights.shape != (n_rows,)
        or not np.isfinite(weights).all()
        or (weights < 0).any()
    ):
        raise InvalidArgumentError(
            "sample_weight",
            f"must be {n_rows} finite numbers >= 0, one per row (Sample weights must be 1D array "
            f"or scalar); got an array of type {weights.dtype} and shape {weights.shape}",
        )
    weights = weights.astype(np.float64)
    if not (weights > 0).any():
        raise InvalidArgumentError("sample_weight", "must not be zero for all rows")
    return weights


@dataclass(frozen=True)
class WeightedRows:
    """Rows and labels without rows of weight zero, and the weights of the others.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    target : Target
    weights : ndarray of shape (n_samples,) or None
        None if all are 1.
    kept : ndarray of int or None
        Indices of the remaining rows; None if no row was removed.
    """

    X: Features
    target: Target
    weights: np.ndarray | None = None
    kept: np.ndarray | None = None

    def part(self, values: Any) -> Any:
        """Return other values per row, such as ``groups``, for the remaining rows."""
        if values is None or self.kept is None:
            return values
        return _safe_indexing(to_numpy(values), self.kept)


def check_weighted(
    X: Features, y: Any, sample_weight: Any, estimator_name: str = "fit", **options: Any
) -> WeightedRows:
    """Check labels and weights, and remove the rows of weight zero.

    Classes, widths and clusters are then computed without these rows, so that a fit with zero
    weights is a fit without the rows.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Rows that were checked.
    y : array-like
        As for :func:`encode_target`.
    sample_weight : array-like of shape (n_samples,), number or None
    estimator_name : str, default="fit"
    **options
        Passed to :func:`encode_target`.
    """
    target = encode_target(y, X.shape[0], estimator_name, **options)
    weights = check_sample_weight(sample_weight, X.shape[0])
    if weights is None:
        return WeightedRows(X, target)
    kept = None
    if not weights.all():
        kept = np.flatnonzero(weights)
        weights, X = weights[kept], take_rows(X, kept)
        target = encode_target(
            _safe_indexing(to_numpy(y), kept), len(kept), estimator_name, **options
        )
    return WeightedRows(X, target, None if (weights == 1).all() else weights, kept)


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float = math.inf,
) -> float:
    """Return a finite real number within its bounds, or raise an error."""
    bound = f"> {above:g}" if above is not None else f">= {at_least:g}"
    bound += "" if at_most == math.inf else f" and <= {at_most:g}"
    is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    number = float(value) if is_number else math.nan
    within = (above is None or number > above) and (at_least is None or number >= at_least)
    if not within or number > at_most or math.isinf(number):
        raise InvalidArgumentError(name, f"must be a finite number {bound}, got {value!r}")
    return number


def check_count(name: str, value: Any, *, at_least: int = 1) -> int:
    """Return an integer of at least 1 (or another bound), or raise an error."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
    if not is_whole or value < at_least:
        raise InvalidArgumentError(name, f"must be an integer >= {at_least}, got {value!r}")
    return int(value)


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return one of several strings, or raise an error that lists them."""
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
    """Return a number strictly between 0 and 1, or raise an error."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    if not is_number or not 0 < float(value) < 1:
        raise InvalidArgumentError(name, f"must be a number between 0 and 1, got {value!r}")
    return float(value)


def check_thresholds(thresholds: Any, n_outputs: int) -> np.ndarray:
    """Return a threshold per output: zeros for None, one number for all, or an array.

    Infinite thresholds are allowed (the label is always or never predicted), NaN is not.
    """
    name = "thresholds"
    if thresholds is None:
        return np.zeros(n_outputs)
    values = np.asarray(thresholds)
    if values.dtype.kind not in "iuf" or np.isnan(values).any():
        raise InvalidArgumentError(name, f"must be numbers, got {thresholds!r}")
    if values.ndim > 0 and values.shape != (n_outputs,):
        raise InvalidArgumentError(
            name,
            f"must be one number or one per label ({n_outputs}), got an array of shape "
            f"{values.shape}",
        )
    return np.broadcast_to(values.astype(np.float64), (n_outputs,)).copy()


def check_probability_thresholds(thresholds: Any, n_outputs: int) -> np.ndarray:
    """Return a probability threshold per output, from one number for all or an array."""
    values = check_thresholds(thresholds, n_outputs)
    if (values < 0).any() or (values > 1).any():
        raise InvalidArgumentError(
            "thresholds", f"are probabilities, between 0 and 1, got {thresholds!r}"
        )
    return values


def draw_seed(random_state: Any) -> int:
    """Return a seed, which is always the same for the same integer."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
