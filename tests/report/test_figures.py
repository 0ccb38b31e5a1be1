"""Figures: what they show, and that nothing in them covers anything else."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from imcc.comparison import compare
from imcc.experiment import Store
from imcc.report import draw_critical_difference
from imcc.report._picture import ACCENT, INK, style
from imcc.report._results import make_panels

KINDS = ("control", "pairs")
_made = {}


@pytest.fixture
def panel(stores):
    """Return the scores of a store by average precision, and their comparison."""

    def get(name):
        if name not in _made:
            with Store(stores(name), read_only=True) as store:
                _made[name] = make_panels(store, "imcc")[0]
        return _made[name]

    return get


def draw(panel, kind):
    if kind == "control":
        return draw_critical_difference(panel.comparison)
    return draw_critical_difference(panel.comparison, control=False)


def boxes(picture):
    """Return the places of all texts of a figure that are drawn, and its own."""
    figure, drawn = picture.figure, []
    draw_text = Text.draw

    def remember(text, renderer, *args, **kwargs):
        if text.get_text().strip() and text.get_visible():
            drawn.append(text)
        return draw_text(text, renderer, *args, **kwargs)

    with style(), pytest.MonkeyPatch.context() as patch:
        canvas = FigureCanvasAgg(figure)
        patch.setattr(Text, "draw", remember)
        canvas.draw()
        placed = []
        for text in dict.fromkeys(drawn):
            # What is written, not the line that a box of text may have with it.
            extent = Text.get_window_extent(text, canvas.get_renderer())
            placed.append((text.get_text(), extent))
    width, height = figure.get_size_inches() * figure.dpi
    return placed, Bbox([[-0.5, -0.5], [width + 0.5, height + 0.5]])


def inside(whole, box):
    return whole.contains(*box.min) and whole.contains(*box.max)


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in ("three", "fifteen", "hostile") for kind in KINDS],
)
def test_no_text_covers_another_or_leaves_the_figure(panel, name, kind):
    placed, whole = boxes(draw(panel(name), kind))
    assert len(placed) >= 4
    for i, (text, box) in enumerate(placed):
        assert inside(whole, box), f"{text!r} leaves the figure"
        for other, other_box in placed[:i]:
            # Half a pixel: letters of one line may touch the line below.
            inner = box.padded(-0.5)
            assert not inner.overlaps(other_box), f"{text!r} covers {other!r}"


@pytest.mark.parametrize("kind", KINDS)
def test_inline_svg(panel, kind):
    picture = draw(panel("three"), kind)
    svg = picture.inline("f7")
    root = ET.fromstring(svg)
    ids = re.findall(r' id="([^"]+)"', svg)
    assert all(name.startswith("f7-") for name in ids)
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'href="#([^"]+)"', svg)) | set(re.findall(r"url\(#([^)]+)\)", svg))
    assert used <= set(ids)
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == picture.description
    assert "<style" not in svg  # it would be the page's
    assert "http" not in svg
    assert "var(--ink)" in svg or "var(--muted)" in svg
    assert "DejaVu" not in svg
    assert not re.findall(r"#[0-9a-f]{6}", svg), "a colour that dark pages cannot change"
    assert picture.caption
    assert picture.caption.endswith(".")


def test_hostile_names_are_text(panel):
    for kind in KINDS:
        svg = draw(panel("hostile"), kind).inline("f1")
        root = ET.fromstring(svg)
        tags = {element.tag.split("}")[-1] for element in root.iter()}
        assert not tags & {"script", "img", "style"}
        texts = " ".join(element.text or "" for element in root.iter())
        assert "<script>alert(1)</scrip" in texts
        assert "$x_1^2$" in texts  # not read as mathematics


@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".png"])
def test_save(panel, tmp_path, suffix):
    picture = draw(panel("three"), "control")
    path = picture.save(tmp_path / f"cd{suffix}")
    head = path.read_bytes()[:300]
    assert {".svg": b"<?xml", ".pdf": b"%PDF", ".png": b"\x89PNG"}[suffix] in head
    again = picture.save(tmp_path / f"again{suffix}")
    assert path.read_bytes() == again.read_bytes()
    with pytest.raises(ValueError, match="must end in"):
        picture.save(tmp_path / "cd.jpg")


def test_letters_that_a_picture_lacks_are_reported(panel, tmp_path):
    picture = draw(panel("hostile"), "control")
    picture.save(tmp_path / "cd.svg")  # the viewer has them
    with pytest.warns(UserWarning, match="missing from font"):
        picture.save(tmp_path / "cd.png")


def markers(axes):
    """Return (x, y, marker, filled) of the single points of a diagram."""
    drawn = []
    for line in axes.lines:
        if line.get_marker() not in ("None", None, "") and len(line.get_xdata()) == 1:
            full = to_hex(line.get_markerfacecolor()) in (INK, ACCENT)
            drawn.append((float(line.get_xdata()[0]), line.get_marker(), full))
    return drawn


def test_critical_difference_shows_the_ranks(panel):
    comparison = panel("fifteen").comparison
    picture = draw_critical_difference(comparison)
    drawn = sorted(markers(picture.figure.axes[0]))
    ranks = np.sort(comparison.mean_ranks)
    places = np.array([x for x, _, _ in drawn])
    line = np.polyfit(ranks, places, 1)
    np.testing.assert_allclose(np.polyval(line, ranks), places, atol=1e-9)
    control = comparison.against_control
    order = np.argsort(comparison.mean_ranks, kind="stable")
    for (_, marker, full), method in zip(drawn, order, strict=True):
        assert marker == ("D" if method == control.control else "o")
        if method != control.control:
            assert full == control.ranks_differ[method]
    assert f"CD = {control.critical_difference:.2f}" in picture.caption


def test_pairs_have_a_bar_for_each_group(panel):
    comparison = panel("fifteen").comparison
    axes = draw_critical_difference(comparison, control=False).figure.axes[0]
    bars = [line for line in axes.lines if line.get_linewidth() == pytest.approx(3.2)]
    assert len(bars) == len(comparison.nemenyi.cliques) > 1


def test_a_critical_difference_longer_than_the_axis(panel):
    scores = panel("fifteen").scores
    few = compare(scores.select(scores.datasets[:2], ["imcc", "ecc"]), control="imcc")
    placed, whole = boxes(draw_critical_difference(few))
    assert any("longer than the axis" in text for text, _ in placed)
    assert all(inside(whole, box) for _, box in placed)
    with pytest.raises(ValueError, match="no tests of ranks"):
        draw_critical_difference(replace(few, nemenyi=None, reasons={"nemenyi": "why"}))
