import pytest

from imcc.datasets import list_datasets
from imcc.metrics import METRICS
from tests.report.synthetic import FIFTEEN, HOSTILE, make_store

SOME = ("average_precision", "coverage", "hamming_loss", "macro_f1")


@pytest.fixture(scope="session")
def stores(tmp_path_factory):
    """Make a store by its name, once."""
    folder = tmp_path_factory.mktemp("stores")
    paper = list_datasets("paper")
    recipes = {
        "three": {"datasets": paper[:6], "metrics": SOME},
        "fifteen": {
            "datasets": paper,
            "methods": FIFTEEN,
            "n_repeats": 2,
            "metrics": ("average_precision", "coverage"),
        },
        "one": {"datasets": ("yeast",), "n_repeats": 1, "metrics": ("average_precision",)},
        "single": {"datasets": ("yeast",), "n_repeats": 5},
        # Hostile names, and one metric only: few figures.
        "hostile": {
            "datasets": HOSTILE,
            "methods": ("imcc", *HOSTILE),
            "metrics": ("average_precision",),
            "name": HOSTILE[0],
        },
    }

    def get(name):
        path = folder / f"{name}.sqlite"
        return path if path.exists() else make_store(path, **recipes[name])

    return get


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """A file of published results: three methods on fifteen data sets, one of them in doubt."""
    lines = ["# A paper", "# of 2022", "dataset,method,metric,mean,std,n,doubtful"]
    for d, dataset in enumerate(list_datasets("paper")):
        for method in ("imcc", "brsvm", "ecc"):
            for metric in METRICS:
                why = "another data set's number" if dataset == "yeast" and method == "imcc" else ""
                mean = 0.777 - 0.02 * d
                lines.append(f"{dataset},{method},{metric},{mean:.3f},0.012,10,{why}")
    path = tmp_path_factory.mktemp("published") / "published.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
