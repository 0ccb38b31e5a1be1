import contextlib
import importlib.util
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

if importlib.util.find_spec("hypothesis"):
    from hypothesis import settings

    # A busy machine is no failure.
    settings.register_profile("imcc", deadline=None)
    settings.load_profile("imcc")

collect_ignore = ["data/make_exact_oracle.py"]  # needs mpmath; run by hand

DATA = Path(__file__).parent / "data"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


class FixedClusters:
    """A clusterer with given labels: the way to test without k-means."""

    def __init__(self, labels):
        self.labels = labels

    def fit(self, X):
        self.labels_ = np.asarray(self.labels)
        return self


class Oracle:
    """A small problem and what the authors' program gives on it (1) and exact arithmetic (2)."""

    def __init__(self):
        with np.load(DATA / "oracle_small.npz") as small:
            self.X, self.Y = small["Xtr"], small["Ytr"]
            self.X_new, self.Y_new = small["Xte"], small["Yte"]
            self.settings = {
                i: {
                    "weights": {
                        name: float(value)
                        for name, value in zip(
                            ("n_clusters", "alpha", "beta", "gamma"),
                            small[f"params_{i}"].ravel(),
                            strict=True,
                        )
                        if name != "n_clusters"
                    },
                    "assignment": small[f"assignments_{i}"].ravel().astype(int),
                    "scores": small[f"scores_{i}"],
                    "metrics": small[f"metrics_{i}"].ravel(),
                }
                for i in range(1, 8)
            }
        with np.load(DATA / "oracle_exact.npz") as exact:
            for i, setting in self.settings.items():
                setting["exact"] = exact[f"scores_{i}"]


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """The problems are small: threads would only get in each other's way."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def oracle():
    return Oracle()


@pytest.fixture(scope="session")
def small_problem():
    """Rows in clumps with dependent labels, and new rows: (X, Y in {0, 1}, X_new, Y_new)."""
    rng = np.random.default_rng(7)
    middles = rng.normal(size=(6, 5)) * 2
    X = middles[rng.integers(6, size=130)] + rng.normal(size=(130, 5))
    Y = (X @ rng.normal(size=(5, 4)) + 1.5 * rng.normal(size=(130, 4)) > 0.4).astype(int)
    return X[:90], Y[:90], X[90:], Y[90:]


@pytest.fixture
def mirror():
    """The folder with the paper's data files, which only tests with the marker `data` see."""
    return Path(os.environ["IMCC_DATA_MIRROR"])


@pytest.fixture
def config():
    """Change settings of :mod:`imcc._utils.config` until the end of the test."""
    # Here, not above: what is imported before coverage starts is not measured.
    from imcc._utils.config import config_context

    with contextlib.ExitStack() as stack:
        yield lambda **settings: stack.enter_context(config_context(**settings))


@pytest.fixture(scope="session")
def browser():
    """The system's Chromium; without it the test is skipped, under CI it fails.

    One for all tests: a second Playwright cannot be started in the same process.
    """
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
