"""
A table with text, dates and missing values
===========================================

:class:`~imcc.TableClassifier` detects the kind of each column of a table, preprocesses the columns
with scikit-learn's transformers, and fits a classifier.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from imcc import TableClassifier

# %%
# A made-up table of support tickets. Labels depend on all kinds of columns.
rng = np.random.default_rng(0)
n = 300
age = rng.integers(18, 90, n)
plan = rng.choice(["basic", "plus", "family"], n)
topics = {
    "late": ["waiting for hours", "delivery is delayed", "still in the queue"],
    "broken": ["the screen is cracked", "it is leaking", "needs repair again"],
    "other": ["a question about my plan", "please call me", "how do I change my address"],
}
topic = rng.choice(list(topics), n)
extras = ["hello", "good morning", "again", "since Monday", "as I said", "really", "please help"]
message = [
    f"{rng.choice(extras)} {rng.choice(topics[kind])} {rng.choice(extras)} {rng.choice(extras)}"
    for kind in topic
]
day = pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D")
table = pd.DataFrame(
    {
        "ticket": [f"T-{i:05}" for i in range(n)],
        "age": np.where(rng.random(n) < 0.1, np.nan, age),
        "plan": np.where(rng.random(n) < 0.05, None, plan),
        "message": message,
        "opened": day.strftime("%Y-%m-%d"),
    }
)
labels = pd.DataFrame(
    {
        "complaint": np.isin(topic, ["late", "broken"]),
        "refund": (topic == "broken") & (plan != "basic"),
        "senior": age > 64,
        "winter": day.month.isin([12, 1, 2]),
    }
).astype(int)
table.head()

# %%
# No manual preprocessing is needed. ``schema_`` shows the detected kind of each column.
model = TableClassifier(random_state=0).fit(table[:220], labels[:220])
for column in model.schema_:
    print(f"{column.name:10} {column.kind}")

# %%
# Probabilities for the other rows. If the age is missing, the label "senior" is uncertain, and the
# probabilities show this.
chances = model.predict_proba(table[220:])
figure, panels = plt.subplots(1, 4, figsize=(8.8, 3.0), sharey=True)
missing = table["age"][220:].isna().to_numpy()
for axes, name, column in zip(panels, labels, chances.T, strict=True):
    truth = labels[name][220:].to_numpy()
    spread = rng.uniform(-0.16, 0.16, len(truth))
    axes.scatter(truth + spread, column, s=9, color="#2f7fc1", label="age known")
    axes.scatter(
        (truth + spread)[missing], column[missing], s=14, color="#e0812f", label="age missing"
    )
    axes.axhline(0.5, color="#8c8c8c", linewidth=0.8)
    axes.set_xticks([0, 1], ["no", "yes"])
    axes.set(title=name, xlim=(-0.4, 1.4), ylim=(-0.03, 1.03))
panels[0].set_ylabel("probability")
panels[0].legend(loc="center", fontsize=7)
plt.show()
