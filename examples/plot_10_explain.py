"""
Explaining one prediction
=========================

A score of IMCC is exactly a weighted mean of the labels of the training rows and of the soft labels
of the virtual examples. :func:`~imcc.inspection.explain` gives the weights.
"""

import matplotlib.pyplot as plt

from imcc import IMCCClassifier, load_dataset
from imcc.inspection import explain

data = load_dataset("yeast")
train, test = data[:1000], data[1000:]
clf = IMCCClassifier(32, beta=0.1, random_state=0).fit(train.X, train.Y)
found = explain(clf, test.X[0], "Class4", Y=train.Y, label_names=train.label_names)
found

# %%
# The largest contributions and the sum of all others. They add up to the score.
parts = found.top(10)
rest = found.score - sum(part.contribution for part in parts)
names = [*(part.name for part in parts), "all others"]
sizes = [*(part.contribution for part in parts), rest]
figure, axes = plt.subplots()
axes.barh(names, sizes, color=["#2f7fc1" if size > 0 else "#c44e79" for size in sizes])
axes.axvline(0, color="#8c8c8c", linewidth=0.8)
axes.invert_yaxis()
verdict = "predicted" if found.score >= found.threshold else "not predicted"
axes.set(xlabel="contribution to the score", title=f"Class4: score {found.score:.3f}, {verdict}")
plt.show()

# %%
# The weights also show how the score would change if a training label were different. Refitting the
# model gives the same result.
row = next(part for part in parts if part.kind == "row")
cluster = clf.assignment_[row.index]
share = 1 / clf.cluster_sizes_[cluster]
change = -2 * row.value * (row.weight + found.weights["center"][cluster] * share)
print(f"with the other label for {row.name}, the score would be {found.score + change:.6f}")

flipped = train.Y.copy()
flipped[row.index, train.label_names.index("Class4")] ^= 1
refit = IMCCClassifier(32, beta=0.1, random_state=0).fit(train.X, flipped)
score = refit.decision_function(test.X[:1])[0, train.label_names.index("Class4")]
print(f"after a refit with it, it is                {score:.6f}")
