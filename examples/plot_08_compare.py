"""
Comparing methods with a critical difference diagram
====================================================

This example compares four methods on ten generated data sets with five splits each, and draws a
diagram that shows which methods differ significantly.
"""

from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from imcc import IMCCClassifier
from imcc.comparison import ScoreTable, compare
from imcc.metrics import average_precision
from imcc.report import draw_critical_difference

METHODS = {
    "imcc": IMCCClassifier(16, beta=1.0, random_state=0),
    "linear imcc": IMCCClassifier(16, kernel="linear", random_state=0),
    "logistic regression": OneVsRestClassifier(LogisticRegression()),
    "nearest neighbours": OneVsRestClassifier(KNeighborsClassifier(10)),
}


def scores(method, X):
    if hasattr(method, "decision_function"):
        return method.decision_function(X)
    return method.predict_proba(X) * 2 - 1


# %%
# One record per run: data set, method, split, value.
records = []
for number in range(10):
    X, Y = make_multilabel_classification(
        200, n_features=15, n_classes=4 + number % 3, n_labels=2, random_state=number
    )
    for split in range(5):
        X_train, X_test, Y_train, Y_test = train_test_split(X, Y, random_state=split)
        scaler = StandardScaler().fit(X_train)
        for name, method in METHODS.items():
            method.fit(scaler.transform(X_train), Y_train)
            value = average_precision(Y_test, scores(method, scaler.transform(X_test)))
            records.append((f"data {number}", name, split, value))

table = ScoreTable.from_records(records, metric="average_precision")
result = compare(table)
for name, rank in sorted(zip(result.methods, result.mean_ranks, strict=True), key=lambda r: r[1]):
    print(f"{name:20} mean rank {rank:.2f}")
print(f"Friedman's test: p = {result.friedman.f_p:.2g}")

# %%
# Methods that are joined by a bar are not significantly different by Nemenyi's test.
# ``picture.save("ranks.svg")`` writes it to a file, ``picture.figure`` is the Matplotlib figure.
picture = draw_critical_difference(result)
print(picture.caption)
