import os
import shutil

import pytest

from imcc.datasets import list_datasets
from tests.report.synthetic import FIFTEEN, HOSTILE, make_store

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


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


@pytest.fixture(scope="session")
def browser():
    """The system's Chromium; without it the test is skipped, under CI it fails."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        found = None
    if found is None:
        reason = "there is no Chromium, or no playwright, to open a page with"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield browser
        browser.close()
