"""Damaged files: only the documented error may come out of a reader.

tests/datasets/fuzz_readers.py does the same for as long as one likes.
"""

import pathlib
import random
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datasets.fuzz_readers import READERS, Kind, damaged, is_read, kinds, reads

pytestmark = pytest.mark.filterwarnings("ignore::imcc.datasets.DataWarning")


@pytest.fixture(scope="module")
def valid():
    with tempfile.TemporaryDirectory() as folder:
        yield pathlib.Path(folder), kinds(pathlib.Path(folder))


@pytest.mark.parametrize("name", READERS)
def test_damaged_files(valid, name):
    folder, files = valid
    kind, chance = files[name], random.Random(name)
    assert is_read(kind, kind.data, folder), "the valid file"
    were_read = [is_read(kind, damaged(kind.data, chance), folder) for _ in range(60)]
    assert not all(were_read)


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
    kind = Kind("words.arff", b"", reads(labels=1))
    assert is_read(kind, "".join(words).encode(), valid[0]) in (True, False)
