import bz2
import gzip
import zipfile

import pytest

from imcc.datasets import DataFormatError, read
from tests.writers import write

CSV = "a,y\n1,0\n2,1\n"


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
@pytest.mark.parametrize("inner", [".arff", ".csv", ".npz"])
def test_every_format_packed(tmp_path, toy, inner, suffix):
    path = tmp_path / f"toy{inner}{suffix}"
    write(toy, path)
    options = {"labels": -2} if inner == ".csv" else {}
    assert read(path, **options) == toy
    assert read(path, **options).name == "toy"


def test_the_same_data_give_the_same_packed_file(tmp_path, toy):
    for suffix, unpack in ((".gz", gzip.decompress), (".bz2", bz2.decompress), (".zip", None)):
        path = write(toy, tmp_path / f"a.csv{suffix}")
        first = path.read_bytes()
        if unpack is not None:
            assert unpack(first).startswith(b"a,b c")
        assert write(toy, path).read_bytes() == first


BOMB = b"a,y\n" + b"1,0\n" * 300_000


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("bomb.csv.gz", gzip.compress),
        ("bomb.csv.bz2", bz2.compress),
        ("bomb.csv.zip", None),
    ],
)
def test_bombs_are_refused_before_they_fill_the_memory(tmp_path, name, pack):
    path = tmp_path / name
    if pack is None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb.csv", BOMB)
    else:
        path.write_bytes(pack(BOMB))
    assert path.stat().st_size < 50_000
    with pytest.raises(DataFormatError, match="larger than the limit of 1,000,000 bytes"):
        read(path, labels=["y"], max_bytes=1_000_000)
    assert read(path, labels=["y"], max_bytes=10_000_000).n_rows == 300_000


def test_a_zip_file_that_lies_about_its_size(tmp_path):
    path = tmp_path / "liar.csv.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("liar.csv", BOMB)
    data = path.read_bytes()
    true = len(BOMB).to_bytes(4, "little")
    assert data.count(true) >= 2
    path.write_bytes(data.replace(true, (100).to_bytes(4, "little")))
    with pytest.raises(DataFormatError):
        read(path, labels=["y"], max_bytes=1_000_000)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zip"])
def test_damaged_and_cut_off(tmp_path, toy, suffix):
    path = tmp_path / f"toy.csv{suffix}"
    write(toy, path)
    whole = path.read_bytes()
    for data in (whole[: len(whole) // 2], b"", b"garbage", whole[:-4]):
        path.write_bytes(data)
        with pytest.raises(DataFormatError, match=f"toy.csv{suffix}"):
            read(path, labels=-2)


def test_an_archive_with_an_arff_file_and_its_xml_file(tmp_path, toy):
    write(toy, tmp_path / "toy.arff")
    path = tmp_path / "both.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(tmp_path / "toy.arff", "data/toy.arff")
        archive.write(tmp_path / "toy.xml", "data/toy.xml")
        archive.writestr("data/readme.txt", "hello")
    (tmp_path / "toy.xml").unlink()
    assert read(path) == toy


def test_an_archive_with_several_files(tmp_path):
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("one.csv", CSV)
        archive.writestr("two.csv", CSV + "3,1\n")
    with pytest.raises(DataFormatError, match=r"2 data files.*'one.csv', 'two.csv'.*member="):
        read(path, labels=["y"])
    assert read(path, labels=["y"], member="two.csv").n_rows == 3
    with pytest.raises(DataFormatError, match=r"no file 'three\.csv'"):
        read(path, labels=["y"], member="three.csv")
    with pytest.raises(ValueError, match="member"):
        read(tmp_path / "x.csv", labels=["y"], member="two.csv")
    with zipfile.ZipFile(path, "w"):
        pass
    with pytest.raises(DataFormatError, match="member="):
        read(path)


@pytest.mark.parametrize("name", ["odd.csv.zip", "odd.npz"])
@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressions_that_can_unpack_without_a_limit(tmp_path, name, method):
    pytest.importorskip("lzma")
    with zipfile.ZipFile(tmp_path / name, "w", method) as archive:
        archive.writestr("odd.npy" if name == "odd.npz" else "odd.csv", CSV)
    with pytest.raises(DataFormatError, match="method"):
        read(tmp_path / name)


def test_missing_files_are_no_damaged_files(tmp_path):
    for name in ("no.csv", "no.csv.gz", "no.csv.zip", "no.arff.bz2"):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / name, labels=["y"])
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bytes(range(256)) * 4, "binary file"),
        (b"a,y\n1,\x000\n", "NUL"),
        (gzip.compress(b"a,y\n1,0\n", mtime=0), r"suffix \.gz"),
    ],
)
def test_binary_garbage_in_text_files(tmp_path, data, reason):
    for name in ("t.csv", "t.arff", "t.svm"):
        (tmp_path / name).write_bytes(data)
        options = {} if name == "t.svm" else {"labels": ["y"]}
        with pytest.raises(DataFormatError, match=reason):
            read(tmp_path / name, **options)
