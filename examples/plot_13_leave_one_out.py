"""
Leave-one-out against folds
===========================

Every row can be scored by the model that was trained on all the others, without fitting one model
per row: for kernel ridge regression the inverse that a fit needs gives all leave-one-out scores.
:class:`~imcc.KernelEnsembleClassifier` chooses its members by them. This example checks the formula
against refitting, and compares leave-one-out with five-fold cross-validation.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold

from imcc import load_dataset
from imcc.metrics import average_precision

data = load_dataset("yeast")
X, Y = data.X[:300], 2.0 * data.Y[:300] - 1
K = rbf_kernel(X, gamma=0.2)


# %%
# With :math:`C = (K + \lambda I)^{-1}`, :math:`a = C 1` and :math:`s = 1^\top a`, the solution is
# :math:`\alpha = C Y - a (1^\top C Y) / s`, and the score of row *i* by the model without row *i* is
# :math:`y_i - \alpha_i / (C_{ii} - a_i^2 / s)`.
def fit(K, Y, penalty):
    C = np.linalg.inv(K + penalty * np.eye(len(K)))
    a = C.sum(axis=0)
    intercept = (a @ Y) / a.sum()
    return C @ (Y - intercept), intercept, C, a


def leave_one_out(penalty):
    dual, _, C, a = fit(K, Y, penalty)
    return Y - dual / (np.diag(C) - a**2 / a.sum())[:, None]


def refitted(penalty, splits):
    scores = np.empty_like(Y)
    for train, test in splits:
        dual, intercept, _, _ = fit(K[np.ix_(train, train)], Y[train], penalty)
        scores[test] = K[np.ix_(test, train)] @ dual + intercept
    return scores


every_row = [(np.delete(np.arange(300), i), [i]) for i in range(0, 300, 30)]
one_by_one = refitted(1.0, every_row)[::30]
print("largest difference from ten refits:", abs(leave_one_out(1.0)[::30] - one_by_one).max())

# %%
# With five folds, models are trained on only 80 % of the rows, and the estimate depends on how the
# rows are shuffled. Leave-one-out trains on all rows but one, and there is only one estimate.
penalties = 10.0 ** np.linspace(-2, 2, 13)
exact = [average_precision(Y, leave_one_out(penalty)) for penalty in penalties]
figure, axes = plt.subplots()
for seed in range(6):
    splits = list(KFold(5, shuffle=True, random_state=seed).split(X))
    folds = [average_precision(Y, refitted(penalty, splits)) for penalty in penalties]
    axes.plot(
        penalties,
        folds,
        color="#8c8c8c",
        alpha=0.7,
        linewidth=1,
        label="five folds, six shufflings" if seed == 0 else None,
    )
axes.plot(penalties, exact, marker="o", color="#2f7fc1", label="leave-one-out, exact")
axes.set(
    xscale="log",
    xlabel="penalty",
    ylabel="average precision",
    title="Estimates from 300 rows of yeast",
)
axes.legend()
plt.show()
