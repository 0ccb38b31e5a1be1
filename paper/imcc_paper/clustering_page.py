"""Write docs/does_clustering_help.md and its figure from results/clustering.csv.

    python -m imcc_paper.clustering_page            write both
    python -m imcc_paper.clustering_page --check    fail if they are not what the rows give

Nothing is trained; the rows come from ``python -m imcc_paper.clustering``.  ``make -C paper`` does
this, too.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from imcc.comparison import holm, wilcoxon_p
from imcc.datasets import list_datasets
from imcc_paper.clustering import (
    BETAS,
    MIN_ROWS,
    STANDARDIZED,
    WEIGHTS,
    Run,
    finished,
    run_of,
    stored_rows,
)
from imcc_paper.places import DOCS, RESULTS
from imcc_paper.reproduction.per_set import interval
from imcc_paper.reproduction.rows import listed

ROWS = RESULTS / "clustering.csv"
PAGE = DOCS / "does_clustering_help.md"
FIGURE = DOCS / "images" / "does_clustering_help.svg"
# A difference in average precision that is not worth a search.
SMALL = 0.005
# Parts of the rows with fewer data sets are left out: they say nothing over data sets.
MIN_SETS = 5
# Values are equal if they differ by rounding.
DECIMALS = 9
#: Differences whose chance of being found is said.
FOUND = (0.005, 0.002)
#: The parts of the rows that are few.
FEW = (5, 10, 20)
#: The comparisons of the page: what, less what; the answer is made of the first two.
PAIRS = {
    "k-means less none": ("kmeans", "none"),
    "k-means less random clusters": ("kmeans", "random"),
    "random clusters less none": ("random", "none"),
    "alpha alone less none": ("kmeans_alpha", "none"),
    "gamma alone less none": ("kmeans_gamma", "none"),
}
METRIC = "average_precision"

# The rows of one width: {percent: {data: {split: {variant: row}}}}.
Table = dict[int, dict[str, dict[int, dict[str, Mapping[str, Any]]]]]


def gather(rows: Sequence[Mapping[str, Any]], width: str = "paper") -> Table:
    """Arrange the rows of finished runs; parts of the rows with few data sets are left out."""
    whole = finished(rows)
    found: Table = {}
    order = {name: k for k, name in enumerate((*list_datasets("paper"), *list_datasets("outside")))}
    for row in sorted(rows, key=lambda row: (row["percent"], order.get(row["data"], len(order)))):
        if row["width"] == width and run_of(row) in whole:
            of_set = found.setdefault(row["percent"], {}).setdefault(row["data"], {})
            of_set.setdefault(row["split"], {})[row["variant"]] = row
    return {percent: sets for percent, sets in found.items() if len(sets) >= MIN_SETS}


def differences(
    splits: Mapping[int, Mapping[str, Mapping[str, Any]]],
    pair: tuple[str, str],
    metric: str = METRIC,
) -> np.ndarray:
    """Return the differences of two variants on the splits of one data set."""
    first, second = pair
    return np.array(
        [found[first][metric] - found[second][metric] for _, found in sorted(splits.items())]
    )


def half_width(values: np.ndarray) -> float:
    """Return half of the 95 % interval of a mean (Student's t); NaN for one or two values."""
    n = len(values)
    if n < 3:  # with one degree of freedom, it is 9 standard deviations
        return float("nan")
    return float(student.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))


@dataclass(frozen=True)
class Effect:
    """One comparison over data sets, in average precision.

    Attributes
    ----------
    differences : dict of str to float
        For each data set the mean over its splits.
    p : float
        Of Wilcoxon's signed-rank test.
    holm_p : float
        Adjusted for the tests of its table.
    """

    differences: dict[str, float]
    p: float
    holm_p: float = float("nan")

    @property
    def values(self) -> np.ndarray:
        """The differences, rounded."""
        return np.round(list(self.differences.values()), DECIMALS)

    @property
    def mean(self) -> float:
        """Mean over data sets."""
        return float(self.values.mean())

    @property
    def half(self) -> float:
        """Half of its 95 % interval."""
        return half_width(self.values)

    @property
    def counts(self) -> str:
        """On how many data sets the first is better and worse, in words."""
        better, worse = int((self.values > 0).sum()), int((self.values < 0).sum())
        return f"better on {better}, worse on {worse} of {len(self.values)} data sets"


def effect_of(means: dict[str, float]) -> Effect:
    """Return the effect that differences by data set are."""
    return Effect(means, wilcoxon_p(np.round(list(means.values()), DECIMALS)))


def effects(table: Table, pairs: Mapping[str, tuple[str, str]]) -> dict[tuple[int, str], Effect]:
    """Return the effects of all pairs with all parts of the rows, adjusted for their number."""
    found = {
        (percent, name): effect_of(
            {data: float(differences(splits, pair).mean()) for data, splits in sets.items()}
        )
        for percent, sets in table.items()
        for name, pair in pairs.items()
    }
    adjusted = holm([effect.p for effect in found.values()])
    return {
        key: Effect(effect.differences, effect.p, float(p))
        for (key, effect), p in zip(found.items(), adjusted, strict=True)
    }


def with_few_rows(table: Table) -> Effect | None:
    """Return k-means less none, of each data set the mean over the parts that are few."""
    means: dict[str, list[float]] = {}
    for percent in FEW:
        for data, splits in table.get(percent, {}).items():
            change = differences(splits, PAIRS["k-means less none"]).mean()
            means.setdefault(data, []).append(float(change))
    return effect_of({data: float(np.mean(v)) for data, v in means.items()}) if means else None


def power(values: np.ndarray, difference: float, n_draws: int = 2000) -> float:
    """Return how often a mean difference would be found at 5 %, by Wilcoxon's test.

    Samples of as many data sets are drawn from the values, shifted so that their mean is the
    difference.
    """
    rng = np.random.default_rng(0)
    shifted = values - values.mean() + difference
    draws = rng.choice(shifted, size=(n_draws, len(values)))
    return float(np.mean([wilcoxon_p(draw) < 0.05 for draw in draws]))


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, the first column left and the others right."""
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def signed(value: float, digits: int = 4) -> str:
    """Return a number with its sign, which zero has not."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def with_interval(mean: float, half: float, digits: int = 4) -> str:
    """Return a mean with half of its interval, if it has one."""
    text = signed(mean, digits)
    return text if np.isnan(half) else f"{text} ± {half:.{digits}f}"


def over_splits(change: np.ndarray) -> str:
    """Return the mean of differences on the splits of a data set, with its interval if it has one.

    The splits share rows: see :func:`imcc_paper.reproduction.per_set.interval`, with the sizes of
    the whole split for all parts of its training rows.
    """
    half = interval(change)[1] if len(change) >= 3 else float("nan")
    return with_interval(change.mean(), half)


def p_text(p: float) -> str:
    """Return a p value with two digits that count."""
    return "1" if p > 0.995 else f"{p:.2g}" if p >= 0.001 else "< 0.001"


def by_data(table: Table) -> str:
    """Return the differences of all data sets and parts of the rows in average precision."""
    largest = max(table)
    names = list(dict.fromkeys(data for percent in sorted(table)[::-1] for data in table[percent]))
    rows = []
    for data in names:
        cells = [data, "", ""]
        if data in table[largest]:
            runs = [found["none"] for found in table[largest][data].values()]
            none = np.mean([row[METRIC] for row in runs])
            cells[1:] = [str(runs[0]["n_train"]), f"{none:.4f}"]
        for sets in table.values():
            if data not in sets:
                cells.append("not run")
                continue
            cells.append(over_splits(differences(sets[data], PAIRS["k-means less none"])))
        rows.append(cells)
    header = ["", "training rows", "none, all rows", *(f"{percent} %" for percent in table)]
    return markdown(header, rows)


def effect_table(table: Table) -> str:
    """Return the effects of all pairs, the parts of the rows in a line; significant ones bold."""
    found = effects(table, PAIRS)
    rows = []
    for name in PAIRS:
        cells = [name]
        for percent in table:
            effect = found[percent, name]
            text = with_interval(effect.mean, effect.half)
            cells.append(f"**{text}**" if effect.holm_p < 0.05 else text)
        rows.append(cells)
    return markdown(["", *(f"{percent} %" for percent in table)], rows)


def answer(table: Table) -> Iterator[str]:
    """Yield the plain answer."""
    largest = max(table)
    found = effects({largest: table[largest]}, PAIRS)
    main, random = (found[largest, name] for name in list(PAIRS)[:2])
    if main.p >= 0.05:
        short = "**No: not in a way that can be seen on these data.**"
    elif main.mean < 0:
        short = "**No: it does harm.**"
    elif random.p < 0.05 and random.mean > 0:
        short = "**Yes.**"
    else:
        short = "**Yes, but random clusters do as well: it is not the clustering.**"
    large, small = FOUND
    chances = [f"{power(main.values, difference):.2f}" for difference in FOUND]
    text = (
        f"{short} With {largest} % of the training rows, searching alpha, gamma and the number of "
        "clusters of IMCC, instead of leaving the virtual examples out (kernel ridge regression), "
        f"changes average precision by {with_interval(main.mean, main.half)} ({main.counts}; p "
        f"{p_text(main.p)}). The test would find a mean difference of {large} with a "
        f"probability of {chances[0]}, and one of {small} with {chances[1]}."
    )
    few = with_few_rows(table)
    if few is not None:
        if few.p >= 0.05:
            sense = "With few rows, no difference can be seen either"
        elif abs(few.mean) > few.half:
            sense = "**With few rows, it " + ("does harm**" if few.mean < 0 else "helps**")
        else:  # the test sees most data sets, the interval of the mean a few large differences
            way = "worse" if np.median(few.values) < 0 else "better"
            sense = f"**With few rows, it is {way} on most data sets**"
        parts = [percent for percent in FEW if percent in table]
        text += (
            f" {sense}: with {min(parts)} to {max(parts)} % of the training rows, the mean "
            f"difference is {with_interval(few.mean, few.half)} ({few.counts}; p {p_text(few.p)})."
        )
    yield prose(text)


def gain(table: Table, percent: int, variant: str, metric: str) -> str:
    """Return the mean difference of a variant to none, over data sets."""
    sets = table[percent].values()
    values = [differences(splits, (variant, "none"), metric).mean() for splits in sets]
    return signed(float(np.mean(values)))


def digest(path: Path = ROWS) -> str:
    """Return what the figure says of the rows it was drawn from."""
    return "sha256 of the rows: " + hashlib.sha256(path.read_bytes()).hexdigest()


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


def plot(table: Table, path: Path, description: str) -> None:
    """Draw the gain against the part of the rows: means, and each data set."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "imcc"}):
        figure = Figure(figsize=(9.5, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=False)
        percents = sorted(table)
        looks = {"kmeans": ("k-means", "o"), "random": ("random clusters", "s")}
        for k, (variant, (label, mark)) in enumerate(looks.items()):
            found = effects(table, {variant: (variant, "none")})
            points = [found[percent, variant] for percent in percents]
            left.errorbar(
                np.array(percents) * (1 + 0.05 * (k - 1)),
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
        found = effects(table, {"": ("kmeans", "none")})
        named: dict[str, tuple[float, float]] = {}
        for data in sorted({data for sets in table.values() for data in sets}):
            line = [(p, found[p, ""].differences.get(data)) for p in percents]
            line = [(p, value) for p, value in line if value is not None]
            right.plot(*zip(*line, strict=True), color="0.45", linewidth=0.8, marker=".")
            if abs(line[0][1]) > 2 * SMALL:
                named[data] = line[0]
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
        metadata = {"Date": None, "Description": description}
        figure.savefig(path, metadata=metadata if path.suffix == ".svg" else None, dpi=120)


def prose(text: str) -> str:
    """Return a paragraph, or items that begin with a star, in lines of up to 100 characters."""
    items = re.split(r"\n\s*(?=\* )", text.strip())
    filled = [
        textwrap.fill(
            " ".join(item.split()),
            100,
            subsequent_indent="  " if item.startswith("* ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for item in items
    ]
    return "\n".join(filled) + "\n"


INTRODUCTION = """
IMCC adds virtual examples to kernel ridge regression: the centres of clusters of the training rows,
with the mean labels of their members as soft labels. `alpha` weighs their loss, `gamma` the pull of
each row's output towards that of its centre; with `alpha = gamma = 0`, kernel ridge regression is
left. What do they bring?
"""
TABLE = """
Differences in average precision, means over {n_sets} data sets of the means over the splits that
were run ({splits}), with 95 % intervals over data sets (Student's t). Differences with a p below
5 % by Wilcoxon's signed-rank test over data sets, with Holm's adjustment for all tests of the
table, are in bold. alpha alone is the virtual examples' loss without the pull (gamma = 0), gamma
alone the pull without the loss. Random clusters are those of k-means with the rows permuted: same
number, same sizes.
"""
BY_DATA = """
k-means less none; where there are three splits, ± is half of the 95 % interval over them, which
allows for splits that share training rows (Nadeau and Bengio's variance). "not run" where the part
has less than {min_rows} rows, or is still to be computed. The band in the figure is ±{small}.
"""
NOT_CLAIMED = """
* That clusters cannot help by less than the test can find, or on other kinds of data. The
differences of single data sets are within the noise of their few splits.
* That the search sees it. In the folds, where settings are chosen, k-means gains {kmeans} and
random clusters {random} ({largest} % of the rows): the best of 3234 settings looks better than the
best of 11, whatever they mean. The differences above are those on test rows.
* That it is the same for other kernels, widths and metrics: the kernel is rbf with the paper's
width, and settings are chosen by average precision.
"""
DETAILS = """
* `python -m imcc_paper.clustering -o results/clustering.csv`, in the folder `paper`, computes the
rows, and says in its first lines what each variant is.
* Splits are the first repetitions of `paper_splits` (80 % for training). Smaller parts are the
first of one random order of the training rows, so each contains the smaller ones; parts of less
than {min_rows} rows are left out. The test rows are the same for all parts.
* All variants are searched on the same five shuffled folds of the training rows, with the same
kernel, width and values of beta; the chosen setting is fitted on all training rows. alpha and
gamma: 1e-3, 1e-2, ..., 1e3; beta: 1e-5, 1e-4, ..., 1e5; 8, 16, ..., 256 clusters. A large alpha
acts as a smaller beta, so that beta must not end where ridge regression still gains. The runs on a
GPU are older and have beta from 1e-3 to 1e3. Of all {n_runs} runs, ridge regression chose an end of
its values in {n_ends}{ends}.
* The columns of {scaled} have very different ranges and are standardized by the training rows.
* Where more clusters are asked for than a fold has rows, each row is a cluster; alpha then does
nothing but divide beta by 1 + alpha.
* The power is that of the test at 5 %, from 2,000 samples of as many data sets, drawn with
replacement from the differences of the table, shifted to the mean difference in question.
* No choice of this study was made on these splits. Computed on: {devices}.
"""


def run_splits(table: Table) -> str:
    """Return in words how many splits the data sets have, with each part of the rows."""
    parts = []
    for percent, sets in table.items():
        counts = sorted({len(found) for found in sets.values()})
        text = " to ".join(str(count) for count in dict.fromkeys([counts[0], counts[-1]]))
        parts.append(f"{text} with {percent} %")
    return ", ".join(parts)


def at_the_ends(rows: Sequence[Mapping[str, Any]]) -> list[Run]:
    """Return the runs whose rows, of ridge regression, have an end of the values of beta."""
    # The runs on a GPU are those of an earlier program, which had the values of alpha and gamma.
    ends = {True: (BETAS[0], BETAS[-1]), False: (WEIGHTS[0], WEIGHTS[-1])}
    return [run_of(row) for row in rows if row["beta"] in ends[row["device"] == "cpu"]]


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the page."""
    table = gather(rows)
    n_sets = len({data for sets in table.values() for data in sets})
    largest = max(table)
    ridge = [
        found["none"]
        for sets in table.values()
        for splits in sets.values()
        for found in splits.values()
    ]
    ends = at_the_ends(ridge)
    of_sets = f" (of {listed(dict.fromkeys(run.data for run in ends))})" if ends else ""
    parts = [
        "# Does clustering help?\n",
        "<!-- Written by paper/imcc_paper/clustering_page.py (make -C paper); do not edit. -->\n",
        prose(INTRODUCTION),
        *answer(table),
        prose(TABLE.format(n_sets=n_sets, splits=run_splits(table))),
        effect_table(table) + "\n",
        "![Gain in average precision against the part of the training rows]"
        "(images/does_clustering_help.svg)\n",
        "## What is not claimed\n",
        prose(
            NOT_CLAIMED.format(
                largest=largest,
                **{v: gain(table, largest, v, "cv_score") for v in ("kmeans", "random")},
            )
        ),
        "## By data set\n",
        prose(BY_DATA.format(min_rows=MIN_ROWS, small=SMALL)),
        by_data(table) + "\n",
        "## How it was measured\n",
        prose(
            DETAILS.format(
                min_rows=MIN_ROWS,
                n_runs=len(ridge),
                n_ends=len(ends),
                ends=of_sets,
                scaled=listed(STANDARDIZED),
                devices=listed(sorted({row["device"] for row in rows})),
            )
        ),
    ]
    return "\n".join(parts).rstrip() + "\n"


def write() -> None:
    """Write the page and the figure."""
    rows = stored_rows(ROWS)
    PAGE.write_text(page(rows), "utf-8")
    plot(gather(rows), FIGURE, digest())
    print(f"wrote {PAGE} and {FIGURE}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args(arguments).check:
        write()
        return
    if PAGE.read_text("utf-8") != page(stored_rows(ROWS)):
        sys.exit(f"{PAGE} is not what the rows give: run make -C paper")
    if digest() not in FIGURE.read_text("utf-8"):
        sys.exit(f"{FIGURE} is not drawn from the rows: run make -C paper")


if __name__ == "__main__":
    main()
