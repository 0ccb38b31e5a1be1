"""The virtual examples of a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.plain import to_plain
from imcc._utils.validation import Features, check_count
from imcc.inspection._correlations import LabelCorrelations, label_correlations
from imcc.inspection._tables import MOST_LINES, as_frame, as_text
from imcc.inspection._unwrap import Unwrapped, unwrap


@dataclass(frozen=True)
class Cluster:
    """A cluster of training rows and its virtual example.

    Attributes
    ----------
    index : int
        Row in ``cluster_centers_``.
    clustering : int
        Index of the clustering that it belongs to.
    size : int or float
        Number of rows in the cluster; their total weight if the model was fitted with sample
        weights.
    shares : ndarray of shape (n_labels,)
        Fraction of these rows that have each label.
    soft_labels : ndarray of shape (n_labels,)
        Soft labels of the virtual example, ``2 * shares - 1``.
    nearest : tuple of (int, float)
        The training rows nearest to the centre, nearest first, as pairs of row index and Euclidean
        distance.  Empty if the training rows are not known.
    """

    index: int
    clustering: int
    size: float
    shares: np.ndarray
    soft_labels: np.ndarray
    nearest: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class RowMap:
    """Training rows and centres in the plane of the first two principal components.

    Attributes
    ----------
    rows : ndarray of shape (n_samples, 2)
        Coordinates of the training rows.
    centers : ndarray of shape (n_clusters, 2)
        Coordinates of the centres.
    explained : ndarray of shape (2,)
        Fraction of the variance of the rows that each component explains.
    """

    rows: np.ndarray
    centers: np.ndarray
    explained: np.ndarray


@dataclass(frozen=True)
class Inspection:
    """The virtual examples and settings of a fitted model.

    Attributes
    ----------
    facts : dict
        Kernel, width, alpha, beta, gamma, and the numbers of rows, features, labels, clusters
        and clusterings.
    label_names : tuple of str
        Names of the labels.
    thresholds : ndarray of shape (n_labels,)
        A label is predicted if its score is at least this value.
    clusters : tuple of Cluster
        One entry per virtual example.
    assignment : ndarray of shape (n_samples, n_clusterings)
        Cluster of each training row, per clustering.
    correlations : LabelCorrelations
        Label correlations that the virtual examples represent.
    map : RowMap or None
        Two-dimensional map; None if the training rows are not known.
    """

    facts: dict[str, Any]
    label_names: tuple[str, ...]
    thresholds: np.ndarray
    clusters: tuple[Cluster, ...]
    assignment: np.ndarray
    correlations: LabelCorrelations
    map: RowMap | None

    def largest(self, count: int) -> list[Cluster]:
        """Return the largest clusters.

        Parameters
        ----------
        count : int
            Maximum number of clusters.

        Returns
        -------
        list of Cluster
        """
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
            Fraction of the rows of a cluster that have the label, indexed by ``clustering``,
            ``cluster`` and ``size``.
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
        """Return a dict that can be written as JSON."""
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
    """Return the virtual examples of a fitted model, with label correlations and a map.

    Parameters
    ----------
    model : IMCCClassifier, IMCCClassifierCV, TunedThresholds, a search or a pipeline
        A fitted model that is or contains an IMCCClassifier.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features), default=None
        The training rows, as passed to ``fit``.  A kernel model stores them; for a linear model
        they are needed for nearest rows and the map.
    Y : array-like of shape (n_samples, n_labels), default=None
        The training labels, for their correlations.
    label_names : sequence of str, default=None
        Names of the labels; by default those stored by the model.
    together : array-like of shape (n_labels, n_labels), default=None
        Number of training rows that have both labels; can be given instead of Y.
    n_nearest : int, default=3
        Number of nearest training rows per centre.

    Returns
    -------
    Inspection

    Raises
    ------
    ValueError
        If X or Y are not the training data of the model.

    See Also
    --------
    draw_clusters, draw_correlations, draw_map : Plot the result.
    write_page : Write it as an HTML page.

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
        raise InvalidArgumentError(
            "together",
            f"must have one row and one column per label ({soft.shape[1]}), got shape "
            f"{counts.shape}",
        )
    if np.abs(np.diag(counts) - sizes @ (soft + 1) / 2).max() > 1e-6 * inside.n_rows + 1e-6:
        raise InvalidArgumentError(
            "together", "is not of the training labels: its diagonal differs from their counts"
        )
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
    """Project rows and centres onto the first two principal components of the rows.

    The result is deterministic: the sign of each axis is such that its largest loading in absolute
    value is positive.
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
