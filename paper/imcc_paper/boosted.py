"""LightGBM, XGBoost and logistic regression: what the choice of their settings was made on.

    python -m imcc_paper.boosted --csv results/boosted.csv

The defaults on six data sets and other settings on fewer, on the first split of seed 1000, which no
experiment reports: average precision, ranking loss, and the CPU seconds of one fit with one thread.
``python -m imcc_paper.reproduce`` fills the tables of docs/baselines.md from the file.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from threadpoolctl import threadpool_limits

from imcc.datasets import Dataset, load_dataset, paper_splits
from imcc.metrics import evaluate
from imcc_paper import _measured
from imcc_paper._measured import Measurements
from imcc_paper.methods import LightGBMBaseline, LogisticRegressionBaseline, XGBoostBaseline

SEED = 1000
DATA = ("yeast", "image", "enron", "medical", "scene", "arts")
DEFAULTS = {
    "LightGBM": LightGBMBaseline(random_state=0),
    "XGBoost": XGBoostBaseline(random_state=0),
    "logistic regression": LogisticRegressionBaseline(random_state=0),
}
MULTI_OUTPUT = "XGBoost, multi-output trees"
LIGHT_CHILDREN = "XGBoost, minimum child weight 0.1"
# With the data sets that they were tried on.
VARIANTS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "LightGBM without L2 penalty": (
        LightGBMBaseline(lambda_l2=0.0, random_state=0),
        ("yeast", "image", "enron", "medical"),
    ),
    "LightGBM, at least 2 rows in a leaf": (
        LightGBMBaseline(min_data_in_leaf=2, random_state=0),
        ("yeast", "medical"),
    ),
    MULTI_OUTPUT: (
        XGBoostBaseline(multi_output=True, random_state=0),
        ("yeast", "enron"),
    ),
    LIGHT_CHILDREN: (
        XGBoostBaseline(min_child_weight=0.1, random_state=0),
        ("yeast", "enron", "medical"),
    ),
    "XGBoost, 256 bins": (XGBoostBaseline(max_bins=256, random_state=0), ("yeast",)),
}


def measure(data: Dataset, method: Any) -> dict[str, float]:
    """Fit on the training rows of the split, and judge on the others."""
    train, test = paper_splits(data, 1, 0.2, SEED)[0]
    start = time.process_time()
    method.fit(data.X[train], data.Y[train])
    seconds = time.process_time() - start
    metrics = evaluate(data.Y[test], method.decision_function(data.X[test]))
    return {m: metrics[m] for m in ("average_precision", "ranking_loss")} | {"cpu_seconds": seconds}


def add_all(found: Measurements) -> None:
    """Measure the defaults on all data sets, and the variants on theirs."""
    for name in DATA:
        data = load_dataset(name)
        chosen = [("defaults", label, method) for label, method in DEFAULTS.items()]
        tried = VARIANTS.items()
        chosen += [("variants", label, method) for label, (method, on) in tried if name in on]
        for part, label, method in chosen:
            with threadpool_limits(1):
                found.add(part, f"{name}: {label}", **measure(data, method))


def layout(
    found: Measurements, parts: Sequence[str], names: Sequence[str], quantity: str, form: str
) -> str:
    """Lay out a quantity, methods by data sets; a cell is empty where nothing was measured."""
    rows: dict[str, dict[str, str]] = {}
    for part in parts:
        for case in found.cases(part):
            name, _, method = case.partition(": ")
            of = found.of(part, case)
            if name in names and quantity in of:
                rows.setdefault(method, {})[name] = format(of[quantity], form)
    cells = ([method, *(row.get(name, "") for name in names)] for method, row in rows.items())
    return _measured.table(["", *names], cells)


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked blocks of docs/baselines.md."""
    precision = {
        name: found.of(part, f"medical: {name}")["average_precision"]
        for part, name in (("defaults", "XGBoost"), ("variants", LIGHT_CHILDREN))
    }
    longer = [
        found.of("variants", f"{name}: {MULTI_OUTPUT}")["cpu_seconds"]
        / found.of("defaults", f"{name}: XGBoost")["cpu_seconds"]
        for name in VARIANTS[MULTI_OUTPUT][1]
    ]
    return {
        "boosted-precision": layout(
            found, ("defaults", "variants"), DATA[:4], "average_precision", ".3f"
        ),
        "boosted-lower": f"{precision[LIGHT_CHILDREN] - precision['XGBoost']:.2f}",
        "boosted-longer": f"{min(longer):.0f} to {max(longer):.0f} times",
        "boosted-seconds": layout(
            found, ("defaults",), ("yeast", "scene", "enron", "arts"), "cpu_seconds", ".0f"
        ),
    }


def main() -> None:
    """Measure everything."""
    path = _measured.make_parser(__doc__, "boosted").parse_args().csv
    found = Measurements()
    add_all(found)
    print("\n\n".join(blocks(found).values()))
    found.save(path)


if __name__ == "__main__":
    main()
