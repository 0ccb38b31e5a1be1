"""The numbers and the figure of docs/does_clustering_help.md, from results/clustering.csv.

``make -C paper`` writes them; the rows come from ``python -m imcc_paper.clustering``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from imcc.comparison import effect_size, holm, wilcoxon_p
from imcc.datasets import list_datasets
from imcc_paper._measured import digest, table
from imcc_paper.clustering import BETAS, WEIGHTS, finished, run_of, stored_rows
from imcc_paper.places import DOCS, RESULTS
from imcc_paper.reproduction.per_set import interval
from imcc_paper.reproduction.rows import listed

ROWS = RESULTS / "clustering.csv"
FIGURE = DOCS / "images" / "does_clustering_help.svg"
#: A difference in average precision that is not worth a search.
SMALL = 0.005
# Values are equal if they differ by rounding.
DECIMALS = 9
#: Differences whose chance of being found is said.
FOUND = (0.005, 0.002)
#: The parts of the rows that are few.
FEW = (5, 10, 20)
#: The comparisons of the page: what, less what.
PAIRS = {
    "k-means less none": ("kmeans", "none"),
    "k-means less random clusters": ("kmeans", "random"),
    "random clusters less none": ("random", "none"),
    "alpha alone less none": ("kmeans_alpha", "none"),
    "gamma alone less none": ("kmeans_gamma", "none"),
}
MAIN = "k-means less none"


def gather(rows: Sequence[Mapping[str, Any]], metric: str = "average_precision") -> pd.DataFrame:
    """Return a metric of finished runs by part of the rows, data set and split; variants across."""
    whole = finished(rows)
    frame = pd.DataFrame([row for row in rows if run_of(row) in whole])
    known = [*list_datasets("paper"), *list_datasets("outside")]
    order = [*known, *sorted(set(frame["data"]) - set(known))]
    frame["data"] = pd.Categorical(frame["data"], order, ordered=True)
    keys = ["percent", "data", "split"]
    return frame.pivot(index=keys, columns="variant", values=metric).sort_index()


def differences(runs: pd.DataFrame, pair: tuple[str, str]) -> pd.Series:
    """Return the differences of two variants by part and data set, means over splits."""
    first, second = pair
    gap = runs[first] - runs[second]
    return gap.groupby(level=["percent", "data"], observed=True).mean()


class Effect(NamedTuple):
    """A comparison over data sets: mean, half of its 95 % interval, and p of Wilcoxon's test."""

    values: np.ndarray
    mean: float
    half: float
    p: float


def effect_of(values: pd.Series) -> Effect:
    """Return the effect that differences by data set are."""
    gap = np.round(values.to_numpy(), DECIMALS)
    mean, (_, high) = effect_size(gap)
    return Effect(gap, mean, high - mean, wilcoxon_p(gap))


def main_effects(runs: pd.DataFrame) -> tuple[Effect, Effect]:
    """Return k-means less none with all rows, and with few: the means over the parts."""
    gap = differences(runs, PAIRS[MAIN])
    few = gap[gap.index.get_level_values("percent").isin(FEW)]
    return effect_of(gap.loc[100]), effect_of(few.groupby(level="data", observed=True).mean())


def power(values: np.ndarray, difference: float, n_draws: int = 2000) -> float:
    """Return how often a mean difference would be found at 5 %, by Wilcoxon's test.

    Samples of as many data sets are drawn from the values, shifted so that their mean is the
    difference.
    """
    rng = np.random.default_rng(0)
    shifted = values - values.mean() + difference
    draws = rng.choice(shifted, size=(n_draws, len(values)))
    return float(np.mean([wilcoxon_p(draw) < 0.05 for draw in draws]))


def signed(value: float) -> str:
    """Return a number with its sign, which zero has not."""
    text = f"{value:+.4f}"
    return text if float(text) else text[1:]


def in_words(effect: Effect) -> str:
    """Return an effect with its interval, on how many data sets it is which, and p."""
    better, worse = int((effect.values > 0).sum()), int((effect.values < 0).sum())
    p = "1" if effect.p > 0.995 else f"{effect.p:.2g}" if effect.p >= 0.001 else "< 0.001"
    return (
        f"{signed(effect.mean)} ± {effect.half:.4f} (better on {better}, worse on {worse} of "
        f"{len(effect.values)} data sets; p {p})"
    )


def effect_table(runs: pd.DataFrame) -> str:
    """Return the effects of all pairs, the parts of the rows across; significant ones bold."""
    percents = runs.index.unique("percent")
    found = {
        (name, percent): effect_of(differences(runs, pair).loc[percent])
        for percent in percents
        for name, pair in PAIRS.items()
    }
    adjusted = dict(zip(found, holm([effect.p for effect in found.values()]), strict=True))
    cells = {key: f"{signed(e.mean)} ± {e.half:.4f}" for key, e in found.items()}
    cells = {key: f"**{cell}**" if adjusted[key] < 0.05 else cell for key, cell in cells.items()}
    rows = [[name, *(cells[name, percent] for percent in percents)] for name in PAIRS]
    return table(["", *(f"{percent} %" for percent in percents)], rows)


def by_data(runs: pd.DataFrame, n_train: Mapping[str, int]) -> str:
    """Return k-means less none of all data sets and parts of the rows."""
    gap = runs["kmeans"] - runs["none"]
    percents = runs.index.unique("percent")
    rows = []
    for data in runs.index.unique("data").sort_values():
        none = runs["none"].loc[100, data].mean()
        cells = [str(data), str(n_train[data]), f"{none:.4f}"]
        for percent in percents:
            if (percent, data) not in gap.index.droplevel("split"):
                cells.append("not run")
                continue
            of_splits = gap.loc[percent, data].to_numpy()
            half = f" ± {interval(of_splits)[1]:.4f}" if len(of_splits) >= 3 else ""
            cells.append(signed(of_splits.mean()) + half)
        rows.append(cells)
    return table(["", "training rows", "none, all rows", *(f"{p} %" for p in percents)], rows)


def at_the_ends(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the data set of each run in which ridge regression has an end of the betas."""
    # The runs on a GPU are those of an earlier program, which had the values of alpha and gamma.
    ends = {True: (BETAS[0], BETAS[-1]), False: (WEIGHTS[0], WEIGHTS[-1])}
    return [row["data"] for row in rows if row["beta"] in ends[row["device"] == "cpu"]]


def blocks() -> dict[str, str]:
    """Return the marked blocks of the page."""
    rows = stored_rows(ROWS)
    runs, folds = gather(rows), gather(rows, "cv_score")
    whole = finished(rows)
    ridge = [row for row in rows if row["variant"] == "none" and run_of(row) in whole]
    all_rows, few = main_effects(runs)
    large, small = FOUND
    chances = [f"{power(all_rows.values, difference):.2f}" for difference in FOUND]
    counts = runs.groupby(level=["percent", "data"], observed=True).size()
    splits = []
    for percent in runs.index.unique("percent"):
        low, high = counts.loc[percent].min(), counts.loc[percent].max()
        number = str(low) if low == high else f"{low} to {high}"
        splits.append(f"{number} with {percent} %")
    gains = [
        signed(differences(folds, (variant, "none")).loc[100].mean())
        for variant in ("kmeans", "random")
    ]
    ends = at_the_ends(ridge)
    return {
        "clustering-all": in_words(all_rows),
        "clustering-power": f"{large} with a probability of {chances[0]}, and one of {small} with "
        f"{chances[1]}",
        "clustering-few": in_words(few),
        "clustering-splits": ", ".join(splits),
        "clustering-effects": effect_table(runs),
        "clustering-folds": " and random clusters ".join(gains),
        "clustering-data": by_data(
            runs, {row["data"]: row["n_train"] for row in ridge if row["percent"] == 100}
        ),
        "clustering-ends": f"{len(ridge)} runs, ridge regression chose an end of its values in "
        f"{len(ends)} (of {listed(sorted(set(ends)))})",
    }


def spread(values: Sequence[float], distance: float) -> np.ndarray:
    """Return heights near to values that are at least so far apart, in the order of the values."""
    order = np.argsort(values, kind="stable")
    heights = np.array(values, dtype=np.float64)[order]
    for _ in range(100):
        for i in range(1, len(heights)):
            lack = distance - (heights[i] - heights[i - 1])
            if lack > 0:
                heights[i] += lack / 2
                heights[i - 1] -= lack / 2
    found = np.empty(len(heights))
    found[order] = heights
    return found


def plot(runs: pd.DataFrame, path: Path, description: str) -> None:
    """Draw the gain against the part of the rows: means, and each data set."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    percents = runs.index.unique("percent").to_numpy()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "imcc"}):
        figure = Figure(figsize=(9.5, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=False)
        looks = {"kmeans": ("k-means", "o"), "random": ("random clusters", "s")}
        for k, (variant, (label, mark)) in enumerate(looks.items()):
            gap = differences(runs, (variant, "none"))
            points = [effect_of(gap.loc[percent]) for percent in percents]
            left.errorbar(
                percents * (1 + 0.05 * (k - 1)),
                [effect.mean for effect in points],
                [effect.half for effect in points],
                marker=mark,
                markersize=5,
                capsize=3,
                linewidth=1.2,
                label=label,
            )
        left.legend(fontsize=8, loc="best")
        left.set_title("mean over data sets, 95 % intervals", fontsize=10)
        named: dict[str, tuple[float, float]] = {}
        gap = differences(runs, PAIRS[MAIN])
        for data in sorted(gap.index.unique("data"), key=str):
            line = gap.xs(data, level="data")
            right.plot(line.index, line, color="0.45", linewidth=0.8, marker=".")
            if abs(line.iloc[0]) > 2 * SMALL:
                named[data] = line.index[0], line.iloc[0]
        low, high = right.get_ylim()
        heights = spread([y for _, y in named.values()], 0.045 * (high - low))
        for (data, (x, _)), height in zip(named.items(), heights, strict=True):
            right.text(0.93 * x, height, data, fontsize=7, ha="right", va="center")
        right.set_title("k-means, each data set (mean over splits)", fontsize=10)
        for ax in (left, right):
            ax.axhspan(-SMALL, SMALL, color="0.9", zorder=0)
            ax.axhline(0, color="0.5", linewidth=0.8, zorder=1)
            ax.set(xscale="log", xlabel="part of the training rows")
            ax.set_xticks(percents, labels=[f"{percent} %" for percent in percents])
            ax.minorticks_off()
            ax.set_xlim(percents[0] * (0.4 if ax is right else 0.8), percents[-1] * 1.25)
        left.set_ylabel("average precision\nless that without virtual examples")
        figure.savefig(path, metadata={"Date": None, "Description": description})


def draw() -> None:
    """Draw the figure of the page."""
    plot(gather(stored_rows(ROWS)), FIGURE, digest(ROWS))
