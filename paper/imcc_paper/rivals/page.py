"""The tables of the rivals, from the rows of results/rivals.csv."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from imcc.comparison import ScoreTable
from imcc.datasets import list_datasets
from imcc_paper._measured import paragraph, table
from imcc_paper.outside_sets import SECOND
from imcc_paper.reproduction.rows import CONTROL
from imcc_paper.rivals.methods import ENSEMBLE, METHODS, STACK
from imcc_paper.rivals.task import DONE, SPLITS

TITLES = {
    ENSEMBLE: "ensemble",
    "svm": "RBF-SVM",
    "extra_trees": "extra-trees",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "logistic": "logistic regression",
    "mlp": "neural network",
    "mlknn": "ML-kNN",
    "ecc": "ECC",
    "catboost": "CatBoost",
    "boomer": "Boomer",
    STACK: "stack of eight",
}
_SHOWN = (
    ("average_precision", "average precision"),
    ("macro_average_precision", "per label"),
    ("log_loss", "log loss"),
    ("macro_f1", "macro-F1 at 1/2"),
    ("macro_f1_tuned", "macro-F1, tuned"),
)
#: Data sets on parts of which the ensemble's recipe was chosen, or that led to a change of it.
DEVELOPED = ("rcv1s2", "Imdb", "goemotions_whole", "boxes")
_LARGE = (*DEVELOPED[:3], "corel16k1")
# Data sets that a rival must have been finished on to be counted in a claim.
_MANY = 10
# And for an interval.
_FEW = 3
Rows = Sequence[dict[str, Any]]


def values(rows: Rows, column: str) -> dict[tuple[str, str], np.ndarray]:
    """Return a column by data set and method, where all splits are there."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        if row["status"] == DONE:
            found.setdefault((row["dataset"], row["method"]), {})[row["split"]] = row[column]
    return {
        at: np.array([by[split] for split in SPLITS])
        for at, by in found.items()
        if set(by) == set(SPLITS)
    }


def outside_sets(rows: Rows) -> list[str]:
    """Return the data sets of the rows that nothing was chosen on."""
    return sorted({row["dataset"] for row in rows} - {*list_datasets("paper"), *DEVELOPED})


def outside_scores(rows: Rows) -> ScoreTable:
    """Return the average precision of the ensemble and others on those data sets."""
    precision = values(rows, "average_precision")
    names = {ENSEMBLE: CONTROL, "lightgbm": "lightgbm", "logistic": "logistic"}
    return ScoreTable.from_records(
        [
            (data, names[method], split, value)
            for (data, method), of in precision.items()
            if data in outside_sets(rows) and method in names
            for split, value in enumerate(of)
        ],
        metric="average_precision",
    )


def seconds(rows: Rows) -> dict[tuple[str, str], float]:
    """Return the CPU seconds until there is a model: search and fit, and folds for the stack."""
    parts = {name: values(rows, f"{name}_seconds") for name in ("tune", "oof", "fit")}
    return {
        (data, method): float(
            (parts["tune"][data, method] + parts["fit"][data, method]).mean()
            + (parts["oof"][data, method].mean() if method == STACK else 0.0)
        )
        for data, method in parts["fit"]
    }


def interval(differences: np.ndarray) -> float:
    """Return half the width of the 95 % interval of a mean, by Student's t.

    >>> round(interval(np.array([1.0, 2.0, 3.0])), 2)
    2.48
    """
    n = len(differences)
    if n < 2:
        return math.nan
    return float(student.ppf(0.975, n - 1) * differences.std(ddof=1) / math.sqrt(n))


def gaps_to(
    column: dict[tuple[str, str], np.ndarray], method: str, datasets: Iterable[str]
) -> dict[str, float]:
    """Return the ensemble minus a method on the data sets that both were finished on."""
    return {
        data: float((column[data, ENSEMBLE] - column[data, method]).mean())
        for data in datasets
        if (data, method) in column and (data, ENSEMBLE) in column
    }


def in_words(gaps: dict[str, float], *, short: bool = False) -> str:
    """Return a mean with its interval, and on how many data sets the ensemble is better.

    >>> in_words({"a": 0.01, "b": 0.02, "c": -0.03})
    '+0.0000 ± 0.0657 (better on 2 of 3)'
    """
    values = np.array(list(gaps.values()))
    better = f"{(values > 0).sum()} of {len(values)}"
    words = better if short else f"better on {better}"
    return f"{values.mean():+.4f} ± {interval(values):.4f} ({words})"


def summary_table(
    rows: Rows, groups: Mapping[str, Sequence[str]], more: Iterable[list[str]] = ()
) -> str:
    """Return the ensemble minus each method on groups of data sets, and the times on all.

    More lines, of methods that are no rivals, come last.
    """
    precision, losses = values(rows, "average_precision"), values(rows, "log_loss")
    cost = seconds(rows)
    lines = []
    for method in METHODS:
        gaps = {name: gaps_to(precision, method, sets) for name, sets in groups.items()}
        gaps = {name: of_sets for name, of_sets in gaps.items() if len(of_sets) >= _FEW}
        if method == ENSEMBLE or not gaps:
            continue
        cells = []
        for name, sets in groups.items():
            if name not in gaps:
                cells += ["", ""]
                continue
            loss = np.array(list(gaps_to(losses, method, sets).values()))
            cells.append(in_words(gaps[name], short=True))
            cells.append(f"{loss.mean():+.4f} ± {interval(loss):.4f}")
        times = [cost[d, method] / cost[d, ENSEMBLE] for of_sets in gaps.values() for d in of_sets]
        lines.append([TITLES[method], *cells, f"{np.exp(np.mean(np.log(times))):.1f}"])
    header = [f"{what}, {name}" for name in groups for what in ("average precision", "log loss")]
    return table(["ensemble minus", *header, "CPU time"], [*lines, *more])


def means_table(rows: Rows, datasets: Sequence[str]) -> str:
    """Return means over data sets per method, and the differences to the ensemble.

    A mean is over the sets that the method was finished on; where these are not all, the ensemble's
    mean on the same sets stands in parentheses.  The difference is the ensemble's average precision
    minus the method's, with the 95 % interval over data sets.
    """
    columns = {name: values(rows, name) for name, _ in _SHOWN}
    cost = seconds(rows)
    over = {
        (row["dataset"], row["method"])
        for row in rows
        if row["status"] != DONE and row["dataset"] in datasets
    }
    precision = columns["average_precision"]
    most = sum((d, ENSEMBLE) in precision for d in datasets)
    lines = []
    for method in METHODS:
        of_sets = gaps_to(precision, method, datasets)
        if not of_sets:
            continue
        own, gaps = list(of_sets), np.array(list(of_sets.values()))
        cells = []
        for name, _ in _SHOWN:
            mean, ensemble = (
                np.mean([columns[name][d, m].mean() for d in own]) for m in (method, ENSEMBLE)
            )
            cells.append(f"{mean:.4f}" + (f" ({ensemble:.4f})" if len(own) < most else ""))
        wide = interval(gaps)
        apart = f"{gaps.mean():+.4f}" + ("" if math.isnan(wide) else f" ± {wide:.4f}")
        lost = sum(m == method for _, m in over)
        lines.append(
            [
                TITLES[method],
                f"{len(own)}" + (f" ({lost} over the limit)" if lost else ""),
                *cells,
                f"{np.mean([cost[d, method] for d in own]):.0f}",
                "" if method == ENSEMBLE else apart,
                "" if method == ENSEMBLE else f"{(gaps > 0).sum()} / {(gaps < 0).sum()}",
            ]
        )
    header = ["", "data sets", *(title for _, title in _SHOWN), "CPU seconds"]
    return table([*header, "ensemble minus it", "wins / losses"], lines)


def claim(rows: Rows) -> str:
    """Return what README says of the rivals: on the paper's data sets, and on others."""
    precision, cost = values(rows, "average_precision"), seconds(rows)
    paper = list_datasets("paper")
    gaps = {m: gaps_to(precision, m, paper) for m in METHODS if m != ENSEMBLE}
    gaps = {method: of for method, of in gaps.items() if len(of) >= _MANY}
    means = {method: np.mean(list(of.values())) for method, of in gaps.items() if method != STACK}
    sets = list(gaps[STACK])
    times = sum(cost[d, STACK] for d in sets) / sum(cost[d, ENSEMBLE] for d in sets)
    others = gaps_to(precision, "xgboost", outside_sets(rows))
    return (
        f"**Rivals that were tuned**, nearest of them {TITLES[min(means, key=means.get)]}: on the "
        f"paper's data sets the mean is ahead of {sum(mean > 0 for mean in means.values())} of "
        f"{len(means)}; a stack of eight of them is level, {in_words(gaps[STACK])}, and takes "
        f"{times:.0f} times as long. XGBoost, on data sets that nothing was chosen on: "
        f"{in_words(others)}."
    )


def without_largest(rows: Rows, datasets: Sequence[str]) -> str:
    """Return what remains of the gaps to boosted trees without the data set with the largest."""
    precision = values(rows, "average_precision")
    gaps = {method: gaps_to(precision, method, datasets) for method in ("lightgbm", "xgboost")}
    largest = max(gaps["lightgbm"], key=gaps["lightgbm"].__getitem__)
    rest = [
        f"{in_words({data: gap for data, gap in of.items() if data != largest})} "
        f"against {TITLES[method]}"
        for method, of in gaps.items()
    ]
    return f"without `{largest}`, where it is largest, it is {' and '.join(rest)}"


def sets_table(rows: Rows, datasets: Sequence[str]) -> str:
    """Return the ensemble's average precision per data set, and its differences to the others.

    With the 95 % interval over the three splits.
    """
    precision = values(rows, "average_precision")
    own = [d for d in datasets if (d, ENSEMBLE) in precision]
    others = [m for m in METHODS if m != ENSEMBLE and any((d, m) in precision for d in own)]
    failed = {(row["dataset"], row["method"]): row["status"] for row in rows}
    lines = []
    for data in own:
        cells = [f"{precision[data, ENSEMBLE].mean():.4f}"]
        for method in others:
            if (data, method) in precision:
                gaps = precision[data, ENSEMBLE] - precision[data, method]
                cells.append(f"{gaps.mean():+.4f} ± {interval(gaps):.4f}")
            else:
                status = failed.get((data, method), DONE)
                cells.append("" if status == DONE else status)
        lines.append([data, *cells])
    return table(["", "ensemble", *(TITLES[method] for method in others)], lines)


def large_table(rows: Rows) -> str:
    """Return average precision and log loss on the larger data sets, the best in bold."""
    precision, losses = values(rows, "average_precision"), values(rows, "log_loss")
    sizes = {row["dataset"]: row for row in rows}
    lines = []
    for data in (name for name in _LARGE if (name, ENSEMBLE) in precision):
        numbers = (sizes[data][name] for name in ("n_train", "n_features", "n_labels"))
        shape = " x ".join(f"{number:,}" for number in numbers)
        means = {
            method: (precision[data, method].mean(), losses[data, method].mean())
            for method in METHODS
            if (data, method) in precision
        }
        best = max(of for of, _ in means.values()), min(of for _, of in means.values())
        for method, found in means.items():
            cells = [f"{own:.4f}" for own in found]
            cells = [
                f"**{cell}**" if own == top else cell
                for cell, own, top in zip(cells, found, best, strict=True)
            ]
            first = method == ENSEMBLE
            lines.append([data if first else "", shape if first else "", TITLES[method], *cells])
    header = ["data set", "training rows x features x labels", "method"]
    return table([*header, "average precision", "log loss"], lines)


def blocks(rows: Rows, more: Iterable[list[str]]) -> dict[str, str]:
    """Return the texts for the page and for its appendix.

    Parameters
    ----------
    rows : sequence of dict
    more : iterable of list of str
        Lines of the page's table for methods that are no rivals.
    """
    paper = list_datasets("paper")
    everything = outside_sets(rows)
    others = [data for data in everything if data not in SECOND]
    search, fit = (
        " or ".join(f"{cap:.0f}" for cap in sorted({row[name] for row in rows}))
        for name in ("cap", "fit_cap")
    )
    note = paragraph(
        "Differences are means over the data sets that a method was finished on, with 95 % "
        "intervals (Student's t over data sets), in brackets on how many the ensemble is better. "
        "Of the log loss less is better. CPU time is that of search and fit, relative to the "
        "ensemble's (geometric mean); of the stack, that of all members and their folds. Down to "
        f"the stack, settings were tuned in {search} CPU seconds per data set, with at most {fit} "
        "for a fit, and three splits were run; below it are methods of the paper's experiment "
        "with its grids, up to ten splits and five data sets outside "
        "([all methods](reproduction_tables.md))."
    )
    means = paragraph(
        "Means over data sets. Numbers in parentheses are the ensemble's on the same data sets, "
        "where a method was not finished on all. CPU seconds are of search and fit; of the stack, "
        "of all members and their folds."
    )
    tables = []
    for title, sets in (
        ("The paper's data sets:", paper),
        ("Data sets that nothing was chosen on:", others),
        ("More of them, to which nothing was fitted before the third recipe was final:", SECOND),
        ("Larger ones that the recipe was chosen on, and boxes, which led to it:", DEVELOPED),
    ):
        tables += [title, means_table(rows, sets), sets_table(rows, sets)]
    groups = {"the paper's": paper, "outside": everything}
    return {
        "rivals": f"{summary_table(rows, groups, more)}\n\n{note}",
        "rivals-large": large_table(rows),
        "rivals-without": without_largest(rows, everything),
        "rivals-tables": "\n\n".join([means, *tables]),
    }
