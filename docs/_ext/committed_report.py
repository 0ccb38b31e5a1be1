"""Writes the report of the committed rows into the built documentation: reports/paper.html.

It is large and made from ``results/`` in seconds, so it is not in the repository.
"""

import tempfile
from pathlib import Path

import matplotlib as mpl
from sphinx.util import logging

from imcc.experiment import Store, load_experiment, merge
from imcc.report import write_report

ROOT = Path(__file__).parents[2]
EXPERIMENT = "paper"


def write(folder):
    """Write the report of the committed rows into a folder, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    files = sorted((ROOT / "results").glob(f"{EXPERIMENT}*.csv"))
    # The report's figures place their parts themselves; the gallery's style is not for them.
    with mpl.rc_context(mpl.rcParamsDefault), tempfile.TemporaryDirectory() as name:
        path = Path(name) / f"{EXPERIMENT}.sqlite"
        with Store.create(path, load_experiment(EXPERIMENT)) as store:
            merge(store, files)
            return write_report(
                store,
                folder / f"{EXPERIMENT}.html",
                title="The paper's fifteen data sets",
            )


def _finished(app, exception):
    if exception is None and app.builder.format == "html":
        logging.getLogger(__name__).info("wrote %s", write(Path(app.outdir) / "reports"))


def setup(app):
    """Write the report after the pages."""
    app.connect("build-finished", _finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
