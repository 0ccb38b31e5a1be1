"""The plan of a fit: exact kernels or landmarks, in which precision, and how much memory it needs.

It follows from the sizes of the data and the memory that is there, before anything is computed, and
not from the number of threads: the same data give the same model with any number of them.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import NamedTuple

import scipy.sparse as sp

from imcc._math.ensemble.ridge import DEVICE_ENTRIES
from imcc._utils.config import get_config
from imcc._utils.validation import Features

#: Rounds of the screening: number of rows, and of kernels that are kept.
ROUNDS = ((1000, 10), (2500, 6), (5000, 4))
#: Rows up to which six kernels, several penalties of two of them, and coupled labels are tried.
FEW_ROWS = 6000
#: Largest number of rows whose members are factorised in float64.
DOUBLE_ROWS = 8000
#: Rows whose exact kernels take a processor as long as a fit should, some minutes per member.
PATIENT_ROWS = 45_000
#: With fewer landmarks, scores say little about the rows.
FEWEST_LANDMARKS = 500
# Rows times squared landmarks, at most.
_MOST_WORK = 3e13
# Operations per second in float32 that a limit on the time counts on: one or two threads.
_SPEED = 1e11
# Memory for small arrays, and for LightGBM's boosters and threads, in bytes; entries of blocks of
# rows and labels.
_WORKSPACE, _BOOSTERS, _ENTRIES = 2.0**24, 3e7, 2**20


class Plan(NamedTuple):
    """How members are fitted, decided before anything is computed.

    Attributes
    ----------
    precision : {"float64", "float32"}
        Of the factors; coefficients from factors in float32 are refined to float64.
    n_landmarks : int
        0 for exact kernels.
    n_bytes : float
        Memory that is needed.
    screened_rows : int
        Most rows of a screening, which needs no more memory than the kernels of all rows.
    """

    precision: str
    n_landmarks: int
    n_bytes: float
    screened_rows: int


def make_plan(
    X: Features,
    n_labels: int,
    available: float,
    trees: bool = True,
    most_rows: float = math.inf,
    device_entries: int | None = None,
) -> Plan:
    """Return how to fit rows in the available memory.

    Exact kernels need one matrix of n x n numbers; m landmarks one of n x m in float32 and three of
    m x m.  The rest is counted stage by stage, with the arrays that are alive at the same time.

    Exact kernels take 2/3 n^3 operations, in float32; m landmarks three products of n m^2, in
    float64, and as many landmarks are used as take as long as exact kernels of ``most_rows``.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    n_labels : int
    available : float
        Memory in bytes.
    trees : bool
        Whether trees are tried.
    most_rows : float
        Rows up to which kernels are exact, if the memory allows it.
    device_entries : int or None
        Entries of the blocks that a device works on; None on the host.
    """
    n, sparse = X.shape[0], sp.issparse(X)
    values, cells = float(X.nnz if sparse else X.size), float(n * n_labels)
    # The rows in float32, and the labels: as int8 and float32, and flags of criteria.
    always = (8.0 if sparse else 4.0) * values + 8.0 * cells + _WORKSPACE
    # Coefficients and held-out log-odds of the other members.
    finalists = n_finalists(n)
    others = 16.0 * cells * (finalists + (1 if n <= FEW_ROWS else -1))
    # Neighbouring penalties and coupled labels of the second kernel; the greedy selection.
    blending = max(150.0 * cells if n <= FEW_ROWS else 0.0, others + 60.0 * cells)
    if sparse:
        blending += 56.0 * values + 16.0 * X.shape[1] * n_labels  # linear models
    if trees:
        # What trees look at, twice and as bins, and LightGBM's histograms.
        histograms = 2**15 * min(X.shape[1], values / 100)
        always += _BOOSTERS
        blending = max(blending, others + 60.0 * cells + (17.0 if sparse else 9.0) * values)
        blending += histograms

    entries, panels = _ENTRIES, 0.0
    if device_entries:
        # Larger blocks, also of the comparisons of labels in metrics, and panels of the factor.
        entries = min(device_entries, DEVICE_ENTRIES)
        panels = 20.0 * n * get_config().device_columns
        blending += 17.0 * min(device_entries, cells * n_labels)

    def plan(precision: str, kernel: float, m: int = 0) -> Plan:
        # Rows in the space of the kernel take 24 bytes per entry, and more while it is computed.
        converted = 48.0 if precision == "float64" else 24.0 if sparse or m else 0.0
        member = others + kernel + 24.0 * values + max(converted * values, 16.0 * cells)
        # Labels are worked on in blocks, and kernels as well, but for those in float64 on the host.
        whole = precision == "float64" and not device_entries
        member += panels + 40.0 * min(entries, cells if whole else max(cells, float(n**2)))
        # A screening holds three matrices in float32.
        screened = max(rows for rows, _ in ROUNDS if 12 * rows**2 <= max(kernel, 12e6))
        n_bytes = always + max(member, 56.0 * values, blending)
        return Plan(precision, m, n_bytes, screened)

    exact = [plan("float64", 8.0 * n**2)] if n <= DOUBLE_ROWS else []
    for found in (*exact, plan("float32", 4.0 * n**2)):
        if found.n_bytes <= available and n <= most_rows:
            return found

    def landmarks(m: int) -> Plan:
        return plan("float32", 4.0 * n * m + 24.0 * m**2, m)

    most = max((min(most_rows**3 / 9.0, _MOST_WORK) / n) ** 0.5, FEWEST_LANDMARKS)
    counts = range(1, int(min(most, n)) + 1)
    fitting = bisect_right(counts, available, key=lambda m: landmarks(m).n_bytes)
    return landmarks(max(fitting, 1))


def rows_within(seconds: float) -> float:
    """Return how many rows have exact kernels that take about so many seconds; a few always do."""
    return max((1.5 * _SPEED * seconds) ** (1 / 3), FEW_ROWS)


def n_finalists(n: int) -> int:
    """Return how many kernels are fitted to n rows."""
    return 6 if n <= FEW_ROWS else 3 if n <= 2 * FEW_ROWS else 2
