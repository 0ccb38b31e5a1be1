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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from imcc.comparison import holm, wilcoxon_p
from imcc.datasets import list_datasets
from imcc.metrics import METRICS
from imcc_paper.clustering import MIN_ROWS, finished, run_of, stored_rows
from imcc_paper.places import DOCS, RESULTS
from imcc_paper.reproduction.per_set import interval

ROWS = RESULTS / "clustering.csv"
PAGE = DOCS / "does_clustering_help.md"
FIGURE = DOCS / "images" / "does_clustering_help.svg"
# A difference in average precision that is not worth a search.
SMALL = 0.005
# Parts of the rows with fewer data sets are left out: they say nothing over data sets.
MIN_SETS = 5
# Values are equal if they differ by rounding.
DECIMALS = 9
TITLES = {"average_precision": "average precision", "ranking_loss": "ranking loss"}
#: The comparisons the answer is made of: what, less what.
MAIN = {
    "k-means less none": ("kmeans", "none"),
    "k-means less random clusters": ("kmeans", "random"),
}
#: Those that say which part of the method does what.
PARTS = {
    "alpha alone less none": ("kmeans_alpha", "none"),
    "gamma alone less none": ("kmeans_gamma", "none"),
    "zero weights allowed, less none": ("kmeans_or_none", "none"),
    "random clusters less none": ("random", "none"),
    "alpha alone: k-means less random clusters": ("kmeans_alpha", "random_alpha"),
    "gamma alone: k-means less random clusters": ("kmeans_gamma", "random_gamma"),
}

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
    splits: Mapping[int, Mapping[str, Mapping[str, Any]]], pair: tuple[str, str], metric: str
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
    """One comparison over data sets.

    Attributes
    ----------
    differences : dict of str to float
        For each data set the mean over its splits.
    greater_is_better : bool
    p : float
        Of Wilcoxon's signed-rank test.
    holm_p : float
        Adjusted for the tests of its table.
    """

    differences: dict[str, float]
    greater_is_better: bool
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
    def wins(self) -> tuple[int, int, int]:
        """On how many data sets the first is better, equal, worse."""
        signs = np.sign(self.values) * (1 if self.greater_is_better else -1)
        return int((signs > 0).sum()), int((signs == 0).sum()), int((signs < 0).sum())

    @property
    def significant(self) -> bool:
        """Whether the adjusted p is below 5 %."""
        return self.holm_p < 0.05

    @property
    def better(self) -> bool:
        """Whether the mean is in favour of the first."""
        return (self.mean > 0) == self.greater_is_better and self.mean != 0

    @property
    def small(self) -> bool:
        """Whether the whole interval is within differences that are not worth a search."""
        return abs(self.mean) + self.half < SMALL


def effects(
    table: Table, pairs: Mapping[str, tuple[str, str]], metric: str
) -> dict[tuple[int, str], Effect]:
    """Return the effects of all pairs with all parts of the rows, adjusted for their number."""
    better = METRICS[metric].greater_is_better
    found = {}
    for percent, sets in table.items():
        for name, pair in pairs.items():
            means = {
                data: float(differences(splits, pair, metric).mean())
                for data, splits in sets.items()
            }
            p = wilcoxon_p(np.round(list(means.values()), DECIMALS))
            found[percent, name] = Effect(means, better, p)
    adjusted = holm([effect.p for effect in found.values()])
    return {
        key: Effect(effect.differences, better, effect.p, float(p))
        for (key, effect), p in zip(found.items(), adjusted, strict=True)
    }


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


def by_data(table: Table, percent: int) -> str:
    """Return the table of data sets with one part of the rows."""
    rows = []
    shown = {"average_precision": list(MAIN), "ranking_loss": list(MAIN)[:1]}
    for data, splits in table[percent].items():
        first = splits[min(splits)]["none"]
        cells = [data, str(first["n_train"]), str(first["n_labels"]), str(len(splits))]
        for metric, pairs in shown.items():
            none = np.mean([found["none"][metric] for found in splits.values()])
            cells.append(f"{none:.4f}")
            cells += [over_splits(differences(splits, MAIN[pair], metric)) for pair in pairs]
        rows.append(cells)
    header = ["", "training rows", "labels", "splits"]
    for metric, pairs in shown.items():
        header += [f"{TITLES[metric]}, none", *pairs]
    return markdown(header, rows)


def by_part(table: Table) -> str:
    """Return the differences of all data sets and parts of the rows in average precision."""
    names = list(dict.fromkeys(data for percent in sorted(table)[::-1] for data in table[percent]))
    rows = []
    for data in names:
        cells = [data]
        for sets in table.values():
            if data not in sets:
                cells.append("not run")
                continue
            change = differences(sets[data], MAIN["k-means less none"], "average_precision")
            cells.append(over_splits(change))
        rows.append(cells)
    return markdown(["k-means less none", *(f"{percent} %" for percent in table)], rows)


def effect_table(table: Table, pairs: Mapping[str, tuple[str, str]], metric: str) -> str:
    """Return the effects of pairs with their tests, one per line."""
    found = effects(table, pairs, metric)
    rows = []
    for name in pairs:
        for percent in table:
            effect = found[percent, name]
            p = p_text(effect.holm_p)
            rows.append(
                [
                    name,
                    f"{percent} %",
                    str(len(effect.values)),
                    with_interval(effect.mean, effect.half),
                    " / ".join(str(count) for count in effect.wins),
                    p_text(effect.p),
                    f"**{p}**" if effect.significant else p,
                ]
            )
    header = ["", "rows", "data sets", "mean difference", "better / equal / worse", "p", "Holm p"]
    return markdown(header, rows)


def short_table(table: Table, pairs: Mapping[str, tuple[str, str]], metric: str) -> str:
    """Return the effects of pairs, all parts of the rows in a line; significant ones in bold."""
    found = effects(table, pairs, metric)
    rows = []
    for name in pairs:
        cells = [name]
        for percent in table:
            effect = found[percent, name]
            text = with_interval(effect.mean, effect.half)
            cells.append(f"**{text}**" if effect.significant else text)
        rows.append(cells)
    return markdown(["", *(f"{percent} %" for percent in table)], rows)


def both_metrics(
    make: Callable[[Table, Mapping[str, tuple[str, str]], str], str],
    table: Table,
    pairs: Mapping[str, tuple[str, str]],
) -> Iterator[str]:
    """Yield a table of effects for each metric."""
    for metric, title in TITLES.items():
        way = "positive is better" if METRICS[metric].greater_is_better else "negative is better"
        yield f"**{title.capitalize()}** ({way})\n"
        yield make(table, pairs, metric) + "\n"


def verdict(effect: Effect) -> str:
    """Return an effect in words."""
    better, _, worse = effect.wins
    size = with_interval(effect.mean, effect.half)
    counts = f"better on {better}, worse on {worse} of {len(effect.values)} data sets"
    if effect.significant:
        sense = "significantly better" if effect.better else "significantly worse"
    elif effect.small:
        sense = f"not significantly different, and the interval is within ±{SMALL}"
    else:
        sense = "not significantly different"
    return f"{size} ({counts}; Holm p {p_text(effect.holm_p)}: {sense})"


def answer(table: Table) -> Iterator[str]:
    """Yield the plain answer."""
    found = effects(table, MAIN, "average_precision")
    largest = max(table)
    names = list(MAIN)
    main, against_random = (found[largest, name] for name in names)
    if main.significant and main.better:
        short = "**Yes" + ("" if against_random.significant and against_random.better else ", but")
        if short.endswith("but"):
            short += " random clusters do as well: it is not the clustering"
        short += ".**"
    elif main.significant:
        short = "**No: it does harm.**"
    else:
        short = "**No: not in a way that can be seen on these data.**"
    yield prose(
        f"{short} With {largest} % of the training rows, searching alpha, gamma and the number of "
        "clusters of IMCC, instead of leaving the virtual examples out (kernel ridge regression), "
        f"changes average precision by {verdict(main)}."
    )
    lines = []
    few = [percent for percent in sorted(table) if percent != largest]
    if few:
        parts = "; ".join(f"{percent} %: {verdict(found[percent, names[0]])}" for percent in few)
        lines.append(f"* **With fewer rows**, the same difference is: {parts}.")
    lines.append(
        f"* **k-means against random clusters** of the same sizes, {largest} % of the rows: "
        f"{verdict(against_random)}."
    )
    folds = (gain(table, largest, name, "cv_score") for name in ("kmeans", "random"))
    lines.append(
        f"* **In the folds**, where settings are chosen, k-means seems to gain {next(folds)}; "
        f"random clusters {next(folds)} ({largest} % of the rows). The best of 2058 settings looks "
        "better than the best of 7, whatever they mean; the differences above are those on test "
        "rows."
    )
    yield prose("\n".join(lines))


def gain(table: Table, percent: int, variant: str, metric: str) -> str:
    """Return the mean difference of a variant to none, over data sets."""
    sets = table[percent].values()
    values = [differences(splits, (variant, "none"), metric).mean() for splits in sets]
    return signed(float(np.mean(values)))


def in_the_folds(table: Table) -> Iterator[str]:
    """Yield what the search believes to gain, beside what it gains."""
    rows = []
    for percent, sets in table.items():
        cells = [f"{percent} %"]
        for variant in ("kmeans", "random"):
            cells += [gain(table, percent, variant, m) for m in ("cv_score", "average_precision")]
        chosen = [f["kmeans_or_none"] for splits in sets.values() for f in splits.values()]
        zero = np.mean([row["alpha"] == row["gamma"] == 0 for row in chosen])
        cells.append(f"{100 * zero:.0f} %")
        rows.append(cells)
    header = ["rows"]
    for name in ("k-means", "random"):
        header += [f"{name}: in the folds", f"{name}: on the test rows"]
    yield markdown([*header, "alpha = gamma = 0 chosen"], rows) + "\n"


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
            found = effects(table, {variant: (variant, "none")}, "average_precision")
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
        found = effects(table, {"": ("kmeans", "none")}, "average_precision")
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
SUMMED_UP = """
Means over {n_sets} data sets of the means over the splits that were run ({splits}), with 95 %
intervals over data sets (Student's t). [How it was measured](#how-it-was-measured) is said below.
"""
STILL_TO_RUN = """
**These are first rows: those with all training rows are still to be computed.**
"""
BY_DATA = """
IMCC with the paper's grid (k-means) less kernel ridge regression (none), on the same test rows.
Where there are at least three splits, ± is half of the 95 % interval over them, which allows for
splits that share training rows (Nadeau and Bengio's variance); fewer splits have none.
"""
FEWER = """
The shaded band is ±{small}. p is that of Wilcoxon's signed-rank test over data sets; Holm's
adjustment is for all tests of a table, and below 5 % it is in bold.
"""
WHICH = """
alpha alone is the virtual examples' loss without the pull (gamma = 0), gamma alone the pull without
the loss. Mean differences over data sets with 95 %
intervals; those with a Holm p below 5 %, within their table, are in bold.
"""
FOLDS = """
The paper's grid has 2058 settings where kernel ridge regression has 7, so the best score in the
folds is higher whether or not the virtual examples mean anything; random clusters show how much of
that is chance. Mean differences to none in average precision; the last
column is how often a search that may set both weights to zero does so.
"""
MEASURED = """
`python -m imcc_paper.clustering -o results/clustering.csv`, in the folder `paper`, computes the
rows, and says in its first lines what each variant is; this page and the figure are written from
them by `make -C paper`.
"""
DETAILS = """
* Splits are the first repetitions of `paper_splits` (80 % for training). Smaller parts are the
first of one random order of the training rows, so each contains the smaller ones; parts of less
than {min_rows} rows are left out, and those that fewer than {min_sets} data sets have. The test
rows are the same for all parts.
* All variants are searched on the same five shuffled folds of the training rows, with the same
kernel (rbf), width and values of beta, by average precision; the chosen setting is fitted on all
training rows. alpha, beta and gamma: 1e-3, 1e-2, ..., 1e3; 8, 16, ..., 256 clusters.
* Random clusters are those of k-means with the rows permuted: same number, same sizes. They are
drawn anew in each fold and for the last fit.
* Where more clusters are asked for than a fold has rows, each row is a cluster; alpha then does
nothing but divide beta by 1 + alpha. With 5 % of the rows of the smallest data sets, that are
four or five of the six numbers of clusters.
* No choice of this study was made on these splits.
* Computed on: {devices}. k-means on a GPU draws other random numbers than on a CPU, see
[](gpu.md).
"""


def run_splits(table: Table) -> str:
    """Return in words how many splits the data sets have, with each part of the rows."""
    parts = []
    for percent, sets in table.items():
        counts = sorted({len(found) for found in sets.values()})
        text = " to ".join(str(count) for count in dict.fromkeys([counts[0], counts[-1]]))
        parts.append(f"{text} with {percent} %")
    return ", ".join(parts)


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the page."""
    table = gather(rows)
    by_name = [found for sets in table.values() for found in sets.items()]
    n_sets = len({data for data, _ in by_name})
    devices = ", ".join(sorted({row["device"] for row in rows}))
    largest = max(table)
    parts = [
        "# Does clustering help?\n",
        "<!-- Written by paper/imcc_paper/clustering_page.py (make -C paper); do not edit. -->\n",
        prose(INTRODUCTION),
        *answer(table),
        prose(
            SUMMED_UP.format(n_sets=n_sets, splits=run_splits(table))
            + ("" if largest == 100 else STILL_TO_RUN)
        ),
        f"## By data set, {largest} % of the training rows\n",
        prose(BY_DATA),
        by_data(table, largest) + "\n",
        "## With fewer rows, and against random clusters\n",
        "![Gain in average precision against the part of the training rows]"
        "(images/does_clustering_help.svg)\n",
        prose(FEWER.format(small=SMALL)),
        *both_metrics(effect_table, table, MAIN),
        prose(
            "Average precision by data set (with 95 % intervals where there are three splits); "
            f'"not run" where the part has less than {MIN_ROWS} rows:'
        ),
        by_part(table) + "\n",
        "## Which part does what\n",
        prose(WHICH),
        *both_metrics(short_table, table, PARTS),
        "## What the search believes\n",
        prose(FOLDS),
        *in_the_folds(table),
    ]
    wide = gather(rows, "searched")
    if wide:
        parts += [
            "## With the width searched\n",
            "All variants with 1/4, 1/2, 1 and 2 times the paper's width.\n",
            *both_metrics(effect_table, wide, MAIN),
        ]
    parts += [
        "(how-it-was-measured)=\n\n## How it was measured\n",
        prose(MEASURED),
        prose(DETAILS.format(min_rows=MIN_ROWS, min_sets=MIN_SETS, devices=devices)),
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
