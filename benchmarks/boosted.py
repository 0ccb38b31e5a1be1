"""LightGBM, XGBoost and logistic regression: what the choice of their settings was made on.

    python -m benchmarks.boosted                        # the defaults, on six data sets
    python -m benchmarks.boosted --variants             # and other settings, on fewer

On the first split of seed 1000, which no experiment reports: average precision, ranking loss, and
the CPU seconds of one fit with one thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from imcc.baselines import LightGBMBaseline, LogisticRegressionBaseline, XGBoostBaseline
from imcc.datasets import Dataset, load_dataset, paper_splits
from imcc.metrics import evaluate

SEED = 1000
DATA = ("yeast", "image", "enron", "medical", "scene", "arts")
DEFAULTS = {
    "LightGBM": LightGBMBaseline(random_state=0),
    "XGBoost": XGBoostBaseline(random_state=0),
    "logistic regression": LogisticRegressionBaseline(random_state=0),
}
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
    "XGBoost, multi-output trees": (
        XGBoostBaseline(multi_output=True, random_state=0),
        ("yeast", "enron"),
    ),
    "XGBoost, minimum child weight 0.1": (
        XGBoostBaseline(min_child_weight=0.1, random_state=0),
        ("yeast", "enron", "medical"),
    ),
    "XGBoost, 256 bins": (XGBoostBaseline(max_bins=256, random_state=0), ("yeast",)),
}


class Line(NamedTuple):
    """What one method did on one data set."""

    data: str
    method: str
    average_precision: float
    ranking_loss: float
    cpu_seconds: float


def measure(data: Dataset, name: str, method: Any) -> Line:
    """Fit on the training rows of the split, and judge on the others."""
    train, test = paper_splits(data, 1, 0.2, SEED)[0]
    start = time.process_time()
    with threadpool_limits(1):
        method.fit(data.X[train], data.Y[train])
    seconds = time.process_time() - start
    metrics = evaluate(data.Y[test], method.decision_function(data.X[test]))
    return Line(data.name, name, metrics["average_precision"], metrics["ranking_loss"], seconds)


def lines(names: Sequence[str], variants: bool) -> Iterator[Line]:
    """Measure the defaults on all data sets, and the variants on theirs."""
    for name in names:
        data = load_dataset(name)
        for label, method in DEFAULTS.items():
            yield measure(data, label, method)
        for label, (method, tried) in VARIANTS.items():
            if variants and name in tried:
                yield measure(data, label, method)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--variants", action="store_true")
    options = parser.parse_args()
    for line in lines(options.data, options.variants):
        print(
            f"{line.data:8} {line.method:36} average precision {line.average_precision:.3f}, "
            f"ranking loss {line.ranking_loss:.3f}, {line.cpu_seconds:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
