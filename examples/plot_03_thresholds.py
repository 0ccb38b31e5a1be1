"""
Thresholds for rare labels
==========================

A label is predicted if its score is at least 0. The scores of a rare label seldom reach 0, so its
recall is low. :class:`~imcc.TunedThresholds` chooses one threshold per label on held-out scores.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import f1_score, precision_recall_curve

from imcc import IMCCClassifier, TunedThresholds, load_dataset

data = load_dataset("yeast")
train, test = data[:1000], data[1000:]
tuned = TunedThresholds(IMCCClassifier(32, beta=0.1, random_state=0), criterion="f1")
tuned.fit(train.X, train.Y)

# %%
# F1 of each label on the test rows, with all thresholds at 0 and with the chosen ones. The labels
# are in the order of their frequency.
share = np.asarray(train.Y).mean(axis=0)
order = np.argsort(-share)
plain = f1_score(test.Y, tuned.predict(test.X, thresholds=0), average=None, zero_division=0)
chosen = f1_score(test.Y, tuned.predict(test.X), average=None, zero_division=0)
figure, axes = plt.subplots(figsize=(7.4, 3.6))
places = np.arange(len(order))
axes.bar(places - 0.2, plain[order], 0.38, color="#8c8c8c", label="all thresholds at 0")
axes.bar(places + 0.2, chosen[order], 0.38, color="#2f7fc1", label="one threshold per label")
axes.set_xticks(places, [f"{data.label_names[i]}\n{share[i]:.0%}" for i in order], fontsize=7)
axes.set(ylabel="F1", title="F1 per label; below the name, the share of training rows with it")
axes.legend()
plt.show()
print(f"macro F1: {plain.mean():.3f} at 0, {chosen.mean():.3f} with chosen thresholds")

# %%
# Precision, recall and F1 of one rare label against the threshold. The dashed line is the threshold
# chosen on the training rows, which is close to the best one on the test rows.
rare = order[-3]
scores = tuned.decision_function(test.X)
precision, recall, thresholds = precision_recall_curve(test.Y[:, rare], scores[:, rare])
curves = {"precision": precision[:-1], "recall": recall[:-1]}
curves["F1"] = 2 * precision[:-1] * recall[:-1] / (precision[:-1] + recall[:-1])
figure, axes = plt.subplots(figsize=(7, 3.4))
for (name, values), colour in zip(curves.items(), ("#2f9e6b", "#e0812f", "#2f7fc1"), strict=True):
    axes.plot(thresholds, values, color=colour, label=name)
axes.axvline(tuned.thresholds_[rare], color="#8c8c8c", linestyle="--")
axes.set(xlabel="threshold", title=data.label_names[rare])
axes.legend()
plt.show()
