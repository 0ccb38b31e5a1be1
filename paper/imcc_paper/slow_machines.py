"""Why linear machines are slow on some data (cal500), and what another solver would give.

    python -m imcc_paper.slow_machines                      cal500, 12 of its 174 labels
    python -m imcc_paper.slow_machines --standardize        the features scaled, another problem
    python -m imcc_paper.slow_machines --data arts --labels 6

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
those of the optimum, for which the interior point's solution is taken.  ``--csv
results/slow_machines.csv`` also writes its duality gap; ``python -m imcc_paper.reproduce`` writes
these numbers into docs/baselines.md.
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

from imcc.datasets import load_dataset, paper_splits
from imcc_paper import _measured
from imcc_paper._measured import Measurements
from imcc_paper.baselines import spread_labels

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


def add_machines(
    part: str,
    X: np.ndarray,
    Y: np.ndarray,
    X_new: np.ndarray,
    n_labels: int,
    found: Measurements,
    C: float = 1.0,
) -> None:
    """Add means and largest values of the ways to train, over a few labels."""
    values: dict[str, list[tuple[float, ...]]] = {}
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
        margins = X_new @ best.weights + best.intercept
        for name, machine in machines.items():
            above = objective(X, y, C, machine) / lowest - 1
            off = float(np.abs(X_new @ machine.weights + machine.intercept - margins).max())
            line = (machine.seconds, machine.steps, above, off, machine.gap / lowest)
            values.setdefault(name, []).append(line)
    for name, lines in values.items():
        seconds, steps, above, off, gap = np.array(lines).T
        numbers = {"seconds": seconds.mean(), "iterations": steps.mean()}
        # Rounding may put libsvm's objective below that of the interior point.
        numbers |= {"above": max(above.max(), 0.0), "off": off.max()}
        if name == "interior point":
            numbers["gap"] = gap.max()
        found.add(part, name, **numbers)
    lengths = (X**2).sum(axis=1)
    centred = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    found.add(
        part,
        "rows",
        rows=len(X),
        features=X.shape[1],
        labels=len(values["interior point"]),
        least_deviation=X.std(axis=0).min(),
        largest_deviation=X.std(axis=0).max(),
        squared_length=np.median(lengths),
        squared_length_centred=np.median(centred),
    )


def machines_table(found: Measurements, part: str) -> str:
    """Lay out the ways to train."""
    rows = []
    for name in found.cases(part)[:-1]:  # the last are the rows
        of = found.of(part, name)
        iterations = float(f"{of['iterations']:.3g}")  # three digits
        rows.append(
            [name, f"{of['seconds']:.3f}", f"{iterations:,.0f}"]
            + [f"{of[quantity]:.1e}" for quantity in ("above", "off")]
        )
    header = ["", "seconds", "iterations", "objective above the optimum, relative"]
    return _measured.table([*header, "margins off by"], rows)


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked blocks of docs/baselines.md."""
    size = found.of("cal500", "rows")
    plain, *_, best = (found.of("cal500", name) for name in found.cases("cal500")[:-1])
    scaled = found.of("cal500, standardized", "libsvm, tolerance 1e-3 (as in BRsvm)")
    exact = found.of("cal500, standardized", "libsvm, 1e-5")
    rows = (
        f"{size['rows']:.0f} training rows, {size['features']:.0f} features whose standard "
        f"deviations go from {size['least_deviation']:.1g} to {size['largest_deviation']:.1g}"
    )
    on_arts = found.of("arts", "libsvm, tolerance 1e-3 (as in BRsvm)")
    return {
        "slow-rows": rows,
        "slow-length": f"{size['squared_length']:.0f}",
        "slow-length-centred": f"{size['squared_length_centred']:.0f}",
        "slow-machines": machines_table(found, "cal500"),
        "slow-interior": _measured.paragraph(
            f"An interior-point method in the features is {plain['seconds'] / best['seconds']:.0f} "
            f"times as fast, with a relative duality gap of {best['gap']:.0e}. It is not "
            f"used, because its margins differ from libsvm's by up to {plain['off']:.2f} (libsvm's "
            "are that far from the optimum), and BRsvm is meant to reproduce libsvm. With "
            "standardised features (`--standardize`, another problem) a machine takes "
            f"{scaled['iterations'] / 1000:.0f} thousand iterations and {scaled['seconds']:.3f} s, "
            f"and a tolerance of 1e-5 leaves margins off by {exact['off']:.1g}."
        ),
        "slow-arts": f"{on_arts['off']:.1g}",
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="cal500")
    parser.add_argument("--labels", type=int, default=12, help="labels whose machines are trained")
    parser.add_argument("--standardize", action="store_true", help="scale the features first")
    _measured.add_csv_option(parser, "slow_machines")
    asked = parser.parse_args(arguments)
    data = load_dataset(asked.data)
    X = np.asarray(data.X.toarray() if data.is_sparse else data.X, dtype=np.float64)
    train, test = paper_splits(data, 1)[0]
    if asked.standardize:
        X = StandardScaler().fit(X[train]).transform(X)
    part = f"{asked.data}, standardized" if asked.standardize else asked.data
    found = Measurements()
    with threadpool_limits(1):
        add_machines(part, X[train], data.Y[train], X[test], asked.labels, found)
    print(machines_table(found, part))
    if asked.csv:
        found.save(asked.csv)


if __name__ == "__main__":
    main()
