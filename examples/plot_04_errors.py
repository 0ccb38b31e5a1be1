"""
Errors of a model, and labels that look wrong
=============================================

Every training row of a table has held-out probabilities, by models that were fitted without the row.
They show how good a model is, where it errs, and which of the given labels look wrong.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from imcc import TableClassifier
from imcc.inspection import find_label_issues, model_page
from imcc.tables import example_table

# %%
# A made-up table of support tickets. To see what is found, 3 % of the labels are flipped.
table, labels = example_table(400)
flips = np.random.default_rng(0).random(labels.shape) < 0.03
given = labels.mask(flips, 1 - labels)
model = TableClassifier(random_state=0).fit(table, given)

# %%
# The list of labels that look wrong, the most suspicious first, with the probability of being wrong
# as its score.
issues = find_label_issues(model)
frame = issues.to_frame()
frame["flipped"] = flips[issues.rows, issues.label_indices]
frame.head(8)

# %%
# How many of the listed labels were flipped, against the length of the list.
figure, axes = plt.subplots(figsize=(7, 3.4))
length = np.arange(1, len(frame) + 1)
axes.plot(length, frame["flipped"].cumsum(), color="#2f7fc1", label="flipped labels in the list")
axes.plot(length, length * flips.mean(), color="#8c8c8c", label="in a list at random")
axes.set(xlabel="labels that are looked at", ylabel="labels that were flipped")
axes.legend()
plt.show()

# %%
# The page about the model shows the list together with the rows, the errors of each label with the
# columns that led to them, and a slider for each threshold. It is one file, for any browser; with
# ``costs``, it has the cheapest thresholds.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "page.html"
    model_page(model, table, given, path=path, costs=(1, 5), n_explained=2)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
