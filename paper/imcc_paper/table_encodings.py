"""What else numbers in a table may become, and trees beside the kernels: tried on other rows.

    python -m imcc_paper.table_encodings [made-1] [made-2] ... [--only robust,forest] [--csv FILE]

Every variant is a change of TableClassifier's defaults.  The tables are not those of
`imcc_paper.tables`: the made-up one with other seeds, 1,000 packages of Debian's index that are not
among its 2,000, and split 1000 (or --split) of flags and birds.

numbers
    robust     scaled by the range of the middle 90 % of the values (the default)
    heavier    the same, with four times the variance
trees
    forest     robust; and 500 extra-trees of the numbers, indicators and the ensemble's held-out
               log-odds of all labels, whose out-of-bag log-odds are averaged with the ensemble's at
               the weight of the lowest log loss
    boosted    the same with a histogram gradient boosting per label, held out by 5 folds
    boosted-alone  the same without the ensemble's log-odds among what trees see
    corrected  boosting that starts at the ensemble's held-out log-odds and sees them
               (``trees`` of the ensemble, the default of TableClassifier)
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import logit
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold, cross_val_predict, train_test_split

from imcc import KernelEnsembleClassifier
from imcc.estimators import choose_thresholds
from imcc.metrics import average_precision
from imcc.tables import (
    TableClassifier,
    example_table,
    read_tags,
    tag_matrix,
)
from imcc_paper.tables import debian_index, mulan

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

# The made-up tables of docs/tables.md: splits, what it calls them, seeds, and variants.
COMPARED: tuple[tuple[range, str, tuple[int, ...], dict[str, str]], ...] = (
    (
        range(1000, 1003),
        "1000 to 1002, 9 tables",
        (1, 2, 3),
        {"robust": "as before", "corrected": "corrected by trees"},
    ),
    (
        range(1003, 1004),
        "1003, seeds 1 and 2",
        (1, 2),
        {
            "robust": "as before",
            "heavier": "numbers with four times the variance",
            "forest": "averaged with 500 extra-trees that see the log-odds",
            "boosted": "averaged with boosted trees that see the log-odds",
        },
    ),
)


def page_table(rows: list[dict[str, str]]) -> str:
    """Return the table of docs/tables.md: means over the made-up tables."""
    lines = [
        "| made-up tables, seeds 1 to 3 | splits | macro-F1 | average precision | log loss |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    found = {(row["table"], int(row["split"]), row["variant"]): row for row in rows}
    for splits, name, seeds, variants in COMPARED:
        for variant, title in variants.items():
            some = [found[f"made-{seed}", split, variant] for seed in seeds for split in splits]
            cells = [
                f"{np.mean([float(row[metric]) for row in some]):.3f}"
                for metric in ("macro_f1", "average_precision", "log_loss")
            ]
            where = name if variant == "robust" else "the same"
            lines.append("| " + " | ".join([title, where, *cells]) + " |")
    return "\n".join(lines)


def other_packages(n_rows: int = 1000) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return packages that the benchmark's sample does not have."""
    index = debian_index()
    rows = np.sort(np.random.RandomState(0).permutation(len(index))[2000 : 2000 + n_rows])
    Y, names = tag_matrix(read_tags(index["tag"].tolist(), ","))
    labels = pd.DataFrame(Y, columns=names).iloc[rows].reset_index(drop=True)
    table = index.drop(columns="tag").iloc[rows].reset_index(drop=True)
    return table, labels.loc[:, labels.mean() >= 0.01]


TABLES: dict[str, Callable[[], tuple[pd.DataFrame, pd.DataFrame]]] = {
    **{f"made-{seed}": lambda seed=seed: example_table(seed=seed) for seed in (1, 2, 3, 4, 5)},
    "flags": lambda: mulan("flags"),
    "birds": lambda: mulan("birds"),
    "debian": other_packages,
}


class Remembering(KernelEnsembleClassifier):
    """The ensemble, with the held-out log-odds of its training rows."""

    def fit_held_out(
        self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None
    ) -> np.ndarray:
        """Fit, and remember the log-odds that are returned."""
        self.held_out_ = super().fit_held_out(X, y, sample_weight=sample_weight, groups=groups)
        return self.held_out_


def fit(X: pd.DataFrame, Y: pd.DataFrame, variant: str) -> TableClassifier:
    ours = Remembering(random_state=0)
    weights: Any = {"numbers": 4.0} if variant == "heavier" else "auto"
    return TableClassifier(ours, weights=weights, trees=False, random_state=0).fit(X, Y)


def plain_columns(model: TableClassifier) -> list[int]:
    """Return which features are not of text."""
    encoder = model.estimator_["table"]
    text = set(encoder.schema_.of_kind("text"))
    return [j for j, name in enumerate(encoder.feature_columns()) if name not in text]


def plain_features(model: TableClassifier, X: pd.DataFrame) -> np.ndarray:
    """Return the features that are not of text, dense."""
    features = model.estimator_["table"].transform(X)[:, plain_columns(model)]
    return features.toarray() if sp.issparse(features) else features


def trees(
    name: str, inside: np.ndarray, Y: np.ndarray, outside: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return held-out log-odds of the training rows and log-odds of others, of trees."""
    held, test = np.empty(Y.shape), np.empty((len(outside), Y.shape[1]))
    if name.startswith("forest"):
        forest = ExtraTreesClassifier(
            500,
            min_samples_leaf=2,
            max_features=0.5,
            bootstrap=True,
            oob_score=True,
            random_state=0,
        ).fit(inside, Y)
        chances = forest.predict_proba(outside)
        for j in range(Y.shape[1]):
            held[:, j], test[:, j] = forest.oob_decision_function_[:, 1, j], chances[j][:, 1]
    else:
        boosted = HistGradientBoostingClassifier(
            learning_rate=0.05, max_iter=100, max_leaf_nodes=8, random_state=0
        )
        folds = KFold(5, shuffle=True, random_state=0)
        for j in range(Y.shape[1]):
            y = Y[:, j]
            held[:, j] = cross_val_predict(boosted, inside, y, cv=folds, method="predict_proba")[
                :, 1
            ]
            test[:, j] = boosted.fit(inside, y).predict_proba(outside)[:, 1]
    return logit(smoothed(held)), logit(smoothed(test))


def smoothed(chances: np.ndarray) -> np.ndarray:
    return np.clip(chances, 0.002, 0.998)


def best_weight(ours: np.ndarray, theirs: np.ndarray, Y: np.ndarray) -> float:
    """Return the weight of the second log-odds at which the log loss of the mean is lowest."""
    weights = np.linspace(0, 1, 11)
    losses = [mean_log_loss(Y, (1 - w) * ours + w * theirs) for w in weights]
    return float(weights[int(np.argmin(losses))])


def mean_log_loss(Y: np.ndarray, log_odds: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0, np.where(Y > 0, -log_odds, log_odds))))


def run(name: str, wanted: list[str], split: int) -> Iterator[dict[str, object]]:
    """Yield the row of every variant."""
    table, labels = TABLES[name]()
    labels = labels.loc[:, labels.sum() >= 10]
    train, test = train_test_split(np.arange(len(table)), test_size=0.3, random_state=split)
    X, X_test = table.iloc[train], table.iloc[test]
    Y, Y_test = labels.iloc[train], labels.iloc[test].to_numpy()
    Y_train = Y.to_numpy()

    def row(variant: str, held: np.ndarray, scores: np.ndarray, start: float, weight: float) -> Any:
        cuts = choose_thresholds(Y_train, held, "f1", default=0.0).thresholds
        predicted = scores >= cuts
        return {
            "table": name,
            "split": split,
            "variant": variant,
            "macro_f1": f1_score(Y_test, predicted, average="macro", zero_division=0),
            "average_precision": average_precision(Y_test, scores),
            "log_loss": mean_log_loss(Y_test, scores),
            "weight": weight,
            "seconds": round(time.perf_counter() - start, 1),
        }

    plain = None
    for variant in wanted:
        start = time.perf_counter()
        if variant in ("robust", "heavier"):
            model = fit(X, Y, variant)
            held = model.estimator_["classifier"].estimator_.held_out_
            scores = model.decision_function(X_test)
            yield row(variant, held, scores, start, 0.0)
            if variant == "robust":
                plain = model, held, scores
            continue
        assert plain is not None, "robust comes first"
        model, held, scores = plain
        if variant == "corrected":
            corrected = KernelEnsembleClassifier(trees=plain_columns(model), random_state=0)
            encoder = model.estimator_["table"]
            found = corrected.fit_held_out(encoder.transform(X), Y_train)
            added = corrected.decision_function(encoder.transform(X_test))
            yield row(variant, found, added, start, float(bool(corrected.trees_)))
            continue
        stacked = not variant.endswith("-alone")
        inside, outside = plain_features(model, X), plain_features(model, X_test)
        inside = np.hstack([inside, held]) if stacked else inside
        outside = np.hstack([outside, scores]) if stacked else outside
        theirs, theirs_test = trees(variant, inside, Y_train, outside)
        yield row(f"{variant} only", theirs, theirs_test, start, 1.0)
        w = best_weight(held, theirs, Y_train)
        blend, blend_test = (1 - w) * held + w * theirs, (1 - w) * scores + w * theirs_test
        yield row(variant, blend, blend_test, start, w)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--only", default="robust,heavier,forest,corrected")
    parser.add_argument("--split", type=int, default=1000, help="1000 or more")
    parser.add_argument("--csv", help="add the rows to this file")
    options = parser.parse_args()
    rows = []
    for name in options.tables:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for row in run(name, options.only.split(","), options.split):
                print(row, flush=True)
                rows.append(row)
    if options.csv:
        path = Path(options.csv)
        new = not path.exists()
        with path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
