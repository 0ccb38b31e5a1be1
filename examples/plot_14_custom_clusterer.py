"""
A clusterer of your own
=======================

``clusterer`` accepts any estimator with ``fit`` and ``labels_``. This example compares k-means (the
default), agglomerative clustering, and a clusterer that splits the rows at medians, like a tree.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import AgglomerativeClustering

from imcc import IMCCClassifier
from imcc.metrics import average_precision


# %%
# A clusterer is a class with a method ``fit`` that sets ``labels_``. As in scikit-learn, ``__init__``
# only stores the parameters, so that the clusterer can be cloned.
class MedianSplits(ClusterMixin, BaseEstimator):
    """Split at the median of the feature with the largest variance, ``depth`` times."""

    def __init__(self, depth=3):
        self.depth = depth

    def fit(self, X, y=None):
        self.labels_ = np.zeros(len(X), dtype=int)
        for _ in range(self.depth):
            labels = self.labels_.copy()
            for part in np.unique(labels):
                rows = labels == part
                feature = X[rows].var(axis=0).argmax()
                above = X[:, feature] > np.median(X[rows, feature])
                self.labels_[rows] = 2 * part + above[rows]
        return self


# %%
# Three groups of rows, of different shape.
rng = np.random.default_rng(0)
X = np.concatenate(
    [
        rng.normal([0, 0], [1.6, 0.3], (150, 2)),
        rng.normal([2.5, 2], [0.3, 1.0], (150, 2)),
        rng.normal([-2, 2], 0.6, (150, 2)),
    ]
)
Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 1, X.sum(axis=1) > 2]).astype(int)
Y = np.where(rng.random(Y.shape) < 0.1, 1 - Y, Y)
order = rng.permutation(450)
train, test = order[:300], order[300:]

clusterers = {
    "k-means": {"n_clusters": 8, "random_state": 0},
    "agglomerative": {"clusterer": AgglomerativeClustering(8, linkage="average")},
    "median splits": {"clusterer": MedianSplits(3)},
}
figure, panels = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True)
for axes, (name, arguments) in zip(panels, clusterers.items(), strict=True):
    clf = IMCCClassifier(alpha=10.0, gamma=1.0, **arguments).fit(X[train], Y[train])
    value = average_precision(Y[test], clf.decision_function(X[test]))
    axes.scatter(*X[train].T, c=clf.assignment_, cmap="tab10", s=8)
    axes.scatter(*clf.cluster_centers_.T, marker="D", s=40, color="#c44e79")
    axes.set_title(f"{name}: average precision {value:.3f}")
plt.show()

# %%
# The clusterer changes the virtual examples, but on most data it has little effect on the accuracy.
