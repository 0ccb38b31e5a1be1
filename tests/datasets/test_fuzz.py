"""Damaged files: only the documented error may come out of a reader.

tests/datasets/fuzz_readers.py does the same for as long as one likes.
"""

import pathlib
import random
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datasets.fuzz_readers import OTHERS, damaged, read_one, seeds

pytestmark = pytest.mark.filterwarnings("ignore::imcc.datasets.DataWarning")

KINDS = [
    "mulan dense", "mulan sparse", "meka", "svmlight", "svmlight plain", "csv", "tsv", "npz",
    "npz sparse", "parquet", "xlsx", "gz", "bz2", "zip", "arff nominal", "arff quoted sparse",
    "mat", "mat compressed",
]  # fmt: skip
OUTCOMES = ("read", "refused")


@pytest.fixture(scope="module")
def valid():
    with tempfile.TemporaryDirectory() as folder:
        yield pathlib.Path(folder), seeds(pathlib.Path(folder))


def test_every_kind_is_fuzzed(valid):
    assert set(valid[1]) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(valid, kind):
    folder, files = valid
    name, data, options = files[kind]
    chance = random.Random(kind)
    outcomes = {read_one(folder / name, damaged(data, chance), options) for _ in range(100)}
    assert "refused" in outcomes
    assert outcomes <= set(OUTCOMES)


@pytest.mark.parametrize("kind", OTHERS)
def test_damaged_files_of_other_kinds(tmp_path, kind):
    name, data, reader = OTHERS[kind]
    chance = random.Random(kind)
    outcomes = {reader(tmp_path / name, damaged(data, chance)) for _ in range(50)}
    assert outcomes <= set(OUTCOMES)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["@relation r", "@attribute", "x", "numeric", "{a,b}", "string", "@data", "1", "a", "?",
             "{", "}", "0 1", "'", '"', ",", " ", "\n", "\n", "\n", "% c", "\\", "-C 1", "{0 1}"]
        ),
        max_size=40,
    )
)  # fmt: skip
def test_arff_made_of_its_own_words(valid, words):
    folder, _ = valid
    data = "".join(words).encode()
    assert read_one(folder / "words.arff", data, {"labels": 1}) in OUTCOMES
