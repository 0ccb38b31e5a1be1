"""Other settings of the six other algorithms, where our rows are worse than the paper's numbers.

    python -m imcc_paper.failing_cells -o results/failing_cells.csv --jobs 14 --for 480
    python -m imcc_paper.failing_cells -o rows.csv --methods jfsc --splits 1

The settings are described in ``experiments/failing_cells.toml``; ``PARTS`` says on which data sets
each method is worse.  Splits and protocol are those of the experiment ``paper``.  A finished run is
in the store beside the file (``rows.sqlite``) at once; what is there or in the file is not computed
again.  Three splits of all are about 4500 core seconds.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from imcc.experiment import Experiment, Store, load_experiment, run
from imcc_paper.places import EXPERIMENTS

FILE = EXPERIMENTS / "failing_cells.toml"
#: The data sets on which a method is worse than the paper says in some metric.
PARTS = {
    "lift": ("bibtex",),
    "llsf": ("corel5k", "enron", "social", "computer", "medical", "arts", "education"),
    "mahr": ("bibtex", "corel5k", "enron", "yeast", "cal500", "image", "medical"),
    "jfsc": ("corel5k", "education", "medical", "arts", "yeast"),
}


def experiment() -> Experiment:
    """Return all variants on all data sets."""
    return load_experiment(FILE).resolve()


def variants(method: str) -> list[str]:
    """Return the names of a method's variants.

    >>> variants("mahr")
    ['mahr_20', 'mahr_50', 'mahr_100', 'mahr_no_reuse', 'mahr_100_no_reuse', 'mahr_no_stop']
    """
    return [m.name for m in load_experiment(FILE).methods if m.name.startswith(f"{method}_")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="CSV file of the rows")
    parser.add_argument("--methods", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--splits", type=int, default=3, help="splits of each data set (3)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time (1)")
    parser.add_argument(
        "--for", dest="seconds", type=float, default=math.inf, help="stop after so many seconds"
    )
    asked = parser.parse_args(arguments)
    path, whole = asked.output.with_suffix(".sqlite"), experiment()
    with Store.create(path, whole) as store:
        if asked.output.exists():
            store.merge(asked.output)
    end = time.monotonic() + asked.seconds
    failures = 0
    for method in asked.methods:
        part = whole.subset(
            datasets=PARTS[method], methods=variants(method), n_repeats=asked.splits
        )
        left = max(end - time.monotonic(), 0.0)
        done = run(
            part,
            path,
            n_jobs=asked.jobs,
            threads=1,
            budget=None if math.isinf(left) else left,
        )
        print(f"{method}: {done.n_computed} new, {done.n_missing} missing", file=sys.stderr)
        for failure in done.failures:
            print(f"{failure.key}: {failure.error}", file=sys.stderr)
        failures += len(done.failures)
    with Store(path) as store:
        store.export(asked.output)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
