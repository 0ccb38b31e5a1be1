"""What the documentation's pages repeat from elsewhere is what stands there."""

import importlib.util
import re
import sys
import tomllib
import zlib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def text(*parts):
    return ROOT.joinpath(*parts).read_text("utf-8")


def test_the_table_of_extras_is_that_of_the_project():
    extras = tomllib.loads(text("pyproject.toml"))["project"]["optional-dependencies"]
    rows = re.findall(r"^\| `([\w-]+)` \| .* \| (.*) \|$", text("docs", "install.md"), re.M)
    assert {name for name, _ in rows} == set(extras) - {"gpu-tests"}
    for name, brings in rows:
        if name not in ("all", "docs", "dev"):
            packages = {re.match(r"[\w-]+", line)[0] for line in extras[name]}
            assert set(brings.split(", ")) == packages, name


def inventory(path):
    """The names of an inventory, and the page of each."""
    head, _, packed = path.read_bytes().partition(b"using zlib.\n")
    assert head.startswith(b"# Sphinx inventory version 2")
    for line in zlib.decompress(packed).decode().splitlines():
        name, _, _, where, _ = line.split(" ")
        yield name, where


@pytest.mark.parametrize("project", ["numpy", "scipy", "sklearn", "pandas"])
def test_inventories_have_names_that_exist(project):
    names = dict(inventory(DOCS / "_inventories" / f"{project}.inv"))
    assert len(names) > 30
    some = sorted(names)[:: max(len(names) // 20, 1)]
    for name in some:
        module, _, last = name.rpartition(".")
        assert hasattr(import_module(module), last), name
        assert name in names[name] or "$" in names[name]


def test_the_gallery_has_examples_that_draw():
    examples = sorted((ROOT / "examples").glob("plot_*.py"))
    assert len(examples) >= 12
    for path in examples:
        code = path.read_text("utf-8")
        assert code.startswith('"""\n'), path
        assert "plt.show()" in code or "draw_" in code, path
        assert code.count("# %%") >= 2, path


def links():
    spec = importlib.util.spec_from_file_location("check_links", DOCS / "check_links.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_links"] = module
    spec.loader.exec_module(module)
    return module


def test_no_line_of_a_page_is_a_comment():
    """A line that begins with a percent sign is not shown."""
    for page in DOCS.glob("*.md"):
        lines = page.read_text(encoding="utf-8").splitlines()
        assert not [line for line in lines if line.lstrip().startswith("% ")], page.name


def test_broken_links_and_anchors_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">x</a><a href="b.html#gone">x</a><a href="c.html">x</a>'
        '<a href="https://example.org/none">x</a><a href="#top">x</a><img src="no.png">'
    )
    (tmp_path / "b.html").write_text('<p id="here">x</p><a href="a.html">x</a>')
    assert links().broken_links(tmp_path) == [
        "a.html: no anchor for b.html#gone",
        "a.html: no file for c.html",
        "a.html: no file for no.png",
    ]


def test_pictures_of_the_gallery_are_shown_on_the_fitting_page_only(tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    core = pytest.importorskip("docutils.core")
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    gallery = import_module("gallery")
    with plt.rc_context():
        gallery.use_style(None, None)
        plt.plot([1, 2])
        paths = iter([str(tmp_path / "a.png")])
        names = {"image_path_iterator": paths, "example_globals": {}}
        source = gallery.light_and_dark(None, names, {"src_dir": str(tmp_path)})
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "a_dark.png"}
    html = core.publish_parts(source, writer="html5")["body"]
    shown = re.findall(r'<img [^>]*class="([^"]*)" src="/([^"]*)"', html)
    assert shown == [
        ("sphx-glr-single-img only-light", "a.png"),
        ("sphx-glr-single-img only-dark", "a_dark.png"),
    ]
