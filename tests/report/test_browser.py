"""The page in a real browser: no error, no request, and everything that can be clicked."""

import re

import pytest

from imcc.report import write_report
from tests.report.synthetic import make_store

pytestmark = pytest.mark.slow

PHONE, DESKTOP = {"width": 375, "height": 812}, {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def files(stores, published, tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("pages"), {}

    def get(name):
        if name not in made:
            made[name] = write_report(stores(name), folder / f"{name}.html", published=published)
        return made[name]

    return get


@pytest.fixture
def visit(browser, files):
    """Open a report; at the end, nothing may have been fetched and nothing gone wrong."""
    contexts, wrong, requests = [], [], []

    def go(name, *, viewport=DESKTOP, **options):
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else 0)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(files(name).as_uri())
        return page

    yield go
    for context in contexts:
        context.close()
    assert not wrong
    assert {url for url in requests if not url.startswith("file:")} == set()
    assert len(requests) == len(contexts)  # the page itself, once


def column(page, table, number):
    """Return what a column is sorted by."""
    cells = table.locator(f"tbody tr > *:nth-child({number})").all()
    return [cell.get_attribute("data-v") or cell.inner_text() for cell in cells]


def open_table(page):
    return page.locator("#scores .panel:not([hidden]) table")


def test_sorting_by_mouse(visit):
    page = visit("three")
    table = open_table(page)
    heading = table.locator("thead th").nth(1)
    before = column(page, table, 2)
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "descending"  # the best first
    assert [float(v) for v in column(page, table, 2)] == sorted(map(float, before), reverse=True)
    assert column(page, table, 2) != before
    # A row stays together.
    by_name = dict(zip(column(page, table, 1), column(page, table, 2), strict=True))
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert [float(v) for v in column(page, table, 2)] == sorted(map(float, before))
    assert dict(zip(column(page, table, 1), column(page, table, 2), strict=True)) == by_name
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "none"
    assert column(page, table, 2) == before
    assert table.locator("tfoot").inner_text().startswith("average rank")


def test_sorting_by_keyboard(visit):
    page = visit("three")
    table = open_table(page)
    first = table.locator("thead th").first
    first.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert first.get_attribute("aria-sort") == "ascending"
    names = column(page, table, 1)
    assert names == sorted(names)
    page.keyboard.press("Space")
    assert column(page, table, 1) == sorted(names, reverse=True)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert first.get_attribute("aria-sort") == "none"
    assert table.locator("thead th").nth(1).get_attribute("aria-sort") == "descending"
    shown = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert shown == "solid"  # what has the focus is seen


def test_losses_sort_the_lowest_first_and_gaps_last(browser, tmp_path):
    path = make_store(
        tmp_path / "gaps.sqlite",
        ("yeast", "scene", "image", "enron"),
        metrics=("average_precision", "coverage"),
        leave_out={("scene", "imcc", r) for r in range(3)},
    )
    page = browser.new_page()
    page.goto(write_report(path, tmp_path / "gaps.html").as_uri())
    page.locator("#scores select[data-switch=metric]").select_option("coverage")
    table = open_table(page)
    for largest_first in (False, True):
        table.locator("thead button").nth(1).click()
        values = column(page, table, 2)
        assert not re.match(r"\d", values[-1])  # the missing one
        numbers = [float(v) for v in values[:-1]]
        assert numbers == sorted(numbers, reverse=largest_first)
    page.close()


def test_switching_the_metric(visit):
    page = visit("three")
    assert page.locator("#scores .panel:not([hidden])").count() == 1
    assert "Average precision" in open_table(page).locator("caption").inner_text()
    page.locator("#differences select[data-switch=metric]").select_option("hamming_loss")
    assert "Hamming loss" in open_table(page).locator("caption").inner_text()
    # All sections follow.
    for section in ("differences", "published"):
        shown = page.locator(f"#{section} .panel:not([hidden])")
        assert shown.count() == 1
        assert "Hamming loss" in shown.locator("h3").first.inner_text()
        assert page.locator(f"#{section} select[data-switch=metric]").input_value() == (
            "hamming_loss"
        )
    # A metric that a section does not have: it says so.
    page.locator("#scores select[data-switch=metric]").select_option("macro_f1")
    assert page.locator("#published .none").is_visible()


def test_data_sets_open(visit):
    page = visit("three")
    is_open = page.locator("details.dataset[open]")
    assert is_open.count() == 1
    page.get_by_role("button", name="Open all").click()
    assert is_open.count() == 6
    assert page.locator("details.dataset").nth(3).locator("table").is_visible()
    page.get_by_role("button", name="Close all").click()
    assert is_open.count() == 0


@pytest.mark.parametrize("name", ["fifteen", "hostile"])
def test_the_page_itself_never_scrolls_sideways(visit, name):
    page = visit(name)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    for viewport in (DESKTOP, PHONE):
        page.set_viewport_size(viewport)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= viewport["width"]


def test_wide_tables_scroll_in_their_box_with_the_names_in_sight(visit):
    page = visit("three", viewport=PHONE)
    box = page.locator("#scores .panel:not([hidden]) .scroll")
    assert box.get_attribute("tabindex") == "0"  # reachable by keyboard
    name = open_table(page).locator("tbody th").first
    left = name.bounding_box()["x"]
    box.evaluate("e => { e.scrollLeft = 200; }")
    assert box.evaluate("e => e.scrollLeft") > 50
    assert name.bounding_box()["x"] == pytest.approx(left, abs=1)


CONTRAST = """() => {
  const rgb = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const f = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const back = (e) => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0.99) return c;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.closest("script")) continue;
    const text = e.closest("svg") ? getComputedStyle(e).fill : getComputedStyle(e).color;
    const a = light(rgb(text)), b = light(back(e));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) bad.push(`${e.tagName} ${e.textContent.slice(0, 30)}: ${contrast}`);
  }
  return bad;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read_on_light_and_dark(visit, scheme):
    page = visit("three", color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")

    def colours():
        return page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle("
            "document.querySelector('#differences .panel:not([hidden]) svg text')).fill]"
        )

    before = colours()
    assert (before[0] != "rgb(255, 255, 255)") == (scheme == "dark")
    assert page.evaluate(CONTRAST) == []
    page.get_by_role("button", name="Light" if scheme == "dark" else "Dark").click()
    assert all(old != new for old, new in zip(before, colours(), strict=True))
    assert page.evaluate(CONTRAST) == []
    page.get_by_role("button", name="Dark" if scheme == "dark" else "Light").click()
    assert colours() == before


def test_on_paper_everything_is_there(visit):
    page = visit("three", color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    panels = page.locator("#scores .panel")
    assert panels.count() == 4
    assert all(panel.is_visible() for panel in panels.all())
    assert page.locator("details:not([open])").count() == 0
    assert not page.locator("nav").is_visible()
    assert not page.locator(".switch").first.is_visible()
    # As wide as an A4 page on its side, less the margins.
    page.set_viewport_size({"width": 1030, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 1030
    assert len(page.pdf()) > 10_000
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details.dataset[open]").count() == 1


def test_without_scripts_all_tables_are_there(visit):
    page = visit("three", java_script_enabled=False)
    panels = page.locator("#scores .panel")
    assert all(panel.is_visible() for panel in panels.all())
    assert not page.locator(".switch").first.is_visible()
    assert page.locator("thead button").count() == 0
    assert not page.locator("#theme").is_visible()


def test_hostile_names_stay_names(visit):
    page = visit("hostile")
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.wait_for_timeout(200)
    assert page.locator("script").count() == 1
    assert page.locator("img").count() == 0
    assert page.locator("h1").inner_text() == "<script>alert(1)</script>"
    assert page.title().startswith("<script>alert(1)</script>")


def test_landmarks_and_names_for_readers_of_the_screen(visit):
    page = visit("three")
    for role in ("banner", "main", "contentinfo", "navigation"):
        assert page.get_by_role(role).count() == 1, role
    assert page.get_by_role("heading", level=1).count() == 1
    for select in page.locator("select").all():
        assert select.evaluate("e => e.labels.length") == 1
    for figure in page.locator("#differences .panel:not([hidden]) svg").all():
        assert "Mean ranks, best first: " in figure.get_attribute("aria-label")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
