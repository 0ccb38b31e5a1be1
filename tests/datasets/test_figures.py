import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib import image

from imcc.datasets import Dataset, draw_labels, load_dataset


@pytest.fixture(scope="module")
def many():
    rng = np.random.RandomState(0)
    Y = rng.rand(50, 60) < np.linspace(0.9, 0, 60)
    names = tuple(f"label ${i}$ [x] with a name that is rather long" for i in range(60))
    return Dataset(np.zeros((50, 1)), Y, label_names=names, name="many")


def test_png(tmp_path):
    path = draw_labels(load_dataset("yeast"), tmp_path / "yeast.png")
    pixels = image.imread(path)
    assert pixels.shape[1] > pixels.shape[0] > 500
    assert pixels[..., :3].std() > 0.1, "something is drawn"


def test_max_labels(tmp_path, many):
    small = image.imread(draw_labels(many, tmp_path / "few.png", max_labels=10))
    large = image.imread(draw_labels(many, tmp_path / "more.png", max_labels=20))
    assert large.shape[0] > 1.3 * small.shape[0]
    with pytest.raises(ValueError, match="max_labels"):
        draw_labels(many, tmp_path / "x.png", max_labels=0)


def test_svg_is_the_same_every_time(tmp_path, toy):
    first = draw_labels(toy, tmp_path / "a.svg").read_text()
    assert ET.fromstring(first).tag.endswith("svg")
    assert "<dc:date>" not in first


def test_labels_that_never_occur_and_single_labels(tmp_path):
    dataset = Dataset([[1.0], [2.0]], [[0], [0]])
    assert draw_labels(dataset, tmp_path / "empty.pdf").stat().st_size > 1000


def test_only_pictures(tmp_path, toy):
    with pytest.raises(ValueError, match=r"\.png, \.svg, \.pdf"):
        draw_labels(toy, tmp_path / "labels.txt")


def test_without_matplotlib(tmp_path, toy, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"Drawing needs .*pip install matplotlib$"):
        draw_labels(toy, tmp_path / "labels.png")
