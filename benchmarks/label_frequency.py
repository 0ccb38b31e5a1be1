"""How well each method ranks rare and frequent labels.

    python -m benchmarks.label_frequency -o results/label_frequency.csv --jobs 12
    python -m benchmarks.label_frequency -o rows.csv --device cuda --for 540 --jobs 8
    python -m benchmarks.label_frequency -o rows.csv --data medical --methods brsvm logistic
    python -m benchmarks.label_frequency -o rows.csv --print          what is in the file

The average precision of a label by itself says how well the test rows are ordered by that label's
score.  Runs of the experiments record its mean over the labels of four ranges of frequencies
(:data:`imcc.experiment.LABEL_RANGES`), but most of the rows in ``results/paper.csv`` are older than
that record.  So this runs the first split of the experiment ``paper`` again (the same splits,
seeds and settings, see :mod:`imcc.experiment`) and writes whole rows with it: their metrics are
those of the committed rows, and ``tests/experiment/test_results.py`` compares them.

LightGBM is left out on the data sets with more than 60 labels, and the calibrated forms of methods
that are not searched exactly, since they take hours.  With ``--device`` the methods that can use
one are run there, before the others.  A finished run is in the store beside the file
(``rows.sqlite``) at once; what is in the file or the store is not computed again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from imcc.datasets import dataset_info
from imcc.experiment import (
    LABEL_RANGES,
    Experiment,
    Run,
    Store,
    export,
    load_experiment,
    merge,
    run,
)

EXPERIMENT = "paper"
#: Methods that take long where there are many labels, and how many that is.
SLOW = ("lightgbm",)
MANY_LABELS = 60
#: Calibrated by folds around the whole search or forest.
TOO_SLOW = ("llsf_calibrated", "jfsc_calibrated", "mahr_calibrated", "extra_trees_calibrated")


class Part(NamedTuple):
    """Runs of one kind."""

    experiment: Experiment
    device: str | None


def parts(
    data: Sequence[str] | None, methods: Sequence[str] | None, device: str | None
) -> list[Part]:
    """Return the first split of the experiment, in parts that are run one after the other.

    Parameters
    ----------
    data, methods : sequence of str or None
        All that are affordable by default.
    device : str or None
        Where the methods that can use one are run.
    """
    whole = load_experiment(EXPERIMENT).subset(n_repeats=1, sensitivity=False)
    known = [m.name for m in whole.methods]
    if unknown := set(methods or ()) - set(known):
        raise SystemExit(f"{EXPERIMENT} has no methods {', '.join(sorted(unknown))}")
    chosen = methods or [name for name in known if name not in TOO_SLOW]
    there = [
        m.name
        for m in whole.methods
        if device is not None and "device" in m.build().get_params(deep=False)
    ]
    names = list(data or [spec.name for spec in whole.datasets])
    # Those with many labels take longest, and begin first.
    names.sort(key=lambda name: -dataset_info(name).n_labels)
    few = [name for name in names if dataset_info(name).n_labels <= MANY_LABELS]
    kinds = (
        ([m for m in chosen if m in there], names, device),
        ([m for m in chosen if m not in (*there, *SLOW)], names, None),
        ([m for m in chosen if m in SLOW], few, None),
    )
    return [
        Part(whole.subset(datasets=sets, methods=some), where)
        for some, sets, where in kinds
        if some and sets
    ]


def opened(store: Path, rows: Path) -> Store:
    """Return a store of the first split, with the rows of a file if there is one."""
    whole = load_experiment(EXPERIMENT).subset(n_repeats=1, sensitivity=False)
    found = Store.create(store, whole)
    if rows.exists():
        merge(found, [rows])
    return found


def summary(store: Store) -> str:
    """Return how many data sets each method has in each range, and its means, as text."""
    lines = ["\t".join(["method", "data sets", *LABEL_RANGES])]
    found: dict[str, list[Run]] = {}
    for row in store.runs():
        found.setdefault(row.key.method, []).append(row)
    for method, rows in found.items():
        records = [row.selections[0].by_frequency for row in rows]
        cells = [
            f"{sum(values) / len(values):.3f} ({len(values)})" if values else "none"
            for values in ([r[name] for r in records if name in r] for name in LABEL_RANGES)
        ]
        lines.append("\t".join([method, str(len(rows)), *cells]))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, write the file and print means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="CSV file of the rows")
    parser.add_argument("--data", nargs="+", help="data sets (all of the experiment)")
    parser.add_argument("--methods", nargs="+", help="methods (all that are affordable)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time (1)")
    parser.add_argument("--device", help="run the methods that can use it there: cuda")
    parser.add_argument(
        "--for", dest="seconds", type=float, default=np.inf, help="stop after so many seconds"
    )
    parser.add_argument("--print", action="store_true", help="compute nothing")
    asked = parser.parse_args(arguments)
    if asked.print:
        with (
            tempfile.TemporaryDirectory() as folder,
            opened(Path(folder) / "rows.sqlite", asked.output) as store,
        ):
            print(summary(store))
        return 0
    path = asked.output.with_suffix(".sqlite")
    with opened(path, asked.output):
        pass
    end = time.monotonic() + asked.seconds
    failures = 0
    for part in parts(asked.data, asked.methods, asked.device):
        done = run(
            part.experiment,
            path,
            n_jobs=asked.jobs,
            threads=1,
            device=part.device,
            budget=None if asked.seconds == np.inf else max(end - time.monotonic(), 0.0),
        )
        print(f"{done.n_computed} new, {done.n_missing} missing", file=sys.stderr)
        for failure in done.failures:
            print(f"{failure.key}: {failure.error}", file=sys.stderr)
        failures += len(done.failures)
    with Store(path) as store:
        export(store, asked.output, overwrite=True)
        print(summary(store))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
