"""Writes the reports of the committed rows into the built documentation: reports/paper.html, ...

They are large and made from ``results/`` in seconds, so they are not in the repository.
"""

import tempfile
from pathlib import Path

import matplotlib as mpl
from sphinx.util import logging

from imcc.experiment import Store, load_experiment, merge
from imcc.report import write_report

ROOT = Path(__file__).parents[2]
# The experiments, with the titles of their reports.
REPORTS = {
    "paper": "The paper's fifteen data sets",
    "outside": "Five data sets outside of the paper",
}


def write(folder, names=tuple(REPORTS)):
    """Write the reports of the committed rows into a folder, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in names:
        results = ROOT / "results"
        files = sorted([*results.glob(f"{name}.csv"), *results.glob(f"{name}.*.csv")])
        with (
            # Not in the gallery's style: the report's figures place their parts themselves.
            mpl.rc_context(mpl.rcParamsDefault),
            tempfile.TemporaryDirectory() as place,
            Store.create(Path(place) / f"{name}.sqlite", load_experiment(name)) as store,
        ):
            merge(store, files)
            written.append(write_report(store, folder / f"{name}.html", title=REPORTS[name]))
    return written


def _finished(app, exception):
    if exception is None and app.builder.format == "html":
        for path in write(Path(app.outdir) / "reports"):
            logging.getLogger(__name__).info("wrote %s", path)


def setup(app):
    """Write the reports after the pages."""
    app.connect("build-finished", _finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
