import gzip
import importlib.util
import sys

import numpy as np
import pytest

from imcc.datasets import (
    DataFetchError,
    dataset_info,
    fetch_datasets,
    load_dataset,
)
from imcc.datasets._load import (
    is_available,
)


@pytest.fixture
def no_river(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "river" else find(name)
    )


@pytest.fixture
def no_network(monkeypatch):
    """Send everything but what is on this machine to a port where nobody listens."""
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")


def test_yeast_is_always_there():
    dataset = load_dataset()
    assert dataset.name == "yeast"
    assert "river" in dataset.source
    assert (dataset.n_rows, dataset.n_features, dataset.n_labels) == (2417, 103, 14)
    assert dataset.label_names[:4] == ("Class1", "Class2", "Class3", "Class6")
    assert dataset == load_dataset("Yeast")


@pytest.mark.data
def test_rivers_copy_is_mulans_file(monkeypatch):
    mulan = load_dataset("yeast")
    assert "mulan" in mulan.source
    monkeypatch.delenv("IMCC_DATA_MIRROR")
    river = load_dataset("yeast")
    assert "river" in river.source
    assert river == mulan
    assert river.fingerprint() == mulan.fingerprint()


def test_without_river_the_message_says_what_to_install(no_river, no_network):
    with pytest.raises(DataFetchError, match=r"install the package river.*pip install river$"):
        load_dataset("yeast")
    assert not is_available("yeast")


def test_other_data_sets_do_not_talk_of_river(no_network):
    with pytest.raises(DataFetchError, match="could not obtain the file") as caught:
        load_dataset("scene")
    assert "river" not in str(caught.value)


@pytest.mark.data
def test_what_is_here():
    assert is_available("scene")


def test_what_is_not_here():
    assert is_available("yeast")
    assert not is_available("scene")


def test_data_that_are_not_those_of_the_registry(monkeypatch, tmp_path):
    """A package river whose copy of the data is another one."""
    (file,) = fetch_datasets("yeast")["yeast"]
    header, first, second, *rest = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    copy = tmp_path / "river" / "datasets" / file.name
    copy.parent.mkdir(parents=True)
    (tmp_path / "river" / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "river", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    copy.write_bytes(gzip.compress(b"".join([header, first, second, *rest]), 1, mtime=0))
    assert str(tmp_path) in load_dataset("yeast").source
    copy.write_bytes(gzip.compress(b"".join([header, second, first, *rest]), 1, mtime=0))
    with pytest.raises(DataFetchError, match="does not contain the data of 'yeast'"):
        load_dataset("yeast")


@pytest.mark.data
def test_fetch(server, mirror, monkeypatch, own_data_home):
    """From an address, into the cache, and from there without the network."""
    info = dataset_info("scene")
    for file in info.files:
        server.files[f"/data/{file.file}"] = (mirror / file.file).read_bytes()
    monkeypatch.setenv("IMCC_DATA_MIRROR", server.url + "/data")
    found = fetch_datasets(["scene"])
    assert found == {"scene": [own_data_home.joinpath(*f.file.split("/")) for f in info.files]}
    monkeypatch.delenv("IMCC_DATA_MIRROR")
    dataset = load_dataset("scene")
    assert dataset.label_names == ("Beach", "Sunset", "FallFoliage", "Field", "Mountain", "Urban")
    assert str(own_data_home) in dataset.source


@pytest.mark.data
def test_fetch_takes_the_fifteen_unless_told():
    found = fetch_datasets()
    assert len(found) == 15
    assert all(path.is_file() for paths in found.values() for path in paths)


def test_fetch_of_yeast_needs_no_network(no_network):
    assert fetch_datasets("yeast")["yeast"][0].name == "yeast.csv.gz"


def test_wrong_names():
    with pytest.raises(ValueError, match="no data set named 'nope'"):
        fetch_datasets(["yeast", "nope"])
    with pytest.raises(ValueError, match="no data set named 'nope'"):
        load_dataset("nope")


@pytest.mark.data
def test_the_authors_yeast_has_the_same_rows_in_another_order():
    theirs, ours = load_dataset("authors-yeast"), load_dataset("yeast")
    assert theirs.Y.sum() == ours.Y.sum()
    assert not np.array_equal(theirs.Y, ours.Y)
