"""The algorithms of the comparison: time and memory of one training run, and variants of two.

    python -m imcc_paper.baselines speed --csv results/baselines.csv     a training run of each
    python -m imcc_paper.baselines lift --csv results/baselines.csv      LIFT's two scores
    python -m imcc_paper.baselines mahr --csv results/baselines.csv      MAHR without its parts

``python -m imcc_paper.reproduce`` writes the numbers of the file into docs/baselines.md.  All times
are of the CPU, with one thread.  The data sets are found through ``IMCC_DATA_MIRROR`` or
downloaded; see :mod:`imcc.datasets`.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, train_test_split
from threadpoolctl import threadpool_limits

from imcc.baselines import (
    JFSC,
    JFSCCV,
    LIFT,
    LLSF,
    LLSFCV,
    MAHR,
    BinaryRelevanceSVM,
    EnsembleClassifierChains,
    KernelRidgeBaseline,
)
from imcc.metrics import METRICS, evaluate
from imcc_paper import _measured
from imcc_paper._measured import Measurements, dense_rows, in_own_process, memory
from imcc_paper.methods import ExtraTreesBaseline

# 40 settings of LLSF's and JFSC's grids, with halving over the folds.
SEARCH = {"budget": 40, "halving": True, "max_iter": 100}
ALGORITHMS: dict[str, Any] = {
    "BRsvm": BinaryRelevanceSVM(),
    "ECC": EnsembleClassifierChains(),
    "MAHR": MAHR(),
    "LLSF": LLSFCV(**SEARCH),
    "JFSC": JFSCCV(**SEARCH),
    "LIFT": LIFT(),
}
# One training run each: LLSF and JFSC at one setting, and their searches.
SPEED: dict[str, Any] = {
    **{name: model for name, model in ALGORITHMS.items() if name not in ("LLSF", "JFSC")},
    "kernel ridge": KernelRidgeBaseline(),
    "extra-trees": ExtraTreesBaseline(),
    "LLSF, one setting": LLSF(alpha=2**-3, beta=2**-3, max_iter=100),
    "LLSF, search": ALGORITHMS["LLSF"],
    "JFSC, one setting": JFSC(alpha=4**-2, beta=4**-1, gamma=4**-4, max_iter=100),
    "JFSC, search": ALGORITHMS["JFSC"],
}
VARIANTS: dict[str, dict[str, Any]] = {
    "lift": {
        "LIFT, probability": LIFT(scores="probability"),
        "LIFT, margin": LIFT(scores="margin"),
    },
    "mahr": {
        "MAHR": MAHR(),
        "MAHR, no reuse": MAHR(reuse=False),
        "MAHR, labels never stop": MAHR(min_loss=0),
    },
}


#: The data sets that variants are tried on, and the number of splits.
DATA = {"lift": ("scene", "yeast"), "mahr": ("yeast", "medical")}
REPETITIONS = 3


def seeded(model: Any, seed: int) -> Any:
    """Return the model with its seed, and with shuffled folds where it has folds."""
    own = model.get_params()
    chosen = {"random_state": seed, "cv": KFold(5, shuffle=True, random_state=seed)}
    return clone(model).set_params(**{k: v for k, v in chosen.items() if k in own})


def add_metrics(part: str, found: Measurements) -> None:
    """Add the means of all metrics of variants over some splits."""
    for name in DATA[part]:
        X, Y = dense_rows(name)
        for variant, model in VARIANTS[part].items():
            rows = [one_run(model, X, Y, repetition) for repetition in range(REPETITIONS)]
            means = {m: float(np.mean([row[m] for row in rows])) for m in METRICS}
            found.add(part, f"{name}: {variant}", **means)


def one_run(model: Any, X: np.ndarray, Y: np.ndarray, repetition: int) -> dict[str, float]:
    """Train on 80 % of the rows and judge on the rest."""
    X, X_new, Y, Y_new = train_test_split(X, Y, test_size=0.2, random_state=repetition)
    with warnings.catch_warnings():
        # Iterations are limited on purpose, and rare labels make clusters of few rows.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = seeded(model, repetition).fit(X, Y)
    return evaluate(Y_new, model.decision_function(X_new))


def metric_table(found: Measurements, part: str) -> str:
    """Lay out all metrics."""
    rows = ((case, found.of(part, case)) for case in found.cases(part))
    return _measured.table(
        ["", *METRICS], ([case, *(f"{of[m]:.3f}" for m in METRICS)] for case, of in rows)
    )


def add_speed(found: Measurements) -> None:
    """Add time and peak memory of one training run, each in a process of its own."""
    for name in SPEED:
        with threadpool_limits(1):
            found.add("speed", name, **in_own_process(measure, name))


def speed_table(found: Measurements) -> str:
    """Lay out time and memory."""
    rows = ((name, found.of("speed", name)) for name in found.cases("speed"))
    return _measured.table(
        ["", "CPU seconds", "peak memory above the start, in copies of X"],
        ([name, f"{of['cpu_seconds']:.1f}", f"{of['copies']:.1f}"] for name, of in rows),
    )


def measure(name: str) -> dict[str, float]:
    """Return time and peak memory of one training run on arts, with one thread."""
    X, Y = dense_rows("arts")
    X, _, Y, _ = train_test_split(X, Y, test_size=0.2, random_state=0)
    model = seeded(SPEED[name], 0)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[:200, :50], Y[:200, :2])  # imports and thread pools
        before = memory("VmRSS")
        # Loading the data had a peak of its own: forget it (Linux).
        Path("/proc/self/clear_refs").write_text("5")
        worked = time.process_time()
        model.fit(X, Y)
    return {
        "cpu_seconds": time.process_time() - worked,
        "copies": (memory("VmHWM") - before) / X.nbytes,
    }


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked blocks of docs/baselines.md."""
    margin, probability = (
        found.of("lift", f"yeast: LIFT, {scores}") for scores in ("margin", "probability")
    )
    lower = probability["average_precision"] - margin["average_precision"]
    more = margin["ranking_loss"] / probability["ranking_loss"] - 1
    return {
        "baselines-speed": speed_table(found),
        "lift-scores": metric_table(found, "lift"),
        "lift-difference": f"{lower:.3f} and increases the ranking loss by {100 * more:.0f} %",
        "mahr-variants": metric_table(found, "mahr"),
    }


def main() -> None:
    """Read the command line and measure."""
    parser = _measured.make_parser(__doc__, "baselines")
    parser.add_argument("part", choices=("speed", *VARIANTS))
    options = parser.parse_args()
    found = Measurements()
    if options.part == "speed":
        add_speed(found)
        print(speed_table(found))
    else:
        add_metrics(options.part, found)
        print(metric_table(found, options.part))
    found.save(options.csv)


if __name__ == "__main__":
    main()
