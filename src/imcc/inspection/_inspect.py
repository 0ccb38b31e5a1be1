"""The virtual examples of a fitted model, laid out to be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances

from imcc._utils.plain import to_plain
from imcc._utils.validation import Features, check_count
from imcc.inspection._correlations import LabelCorrelations, label_correlations
from imcc.inspection._tables import MOST_LINES, as_frame, as_text
from imcc.inspection._unwrap import Unwrapped, unwrap


@dataclass(frozen=True)
class Cluster:
    """A virtual example.

    Attributes
    ----------
    index : int
        Its row in ``cluster_centers_``.
    clustering : int
        Which of several clusterings it belongs to.
    size : int
        Rows in the cluster.
    shares : ndarray of shape (n_labels,)
        The share of them that has each label.
    soft_labels : ndarray of shape (n_labels,)
        The same as the model sees it, 2 share - 1.
    nearest : tuple of (int, float)
        The training rows nearest to the centre (row number, Euclidean distance), nearest first.
        Empty if the rows are not known.
    """

    index: int
    clustering: int
    size: float
    shares: np.ndarray
    soft_labels: np.ndarray
    nearest: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class RowMap:
    """Training rows and centres in the plane of the two largest principal components.

    Attributes
    ----------
    rows : ndarray of shape (n_samples, 2)
    centers : ndarray of shape (n_clusters, 2)
    explained : ndarray of shape (2,)
        The share of the rows' variance along each axis.
    """

    rows: np.ndarray
    centers: np.ndarray
    explained: np.ndarray


@dataclass(frozen=True)
class Inspection:
    """What a fitted model has learned from.

    Attributes
    ----------
    facts : dict
        Kernel, width, weights, numbers of rows, features, labels and clusters.
    label_names : tuple of str
    thresholds : ndarray of shape (n_labels,)
        From which score on a label is predicted.
    clusters : tuple of Cluster
    assignment : ndarray of shape (n_samples, n_clusterings)
        The clusters of the training rows.
    correlations : LabelCorrelations
    map : RowMap or None
        None if the training rows are not known.
    """

    facts: dict[str, Any]
    label_names: tuple[str, ...]
    thresholds: np.ndarray
    clusters: tuple[Cluster, ...]
    assignment: np.ndarray
    correlations: LabelCorrelations
    map: RowMap | None

    def largest(self, count: int) -> list[Cluster]:
        """Return the clusters with the most rows."""
        check_count("count", count)
        return sorted(self.clusters, key=lambda cluster: (-cluster.size, cluster.index))[:count]

    def __repr__(self) -> str:
        n_samples, n_clusters = len(self.assignment), len(self.clusters)
        title = (
            f"Inspection of a model of {n_samples:,} rows and {len(self.label_names):,} labels, "
            f"{n_clusters:,} clusters; the largest and their most frequent labels:"
        )
        rows = []
        for cluster in self.largest(MOST_LINES):
            order = np.argsort(-cluster.shares, kind="stable")[:3]
            shares = [f"{self.label_names[j]} {cluster.shares[j]:.0%}" for j in order]
            rows.append([f"cluster {cluster.index}", cluster.size, *shares])
        width = max(len(row) for row in rows)
        headings = ["", "rows", *[""] * (width - 2)]
        return as_text(title, headings, rows, n_clusters)

    def to_frame(self) -> Any:
        """Return a data frame with one row per cluster and one column per label.

        Returns
        -------
        pandas.DataFrame
            The share of a cluster's rows that have the label, indexed by the number of the
            clustering, that of the cluster, and the number of its rows.
        """
        return as_frame(
            np.array([cluster.shares for cluster in self.clusters]),
            index={
                "clustering": [cluster.clustering for cluster in self.clusters],
                "cluster": [cluster.index for cluster in self.clusters],
                "size": [cluster.size for cluster in self.clusters],
            },
            names=list(self.label_names),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, words and lists."""
        clusters = [
            {
                "index": c.index,
                "clustering": c.clustering,
                "size": c.size,
                "shares": c.shares,
                "soft_labels": c.soft_labels,
                "nearest": [{"row": row, "distance": distance} for row, distance in c.nearest],
            }
            for c in self.clusters
        ]
        shown = self.map and {
            "rows": self.map.rows,
            "centers": self.map.centers,
            "explained": self.map.explained,
        }
        return to_plain(
            {
                "facts": self.facts,
                "label_names": list(self.label_names),
                "thresholds": self.thresholds,
                "clusters": clusters,
                "correlations": self.correlations.to_dict(),
                "map": shown,
            }
        )


def inspect_model(
    model: Any,
    X: Any = None,
    Y: Any = None,
    *,
    label_names: Sequence[str] | None = None,
    together: Any = None,
    n_nearest: int = 3,
) -> Inspection:
    """Inspect a fitted model.

    Parameters
    ----------
    model : IMCCClassifier, IMCCClassifierCV, TunedThresholds, a search or a pipeline
        Fitted; with an IMCCClassifier inside.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features), optional
        The training rows, as they were given to the model.  A kernel model has kept them; for a
        linear one, nearest rows and the map need them.
    Y : array-like of shape (n_samples, n_labels), optional
        The training labels, for their correlations.
    label_names : sequence of str, optional
        Unless given, those that the model has kept.
    together : array-like of shape (n_labels, n_labels), optional
        Instead of Y: in how many training rows both labels are on.
    n_nearest : int, default=3
        How many of the nearest rows to list for each centre.

    Returns
    -------
    Inspection

    Raises
    ------
    ValueError
        If X or Y are not the data that the model was trained on.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import IMCCClassifier
    >>> from imcc.inspection import inspect_model
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> found = inspect_model(IMCCClassifier(n_clusters=4, random_state=0).fit(X, Y), Y=Y)
    >>> len(found.clusters), sum(cluster.size for cluster in found.clusters)
    (4, 100)
    >>> found.clusters[0].shares.shape, len(found.clusters[0].nearest)
    ((3,), 3)
    >>> found.correlations.share < 1
    True
    """
    check_count("n_nearest", n_nearest)
    inside = unwrap(model)
    names = inside.names_of_labels(label_names)
    rows = inside.training_rows(X)
    if Y is not None:
        on = (inside.training_signs(Y) > 0).astype(np.float64)
        together = on.T @ on
    elif together is not None:
        together = _check_together(together, inside)
    clf = inside.classifier
    n_clusterings = inside.assignment.shape[1]
    nearest = _nearest(rows, clf.cluster_centers_, n_nearest)
    owners = np.zeros(len(clf.cluster_sizes_), dtype=int)
    for k, column in enumerate(inside.assignment.T):
        owners[column] = k
    clusters = tuple(
        Cluster(
            index=j,
            clustering=int(owners[j]),
            size=clf.cluster_sizes_[j].item(),
            shares=(clf.soft_labels_[j] + 1) / 2,
            soft_labels=clf.soft_labels_[j],
            nearest=nearest[j],
        )
        for j in range(len(owners))
    )
    return Inspection(
        facts=_facts(inside),
        label_names=names,
        thresholds=inside.thresholds,
        clusters=clusters,
        assignment=inside.assignment,
        correlations=label_correlations(
            names, clf.soft_labels_, clf.cluster_sizes_.astype(float), n_clusterings, together
        ),
        map=None if rows is None else row_map(rows, clf.cluster_centers_),
    )


def _facts(inside: Unwrapped) -> dict[str, Any]:
    clf = inside.classifier
    kernel = clf.kernel if isinstance(clf.kernel, str) else getattr(clf.kernel, "__name__", "own")
    return {
        "kernel": kernel,
        "width": None if clf.width_ is None else float(clf.width_),
        "alpha": float(clf.alpha),
        "beta": float(clf.beta),
        "gamma": float(clf.gamma),
        "span": clf.span,
        "rows": inside.n_rows,
        "features": int(clf.n_features_in_),
        "labels": int(clf.soft_labels_.shape[1]),
        "clusters": len(clf.cluster_sizes_),
        "clusterings": int(inside.assignment.shape[1]),
    }


def _check_together(together: Any, inside: Unwrapped) -> np.ndarray:
    counts = np.asarray(together, dtype=np.float64)
    soft = inside.classifier.soft_labels_
    sizes = inside.classifier.cluster_sizes_ / inside.assignment.shape[1]
    if counts.shape != (soft.shape[1],) * 2:
        raise ValueError(
            f"together must have a row and a column for each of the {soft.shape[1]} labels, got "
            f"shape {counts.shape}"
        )
    if np.abs(np.diag(counts) - sizes @ (soft + 1) / 2).max() > 1e-6 * inside.n_rows + 1e-6:
        raise ValueError("together is not of the training labels: the labels' counts are others")
    return counts


def _nearest(
    rows: Features | None, centers: np.ndarray, count: int
) -> list[tuple[tuple[int, float], ...]]:
    if rows is None:
        return [()] * len(centers)
    distances = pairwise_distances(centers, rows)
    count = min(count, rows.shape[0])
    order = np.argsort(distances, axis=1, kind="stable")[:, :count]
    return [
        tuple((int(i), float(distances[j, i])) for i in closest) for j, closest in enumerate(order)
    ]


def row_map(rows: Features, centers: np.ndarray) -> RowMap:
    """Project rows and centres on the rows' two largest principal components.

    The same rows always give the same map: the sign of each axis is such that its largest loading
    is positive.
    """
    wanted = min(2, *rows.shape)
    rows = sp.csr_array(rows) if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)
    solver = "full"
    if min(rows.shape) > 500 or (sp.issparse(rows) and min(rows.shape) > 2):
        solver = "arpack"
    elif sp.issparse(rows):
        rows = rows.toarray()
    if not np.any(_spread(rows)):
        zeros = np.zeros((rows.shape[0], 2))
        return RowMap(zeros, np.zeros((len(centers), 2)), np.zeros(2))
    pca = PCA(wanted, svd_solver=solver, random_state=0).fit(rows)
    loadings = pca.components_
    signs = np.sign(loadings[np.arange(wanted), np.abs(loadings).argmax(axis=1)])
    places = [pca.transform(points) * signs for points in (rows, centers)]
    explained = np.zeros(2)
    explained[:wanted] = pca.explained_variance_ratio_
    of_rows, of_centers = (np.pad(place, ((0, 0), (0, 2 - wanted))) for place in places)
    return RowMap(of_rows, of_centers, explained)


def _spread(rows: Features) -> np.ndarray:
    dense_max = rows.max(axis=0) - rows.min(axis=0)
    return dense_max.toarray() if sp.issparse(dense_max) else dense_max
