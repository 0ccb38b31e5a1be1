"""The pictures of docs/report.md.

    python -m benchmarks.report quick.sqlite docs/images

The store is that of ``imcc experiment run quick --methods imcc,kernel_ridge,extra_trees
--no-sensitivity``; the screenshot needs Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from imcc.comparison import compare
from imcc.published import table
from imcc.report import draw_critical_difference, write_report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    result = compare(table("average_precision").to_scores(), control="imcc")
    picture = draw_critical_difference(result)
    print(picture.save(arguments.folder / "critical_difference.svg"))
    with tempfile.TemporaryDirectory() as folder:
        page = write_report(arguments.store, Path(folder) / "report.html")
        print(screenshot(page, arguments.folder / "report.png"))


def screenshot(page: Path, target: Path) -> Path:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page(viewport={"width": 1040, "height": 860})
        tab.goto(page.resolve().as_uri())
        tab.screenshot(path=target)
        browser.close()
    return target


if __name__ == "__main__":
    main()
