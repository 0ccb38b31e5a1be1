"""How many test rows repeat a training row, in the paper's fifteen data sets.

    python -m imcc_paper.repeated_rows --csv results/repeated_rows.csv

A test row repeats a training row if all its features are the same.  A method that only looks up
training rows knows the labels of those; a data set of many says little about other rows.  Means
over the ten splits of the experiment.
"""

from __future__ import annotations

import numpy as np

from imcc.datasets import Dataset, list_datasets, load_dataset, paper_splits
from imcc_paper import _measured
from imcc_paper._measured import Measurements, table

PART = "repeated"


def repeated(dataset: Dataset, train: np.ndarray, test: np.ndarray) -> tuple[float, float]:
    """Return the share of test rows that repeat a training row, and one with the same labels."""
    X = dataset.X.toarray() if dataset.is_sparse else dataset.X
    keys = [(X[i] + 0.0).tobytes() for i in range(dataset.n_rows)]  # + 0.0: -0.0 is 0.0
    labelled = [key + dataset.Y[i].tobytes() for i, key in enumerate(keys)]
    shares = []
    for of in (keys, labelled):
        known = {of[i] for i in train}
        shares.append(sum(of[i] in known for i in test) / len(test))
    return shares[0], shares[1]


def blocks(found: Measurements) -> dict[str, str]:
    """Return the table of docs/datasets.md."""
    rows = []
    for name in found.cases(PART):
        own = found.of(PART, name)
        rows.append([name, *(f"{100 * own[c]:.1f} %" for c in ("features", "with_labels"))])
    header = ["data set", "repeat a training row", "with the same labels"]
    return {"repeated-rows": table(header, rows)}


def main() -> None:
    """Read the command line and count."""
    path = _measured.make_parser(__doc__, "repeated_rows").parse_args().csv
    found = Measurements()
    for name in list_datasets("paper"):
        dataset = load_dataset(name)
        splits = paper_splits(dataset, n_splits=10, test_size=0.2, seed=0)
        shares = np.mean([repeated(dataset, train, test) for train, test in splits], axis=0)
        found.add(PART, name, features=shares[0], with_labels=shares[1])
    print(blocks(found)["repeated-rows"])
    found.save(path)


if __name__ == "__main__":
    main()
