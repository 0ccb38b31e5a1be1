"""What is written is read back the same, whatever it is."""

import pathlib
import tempfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imcc.datasets import Dataset, read, write
from tests.datasets.strategies import datasets

pytestmark = [
    pytest.mark.filterwarnings("ignore::imcc.datasets.DataWarning"),  # missing values
]

# file, how to write it, whether it keeps sparse features sparse, whether it keeps the labels
FORMATS = {
    "mulan": ("data.arff", {}, True, True),
    "meka": ("data.arff", {"format": "meka"}, True, True),
    "svmlight": ("data.svm", {}, True, True),
    "csv": ("data.csv", {}, False, False),
    "tsv": ("data.tsv.gz", {}, False, False),
    "parquet": ("data.parquet", {}, False, True),
    "npz": ("data.npz", {}, True, True),
}


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_read_gives_back_what_write_wrote(name, data):
    file, how, keeps_sparse, keeps_labels = FORMATS[name]
    dataset = data.draw(datasets())
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / file
        write(dataset, path, **how)
        options = {} if keeps_labels else {"labels": list(dataset.label_names)}
        found = read(path, **options)
    assert found == dataset
    assert found.fingerprint() == dataset.fingerprint()
    if keeps_sparse and name != "svmlight":
        assert found.is_sparse == dataset.is_sparse


def test_the_strategy_makes_what_it_should():
    seen = set()

    @settings(max_examples=200, database=None)
    @given(datasets())
    def look(dataset: Dataset):
        seen.add(("sparse", dataset.is_sparse))
        seen.add(("missing", dataset.has_missing))
        seen.add(("unlabelled", bool((dataset.Y.sum(axis=1) == 0).any())))

    look()
    assert len(seen) == 6
