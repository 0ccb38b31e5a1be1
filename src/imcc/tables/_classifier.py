"""TableClassifier: a multi-label classifier for tables."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from imcc._math.ensemble.members import Labels
from imcc._math.ensemble.search import best_average_precision
from imcc._math.thresholds import CRITERIA
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.progress import part, report_progress
from imcc._utils.validation import (
    check_choice,
    check_probability_thresholds,
    check_sample_weight,
    check_thresholds,
    column_names,
    encode_target,
    label_matrix,
)
from imcc._utils.wrappers import fit_with, uses_groups
from imcc.estimators import KernelEnsembleClassifier, TunedThresholds
from imcc.estimators.base import FitScoreMixin, HeldOutMixin, labelled_frame
from imcc.estimators.cross_fit import deciding_method, label_scores
from imcc.tables._columns import as_table
from imcc.tables._encoder import WEIGHTS, TableEncoder, blocks_of
from imcc.tables._infer import column_options, infer_schema
from imcc.tables._labels import read_labels, tag_separator
from imcc.tables._schema import Schema, TableError, require_rows

# Weights of text relative to the other columns that are tried.
_TEXT_WEIGHTS = (1.0, 4.0, 16.0)
# Maximum number of rows used to choose the weights; with fewer than the minimum, the default.
_ROWS_TO_CHOOSE = 1000
_FEWEST_ROWS = 20


def _has(method: str) -> Any:
    def check(self: TableClassifier) -> bool:
        return hasattr(self.estimator_ if hasattr(self, "estimator_") else self._chosen(), method)

    return check


class TableClassifier(HeldOutMixin, FitScoreMixin, BaseEstimator):
    """Multi-label classifier for tables with numbers, categories, text, dates and missing values.

    It is a pipeline of :class:`TableEncoder`, which infers the types of the columns and converts
    them to features, and a classifier.

    Parameters
    ----------
    estimator : classifier, default=None
        Classifier of the features; None means :class:`imcc.KernelEnsembleClassifier`.
    kinds, date_formats, drop, missing_words
        As for :class:`TableEncoder`.
    weights : dict of str to float, or "auto", default="auto"
        Weights of numbers, categories and text, as for :class:`TableEncoder`.  "auto" chooses the
        weight of text among three values, if there are text and other columns and at least 20 rows:
        by the average precision of kernel ridge regression in 5-fold cross-validation on at most
        1000 training rows.
    separator : str, default=None
        Separator of the tags if the labels are a column of text.  None detects JSON lists, ``|``,
        ``;`` and ``,``.
    thresholds : {"auto", "f1", "balanced_accuracy", "accuracy", "micro_f1"} or None, default="auto"
        Criterion by which :class:`imcc.estimators.TunedThresholds` chooses the threshold of each
        label; None means a probability of 1/2, or a score of 0.  "auto" means "f1" if held-out
        scores are available without further fits, as for :class:`imcc.KernelEnsembleClassifier`,
        and None for other classifiers.  With a threshold of 1/2, a rare label may never be
        predicted, even if its probabilities are well calibrated.  Classifiers without held-out
        scores are fitted five more times.
    unknown_labels : bool, default=False
        Whether missing values in label columns of the table are unknown labels: each label is then
        learned from the rows in which it is known, if the classifier supports that.  Otherwise they
        are an error.  In a label matrix, NaN always means an unknown label.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of weights and the default classifier.

    Attributes
    ----------
    schema_ : Schema
        Types of the columns.
    estimator_ : Pipeline
        The fitted steps, "table" and "classifier".
    weights_ : dict of str to float
        Weights of numbers, categories and text.
    label_names_ : ndarray of str
        Names of the labels.
    held_out_proba_, held_out_labels_ : ndarray of shape (n_samples, n_labels)
        As for :class:`imcc.KernelEnsembleClassifier`, if the classifier keeps them.
    tags_column_ : str or None
        Column of the training table with the tags, if ``y`` was the name of a column.
    separator_ : str or None
        Separator of these tags.
    target_kind_ : str
        Always "multilabel".
    classes_ : ndarray
        ``arange(n_labels)``.
    feature_names_in_ : ndarray of str
        Names of the columns of the training table, except labels and dropped columns.
    n_features_in_ : int
        Number of these columns.

    See Also
    --------
    TableEncoder : The conversion to features.
    infer_schema : The rules by which types are inferred.

    Examples
    --------
    >>> import pandas as pd
    >>> from imcc import IMCCClassifier
    >>> from imcc.tables import TableClassifier
    >>> table = pd.DataFrame({
    ...     "note": ["red apple pie", "green apple tree", "red car", "old blue car"] * 10,
    ...     "price": [3.0, 4.0, 9000.0, None] * 10,
    ...     "tags": ["red|fruit", "fruit", "red|car", "car"] * 10,
    ... })
    >>> classifier = IMCCClassifier(n_clusters=4, random_state=0)
    >>> model = TableClassifier(classifier, kinds={"note": "text"}, random_state=0)
    >>> model = model.fit(table, "tags")
    >>> model.predict_tags(pd.DataFrame({"note": ["an apple pie so red"], "price": [2.5]}))
    [['fruit', 'red']]
    """

    # For decision_thresholds: the decisions of the inner estimator are the predictions.
    _predicts_as_inside = True

    def __init__(
        self,
        estimator: Any = None,
        *,
        kinds: Mapping[str, str] | None = None,
        date_formats: Mapping[str, str] | None = None,
        drop: Collection[str] = (),
        missing_words: Collection[str] = (),
        weights: Mapping[str, float] | str = "auto",
        separator: str | None = None,
        thresholds: str | None = "auto",
        unknown_labels: bool = False,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.kinds = kinds
        self.date_formats = date_formats
        self.drop = drop
        self.missing_words = missing_words
        self.weights = weights
        self.separator = separator
        self.thresholds = thresholds
        self.unknown_labels = unknown_labels
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None
    ) -> TableClassifier:
        """Infer the schema, and fit the encoder and the classifier.

        Parameters
        ----------
        X : pandas or polars data frame, pyarrow table, dict of columns, or list of records
            Training table.
        y : str, list of str, or labels
            Name of a column of ``X`` with tags, or names of label columns of 0 and 1; or the labels
            themselves: an indicator matrix (column names of a data frame are used; NaN means that
            the label is unknown), or a sequence of tag texts (``"news|sport"``) or of lists of
            tags.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, >= 0, passed to the classifier, which must support them, and used for the
            thresholds, the trees and the choice of the weight of text.  The encoder does not use
            them: medians, ranges, frequencies of categories and words are those of the rows.  Rows
            of weight 0 are removed.
        groups : array-like of shape (n_samples,), default=None
            Group of each row; the rows of a group are held out together wherever rows are held out:
            by the classifier, for the thresholds, by the trees and for the weight of text.  Not
            allowed if neither the classifier nor the thresholds hold out rows.

        Returns
        -------
        self : TableClassifier
            The fitted classifier.
        """
        if self.separator is not None and not (isinstance(self.separator, str) and self.separator):
            raise InvalidArgumentError("separator", f"must be text or None, got {self.separator!r}")
        if not self._uses_groups:
            self._refuse_groups(groups)
        table = as_table(X)
        require_rows(table)
        weights = check_sample_weight(sample_weight, table.num_rows)
        kept = np.arange(table.num_rows) if weights is None else np.flatnonzero(weights)
        if len(kept) == 1:
            raise TableError("the table has a single row: nothing can be learned from that")
        Y, names, used = self._labels(table, y)
        groups = None if groups is None else np.asarray(groups)
        if groups is not None and groups.shape != (table.num_rows,):
            raise InvalidArgumentError(
                "groups", f"must be {table.num_rows} values, one per row, got shape {groups.shape}"
            )
        self._used = None
        if weights is not None and len(kept) < table.num_rows:
            self._used = kept, table.num_rows
            table, Y = table.take(kept), Y[kept]
            weights, groups = weights[kept], None if groups is None else groups[kept]
        try:
            self._fit(table, Y, names, used, weights, groups)
        except TableError as error:
            raise error.renumbered(lambda row: int(kept[row])) from error
        self.tags_column_ = y if isinstance(y, str) else None
        self.separator_ = self.separator or tag_separator(table[y]) if isinstance(y, str) else None
        return self

    def _fit(
        self,
        table: Any,
        Y: np.ndarray,
        names: list[str],
        used: list[str],
        sample_weight: np.ndarray | None,
        groups: np.ndarray | None,
    ) -> None:
        """Fit to labels with these names; ``used`` are the columns that they were read from."""
        _warn_of_constant_labels(Y, names)
        encoder = TableEncoder(**column_options(self))
        schema = infer_schema(table, labels=used, **column_options(self))
        shares = self._shares(table.num_rows)
        with part(0, shares, "weighing text against the other columns"):
            weights = self._choose_weights(table, schema, Y, sample_weight, groups)
        encoder.set_params(weights=weights)
        with part(1, shares, "turning columns into features"):
            features = encoder.fit_schema(table, schema)
        with part(2, shares, "fitting"):
            classifier = self._classifier(groups)
            fit_with(classifier, features, Y, sample_weight=sample_weight, groups=groups)
        self.estimator_ = Pipeline([("table", encoder), ("classifier", classifier)])
        self.weights_ = weights
        self.label_names_ = np.array(names, dtype=object)
        self.classes_ = np.arange(len(names))
        self.target_kind_ = "multilabel"
        self.feature_names_in_ = encoder.feature_names_in_
        self.n_features_in_ = encoder.n_features_in_

    def _shares(self, n: int) -> tuple[float, float, float]:
        """Return about how long choosing the weights, encoding and fitting the ensemble take."""
        fit = 1.7e-3 * n + 7e-7 * n**2
        max_time = getattr(self.estimator, "max_time", None)
        fit = fit if max_time is None else min(fit, max_time)
        return 4e-4 * min(n, _ROWS_TO_CHOOSE), 1e-4 * n, fit

    @property
    def schema_(self) -> Schema:
        """Types of the columns of the training table."""
        check_is_fitted(self, "estimator_")
        return self.estimator_["table"].schema_

    def predict(self, X: Any, thresholds: Any = None, *, as_frame: bool = False) -> Any:
        """Predict the labels of each row, as 0 and 1.

        Parameters
        ----------
        X : pandas or polars data frame, pyarrow table, dict of columns, or list of records
            Columns are matched by name.
        thresholds : float or array-like of shape (n_labels,), default=None
            Predict labels whose probability is at least the threshold: one number for all labels,
            or one per label, instead of the thresholds of the model.  For a classifier without
            ``predict_proba``, thresholds are compared with the scores.
        as_frame : bool, default=False
            Whether to return a pandas data frame with the names of the labels and the index of
            ``X``.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
        """
        check_is_fitted(self, "estimator_")
        if thresholds is None:
            found = self.estimator_.predict(as_table(X))
        else:
            method, count = deciding_method(self), len(self.label_names_)
            values = label_scores(self.estimator_, as_table(X), count, method=method)
            is_chance = method == "predict_proba"
            check = check_probability_thresholds if is_chance else check_thresholds
            found = (values >= check(thresholds, count)).astype(np.int64)
        return labelled_frame(found, self.label_names_, X) if as_frame else found

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any, *, as_frame: bool = False) -> Any:
        """Return the probabilities of the labels.

        Parameters
        ----------
        X : pandas or polars data frame, pyarrow table, dict of columns, or list of records
            Columns are matched by name.
        as_frame : bool, default=False
            Whether to return a pandas data frame with the names of the labels and the index of
            ``X``.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
        """
        check_is_fitted(self, "estimator_")
        found = self.estimator_.predict_proba(as_table(X))
        return labelled_frame(found, self.label_names_, X) if as_frame else found

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of the labels.

        Parameters
        ----------
        X : pandas or polars data frame, pyarrow table, dict of columns, or list of records
            Columns are matched by name.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.decision_function(as_table(X))

    def predict_tags(self, X: Any) -> list[list[str]]:
        """Return the names of the predicted labels of each row.

        Parameters
        ----------
        X : pandas or polars data frame, pyarrow table, dict of columns, or list of records
            Columns are matched by name.

        Returns
        -------
        list of list of str

        See Also
        --------
        imcc.estimators.top_labels : The labels with the highest probabilities.
        """
        return [self.label_names_[row > 0].tolist() for row in self.predict(X)]

    def score(self, X: Any, y: Any, *, sample_weight: Any = None) -> float:
        """Return the subset accuracy, the fraction of rows with all labels predicted correctly.

        Parameters
        ----------
        X : pandas or polars data frame, pyarrow table, dict of columns, or list of records
            Columns are matched by name.
        y : str, list of str, or labels
            True labels, in one of the forms that ``fit`` accepts.  A matrix has its columns in the
            order of ``label_names_``.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, >= 0.  None means weight 1.

        Returns
        -------
        float
            Between 0 and 1.
        """
        check_is_fitted(self, "estimator_")
        table = as_table(X)
        return super().score(table, self._true_labels(table, y), sample_weight=sample_weight)

    def _true_labels(self, X: Any, y: Any) -> Any:
        """Return labels that are names of columns, or texts, as a matrix; others unchanged."""
        separator = self.separator_ if isinstance(y, str) else None
        names = self.label_names_.tolist()
        Y, _, _ = read_labels(as_table(X), y, separator or self.separator, names)
        return y if Y is None else Y

    def get_feature_names_out(self) -> np.ndarray:
        """Return the names of the features of the classifier."""
        check_is_fitted(self, "estimator_")
        return self.estimator_["table"].get_feature_names_out()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def _with_fitted(self, pipeline: Pipeline) -> TableClassifier:
        """Return the same model with other fitted steps, for example without search results."""
        found = copy.copy(self)
        found.estimator_, found.estimator = pipeline, clone(pipeline[-1])
        found.thresholds = None  # the classifier already has its thresholds
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.no_validation = True
        return tags

    def _labels(self, table: Any, y: Any) -> tuple[np.ndarray, list[str], list[str]]:
        """Return labels as 0 and 1, their names, and the columns of the table that contain them."""
        Y, names, used = read_labels(table, y, self.separator, unknown=self.unknown_labels)
        if used:
            return Y, names, used
        if y is not None and getattr(y, "shape", (1, 1))[1:] == (0,):
            raise InvalidArgumentError("y", f"has no labels: its shape is {y.shape}")
        given_labels = y if Y is None else Y
        target = encode_target(given_labels, table.num_rows, type(self).__name__, unknown=True)
        if Y is None:
            if target.known is None:
                Y = label_matrix(y, "y").astype(np.int64)
            else:
                Y = np.where(target.known, (np.asarray(target.signs) > 0).astype(float), np.nan)
            own = column_names(y)
            names = [f"label{j}" for j in range(Y.shape[1])] if own is None else list(own)
        return Y, names, []

    def _chosen(self) -> Any:
        """Return the classifier of the features, given or by default."""
        if self.estimator is None:
            return KernelEnsembleClassifier(random_state=self.random_state)
        return self.estimator

    @property
    def _uses_groups(self) -> bool:  # type: ignore[override]
        return uses_groups(self._chosen()) or self.thresholds not in (None, "auto")

    def _classifier(self, groups: Any) -> Any:
        """Return the unfitted classifier, with thresholds if requested."""
        chosen = self._chosen()
        wanted, holds_out = self.thresholds, hasattr(chosen, "fit_held_out")
        if wanted is None or (wanted == "auto" and not holds_out):
            return clone(chosen)
        if wanted != "auto":
            check_choice("thresholds", wanted, CRITERIA)
        cv = "held_out" if holds_out else _folds(groups)
        criterion = "f1" if wanted == "auto" else wanted
        return TunedThresholds(clone(chosen), criterion=criterion, cv=cv)

    def _choose_weights(
        self,
        table: Any,
        schema: Schema,
        Y: np.ndarray,
        sample_weight: np.ndarray | None,
        groups: np.ndarray | None,
    ) -> dict[str, float]:
        if isinstance(self.weights, Mapping):
            return {**WEIGHTS, **self.weights}
        if self.weights != "auto":
            raise InvalidArgumentError(
                "weights", f"must be 'auto' or a dict of block and weight, got {self.weights!r}"
            )
        kinds = {"text" if name.startswith("text ") else name for name in blocks_of(schema)}
        if "text" not in kinds or len(kinds) == 1 or table.num_rows < _FEWEST_ROWS:
            return dict(WEIGHTS)
        draw = check_random_state(self.random_state).permutation(table.num_rows)
        rows = np.sort(draw[:_ROWS_TO_CHOOSE])
        sample, labels = table.select(schema.features).take(rows), Y[rows]
        sample_weight = None if sample_weight is None else sample_weight[rows]
        groups = None if groups is None else groups[rows]
        # Unknown labels are neither 0 nor 1.
        has_both = (labels == 1).any(axis=1) & (labels == 0).any(axis=1)
        if not has_both.any():
            return dict(WEIGHTS)  # no row, as with one label, has an average precision
        known = None if np.isin(labels, (0, 1)).all() else np.isin(labels, (0, 1))
        signs = np.where(labels == 1, 1.0, np.where(labels == 0, -1.0, 0.0))
        numbers = None if groups is None else np.unique(groups, return_inverse=True)[1]
        given = Labels(signs, known, sample_weight, numbers)
        encoder, scores = TableEncoder(), {}
        unweighted = encoder._fit_unweighted(sample, schema)
        for number, weight in enumerate(_TEXT_WEIGHTS):
            report_progress(number, len(_TEXT_WEIGHTS))
            features = encoder._weigh(unweighted.copy(), {**WEIGHTS, "text": weight})
            scores[weight] = best_average_precision(features, given)
        return {**WEIGHTS, "text": max(scores, key=lambda weight: scores[weight])}


def _folds(groups: np.ndarray | None) -> Any:
    """Return a splitter into five folds, or fewer if there are fewer groups."""
    if groups is None:
        return KFold(5, shuffle=True, random_state=0)
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise InvalidArgumentError("groups", "must have at least two different values, got one")
    return GroupKFold(min(5, n_groups))


def _warn_of_constant_labels(Y: np.ndarray, names: Sequence[str]) -> None:
    """Say which labels cannot be learned, because they are the same in every row."""
    always = ~(Y == 0).any(axis=0)
    constant = np.flatnonzero(always | ~(Y == 1).any(axis=0))
    if len(constant):
        said = "; ".join(f"{names[j]!r} is {int(always[j])} in every row" for j in constant[:5])
        more = f"; and {len(constant) - 5} more" if len(constant) > 5 else ""
        warnings.warn(
            f"labels that are the same in every row cannot be learned: {said}{more}",
            UserWarning,
            stacklevel=5,  # the caller of fit, which is wrapped (imcc.estimators.base)
        )
