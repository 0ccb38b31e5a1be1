import pytest

from imcc.datasets import list_datasets
from tests.report.synthetic import FIFTEEN, HOSTILE, make_store


@pytest.fixture(scope="session")
def stores(tmp_path_factory):
    """Make a store by its name, once."""
    folder = tmp_path_factory.mktemp("stores")
    paper = list_datasets("paper")
    recipes = {
        "three": {"datasets": paper, "studies": ("yeast",)},
        "fifteen": {"datasets": paper, "methods": FIFTEEN, "n_repeats": 4},
        "one": {"datasets": ("yeast",), "n_repeats": 1, "metrics": ("average_precision",)},
        "single": {"datasets": ("yeast",), "n_repeats": 5},
        # Hostile names, and one metric only: few figures.
        "narrow": {
            "datasets": HOSTILE,
            "methods": ("imcc", *HOSTILE),
            "metrics": ("average_precision",),
        },
        "hostile": {
            "datasets": HOSTILE,
            "methods": ("imcc", *HOSTILE),
            "studies": HOSTILE[:2],
            "metrics": ("average_precision", "coverage"),
            "name": HOSTILE[0],
        },
    }

    def get(name):
        path = folder / f"{name}.sqlite"
        return path if path.exists() else make_store(path, **recipes[name])

    return get
