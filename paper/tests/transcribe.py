"""Read the tables out of the paper's LaTeX source and write the files of `imcc.published`.

The source is not part of this repository.  With it at hand:

    python tests/published/transcribe.py imcc-paper.tex src/imcc/published

`test_tables.py` compares the files with the source if IMCC_PAPER_TEX names it.
"""

import re
import sys
from pathlib import Path

METRICS = {
    "One-error": "one_error",
    "Hamming loss": "hamming_loss",
    "Ranking loss": "ranking_loss",
    "Coverage": "coverage",
    "Average precision": "average_precision",
}
METHODS = {name: name.lower() for name in ("IMCC", "BRsvm", "ECC", "MAHR", "LLSF", "JFSC", "LIFT")}
CELL = re.compile(r"^(?:\\textbf\{)?([\d.]+)\$\\pm\$([\d.]+)\((\d)\)\}?$")
DATASETS_HEAD = (
    "dataset,n_rows,n_features,n_labels,feature_type,cardinality,density,"
    "n_label_sets,label_set_proportion"
)


def cells(line):
    return [cell.strip() for cell in line.replace(r"\\", "").split("&")]


def read_results(tex):
    """Return the lines of results.csv."""
    printed = {}
    metric, datasets = None, None
    for line in tex.splitlines():
        if found := re.search(r"\\multicolumn\{7\}\{c\}\{([A-Z][a-z -]+)\$", line):
            metric = METRICS[found[1]]
        elif line.strip().startswith("algorithms"):
            datasets = cells(line)[1:]
        elif metric and cells(line)[0] in METHODS:
            method, *values = cells(line)
            for dataset, value in zip(datasets, values, strict=True):
                mean, std, rank = CELL.match(value).groups()
                key = (metric, dataset, METHODS[method])
                assert key not in printed, key
                printed[key] = f"{mean}±{std}({rank})"
    names = list(dict.fromkeys(dataset for _, dataset, _ in printed))
    lines = [",".join(["metric", "dataset", *METHODS.values()])]
    for metric in METRICS.values():
        for dataset in names:
            row = [printed[metric, dataset, method] for method in METHODS.values()]
            lines.append(",".join([metric, dataset, *row]))
    return lines


def read_datasets(tex):
    """Return the lines of datasets.csv: Table 2."""
    start = tex.index("Characteristics of the benchmark")
    table = tex[start : tex.index(r"\end{table}", start)]
    rows = [cells(line) for line in table.splitlines() if line.count("&") == 8]
    return [DATASETS_HEAD, *(",".join(row) for row in rows if row[1].isdigit())]


def read_friedman(tex):
    """Return the printed F_F by metric: Table 5."""
    start = tex.index("Friedman statistics $F_F$ according to each evaluation metric and the crit")
    table = tex[start : tex.index(r"\end{table}", start)]
    rows = [cells(line) for line in table.splitlines() if "&" in line]
    return {METRICS[row[0]]: float(row[1]) for row in rows if row[0] in METRICS}


if __name__ == "__main__":
    source, folder = Path(sys.argv[1]).read_text("utf-8"), Path(sys.argv[2])
    for name, lines in (
        ("results.csv", read_results(source)),
        ("datasets.csv", read_datasets(source)),
    ):
        (folder / name).write_text("\n".join(lines) + "\n", "utf-8")
