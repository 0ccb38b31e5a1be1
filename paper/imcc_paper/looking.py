"""Looking into models: the tables of docs/looking_into_a_model.md.

    python -m imcc_paper.looking --csv results/looking.csv

``python -m imcc_paper.reproduce`` makes the tables of the page from the file.
The data sets are found through ``IMCC_DATA_MIRROR`` or downloaded; see :mod:`imcc.datasets`.
"""

from __future__ import annotations

from typing import Any

from sklearn.metrics import f1_score
from sklearn.model_selection import KFold

from imcc import IMCCClassifier, TableClassifier
from imcc.datasets import Dataset, load_dataset, paper_splits
from imcc.estimators import TunedThresholds
from imcc.inspection import explain_columns, inspect_model
from imcc.metrics import hamming_loss
from imcc.tables import example_table
from imcc_paper import _measured
from imcc_paper._measured import Measurements

DATA = ("yeast", "scene", "image", "cal500", "enron", "medical")
N_CLUSTERS = (8, 32, 128, 256)
# The criteria of the thresholds, and the titles of their columns.
CHOSEN = {"plain": "all at 0", "f1": "chosen for F1", "micro_f1": "chosen for micro-F1"}
MEASURES = ("macro_f1", "micro_f1", "hamming_loss")
SETTING = {"n_clusters": 64, "alpha": 1.0, "beta": 0.1, "gamma": 0.1, "random_state": 0}


def carried(data: Dataset, n_clusters: int) -> tuple[float, float]:
    """Return the share of the label correlations that the clusters carry, and that of chance."""
    # The virtual examples are those of any kernel; the linear one fits fastest.
    model = IMCCClassifier(n_clusters, kernel="linear", random_state=0).fit(data.X, data.Y)
    found = inspect_model(model, Y=data.Y).correlations
    return found.share, found.by_chance


def carried_table(found: Measurements) -> str:
    """Lay out the shares, one row per data set."""
    rows: dict[str, list[str]] = {}
    for case in found.cases("correlations"):
        values = found.of("correlations", case)
        cell = f"{values['share']:.0%} ({values['by_chance']:.0%})"
        rows.setdefault(case.partition(" ")[0], []).append(cell)
    header = ["data", *(f"{count} clusters" for count in N_CLUSTERS)]
    return _measured.table(header, ([name, *cells] for name, cells in rows.items()))


def threshold_row(data: Dataset, n_splits: int) -> dict[str, float]:
    """Return held-out macro-F1, micro-F1 and Hamming loss by criterion and measure."""
    sums = [0.0] * 9
    for train, test in paper_splits(data, n_splits=n_splits):
        X, Y, X_new, Y_new = data.X[train], data.Y[train], data.X[test], data.Y[test]
        cv = KFold(5, shuffle=True, random_state=0)
        values: list[float] = []
        for criterion in ("f1", "micro_f1"):
            tuned = TunedThresholds(IMCCClassifier(**SETTING), criterion=criterion, cv=cv)
            tuned.fit(X, Y)
            if not values:
                values += _judged(Y_new, tuned.predict(X_new, thresholds=0))
            values += _judged(Y_new, tuned.predict(X_new))
        sums = [a + b / n_splits for a, b in zip(sums, values, strict=True)]
    names = [f"{criterion}_{measure}" for criterion in CHOSEN for measure in MEASURES]
    return dict(zip(names, sums, strict=True))


def _judged(truth, predicted) -> list[float]:
    macro = f1_score(truth, predicted, average="macro", zero_division=0)
    micro = f1_score(truth, predicted, average="micro", zero_division=0)
    return [macro, micro, hamming_loss(truth, predicted * 2.0 - 1)]


def threshold_table(found: Measurements) -> str:
    """Lay out the measures, one row per data set."""
    rows = []
    for name in found.cases("thresholds"):
        values = found.of("thresholds", name)
        cells = [" / ".join(f"{values[f'{c}_{m}']:.3f}" for m in MEASURES) for c in CHOSEN]
        rows.append([name, *cells])
    return _measured.table(["data", *CHOSEN.values()], rows)


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked blocks of the page."""
    errors = found.of("columns", "ticket")
    return {
        "correlations": carried_table(found),
        "thresholds": threshold_table(found),
        "columns-sampling-error": f"{errors['sampling_error']:.1g}",
        "columns-standard-error": f"{errors['standard_error']:.2f}",
    }


def ticket() -> Any:
    """Return what drove the score of one row of a made-up table."""
    table, labels = example_table()
    model = TableClassifier(random_state=0).fit(table[:600], labels[:600])
    return explain_columns(
        model, table.iloc[[601]], table[:600], n_background=100, max_evaluations=2**14
    )


def main() -> None:
    parser = _measured.make_parser(__doc__, "looking")
    parser.add_argument("--data", nargs="*", default=DATA)
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    found = Measurements()
    for name in options.data:
        data = load_dataset(name)
        for count in N_CLUSTERS:
            share, by_chance = carried(data, count)
            found.add("correlations", f"{name} {count}", share=share, by_chance=by_chance)
        found.add("thresholds", name, **threshold_row(data, options.splits))
    explained = ticket()
    found.add(
        "columns",
        "ticket",
        columns=len(explained.columns),
        standard_error=explained.standard_errors.max(),
        sampling_error=explained.sampling_errors.max(),
    )
    for name, text in blocks(found).items():
        print(f"{name}:\n{text}\n")
    found.save(options.csv)


if __name__ == "__main__":
    main()
