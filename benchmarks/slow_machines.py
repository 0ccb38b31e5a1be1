"""Why linear machines are slow on some data (cal500), and what another solver would give.

    python -m benchmarks.slow_machines                      cal500, 12 of its 174 labels
    python -m benchmarks.slow_machines --standardize        the features scaled, another problem
    python -m benchmarks.slow_machines --data scene --labels 6

The machines of a few labels, spread over the labels in the order of their frequency, are trained on
the first split of :func:`imcc.datasets.paper_splits` by

* libsvm from the kernel matrix, as :class:`imcc.baselines.BinaryRelevanceSVM` does, and with a
  smaller tolerance;
* the same with the mean of the training rows subtracted, which is the same problem (the intercept
  takes it up);
* an interior-point method (Mehrotra's predictor and corrector) on the dual, whose systems have the
  size of the features.

The table has the mean CPU seconds and iterations of a machine, how far its objective is above the
optimum (relative, the largest of all labels), and how far its margins of the test rows are from
those of the optimum, for which the interior point's solution is taken: its duality gap is printed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.baselines import spread_labels
from imcc.datasets import load_dataset, paper_splits

MAX_STEPS = 100


class Machine(NamedTuple):
    """A linear machine, and what it took."""

    weights: np.ndarray
    intercept: float
    seconds: float
    steps: int
    gap: float = float("nan")


def objective(X: np.ndarray, y: np.ndarray, C: float, machine: Machine) -> float:
    """Return 1/2 |w|^2 + C sum_i max(0, 1 - y_i (x_i w + b))."""
    losses = np.maximum(0.0, 1 - y * (X @ machine.weights + machine.intercept))
    return float(machine.weights @ machine.weights / 2 + C * losses.sum())


def libsvm(X: np.ndarray, y: np.ndarray, C: float, tol: float, center: bool) -> Machine:
    """Train with libsvm from the kernel matrix."""
    origin = X.mean(axis=0) if center else np.zeros(X.shape[1])
    moved = X - origin
    gram = moved @ moved.T
    start = time.process_time()
    found = SVC(kernel="precomputed", C=C, tol=tol).fit(gram, y)
    seconds = time.process_time() - start
    weights = found.dual_coef_[0] @ moved[found.support_]
    intercept = float(found.intercept_[0] - origin @ weights)
    return Machine(weights, intercept, seconds, int(found.n_iter_[0]))


def interior_point(X: np.ndarray, y: np.ndarray, C: float, tol: float = 1e-9) -> Machine:
    r"""Train by an interior-point method.

    The dual is min 1/2 |Z^T a|^2 - 1^T a with 0 <= a <= C and y^T a = 0, Z = diag(y) X.  With
    multipliers l of a >= 0 and u of a <= C, a step solves (D + Z Z^T) da - y db = r with the
    diagonal D = l / a + u / (C - a), by Woodbury's identity in the number of features.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        -1 and +1, both of which occur.
    C : float
    tol : float
        It ends when the mean product of a multiplier and its slack is below this, times C, and the
        residuals are.
    """
    start = time.process_time()
    origin = X.mean(axis=0)
    Z = (X - origin) * y[:, np.newaxis]
    n = len(y)
    # The slack of a <= C is kept beside a: as a difference it would lose its digits.
    a, slack, lower, upper, b = np.full(n, C / 2), np.full(n, C / 2), np.ones(n), np.ones(n), 0.0
    for steps in range(MAX_STEPS):  # noqa: B007 - reported below
        of_dual = 1 + y * b + lower - upper - Z @ (a @ Z)
        of_equality = -float(y @ a)
        mu = float(a @ lower + slack @ upper) / (2 * n)
        if mu < tol * C and np.abs(of_dual).max() < 1e-7 and abs(of_equality) < 1e-7:
            break
        system = _System(Z, y, lower / a + upper / slack)
        # Towards the optimum, as far as that goes; then again with what this says of curvature.
        da, db = system.solve(of_dual - lower + upper, of_equality)
        dl, du = -lower - lower * da / a, -upper + upper * da / slack
        reach = _reach([(a, da), (slack, -da), (lower, dl), (upper, du)])
        after = (a + reach * da) @ (lower + reach * dl)
        after += (slack - reach * da) @ (upper + reach * du)
        center = mu * (float(after) / (2 * n * mu)) ** 3
        near, far = center - a * lower - da * dl, center - slack * upper + da * du
        da, db = system.solve(of_dual + near / a - far / slack, of_equality)
        dl, du = (near - lower * da) / a, (far + upper * da) / slack
        reach = 0.995 * _reach([(a, da), (slack, -da), (lower, dl), (upper, du)])
        a, slack, b = a + reach * da, slack - reach * da, b + reach * db
        lower, upper = lower + reach * dl, upper + reach * du
    else:
        raise RuntimeError(f"the interior-point method did not converge in {MAX_STEPS} steps")
    weights = a @ Z
    seconds = time.process_time() - start
    machine = Machine(weights, float(-b - origin @ weights), seconds, steps)
    dual = float(a.sum() - weights @ weights / 2)
    return machine._replace(gap=objective(X, y, C, machine) - dual)


class _System:
    """The matrix [[D + Z Z^T, -y], [y^T, 0]] with its factor."""

    def __init__(self, Z: np.ndarray, y: np.ndarray, diagonal: np.ndarray) -> None:
        self.Z, self.y, self.diagonal = Z, y, diagonal
        self.scaled = Z / diagonal[:, np.newaxis]
        self.factor = cho_factor(np.eye(Z.shape[1]) + Z.T @ self.scaled)
        self.of_y = self._inverse(y)

    def _inverse(self, v: np.ndarray) -> np.ndarray:
        v = v / self.diagonal
        return v - self.scaled @ cho_solve(self.factor, v @ self.Z)

    def solve(self, right: np.ndarray, total: float) -> tuple[np.ndarray, float]:
        """Return da and db with (D + Z Z^T) da - y db = right and y^T da = total."""
        part = self._inverse(right)
        db = float((total - self.y @ part) / (self.y @ self.of_y))
        return part + self.of_y * db, db


def _reach(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the longest step, up to 1, that leaves all values at or above zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = [np.min(np.where(step < 0, -value / step, np.inf)) for value, step in pairs]
    return float(min(1.0, *ends))


def table(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray, n_labels: int, C: float = 1.0) -> str:
    """Return a Markdown table of the ways to train, over a few labels."""
    found: dict[str, list[tuple[float, int, float, float]]] = {}
    gaps = []
    for label in spread_labels(Y, n_labels):
        y = np.where(Y[:, label] > 0, 1.0, -1.0)
        best = interior_point(X, y, C)
        machines = {
            "libsvm, tolerance 1e-3 (as in BRsvm)": libsvm(X, y, C, 1e-3, center=False),
            "libsvm, 1e-5": libsvm(X, y, C, 1e-5, center=False),
            "libsvm, centred rows, 1e-3": libsvm(X, y, C, 1e-3, center=True),
            "libsvm, centred rows, 1e-5": libsvm(X, y, C, 1e-5, center=True),
            "interior point": best,
        }
        lowest = objective(X, y, C, best)
        gaps.append(best.gap / lowest)
        margins = X_new @ best.weights + best.intercept
        for name, machine in machines.items():
            above = objective(X, y, C, machine) / lowest - 1
            off = np.abs(X_new @ machine.weights + machine.intercept - margins).max()
            found.setdefault(name, []).append((machine.seconds, machine.steps, above, float(off)))
    lines = [
        "| | seconds | iterations | objective above the optimum | margins off by |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, values in found.items():
        seconds, steps, above, off = np.array(values).T
        lines.append(
            f"| {name} | {seconds.mean():.3f} | {steps.mean():.0f} | {above.max():.1e} | "
            f"{off.max():.1e} |"
        )
    return "\n".join([*lines, "", f"Largest relative duality gap: {max(gaps):.1e}"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="cal500")
    parser.add_argument("--labels", type=int, default=12, help="labels whose machines are trained")
    parser.add_argument("--standardize", action="store_true", help="scale the features first")
    asked = parser.parse_args(arguments)
    data = load_dataset(asked.data)
    X = np.asarray(data.X.toarray() if data.is_sparse else data.X, dtype=np.float64)
    train, test = paper_splits(data, 1)[0]
    if asked.standardize:
        X = StandardScaler().fit(X[train]).transform(X)
    lengths = (X[train] ** 2).sum(axis=1)
    moved = ((X[train] - X[train].mean(axis=0)) ** 2).sum(axis=1)
    print(
        f"{asked.data}: {len(train)} rows, squared length {np.median(lengths):.3g} (median), "
        f"{np.median(moved):.3g} when centred\n"
    )
    with threadpool_limits(1):
        print(table(X[train], data.Y[train], X[test], asked.labels))


if __name__ == "__main__":
    main()
