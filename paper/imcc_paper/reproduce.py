"""Write the numbers of the pages from the committed rows: ``make -C paper``.

    python -m imcc_paper.reproduce            write the marked blocks, the figure and the appendix
    python -m imcc_paper.reproduce --check    fail if they are not what the rows give

Nothing is trained: every number comes from ``results/*.csv``.  Marked blocks are those between
``<!-- make reproduce: NAME -->`` and ``<!-- end -->`` in README.md, results/README.md and pages of
docs/: tables and paragraphs between lines, single numbers inside of a line.  The appendix,
docs/reproduction_tables.md, is written as a whole.
``make -C paper full`` computes the rows; the scripts in ``MEASURED`` measure times and other
numbers that pages show.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from imcc.comparison import ScoreTable, effect_size
from imcc.experiment import Store
from imcc.metrics import METRICS
from imcc.report import Picture
from imcc_paper import (
    ablation,
    approximation,
    calibration,
    classifier,
    clustering_page,
    guarantees,
    one_repetition,
    other_libraries,
    outside_sets,
    tables,
)
from imcc_paper._measured import Measurements, digest, table
from imcc_paper.places import DOCS, RESULTS, ROOT
from imcc_paper.reproduction import claims, figure, paper, screen
from imcc_paper.reproduction import tables as appendix
from imcc_paper.reproduction.ranked import differences
from imcc_paper.reproduction.rows import CONTROL, TITLES, opened, present
from imcc_paper.reproduction.times import origins
from imcc_paper.rivals import __main__ as rivals
from imcc_paper.rivals import page

APPENDIX = DOCS / "reproduction_tables.md"
FIGURE = DOCS / "images" / "reproduction.svg"
#: The files of paper/results/ with measured numbers, and the scripts that write them.
MEASURED = {"speed": classifier} | {
    name: import_module(f"imcc_paper.{name}")
    for name in (
        *("approximation", "scale", "gpu", "looking", "label_issues", "baselines", "boosted"),
        *("serving", "ensemble_speed", "ensemble_budget", "repeated_rows", "table_memory"),
    )
}
#: The studies, which read their own rows.
STUDIES = (
    ablation,
    calibration,
    clustering_page,
    guarantees,
    one_repetition,
    other_libraries,
    outside_sets,
    tables,
)
_MARK = "<!-- make reproduce: "
#: The files that have marked blocks.
MARKED = tuple(
    path
    for path in (ROOT / "README.md", RESULTS / "README.md", *sorted(DOCS.glob("*.md")))
    if _MARK in path.read_text("utf-8")
)
_BLOCK = re.compile(rf"({_MARK}([\w-]+) -->\n?)(.*?)(\n?<!-- end -->)", re.S)
# docs/when_to_use.md shows these, in this order.
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
    appendix : str
        The text of docs/reproduction_tables.md.
    figure : Picture
        That of docs/reproduction.md.
    blocks : dict of str to str
        The texts of the marked blocks.
    """

    appendix: str
    figure: Picture
    blocks: dict[str, str]


def build() -> Built:
    """Return the appendix, the figure and the marked blocks."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with opened(folder, "paper") as store, opened(folder, "outside") as outside:
            scores, others = (
                {metric: present(of.scores(metric)) for metric in METRICS}
                for of in (store, outside)
            )
            tuned = page.outside_scores(rivals.stored_rows())
            lines = screen.plain_lines(store, scores, others)
            found = measured_blocks() | page.blocks(rivals.stored_rows(), lines)
            for study in STUDIES:
                found |= study.blocks()
            found |= dict(blocks(store, outside, scores, others, tuned))
            found["front"] = front(scores["average_precision"], tuned)
            return Built(
                appendix.appendix(
                    store, scores, others, found.pop("methods"), found.pop("rivals-tables")
                ),
                figure.draw(scores["average_precision"], page.outside_scores(rivals.stored_rows())),
                found,
            )


def blocks(
    store: Store,
    outside: Store,
    tables: screen.Tables,
    others: screen.Tables,
    tuned: ScoreTable,
) -> Iterator[tuple[str, str]]:
    """Yield the marked blocks whose numbers come from rows of experiments: name and text."""
    losses = screen.log_losses(calibration.stored_rows(calibration.CALIBRATION))
    yield "methods", screen.methods_table(store, tables, others, losses)
    yield "says", screen.says(store, tables, others)
    yield "imcc-ridge", screen.ridge_text(tables)
    lines = appendix.against_all(tables)
    yield (
        "against",
        table(
            ["against", *(TITLES[m] for m in METRICS)],
            [[m, *lines[m]] for m in _SHOWN if m in lines],
        ),
    )
    yield (
        "claims",
        claims.claims(
            tables["average_precision"],
            tuned,
            page.claim(rivals.stored_rows()),
        ),
    )
    yield "counts", paper.readme_counts(store)
    own, each = paper.of_imcc(store)
    yield (
        "verdict",
        f"With each metric choosing its own setting, {each['reproduced']} of the paper's "
        f"{sum(own.values())} numbers for IMCC are reproduced, {each['better']} are\n"
        f"better and {each['worse']} worse; with average precision choosing for all of them, "
        f"{own['reproduced']}, {own['better']} and {own['worse']}.",
    )
    yield "baselines", paper.some_cells(store)
    for name, source in (("rows-paper", store), ("rows-outside", outside)):
        yield name, origins(source, present(source.scores("coverage")).methods)


def measured_blocks() -> dict[str, str]:
    """Return the marked blocks whose numbers were measured by scripts."""
    found: dict[str, str] = {}
    for name, script in MEASURED.items():
        found |= script.blocks(Measurements.read(RESULTS / f"{name}.csv"))
    return found


def front(scores: ScoreTable, outside: ScoreTable) -> str:
    """Return the three cards of the front page."""
    gap, other = (differences(of, CONTROL, "lightgbm") for of in (scores, outside))
    mean, (_, high) = effect_size(other)
    speed, scaled = (Measurements.read(RESULTS / f"{name}.csv") for name in ("speed", "scale"))
    million = scaled.of("files", "nystroem 1000000")["fit_seconds"]
    return f"""::::{{grid}} 1 3 3 3
:gutter: 2
:class-container: numbers

:::{{grid-item-card}} {gap.mean():+.4f}
average precision per row against LightGBM, mean over the paper's {len(gap)} data sets, better on
{(gap > 0).sum()}; {mean:+.4f} ± {high - mean:.4f} against a tuned one on {len(other)} that nothing
was chosen on. [All comparisons](reproduction.md)
:::

:::{{grid-item-card}} {classifier.times_faster(speed):.0f} times
faster: the exact search of the paper's 2058 settings in five folds, against a loop that fits each,
extrapolated from {speed.of("search", "paper")["sample"]:.0f} settings. [Measured](performance.md)
by `make bench`; [how](how_it_works.md)
:::

:::{{grid-item-card}} 1,000,000 rows
in {million:.1f} s on {scaled.where("files", "cores")} cores: one `IMCCClassifier` with Nyström
features, not the ensemble, from a file that need not fit into memory. [Large data sets](scale.md)
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
    """Return the files that are not what the rows give; of the figure, its texts are compared.

    (Another version of Matplotlib draws the same with other numbers.)
    """
    same = APPENDIX.exists() and APPENDIX.read_text("utf-8") == built.appendix
    found = [] if same else [APPENDIX]
    found += [
        path
        for path in MARKED
        if filled((text := path.read_text("utf-8")), built.blocks, path.name) != text
    ]
    found += [
        script.FIGURE
        for script in (approximation, clustering_page)
        if digest(script.ROWS) not in script.FIGURE.read_text("utf-8")
    ]
    with tempfile.TemporaryDirectory() as name:
        new = built.figure.save(Path(name) / FIGURE.name).read_text("utf-8")
    if not FIGURE.exists() or texts(FIGURE.read_text("utf-8")) != texts(new):
        found.append(FIGURE)
    return found


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
    built.figure.save(FIGURE)
    APPENDIX.write_text(built.appendix, "utf-8")
    for path in MARKED:
        path.write_text(filled(path.read_text("utf-8"), built.blocks, path.name), "utf-8")
    approximation.draw()
    clustering_page.draw()
    print(f"wrote {APPENDIX.name}, {FIGURE.name} and the marked blocks of {len(MARKED)} files")


if __name__ == "__main__":
    main()
