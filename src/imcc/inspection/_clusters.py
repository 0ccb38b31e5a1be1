r"""The virtual examples of a fitted model, and the label correlations that they represent.

Section 3.1 of the paper argues that the soft labels of a virtual example represent *local* label
correlations: labels that are both frequent in a cluster occur together there, and a label that is
rare where another one is frequent is evidence against it.  The represented part of the correlations
can be computed exactly.  With n_j the number of rows of cluster j, and s_ja the fraction of them
that have label a, the covariance of two labels over the rows is the sum of two parts::

    cov(a, b)  =  sum_j n_j/n (s_ja - p_a) (s_jb - p_b)   +   mean over rows of the covariance
                                                              within their cluster

The first part is a function of the virtual examples alone: they *carry* it.  The second part is
lost by averaging over the clusters.  Divided by the labels' standard deviations, the two parts add
up to the correlation.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from imcc._array.array import to_numpy
from imcc._math.clustering import virtual_examples
from imcc._utils.errors import InvalidArgumentError, InvalidTypeError
from imcc._utils.validation import check_count, encode_target
from imcc._utils.wrappers import innermost
from imcc.estimators.imcc import IMCCClassifier
from imcc.inspection._results import Result, as_frame, names_of_labels

# Tolerance for mean labels per cluster when checking that given labels are the training labels: far
# above rounding errors in float32.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class LabelCorrelations:
    """Correlations of the labels, and the part of them that the virtual examples carry.

    Attributes
    ----------
    label_names : tuple of str
        Names of the labels.
    carried : ndarray of shape (n_labels, n_labels)
        The part between clusters.  The diagonal is the fraction of each label's variance that is
        between clusters.  NaN for labels that no row or every row has.
    total : ndarray of shape (n_labels, n_labels) or None
        Correlations of the training labels; None if the training labels are not known.
    share : float
        The least-squares slope of ``carried`` on ``total`` over all pairs of labels: 1 if the
        correlations are carried completely; NaN if the training labels are not known or no pair is
        correlated.
    by_chance : float
        Expected ``share`` of the same number of random clusters, (clusters - 1) / (rows - 1).
    """

    label_names: tuple[str, ...]
    carried: np.ndarray
    total: np.ndarray | None
    share: float
    by_chance: float

    def strongest(self, count: int) -> list[tuple[str, str, float, float]]:
        """Return the most correlated pairs of labels.

        Parameters
        ----------
        count : int
            Maximum number of pairs.

        Returns
        -------
        list of (str, str, float, float)
            The two names, the total correlation (NaN if not known) and the carried part.
        """
        rows, columns = np.triu_indices(len(self.label_names), 1)
        by = self.carried if self.total is None else self.total
        size = np.nan_to_num(np.abs(by[rows, columns]), nan=-1.0)
        order = np.argsort(-size, kind="stable")[:count]
        total = np.full_like(self.carried, np.nan) if self.total is None else self.total
        return [
            (
                self.label_names[rows[k]],
                self.label_names[columns[k]],
                float(total[rows[k], columns[k]]),
                float(self.carried[rows[k], columns[k]]),
            )
            for k in order
            if size[k] >= 0
        ]


@dataclass(frozen=True, repr=False)
class Inspection(Result):
    """The virtual examples of a fitted model.

    Attributes
    ----------
    label_names : tuple of str
        Names of the labels.
    clusterings : ndarray of shape (n_clusters,)
        Clustering that each cluster belongs to.
    sizes : ndarray of shape (n_clusters,)
        Number of rows per cluster; their total weight if the model was fitted with sample weights.
    shares : ndarray of shape (n_clusters, n_labels)
        Fraction of the rows of a cluster that have each label.
    assignment : ndarray of shape (n_samples, n_clusterings)
        Cluster of each training row, per clustering.
    correlations : LabelCorrelations
        Label correlations that the virtual examples represent.
    """

    label_names: tuple[str, ...]
    clusterings: np.ndarray
    sizes: np.ndarray
    shares: np.ndarray
    assignment: np.ndarray
    correlations: LabelCorrelations

    def largest(self, count: int) -> list[int]:
        """Return the indices of the largest clusters.

        Parameters
        ----------
        count : int
            Maximum number of clusters.

        Returns
        -------
        list of int
            Rows of ``sizes`` and ``shares``, and of ``cluster_centers_`` of the model.
        """
        check_count("count", count)
        return np.argsort(-self.sizes, kind="stable")[:count].tolist()

    def _title(self) -> str:
        return (
            f"Inspection of a model of {len(self.assignment):,} rows and {len(self.label_names):,} "
            f"labels, {len(self.sizes):,} clusters; the largest and their most frequent labels:"
        )

    def _table(self) -> dict[str, list[Any]]:
        largest = self.largest(len(self.sizes))
        return {
            "cluster": list(map(str, largest)),
            "rows": self.sizes[largest].tolist(),
            "labels": [self.frequent_labels(cluster, 3) for cluster in largest],
        }

    def frequent_labels(self, cluster: int, count: int) -> str:
        """Return the most frequent labels of a cluster and their shares, as text."""
        shares = self.shares[cluster]
        order = np.argsort(-shares, kind="stable")[:count]
        text = ", ".join(f"{self.label_names[j]} {shares[j]:.0%}" for j in order if shares[j] > 0)
        return text or "no label"

    def to_frame(self) -> Any:
        """Return a data frame with one row per cluster and one column per label.

        Returns
        -------
        pandas.DataFrame
            Fraction of the rows of a cluster that have the label, indexed by ``clustering``,
            ``cluster`` and ``size``.
        """
        index = {
            "clustering": self.clusterings.tolist(),
            "cluster": list(range(len(self.sizes))),
            "size": self.sizes.tolist(),
        }
        return as_frame(self.shares, index, list(self.label_names))


def inspect_model(
    model: Any,
    Y: Any = None,
    *,
    label_names: Sequence[str] | None = None,
) -> Inspection:
    """Return the virtual examples of a fitted model, with the label correlations that they carry.

    Parameters
    ----------
    model : IMCCClassifier, IMCCClassifierCV, TunedThresholds, a search or a pipeline
        A fitted model that is or contains an IMCCClassifier.
    Y : array-like of shape (n_samples, n_labels), default=None
        The training labels, for their correlations.
    label_names : sequence of str, default=None
        Names of the labels; by default those stored by the model.

    Returns
    -------
    Inspection
        With ``sizes`` of the clusters and ``shares`` of the labels in them, ``largest(count)``,
        ``correlations`` (``total``, ``carried``, ``share``, ``by_chance`` and
        ``strongest(count)``); ``to_frame()`` and ``to_dict()``.

    Raises
    ------
    ValueError
        If Y are not the training labels of the model.

    See Also
    --------
    nearest_rows : The rows nearest to a centre, a row of ``cluster_centers_``.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import IMCCClassifier
    >>> from imcc.inspection import inspect_model
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> found = inspect_model(IMCCClassifier(n_clusters=4, random_state=0).fit(X, Y), Y=Y)
    >>> len(found.sizes), int(found.sizes.sum())
    (4, 100)
    >>> found.shares.shape
    (4, 3)
    >>> found.correlations.share < 1
    True
    """
    clf = _classifier_inside(model)
    assignment = clf.assignment_.reshape(len(clf.assignment_), -1)
    names = names_of_labels(clf, clf.soft_labels_.shape[1], label_names)
    together = None
    if Y is not None:
        if clf.cluster_sizes_.dtype.kind == "f":
            raise InvalidArgumentError(
                "Y",
                "cannot be used with this model, which was trained with sample_weight and does "
                "not store the weights: omit it",
            )
        target = encode_target(Y, len(assignment), "inspect_model", unknown=True)
        if target.known is not None:
            raise InvalidArgumentError(
                "Y",
                "has unknown labels (NaN): a model that was trained with them can be inspected "
                "without Y",
            )
        _check_training_labels(target.signs, clf.soft_labels_, assignment)
        on = (target.signs > 0).astype(np.float64)
        together = on.T @ on
    owners = np.zeros(len(clf.cluster_sizes_), dtype=int)
    for k, column in enumerate(assignment.T):
        owners[column] = k
    return Inspection(
        label_names=names,
        clusterings=owners,
        sizes=clf.cluster_sizes_,
        shares=(clf.soft_labels_ + 1) / 2,
        assignment=assignment,
        correlations=_label_correlations(clf, names, assignment.shape[1], together),
    )


def _classifier_inside(model: Any) -> IMCCClassifier:
    """Return the IMCCClassifier inside a fitted model, with its arrays in NumPy."""
    inside = innermost(model)
    check_is_fitted(inside)
    if not isinstance(inside, IMCCClassifier):
        raise InvalidTypeError(
            "model",
            "must be an IMCCClassifier, or contain one inside IMCCClassifierCV, TunedThresholds, a "
            f"search or a pipeline: {type(inside).__name__} has no virtual examples",
        )
    if not hasattr(inside, "assignment_"):
        raise InvalidArgumentError(
            "model",
            "does not store the cluster of each training row, because it was fitted with "
            "approximation='nystroem' or on a stream: its clusters cannot be inspected",
        )
    clf = copy.copy(inside)
    for name, value in vars(inside).items():
        setattr(clf, name, to_numpy(value))
    return clf


def _check_training_labels(
    signs: np.ndarray, soft_labels: np.ndarray, assignment: np.ndarray
) -> None:
    """Raise an error unless the means of the labels per cluster are those of the model."""
    shape = (len(assignment), soft_labels.shape[1])
    if signs.shape != shape:
        raise InvalidArgumentError(
            "Y", f"must be that of the training data, of shape {shape}, got {signs.shape}"
        )
    again = virtual_examples(signs, np.zeros((len(assignment), 1)), assignment).centers
    if np.abs(again - soft_labels).max() > _TOLERANCE:
        raise InvalidArgumentError(
            "Y",
            "must be that of the training data in their original order: its means per cluster "
            "differ from those of the model",
        )


def _label_correlations(
    clf: IMCCClassifier, names: tuple[str, ...], n_clusterings: int, together: np.ndarray | None
) -> LabelCorrelations:
    """Split the correlations of the labels into the parts between and within clusters.

    Parameters
    ----------
    clf : IMCCClassifier
    names : tuple of str
        Names of the labels.
    n_clusterings : int
        If there are several clusterings, the carried part is their mean.
    together : ndarray of shape (n_labels, n_labels) or None
        Number of training rows that have both labels.
    """
    sizes, shares = clf.cluster_sizes_.astype(float), (clf.soft_labels_ + 1) / 2
    weights = sizes / sizes.sum()
    n_rows = sizes.sum() / n_clusterings
    # From the counts, if known: they are exact for constant labels.
    p = weights @ shares if together is None else np.diag(together) / n_rows
    deviations = np.sqrt(np.maximum(p * (1 - p), 0.0))
    # The frequency of a constant label is 0 or 1 up to rounding.
    deviations[deviations < 1e-7] = np.nan
    units = np.outer(deviations, deviations)
    moved = shares - p
    carried = (moved.T * weights) @ moved / units
    by_chance = (len(sizes) / n_clusterings - 1) / max(n_rows - 1, 1)
    total, share = None, float("nan")
    if together is not None:
        total = (together / n_rows - np.outer(p, p)) / units
        upper = np.triu_indices(len(names), 1)
        known = ~np.isnan(total[upper])
        of_total, of_carried = total[upper][known], carried[upper][known]
        if of_total.any():
            share = float(of_total @ of_carried / (of_total @ of_total))
    return LabelCorrelations(names, carried, total, share, float(by_chance))
