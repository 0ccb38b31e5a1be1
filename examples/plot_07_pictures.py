"""
Pictures with several attributes
================================

Each picture shows two handwritten digits. The labels say which digits it shows and whether their sum
is even. The pictures are made from scikit-learn's digits data set.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from imcc import KernelEnsembleClassifier
from imcc.metrics import evaluate

# %%
# The first 1000 digits are used for training pictures and the others for test pictures, so that no
# digit occurs in both.
digits = load_digits()
rng = np.random.default_rng(0)


def pairs(first, last, count):
    left, right = rng.integers(first, last, (2, count))
    pictures = np.concatenate([digits.images[left], digits.images[right]], axis=2)
    shown = np.zeros((count, 10), dtype=int)
    for side in (left, right):
        shown[np.arange(count), digits.target[side]] = 1
    even = (digits.target[left] + digits.target[right]) % 2 == 0
    return pictures / 16, np.column_stack([shown, even]).astype(int)


names = [*map(str, range(10)), "even sum"]
pictures, Y = pairs(0, 1000, 500)
new_pictures, Y_new = pairs(1000, 1797, 300)
clf = KernelEnsembleClassifier(random_state=0).fit(pictures.reshape(500, -1), Y)
scores = clf.decision_function(new_pictures.reshape(300, -1))
for metric, value in evaluate(Y_new, scores).items():
    print(f"{metric:18} {value:.3f}")

# %%
# The digits are recognised. Whether their sum is even cannot be learned by a smooth function of the
# pixels, so the probability of this label stays close to 1/2, as it should.
chances = clf.predict_proba(new_pictures.reshape(300, -1))
figure, panels = plt.subplots(2, 4, figsize=(8.4, 3.6), height_ratios=[1.2, 1])
for column in range(4):
    top, bottom = panels[:, column]
    top.imshow(new_pictures[column], cmap="gray")
    top.set(xticks=[], yticks=[])
    bottom.bar(names, chances[column], color=np.where(Y_new[column], "#2f7fc1", "#8c8c8c"))
    bottom.set(ylim=(0, 1))
    bottom.tick_params(axis="x", labelsize=6, rotation=90)
panels[1, 0].set_ylabel("probability")
figure.suptitle("Four test pictures; blue bars are the labels that they carry", fontsize=10)
plt.show()
