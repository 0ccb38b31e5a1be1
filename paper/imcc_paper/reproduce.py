"""Rebuild the page docs/reproduction.md from the committed rows: ``make -C paper``.

    python -m imcc_paper.reproduce            write the page, its figures and the marked blocks
    python -m imcc_paper.reproduce --check    fail if they are not what the rows give

Nothing is trained: every number comes from ``results/*.csv``.  The blocks between
``<!-- make reproduce: NAME -->`` and ``<!-- end -->`` in README.md, results/README.md and pages of
docs/ are written with it: tables and paragraphs between lines, single numbers inside of a line.
``make -C paper full`` computes the rows (``imcc_paper.reproduce_full``); the scripts in
``MEASURED`` measure times and other numbers that pages show.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imcc.comparison import ScoreTable
from imcc.experiment import Store
from imcc.metrics import METRICS
from imcc.report import draw_time
from imcc_paper import (
    approximation,
    baselines,
    boosted,
    busy_machine,
    calibration,
    classifier,
    clustering_page,
    ensemble_speed,
    gpu,
    guarantees,
    label_issues,
    looking,
    scale,
    serving,
    slow_machines,
)
from imcc_paper._measured import Measurements
from imcc_paper.places import DOCS, RESULTS, ROOT
from imcc_paper.reproduction import (
    behind,
    calibrated,
    cost,
    failing,
    labels,
    paper,
    per_set,
    recipes,
    short,
    tests,
)
from imcc_paper.reproduction.ranked import differences
from imcc_paper.reproduction.rows import (
    CONTROL,
    TITLES,
    listed,
    means_table,
    opened,
    present,
    prose,
    table,
)

PAGE = DOCS / "reproduction.md"
IMAGES = DOCS / "images" / "reproduction"
CALIBRATION = RESULTS / "calibration.csv"
#: The files of paper/results/ with measured numbers, and the scripts that write them.
MEASURED = {
    "speed": classifier,
    "approximation": approximation,
    "scale": scale,
    "gpu": gpu,
    "looking": looking,
    "label_issues": label_issues,
    "baselines": baselines,
    "slow_machines": slow_machines,
    "busy_machine": busy_machine,
    "boosted": boosted,
    "serving": serving,
    "ensemble_speed": ensemble_speed,
}
#: The pages whose numbers are measured.
MEASURED_PAGES = tuple(
    DOCS / f"{name}.md"
    for name in (
        *("performance", "scale", "gpu", "looking_into_a_model", "baselines"),
        "saving_and_serving",
    )
)
MARKED = (
    ROOT / "README.md",
    RESULTS / "README.md",
    DOCS / "index.md",
    DOCS / "ensemble.md",
    DOCS / "probabilities.md",
    DOCS / "rare_labels.md",
    *MEASURED_PAGES,
)
_BLOCK = re.compile(r"(<!-- make reproduce: ([\w-]+) -->\n?)(.*?)(\n?<!-- end -->)", re.S)
# The README shows these, in this order.
_SHOWN = (
    "logistic",
    "lightgbm",
    "xgboost",
    "extra_trees",
    "brsvm",
    "kernel_ridge",
    "kernel_ridge_calibrated",
    "imcc",
)


@dataclass
class Built:
    """What the rows give.

    Attributes
    ----------
    page : str
        The text of docs/reproduction.md.
    figures : dict of str to Picture
        By the name of the file.
    blocks : dict of str to str
        The texts of the marked blocks.
    """

    page: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    blocks: dict[str, str] = field(default_factory=dict)


def section(store: Store, built: Built) -> Iterator[str]:
    """Yield the tables, ranks and tests of one experiment; its figures are added to the rest."""
    name = store.experiment.name
    tables = {metric: present(store.scores(metric)) for metric in METRICS}
    compared = tests.compare_complete(tables)
    for metric, scores in tables.items():
        better = "larger" if scores.greater_is_better else "smaller"
        yield f"### {TITLES[metric]} ({better} is better)\n"
        yield means_table(scores, compared.get(metric)) + "\n"
    yield "### Ranks and tests\n"
    yield from tests.ranks(tables, compared)
    drawn = dict(tests.figures(compared, name))
    built.figures |= drawn
    if drawn:
        yield "\n" + prose(
            "Critical-difference diagrams: average ranks, 1 is best; methods joined by a bar are "
            "not significantly different by Nemenyi's test."
        )
        for (metric, _), (file, picture) in zip(compared.items(), drawn.items(), strict=True):
            yield f"**{TITLES[metric]}**\n\n![{picture.description}](images/reproduction/{file})\n"
    yield f"\n### Where `{CONTROL}` is not first\n"
    yield from behind.cells(tables, compared)
    if name == "paper":
        yield from behind.rare_labels()
    yield f"\n### `{CONTROL}` against each\n"
    yield from tests.against(tables, CONTROL, detailed=list(METRICS))
    yield "\n### By data set\n"
    shown = {metric: tables[metric] for metric in ("average_precision", "ranking_loss")}
    yield from per_set.by_data_set(shown, CONTROL, ("kernel_ridge", "kernel_ridge_calibrated"))
    yield "\n### The first recipe of the ensemble\n"
    yield from recipes.beside(tables)
    yield "\n### `imcc` against each\n"
    yield from tests.against(tables, "imcc", detailed=["average_precision"])


def costs(store: Store, built: Built) -> Iterator[str]:
    """Yield the section about time."""
    compared = tests.compare_complete(
        {"average_precision": present(store.scores("average_precision"))}
    ).get("average_precision")
    yield from cost.costs(store, compared)
    if compared is not None:
        picture = draw_time(compared, store.runs(), reference=cost.REFERENCE)
        built.figures["cost.svg"] = picture
        yield "\n" + prose(
            "The same as a picture, for the methods that are ranked together: left is fast, up is "
            "good. Circles are times on a CPU, squares on a GPU; open ones are over fewer data "
            "sets, whose number is given."
        )
        yield f"![{picture.description}](images/reproduction/cost.svg)\n"
    yield ""
    yield from cost.growth(store)


def build() -> Built:
    """Return the page, its figures and the marked blocks."""
    built = Built()
    parts = [
        "# Reproduction\n",
        "<!-- Written by paper/imcc_paper/reproduce.py (make -C paper); do not edit. -->\n",
        prose(
            "Every number on this page is computed from the rows in `paper/results/` by `make -C "
            "paper`, in about a minute and without training anything. `make -C paper full` "
            "computes the rows. The "
            'reports of these rows, <a href="reports/paper.html">of the paper\'s data sets</a> and '
            '<a href="reports/outside.html">of five others</a> ([](report.md)), are built with '
            "this documentation: they have every data set, setting and time."
        ),
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with opened(folder, "paper") as store, opened(folder, "outside") as outside:
            tables = {metric: present(store.scores(metric)) for metric in METRICS}
            parts.append("## In short\n")
            parts += short.short(store, tables, tests.compare_complete(tables))
            parts.append("## The paper's fifteen data sets\n")
            parts.append(
                prose(
                    'Means over random 80/20 splits, all that were run. The column "splits" is '
                    "the number that most methods of a row have; a number in brackets says that a "
                    "mean is over so many instead. Means over different splits cannot be compared: "
                    "bold are those that are first among the methods that are ranked together, on "
                    "the splits that these share (see below). Settings of methods that search are "
                    "chosen by average precision, in five folds of the training rows."
                )
            )
            parts += section(store, built)
            parts.append("\n## Five data sets outside of the paper\n")
            scaled = [d.name for d in outside.experiment.datasets if d.standardize]
            parts.append(
                prose(
                    "Nothing was chosen on these. The features of "
                    f"{listed(scaled)} are standardized by the training rows of each split, for "
                    "all methods: their columns have very different ranges, and most methods take "
                    "features as they are. The rest is as above."
                )
            )
            parts += section(outside, built)
            parts.append("\n## Beside the paper's numbers\n")
            parts += paper.summary(store)
            parts.append("\n### What these counts are worth\n")
            parts += paper.power(store)
            parts.append("\n### The cells of IMCC that are worse\n")
            parts += paper.failing(store)
            parts.append("\n### The cells of the six that are worse\n")
            parts += failing.failing(store, folder)
            parts.append("\n## Does calibration alone explain it?\n")
            parts += calibrated.calibration(tables)
            parts.append("\n## Rare and frequent labels\n")
            parts += labels.frequencies(store)
            parts.append("\n## Cost beside quality\n")
            parts += costs(store, built)
            parts.append("\n## Where the rows come from\n")
            parts.append(prose("Each row names the processor, device, threads and versions."))
            shown = present(store.scores("average_precision")).methods
            parts.append(cost.origins(store, shown))
            parts.append("\nOutside of the paper:\n")
            parts.append(cost.origins(outside, present(outside.scores("coverage")).methods))
            built.blocks = measured_blocks() | dict(blocks(store, outside))
            built.blocks["front"] = front(tables["average_precision"], built.blocks)
    built.page = "\n".join(parts).rstrip() + "\n"
    return built


def blocks(store: Store, outside: Store) -> Iterator[tuple[str, str]]:
    """Yield the marked blocks of other files: name and text."""
    lines = tests.against_all({metric: present(store.scores(metric)) for metric in METRICS})
    yield (
        "against",
        table(
            ["against", *(TITLES[m] for m in METRICS)],
            [[m, *lines[m]] for m in _SHOWN if m in lines],
        ),
    )
    yield "counts", paper.readme_counts(store)
    own, each = (
        paper.counts(paper.cells(store, selection, "imcc", "imcc"), "welch")
        for selection in paper.SELECTIONS
    )
    yield (
        "verdict",
        f"With each metric choosing its own setting, {each['reproduced']} of the paper's "
        f"{paper.n_published()} numbers for IMCC are reproduced, {each['better']} are\n"
        f"better and {each['worse']} worse; with average precision choosing for all of them, "
        f"{own['reproduced']}, {own['better']} and {own['worse']}.",
    )
    yield "baselines", paper.some_cells(store)
    yield "guarantees", guarantees.page_table(guarantees.stored_rows())
    yield "guarantees-mapie", guarantees.mapie_table(guarantees.stored_rows())
    yield "calibration", calibration.page_table(calibration.stored_rows(CALIBRATION))
    for name, source in (("rows-paper", store), ("rows-outside", outside)):
        yield name, cost.origins(source, present(source.scores("coverage")).methods)


def measured_blocks() -> dict[str, str]:
    """Return the marked blocks whose numbers were measured by scripts."""
    found: dict[str, str] = {}
    for name, script in MEASURED.items():
        found |= script.blocks(Measurements.read(RESULTS / f"{name}.csv"))
    return found


def front(scores: ScoreTable, measured: dict[str, str]) -> str:
    """Return the three cards of the front page."""
    gap = differences(scores, CONTROL, "lightgbm")
    n, wins = len(gap), int((gap > 0).sum())
    return f"""::::{{grid}} 1 3 3 3
:gutter: 2
:class-container: numbers

:::{{grid-item-card}} {gap.mean():+.4f}
average precision per row against LightGBM, mean over {n} of the paper's
{len(scores.datasets)} data sets; better on {wins} of {n}. [All comparisons](reproduction.md)
:::

:::{{grid-item-card}} {measured["times-faster"]}
faster: the exact search of the paper's 2058 settings in five folds, against fitting each setting.
[Measured](performance.md) by `make bench`; [how](how_it_works.md)
:::

:::{{grid-item-card}} 1,000,000 rows
in {measured["million-rows"]} with Nyström features, from a file that need not fit into memory.
[Large data sets](scale.md)
:::
::::"""


def filled(text: str, found: dict[str, str], where: str) -> str:
    """Return a text with its marked blocks filled."""

    def fill(match: re.Match[str]) -> str:
        if match[2] not in found:
            raise SystemExit(f"{where} has a block {match[2]!r} that is not known: {sorted(found)}")
        return match[1] + found[match[2]] + match[4]

    return _BLOCK.sub(fill, text)


def stale(built: Built) -> list[Path]:
    """Return the files that are not what the rows give; of figures, their texts are compared.

    (Another version of Matplotlib draws the same with other numbers.)
    """
    found = [] if PAGE.exists() and PAGE.read_text("utf-8") == built.page else [PAGE]
    found += [
        path
        for path in MARKED
        if filled((text := path.read_text("utf-8")), built.blocks, path.name) != text
    ]
    if approximation.digest() not in approximation.FIGURE.read_text("utf-8"):
        found.append(approximation.FIGURE)
    with tempfile.TemporaryDirectory() as name:
        for file, picture in built.figures.items():
            new = picture.save(Path(name) / file).read_text("utf-8")
            old = IMAGES / file
            if not old.exists() or texts(old.read_text("utf-8")) != texts(new):
                found.append(old)
    return found + [path for path in IMAGES.glob("*.svg") if path.name not in built.figures]


def texts(svg: str) -> list[str]:
    """Return the texts of a figure."""
    return sorted(re.findall(r"<text[^>]*>(.*?)</text>", svg, re.S))


def main() -> None:
    """Write or check everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    built = build()
    if check:
        old = stale(built)
        if old:
            names = ", ".join(str(path.relative_to(ROOT)) for path in old)
            sys.exit(f"not what the rows give: {names}; run make -C paper")
        return
    IMAGES.mkdir(parents=True, exist_ok=True)
    for path in IMAGES.glob("*.svg"):
        path.unlink()
    for file, picture in built.figures.items():
        picture.save(IMAGES / file)
    PAGE.write_text(built.page, "utf-8")
    for path in MARKED:
        path.write_text(filled(path.read_text("utf-8"), built.blocks, path.name), "utf-8")
    measured = approximation.stored(Measurements.read(approximation.ROWS))
    approximation.plot(measured, approximation.FIGURE, approximation.digest())
    print(f"wrote {PAGE.relative_to(ROOT)}, {len(built.figures)} figures and the marked blocks")


if __name__ == "__main__":
    main()
    # Another page that is written from rows.
    clustering_page.main(["--check"] if "--check" in sys.argv else [])
