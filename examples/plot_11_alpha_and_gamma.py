"""
How alpha and gamma bend the boundary
=====================================

``alpha`` weights the virtual examples, ``gamma`` the penalty on the distance between the output of
a row and the output of its centre. At ``alpha = gamma = 0`` the model is kernel ridge regression.
The figure shows where the score of one label is zero, for nine settings.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from imcc import IMCCClassifier

# %%
# Two moons with noise: label 0 is the moon, label 1 is "right of the middle".
X, moon = make_moons(150, noise=0.3, random_state=0)
Y = np.column_stack([moon, X[:, 0] > 0.5]).astype(int)
grid_x, grid_y = np.meshgrid(np.linspace(-2, 3, 90), np.linspace(-1.6, 2.1, 70))
points = np.column_stack([grid_x.ravel(), grid_y.ravel()])

# %%
# With a small ``beta``, kernel ridge regression overfits (top left). Both terms make the boundary
# smoother: ``alpha`` by fitting the means, ``gamma`` by making the output constant in a cluster.
figure, panels = plt.subplots(3, 3, figsize=(7.4, 6.2), sharex=True, sharey=True)
for axes, (alpha, gamma) in zip(
    panels.flat, ((a, g) for a in (0, 1, 100) for g in (0, 1, 100)), strict=True
):
    clf = IMCCClassifier(
        10, alpha=alpha, beta=0.003, gamma=gamma, width_scale=0.3, random_state=0
    ).fit(X, Y)
    scores = clf.decision_function(points)[:, 0].reshape(grid_x.shape)
    axes.contourf(
        grid_x, grid_y, scores, levels=[-9, 0, 9], colors=["#2f7fc1", "#e0812f"], alpha=0.28
    )
    axes.contour(grid_x, grid_y, scores, levels=[0], colors="#8c8c8c", linewidths=1.2)
    axes.scatter(*X.T, c=np.where(moon, "#e0812f", "#2f7fc1"), s=7)
    axes.scatter(*clf.cluster_centers_.T, s=26, marker="D", color="#c44e79")
    axes.set_title(f"alpha = {alpha}, gamma = {gamma}")
    axes.set(xticks=[], yticks=[])
figure.suptitle("The boundary of label 0; virtual examples as diamonds")
plt.show()
