"""
Explaining one prediction
=========================

What each column of a table adds to the score of a row: :func:`~imcc.inspection.explain_columns` computes Shapley
values, for any classifier. They add up to the difference between the score and the mean score of background rows.
"""

import matplotlib.pyplot as plt

from imcc import TableClassifier
from imcc.inspection import explain_columns, nearest_rows
from imcc.tables import example_table

table, labels = example_table()
model = TableClassifier(random_state=0).fit(table[:600], labels[:600])
row = table.iloc[[601]]
found = explain_columns(model, row, table[:600], n_background=50, max_evaluations=2**13)
found

# %%
# The contributions to the log-odds of one label, and their standard errors.
parts = found.parts("refund")
sizes = [part.contribution for part in parts]
figure, axes = plt.subplots(figsize=(7.4, 3.6))
axes.barh(
    [f"{part.column} = {part.value:.30}" for part in parts],
    sizes,
    xerr=[part.standard_error for part in parts],
    color=["#2f7fc1" if size > 0 else "#c44e79" for size in sizes],
    ecolor="#8c8c8c",
)
axes.axvline(0, color="#8c8c8c", linewidth=0.8)
axes.invert_yaxis()
axes.set(xlabel="contribution to the log-odds", title=f"refund: {found.decision('refund')}")
plt.show()

# %%
# The training rows that are nearest to it, and their labels.
nearest_rows(model, row, table[:600], labels[:600])
