import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from imcc.datasets import DataFormatError, DataWarning, read, read_parquet, write


def save(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def test_columns_of_every_kind(tmp_path):
    path = save(
        tmp_path / "t.parquet",
        whole=[1, 2, None],
        real=[0.5, None, 2.0],
        flag=[True, False, True],
        word=pa.array(["red", "blue", "green"]).dictionary_encode(),
        y=[1, 0, 1],
    )
    with pytest.warns(DataWarning, match="2 missing value"):
        dataset = read(path, labels=["y"])
    assert dataset.feature_names == ("whole", "real", "flag", "word=blue", "word=green", "word=red")
    np.testing.assert_array_equal(dataset.X[:, :3], [[1, 0.5, 1], [2, np.nan, 0], [np.nan, 2, 1]])
    np.testing.assert_array_equal(dataset.Y.ravel(), [1, 0, 1])


def test_words_of_several_row_groups(tmp_path):
    table = pa.table({"c": ["b", "a", None, "c", "b", "d"], "y": [0, 1, 0, 1, 0, 1]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    with pytest.warns(DataWarning, match="1 missing value"):
        dataset = read(tmp_path / "t.parquet", labels=["y"], nominal="ordinal")
    np.testing.assert_array_equal(dataset.X.ravel(), [1, 0, np.nan, 2, 1, 3])


def test_a_long_word_in_many_rows_takes_its_place_once(tmp_path):
    words = pa.DictionaryArray.from_arrays([0, 1] * 5000, ["x" * 1_000_000, "short"])
    path = save(tmp_path / "t.parquet", c=words, y=[0, 1] * 5000)
    assert path.stat().st_size < 2_000_000
    dataset = read(path, labels=["y"])
    np.testing.assert_array_equal(dataset.X[:2], [[1], [0]])


def test_labels_by_prefix_and_count(tmp_path):
    path = save(tmp_path / "t.pq", a=[1.0, 2.0], y_1=[0, 1], y_2=[True, False])
    assert read_parquet(path, label_prefix="y_").label_names == ("y_1", "y_2")
    assert read_parquet(path, labels=-1).label_names == ("y_2",)
    with pytest.raises(DataFormatError, match="does not say which columns are labels"):
        read_parquet(path)


def test_nominal(tmp_path):
    path = save(tmp_path / "t.parquet", c=["a", "b", "c", "a"], y=[0, 1, 1, 0])
    assert read(path, labels=["y"]).n_features == 3
    assert read(path, labels=["y"], nominal="ordinal").n_features == 1


def test_what_cannot_be_read_is_named(tmp_path):
    path = save(tmp_path / "t.parquet", when=[[1], [2]], y=[0, 1])
    with pytest.raises(DataFormatError, match=r"the column 'when' has the type list"):
        read(path, labels=["y"])


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\0" * 50 + b"PAR1", b"a,b\n1,2\n"])
def test_what_is_no_parquet_file(tmp_path, data):
    path = tmp_path / "t.parquet"
    path.write_bytes(data)
    with pytest.raises(DataFormatError, match=r"t\.parquet"):
        read(path, labels=["y"])


def test_a_table_that_unpacks_beyond_the_limit_is_refused(tmp_path):
    path = save(tmp_path / "bomb.parquet", a=np.zeros(1_000_000), y=np.zeros(1_000_000))
    assert path.stat().st_size < 100_000
    with pytest.raises(DataFormatError, match="would need 16,000,000 bytes"):
        read(path, labels=["y"], max_bytes=1_000_000)


def test_a_file_of_ours_knows_its_labels_and_can_be_told_others(tmp_path, toy):
    path = write(toy, tmp_path / "t.parquet")
    assert read(path).label_names == ("cat", "big dog")
    assert read(path, labels=["cat"]).label_names == ("cat",)
    assert read([path, path]).n_rows == 8
