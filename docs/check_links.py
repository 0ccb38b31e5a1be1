"""Check the links inside the built pages: every file and every anchor must exist.

python docs/check_links.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {"", "top"}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name in ("id", "name"):
                self.anchors.add(value)
            elif (name == "href" and tag in ("a", "link")) or (name == "src" and tag != "iframe"):
                self.links.append(value)


def broken_links(root: Path) -> list[str]:
    """Return a line for each link to a file or an anchor that does not exist."""
    pages = {}
    for path in sorted(root.rglob("*.html")):
        if "_static" in path.parts:  # templates of the theme
            continue
        pages[path.resolve()] = page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
    found = []
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("data:"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{path.relative_to(root.resolve())}: no file for {link}")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{path.relative_to(root.resolve())}: no anchor for {link}")
    return found


def main() -> int:
    """Print the broken links; the exit status says whether there are any."""
    found = broken_links(Path(sys.argv[1]))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
