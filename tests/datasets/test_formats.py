import pytest

from imcc.datasets import DataFormatError, read, write


def test_format_wins_over_the_name(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("a,y\n1,0\n")
    with pytest.raises(DataFormatError, match=r"specify it with format=.*csv"):
        read(path, labels=["y"])
    assert read(path, labels=["y"], format="csv").n_rows == 1
    with pytest.raises(ValueError, match="format must be one of"):
        read(path, labels=["y"], format="excel")


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("t.csv", {"variables": ("a", "b")}),
        ("t.svm", {"labels": 3}),
        ("t.mat", {"nominal": "ordinal"}),
        ("t.npz", {"encoding": "utf-8"}),
        ("t.arff", {"delimiter": ";", "labels": 1}),
    ],
)
def test_options_that_would_do_nothing_are_refused(tmp_path, name, option):
    (tmp_path / name).write_bytes(b"x")
    refused = next(iter(option))
    with pytest.raises(TypeError, match=f"{refused} is not an option of the format"):
        read(tmp_path / name, **option)


def test_what_cannot_be_written(tmp_path, toy):
    for name in ("mat", "svm", "arff"):
        with pytest.raises(ValueError, match=r"is read only; use one of npz, csv"):
            write(toy, tmp_path / f"t.{name}")
    with pytest.raises(DataFormatError, match="format cannot be detected"):
        write(toy, tmp_path / "t.xyz")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write(toy, tmp_path / "nowhere" / "t.npz")


def test_writing_returns_the_files(tmp_path, toy):
    assert write(toy, tmp_path / "t.npz") == tmp_path / "t.npz"
    assert write(toy, tmp_path / "t.csv.gz") == tmp_path / "t.csv.gz"


def test_overwrite(tmp_path, toy):
    write(toy, tmp_path / "t.npz", overwrite=False)
    write(toy[:1], tmp_path / "t.npz")
    with pytest.raises(FileExistsError, match=r"t\.npz already exists"):
        write(toy, tmp_path / "t.npz", overwrite=False)
    assert read(tmp_path / "t.npz").n_rows == 1
