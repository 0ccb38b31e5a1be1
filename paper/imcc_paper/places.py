"""Where things are: this project works in the repository that it is in."""

from pathlib import Path

#: The folder of this project, and of the repository.
PAPER = Path(__file__).parents[1]
ROOT = PAPER.parent
DOCS = ROOT / "docs"
RESULTS = PAPER / "results"
EXPERIMENTS = PAPER / "experiments"
#: The paper's Tables 3 and 4, as ``imcc report --published`` reads them.
PUBLISHED = PAPER / "published" / "results.csv"
