"""The sensitivity to IMCC's parameters, section 4.3 of the paper.

    python -m imcc_paper.sensitivity -o results/sensitivity.csv --device cuda

All settings of the paper's grid, cross-validated on all rows of three data sets, one line each.  A
data set that is in the file is not computed again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from sklearn.model_selection import KFold

from imcc import IMCCClassifierCV
from imcc.datasets import Dataset, load_dataset, split_seed
from imcc.metrics import METRICS
from imcc_paper._rows import Queue, Row, add_rows, read_rows, run_all

DATASETS = ("enron", "yeast", "genbase")
WEIGHTS = [10.0**exponent for exponent in range(-3, 4)]
CLUSTERS = [8, 16, 32, 64, 128, 256]
VALUES = [f"{moment}_{metric}" for metric in METRICS for moment in ("mean", "std")]
COLUMNS = ("dataset", "alpha", "beta", "gamma", "n_clusters", *VALUES)


def rows(data: Dataset, device: str | None = None) -> Iterator[Row]:
    """Yield means and standard deviations over five folds of all settings."""
    seed = split_seed(0, data.name, data.n_rows, 0)
    search = IMCCClassifierCV(
        alphas=WEIGHTS,
        betas=WEIGHTS,
        gammas=WEIGHTS,
        n_clusters=CLUSTERS,
        kernels=["rbf"],
        width_scales=[1.0],
        cv=KFold(5, shuffle=True, random_state=seed),
        scoring=list(METRICS),
        refit=False,
        random_state=seed,
        device=device,
    ).fit(data.X, data.Y)
    for number, setting in enumerate(search.cv_results_["params"]):
        axes = {name: setting[name] for name in ("alpha", "beta", "gamma", "n_clusters")}
        values = {
            name: float(search.cv_results_[name.replace("_", "_test_", 1)][number])
            for name in VALUES
        }
        yield {"dataset": data.name, **axes, **values}


def measure(name: str, device: str | None) -> list[Row]:
    """Return the rows of a data set."""
    return list(rows(load_dataset(name), device))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what the file lacks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="CSV file of the rows")
    parser.add_argument("--jobs", type=int, default=1, help="data sets at the same time (1)")
    parser.add_argument("--device", help="such as cuda")
    asked = parser.parse_args(arguments)
    done = {row["dataset"] for row in read_rows(asked.output, ("dataset",))}
    return run_all(
        measure,
        [Queue([name for name in DATASETS if name not in done], asked.jobs, asked.device)],
        lambda found: add_rows(asked.output, COLUMNS, found),
        name=str,
        outcome=lambda found: f"{len(found)} settings",
    )


if __name__ == "__main__":
    sys.exit(main())
