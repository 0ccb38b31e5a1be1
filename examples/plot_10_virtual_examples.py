"""
Virtual examples in two dimensions
==================================

IMCC clusters the training rows and adds one *virtual example* per cluster. Its features and
labels are the means of the features and labels of the rows in the cluster. This example shows rows
with two features and three labels, and the virtual examples of 12 clusters.
"""

import matplotlib.pyplot as plt
import numpy as np

from imcc import IMCCClassifier

# %%
# Each label covers one half-plane, so a row has between zero and three labels.
rng = np.random.default_rng(0)
X = rng.normal(size=(240, 2))
directions = np.array([[1.0, 0.3], [-0.6, 1.0], [-0.2, -1.0]])
Y = (X @ directions.T + 0.5 * rng.normal(size=(240, 3)) > 0.3).astype(int)

clf = IMCCClassifier(n_clusters=12, random_state=0).fit(X, Y)

# %%
# ``soft_labels_`` are between -1 (no row of the cluster has the label) and +1 (all have it). A bar
# beside each centre shows the share of its rows with each label.
figure, axes = plt.subplots(figsize=(7, 5))
colours = ["#2f7fc1", "#e0812f", "#2f9e6b"]
axes.scatter(*X.T, s=9, color="#8c8c8c", alpha=0.6, label="rows")
for center, soft in zip(clf.cluster_centers_, clf.soft_labels_, strict=True):
    for label, share in enumerate((soft + 1) / 2):
        left = center[0] + 0.07 + 0.09 * label
        axes.bar(left, 0.35 * share, 0.08, bottom=center[1], color=colours[label])
axes.scatter(*clf.cluster_centers_.T, s=45, marker="D", color="#c44e79", label="virtual examples")
for label, colour in enumerate(colours):
    axes.bar(0, 0, color=colour, label=f"share with label {label}")
axes.set(xlabel="feature 1", ylabel="feature 2", title="240 rows and 12 virtual examples")
axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()

# %%
# The clusters partition the rows, and a soft label is exactly a mean.
members = clf.assignment_ == 0
print("rows in cluster 0:", members.sum())
print("mean of their labels:", (2 * Y[members] - 1).mean(axis=0).round(3))
print("soft label:          ", clf.soft_labels_[0].round(3))
