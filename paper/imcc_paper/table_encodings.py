"""TableClassifier with and without its trees, on made-up tables.

    python -m imcc_paper.table_encodings        # adds the rows that results/ lacks

The tables are the one of ``imcc_paper.tables`` with other seeds, in splits from 1000 on.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from imcc.metrics import average_precision, log_loss, macro_f1
from imcc.tables import TableClassifier, example_table
from imcc_paper._measured import table
from imcc_paper._rows import add_rows, read_rows
from imcc_paper.places import RESULTS

ROWS = RESULTS / "table_encodings.csv"
METRICS = {"macro_f1": "macro-F1", "average_precision": "average precision", "log_loss": "log loss"}
FIELDS = ("table", "split", "variant", *METRICS, "seconds")
SEEDS, SPLITS = (1, 2, 3), range(1000, 1003)
VARIANTS = {"robust": "without trees", "corrected": "corrected by trees"}


def stored_rows() -> list[dict[str, Any]]:
    """Return the committed rows."""
    return read_rows(ROWS, ("table", "variant"), ("split",))


def page_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table of docs/tables.md: means over the made-up tables."""
    n_tables = len({(row["table"], row["split"]) for row in rows})
    lines = []
    for variant, title in VARIANTS.items():
        own = [row for row in rows if row["variant"] == variant]
        lines.append([title, *(f"{np.mean([row[m] for row in own]):.3f}" for m in METRICS)])
    return table([f"means of {n_tables} made-up tables", *METRICS.values()], lines)


def blocks() -> dict[str, str]:
    """Return the marked block of docs/tables.md."""
    return {"table-encodings": page_table(stored_rows())}


def run(seed: int, split: int) -> list[dict[str, Any]]:
    """Return the row of each variant."""
    data, labels = example_table(seed=seed)
    train, test = train_test_split(np.arange(len(data)), test_size=0.3, random_state=split)
    truth, rows = labels.iloc[test].to_numpy(), []
    for variant in VARIANTS:
        start = time.perf_counter()
        model = TableClassifier(random_state=0)
        if variant == "robust":
            model.set_params(trees=False)
        model.fit(data.iloc[train], labels.iloc[train])
        chances = np.asarray(model.predict_proba(data.iloc[test]))
        rows.append(
            {
                "table": f"made-{seed}",
                "split": split,
                "variant": variant,
                "macro_f1": macro_f1(truth, np.asarray(model.predict(data.iloc[test]))),
                "average_precision": average_precision(truth, chances),
                "log_loss": log_loss(truth, chances),
                "seconds": round(time.perf_counter() - start, 1),
            }
        )
    return rows


def main() -> None:
    """Compute the tables that the file lacks, each as a whole."""
    done = {(row["table"], row["split"]) for row in stored_rows()}
    for split, seed in product(SPLITS, SEEDS):
        if (f"made-{seed}", split) not in done:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = run(seed, split)
            print(*rows, sep="\n", flush=True)
            add_rows(ROWS, FIELDS, rows)


if __name__ == "__main__":
    main()
