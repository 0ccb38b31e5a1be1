"""
Tagging text
============

This example trains a tagger on short texts and predicts the tags of a new text. The texts are the
descriptions of scikit-learn's classes; the tags say what kind of class it is and what it can do.
"""

import re
from inspect import signature

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.utils.discovery import all_estimators

from imcc import KernelEnsembleClassifier
from imcc.metrics import evaluate

# %%
# There is one text per class: the part of its docstring before the list of parameters.
TAGS = {
    "classifier": lambda c: issubclass(c, ClassifierMixin),
    "regressor": lambda c: issubclass(c, RegressorMixin),
    "transformer": lambda c: issubclass(c, TransformerMixin),
    "clusterer": lambda c: hasattr(c, "fit_predict"),
    "random": lambda c: "random_state" in signature(c).parameters,
    "iterative": lambda c: "max_iter" in signature(c).parameters,
    "incremental": lambda c: hasattr(c, "partial_fit"),
}

texts, tags = [], []
for name, estimator in all_estimators():
    description = (estimator.__doc__ or "").partition("Parameters\n")[0]
    description = re.sub(rf"\b{name}\b|[^a-zA-Z ]", " ", description)
    found = {tag for tag, holds in TAGS.items() if holds(estimator)}
    if len(description.split()) > 5:
        texts.append(" ".join(description.split()))
        tags.append(found)
print(len(texts), "texts, the first one:", texts[0][:60], "...", sorted(tags[0]))

# %%
# TF-IDF and the ensemble in one pipeline; labels may be given as sets.
texts_train, texts_test, tags_train, tags_test = train_test_split(texts, tags, random_state=0)
model = make_pipeline(
    TfidfVectorizer(sublinear_tf=True, stop_words="english"),
    KernelEnsembleClassifier(random_state=0),
)
model.fit(texts_train, tags_train)
names = list(model[-1].label_names_)
Y_test = np.array([[name in found for name in names] for found in tags_test]).astype(int)
for metric, value in evaluate(Y_test, model.decision_function(texts_test)).items():
    print(f"{metric:18} {value:.3f}")

# %%
# Predict the tags of a new text:
new = [
    "Linear model with an L1 penalty for continuous targets, fitted by coordinate descent.",
    "Groups the samples around centroids that are updated with random mini batches.",
    "Replaces missing values by the mean of each column.",
]
chances = model.predict_proba(new)
figure, panels = plt.subplots(3, 1, figsize=(7, 5.4), sharex=True)
for axes, text, row in zip(panels, new, chances, strict=True):
    axes.barh(names, row, color=np.where(row >= 0.5, "#2f7fc1", "#8c8c8c"))
    axes.set_title(text, fontsize=8.5, loc="left")
    axes.tick_params(axis="y", labelsize=7.5, length=0)
panels[-1].set(xlabel="probability", xlim=(0, 1))
plt.show()
