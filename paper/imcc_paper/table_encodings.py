"""The trees of TableClassifier, with and without them on made-up tables.

    python -m imcc_paper.table_encodings        # adds the rows that results/ lacks

The tables are the one of `imcc_paper.tables` with other seeds, in splits from 1000 on.  ``robust``
is TableClassifier without trees; in ``corrected``, boosted trees correct the log-odds of the
ensemble (``trees``, the default).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from imcc import KernelEnsembleClassifier
from imcc.estimators import choose_thresholds
from imcc.metrics import average_precision
from imcc.tables import TableClassifier, example_table
from imcc_paper._rows import add_rows, read_rows
from imcc_paper.places import RESULTS

ROWS = RESULTS / "table_encodings.csv"
FIELDS = (
    "table",
    "split",
    "variant",
    "macro_f1",
    "average_precision",
    "log_loss",
    "weight",
    "seconds",
)

SEEDS, SPLITS = (1, 2, 3), range(1000, 1003)
VARIANTS = {"robust": "without trees", "corrected": "corrected by trees"}


def stored_rows() -> list[dict[str, Any]]:
    """Return the committed rows."""
    return read_rows(ROWS, ("table", "variant"), ("split",))


def page_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table of docs/tables.md: means over the made-up tables."""
    n_tables = len({(row["table"], row["split"]) for row in rows})
    lines = [
        f"| means of {n_tables} made-up tables | macro-F1 | average precision | log loss |",
        "| --- | ---: | ---: | ---: |",
    ]
    for variant, title in VARIANTS.items():
        some = [row for row in rows if row["variant"] == variant]
        cells = [
            f"{np.mean([row[metric] for row in some]):.3f}"
            for metric in ("macro_f1", "average_precision", "log_loss")
        ]
        lines.append("| " + " | ".join([title, *cells]) + " |")
    return "\n".join(lines)


class Remembering(KernelEnsembleClassifier):
    """The ensemble, with the held-out log-odds of its training rows."""

    def fit_held_out(
        self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None
    ) -> np.ndarray:
        """Fit, and remember the log-odds that are returned."""
        self.held_out_ = super().fit_held_out(X, y, sample_weight=sample_weight, groups=groups)
        return self.held_out_


def mean_log_loss(Y: np.ndarray, log_odds: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0, np.where(Y > 0, -log_odds, log_odds))))


def run(seed: int, split: int) -> Iterator[dict[str, object]]:
    """Yield the row of each variant."""
    table, labels = example_table(seed=seed)
    train, test = train_test_split(np.arange(len(table)), test_size=0.3, random_state=split)
    X, X_test = table.iloc[train], table.iloc[test]
    Y_train, Y_test = labels.iloc[train].to_numpy(), labels.iloc[test].to_numpy()

    def row(variant: str, held: np.ndarray, scores: np.ndarray, start: float, weight: float) -> Any:
        cuts = choose_thresholds(Y_train, held, "f1", default=0.0).thresholds
        return {
            "table": f"made-{seed}",
            "split": split,
            "variant": variant,
            "macro_f1": f1_score(Y_test, scores >= cuts, average="macro", zero_division=0),
            "average_precision": average_precision(Y_test, scores),
            "log_loss": mean_log_loss(Y_test, scores),
            "weight": weight,
            "seconds": round(time.perf_counter() - start, 1),
        }

    start = time.perf_counter()
    model = TableClassifier(Remembering(random_state=0), trees=False, random_state=0)
    model.fit(X, labels.iloc[train])
    held = model.estimator_["classifier"].estimator_.held_out_
    yield row("robust", held, model.decision_function(X_test), start, 0.0)
    start = time.perf_counter()
    encoder = model.estimator_["table"]
    text = set(encoder.schema_.of_kind("text"))
    columns = [j for j, name in enumerate(encoder.feature_columns()) if name not in text]
    corrected = KernelEnsembleClassifier(trees=columns, random_state=0)
    held = corrected.fit_held_out(encoder.transform(X), Y_train)
    scores = corrected.decision_function(encoder.transform(X_test))
    yield row("corrected", held, scores, start, float(corrected.n_trees_ > 0))


def main() -> None:
    """Compute the tables that the file lacks, each as a whole."""
    done = {(row["table"], row["split"]) for row in stored_rows()}
    for split, seed in product(SPLITS, SEEDS):
        if (f"made-{seed}", split) not in done:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = list(run(seed, split))
            print(*rows, sep="\n", flush=True)
            add_rows(ROWS, FIELDS, rows)


if __name__ == "__main__":
    main()
