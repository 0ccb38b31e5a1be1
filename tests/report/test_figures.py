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
from imcc.report import draw_critical_difference, draw_time, write_figures
from imcc.report._picture import ACCENT, INK, style
from imcc.report._results import gather
from imcc.report._runs import draw_spread, spread_out
from tests.report.synthetic import HOSTILE

KINDS = ("control", "pairs", "spread", "time")
_gathered = {}


@pytest.fixture
def results(stores):
    def get(name):
        if name not in _gathered:
            _gathered[name] = gather(stores(name))
        return _gathered[name]

    return get


def draw(results, kind):
    scores, comparison = results.main.scores, results.main.comparison
    if kind == "control":
        return draw_critical_difference(comparison)
    if kind == "pairs":
        return draw_critical_difference(comparison, control=False)
    if kind == "spread":
        return draw_spread(scores, scores.datasets[0], control="imcc")
    return draw_time(comparison, results.runs)


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
def test_no_text_covers_another_or_leaves_the_figure(results, name, kind):
    placed, whole = boxes(draw(results(name), kind))
    assert len(placed) >= 4
    for i, (text, box) in enumerate(placed):
        assert inside(whole, box), f"{text!r} leaves the figure"
        for other, other_box in placed[:i]:
            # Half a pixel: letters of one line may touch the line below.
            inner = box.padded(-0.5)
            assert not inner.overlaps(other_box), f"{text!r} covers {other!r}"


@pytest.mark.parametrize("kind", KINDS)
def test_inline_svg(results, kind):
    picture = draw(results("three"), kind)
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


def test_hostile_names_are_text(results):
    for kind in ("control", "spread", "time"):
        svg = draw(results("hostile"), kind).inline("f1")
        root = ET.fromstring(svg)
        tags = {element.tag.split("}")[-1] for element in root.iter()}
        assert not tags & {"script", "img", "style"}
        texts = " ".join(element.text or "" for element in root.iter())
        assert "<script>alert(1)</scrip" in texts
        assert "$x_1^2$" in texts  # not read as mathematics


@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".png"])
def test_save(results, tmp_path, suffix):
    picture = draw(results("three"), "control")
    path = picture.save(tmp_path / f"cd{suffix}")
    head = path.read_bytes()[:300]
    assert {".svg": b"<?xml", ".pdf": b"%PDF", ".png": b"\x89PNG"}[suffix] in head
    again = picture.save(tmp_path / f"again{suffix}")
    assert path.read_bytes() == again.read_bytes()
    with pytest.raises(ValueError, match="must end in"):
        picture.save(tmp_path / "cd.jpg")


def test_letters_that_a_picture_lacks_are_reported(results, tmp_path):
    picture = draw(results("hostile"), "control")
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


def test_critical_difference_shows_the_ranks(results):
    comparison = results("fifteen").main.comparison
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


def test_pairs_have_a_bar_for_each_group(results):
    comparison = results("fifteen").main.comparison
    axes = draw_critical_difference(comparison, control=False).figure.axes[0]
    bars = [line for line in axes.lines if line.get_linewidth() == pytest.approx(3.2)]
    assert len(bars) == len(comparison.nemenyi.cliques) > 1


def test_a_critical_difference_longer_than_the_axis(results):
    scores = results("fifteen").main.scores
    few = compare(scores.select(scores.datasets[:2], ["imcc", "ecc"]), control="imcc")
    placed, whole = boxes(draw_critical_difference(few))
    assert any("longer than the axis" in text for text, _ in placed)
    assert all(inside(whole, box) for _, box in placed)
    with pytest.raises(ValueError, match="no tests of ranks"):
        draw_critical_difference(replace(few, nemenyi=None, reasons={"nemenyi": "why"}))


def test_spread_has_every_run(results):
    scores = results("three").main.scores
    axes = draw_spread(scores, "yeast").figure.axes[0]
    points = [line for line in axes.lines if line.get_marker() == "o"]
    drawn = np.sort(np.concatenate([line.get_xdata() for line in points]))
    np.testing.assert_allclose(drawn, np.sort(scores.select(["yeast"]).values.ravel()))
    accents = [line for line in points if to_hex(line.get_color()) == ACCENT]
    assert not accents
    axes = draw_spread(scores, "yeast", control="imcc").figure.axes[0]
    points = [line for line in axes.lines if line.get_marker() == "o"]
    assert sum(to_hex(line.get_color()) == ACCENT for line in points) == 1


def test_times_on_a_gpu_are_points_of_their_own(results):
    gathered = results("three")
    comparison = gathered.main.comparison
    plain = draw_time(comparison, gathered.runs)
    assert "GPU" not in plain.caption
    first, *rest = gathered.runs
    moved = replace(first, environment={**first.environment, "device": "cuda: a GPU"})
    drawn = draw_time(comparison, [moved, *rest])
    assert "Circles are times on a CPU, squares on a GPU" in drawn.caption
    assert "fewer data sets" in drawn.caption  # the GPU has one
    markers = [line.get_marker() for line in drawn.figure.axes[0].lines]
    assert sorted(markers) == ["o"] * len(comparison.methods) + ["s"]


def test_times_are_those_of_equal_threads(results):
    gathered = results("three")
    comparison = gathered.main.comparison
    runs = [replace(r, environment={**r.environment, "threads": 1}) for r in gathered.runs]
    slow = [replace(r, environment={"threads": 8}, fit_seconds=1e6) for r in runs[:4]]
    drawn = draw_time(comparison, [*runs, *slow])
    assert "All with 1 thread (4 runs with another number left out)." in drawn.caption
    same = draw_time(comparison, runs)
    assert drawn.description == same.description


def test_times_are_geometric_means_of_ratios(results):
    gathered = results("three")
    comparison = gathered.main.comparison
    seconds = np.array(
        [
            [
                np.median([r.fit_seconds for r in gathered.runs if r.key[:2] == (d, m)])
                for d in comparison.datasets
            ]
            for m in comparison.methods
        ]
    )
    for reference, unit in ((None, seconds[0]), ("extra_trees", seconds[2])):  # the fastest
        picture = draw_time(comparison, gathered.runs, reference=reference)
        axes = picture.figure.axes[0]
        drawn = [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines]
        ratios = np.exp(np.log(seconds / unit).mean(axis=1))
        expected = zip(ratios, comparison.mean_ranks, strict=True)
        np.testing.assert_allclose(sorted(drawn), sorted(expected))
        low, high = axes.get_ylim()
        assert low > high  # the best rank is on top
    with pytest.raises(ValueError, match="reference"):
        draw_time(comparison, gathered.runs, reference="nobody")


def test_names_are_spread_out_as_little_as_needed():
    rng = np.random.default_rng(0)
    for n in (2, 5, 20):
        heights = np.sort(rng.uniform(size=n))
        placed = spread_out(heights, 0.05)
        assert np.all(np.diff(placed) > 0.05 - 1e-12)
        assert placed[0] > -1e-12
        assert placed[-1] < 1 + 1e-12
    apart = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(spread_out(apart, 0.05), apart)
    np.testing.assert_allclose(spread_out(np.full(3, 0.5), 0.1), [0.4, 0.5, 0.6])


@pytest.mark.slow
def test_write_figures(stores, tmp_path):
    written = write_figures(stores("three"), tmp_path / "new" / "folder", format="svg")
    names = {path.name for path in written}
    assert len(names) == len(written)
    for name in (
        "cd_control_average_precision_own.svg",
        "cd_coverage_each.svg",
        "time_macro_f1_own.svg",
        "spread_4_yeast.svg",
    ):
        assert name in names
    with pytest.raises(ValueError, match="format"):
        write_figures(stores("three"), tmp_path, format="gif")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="not a folder"):
        write_figures(stores("one"), tmp_path / "file")


def test_figures_of_hostile_names_get_harmless_file_names(stores, tmp_path):
    written = write_figures(stores("narrow"), tmp_path, format="svg")
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+\.svg", path.name) for path in written)
    assert {path.parent for path in written} == {tmp_path}


def test_control_and_alpha_reach_the_figures(stores, tmp_path):
    def one(folder, **options):
        write_figures(stores("narrow"), tmp_path / folder, **options)
        return (tmp_path / folder / "cd_control_average_precision_own.svg").read_text()

    plain = one("a")
    assert one("b", control=HOSTILE[0]) != plain
    assert one("c", alpha=0.2) != plain
