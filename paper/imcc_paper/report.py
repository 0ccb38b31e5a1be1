"""The pictures of docs/report.md.

    python -m benchmarks.report docs/images

The screenshot is of the report of the committed rows (``results/paper.csv``) and needs Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from benchmarks.reproduction.rows import opened
from imcc.comparison import compare
from imcc.published import table
from imcc.report import draw_critical_difference, write_report

#: As in the documentation (docs/_ext/committed_report.py).
TITLE = "The paper's fifteen data sets"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    result = compare(table("average_precision").to_scores(), control="imcc")
    picture = draw_critical_difference(result)
    print(picture.save(arguments.folder / "critical_difference.svg"))
    with tempfile.TemporaryDirectory() as folder:
        with opened(Path(folder), "paper") as store:
            page = write_report(store, Path(folder) / "report.html", title=TITLE)
        print(screenshot(page, arguments.folder / "report.png"))


def screenshot(page: Path, target: Path) -> Path:
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page(viewport={"width": 1040, "height": 930})
        tab.goto(page.resolve().as_uri())
        tab.screenshot(path=target)
        browser.close()
    # 64 colours are enough for text, in a third of the size.
    Image.open(target).convert("RGB").quantize(64).save(target, optimize=True)
    return target


if __name__ == "__main__":
    main()
