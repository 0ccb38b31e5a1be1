"""Write the fingerprints of the committed rows anew, after a parameter was renamed or moved.

    python -m imcc_paper.fingerprints

A fingerprint is a hash of a method with all of its parameters and of the protocol.  A change that
does not change results (a class that moves, a new parameter whose default is the old behaviour)
changes it all the same, and the rows would not be accepted any more.  Only run this after
``tests/test_recompute.py``, without its comparison of fingerprints, has shown that the numbers are
the same.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from imcc.experiment import load_experiment
from imcc_paper.places import EXPERIMENTS, RESULTS


def rewritten(path: Path, fingerprints: dict[tuple[str, str, int], str]) -> str:
    """Return the text of a file of rows with other fingerprints."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        out = io.StringIO(newline="")
        writer = csv.DictWriter(out, rows.fieldnames or ())
        writer.writeheader()
        for row in rows:
            key = row["dataset"], row["method"], int(row["repetition"])
            row["fingerprint"] = fingerprints[key]
            writer.writerow(row)
    return out.getvalue()


def main() -> None:
    """Rewrite the rows of all experiments."""
    for plan in sorted(EXPERIMENTS.glob("*.toml")):
        tasks = load_experiment(plan).resolve().tasks()
        path = RESULTS / f"{plan.stem}.csv"
        known = {tuple(task.key): task.fingerprint for task in tasks}
        path.write_text(rewritten(path, known), encoding="utf-8", newline="")


if __name__ == "__main__":
    main()
