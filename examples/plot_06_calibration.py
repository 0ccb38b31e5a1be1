"""
Calibration before and after
============================

The scores of a least-squares model are estimates of probabilities on the scale from -1 to +1, but
the penalty shrinks them towards the middle. :class:`~imcc.estimators.MultilabelCalibrator` fits a
map from held-out scores to probabilities for each label.
"""

import matplotlib.pyplot as plt
import numpy as np

from imcc import IMCCClassifier, load_dataset
from imcc.estimators import MultilabelCalibrator
from imcc.inspection import diagnose_probabilities, score_probabilities

data = load_dataset("yeast")
train, test = data[:800], data[800:]
clf = MultilabelCalibrator(IMCCClassifier(32, beta=5.0, random_state=0)).fit(train.X, train.Y)
after = clf.predict_proba(test.X)
before = score_probabilities(clf.estimator_, test.X, train.Y.shape[1])

# %%
# The probabilities of all labels are divided into ten groups of equal size. For calibrated
# probabilities, the share of rows that have the label equals the mean probability (diagonal).
figure, panels = plt.subplots(1, 2, figsize=(7.4, 3.7), sharey=True)
truth = np.asarray(test.Y).ravel()
for axes, (name, estimated) in zip(
    panels, (("(score + 1) / 2", before), ("calibrated", after)), strict=True
):
    groups = np.array_split(np.argsort(estimated.ravel(), kind="stable"), 10)
    x = [estimated.ravel()[group].mean() for group in groups]
    y = [truth[group].mean() for group in groups]
    axes.plot([0, 1], [0, 1], color="#8c8c8c", linewidth=1)
    axes.plot(x, y, marker="o", color="#2f7fc1")
    axes.set(xlabel="estimated probability", title=name, xlim=(0, 1), ylim=(0, 1))
panels[0].set_ylabel("share with the label")
plt.show()

# %%
# The same in numbers, with 95 % bootstrap confidence intervals:
found = [diagnose_probabilities(test.Y, estimated) for estimated in (before, after)]
for name in ("log_loss", "brier", "calibration_error"):
    old, new = (getattr(diagnosis, name) for diagnosis in found)
    print(
        f"{name:18} before {old.value:.4f}, after {new.value:.4f} "
        f"(from {new.low:.4f} to {new.high:.4f})"
    )
