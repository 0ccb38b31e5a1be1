"""Pictures of the page about a model, for README.md and docs/looking_into_a_model.md.

    python -m imcc_paper.page_pictures ../docs/images

The page is that of the default model of the example table, as ``imcc tune customers.csv`` and
``imcc inspect model.skops customers.csv --html page.html`` write it.  A Chromium must be installed,
and Playwright, which the tests need too.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from imcc import TableClassifier
from imcc.inspection import model_page
from imcc.tables import example_table

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Everything that a browser would otherwise ask the network for.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
#: The label that is opened.
LABEL = "upgrade"
WIDTH, MARGIN = 1080, 20


def write_page(path: Path) -> None:
    """Fit the default model to the example table, and write the page about it."""
    table, labels = example_table()
    model = TableClassifier(random_state=0).fit(table, labels)
    ids = [str(value) for value in table["ticket"]]
    model_page(model, table, labels, path=path, title="customers.csv", row_names=ids)


@contextmanager
def opened(path: Path, scheme: str) -> Iterator[Any]:
    """Open a page in a browser, in light or dark."""
    from playwright.sync_api import sync_playwright

    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        raise SystemExit(f"no browser was found: {', '.join(BROWSERS)}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        page = browser.new_page(
            viewport={"width": WIDTH, "height": 1000},
            color_scheme=scheme,
            device_scale_factor=1.5,
        )
        page.goto(path.as_uri())
        page.locator("#labels").get_by_role("link", name=LABEL, exact=True).click()
        # It would cover what is below it.
        page.locator("header").evaluate("bar => bar.remove()")
        yield page
        browser.close()


def save(page: Any, path: Path, first: str, last: str) -> None:
    """Save the part of a page from the top of one element to the bottom of another."""
    top, bottom = (page.locator(where).first.bounding_box() for where in (first, last))
    begin, end = top["y"] - MARGIN, bottom["y"] + bottom["height"] + MARGIN
    clip = {"x": 0, "y": begin, "width": WIDTH, "height": end - begin}
    page.screenshot(path=path, clip=clip, full_page=True)


def main() -> None:
    """Write all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "page.html"
        write_page(path)
        for scheme, suffix in (("light", ""), ("dark", "_dark")):
            with opened(path, scheme) as page:
                page.evaluate("window.scrollTo(0, 0)")
                save(page, folder / f"model_overview{suffix}.png", "#overview .eyebrow", ".cards")
                if scheme == "light":
                    save(page, folder / "model_page.png", "#labels-title", "#label")


if __name__ == "__main__":
    main()
