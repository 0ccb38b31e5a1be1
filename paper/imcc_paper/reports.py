"""Write the reports of the committed rows: ``make docs`` has them in reports/ of the pages.

    python -m imcc_paper.reports FOLDER

They are large and made in a minute, so they are not in the repository.  Methods with calibrated
scores are left out: two nearly equal methods change the ranks of all others, and
docs/reproduction.md compares them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from imcc.experiment import Store
from imcc.report import write_report
from imcc_paper.places import PUBLISHED
from imcc_paper.reproduction.ranked import CALIBRATED
from imcc_paper.reproduction.rows import opened

#: The experiments, with the titles of their reports.
REPORTS = {
    "paper": "The paper's fifteen data sets",
    "outside": "Data sets outside of the paper",
}


def write(folder: Path, name: str) -> Path:
    """Write the report of an experiment into a folder, and return its path."""
    with tempfile.TemporaryDirectory() as place, opened(Path(place), name) as whole:
        kept = [m.name for m in whole.experiment.methods if m.name not in CALIBRATED]
        part = whole.experiment.subset(methods=kept)
        with Store.create(Path(place) / "part.sqlite", part) as store:
            store.add(*(run for run in whole.runs() if run.key.method in kept))
            published = PUBLISHED if name == "paper" else None
            path = folder / f"{name}.html"
            return write_report(store, path, title=REPORTS[name], published=published)


def main() -> None:
    """Write all reports."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in REPORTS:
        print(write(folder, name))


if __name__ == "__main__":
    main()
