"""What is written is read back the same, whatever it is."""

import pathlib
import tempfile

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from imcc.datasets import Dataset, read
from tests.writers import write

pytestmark = [
    pytest.mark.filterwarnings("ignore::imcc.datasets.DataWarning"),  # missing values
]

# Any character that text can hold, and those that the formats give a meaning to, often.
_ANY = st.characters(exclude_categories=["Cs", "Cc"])
_ODD = st.sampled_from("'\"\\ ,;:{}%?#@<>&\t\n\r=|$é")
# Spaces around the names of columns are not kept in CSV files.
NAMES = st.text(st.one_of(_ANY, _ODD), min_size=1, max_size=6).filter(lambda s: s == s.strip())
NUMBERS = st.one_of(
    st.floats(allow_infinity=False, allow_nan=True, width=64),
    st.sampled_from([float("nan"), 0.0, 1.0, -0.0, 1e-300, 0.1, 1e22]),
)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    n_rows = draw(st.integers(1, 5))
    n_features = draw(st.integers(1, 4))
    n_labels = draw(st.integers(1, 4))
    names = draw(
        st.lists(NAMES, min_size=n_features + n_labels, max_size=n_features + n_labels, unique=True)
    )
    X = draw(hnp.arrays(float, (n_rows, n_features), elements=NUMBERS))
    Y = draw(hnp.arrays(np.int8, (n_rows, n_labels), elements=st.integers(0, 1)))
    features = sp.csr_array(X) if draw(st.booleans()) else X
    return Dataset(features, Y, names[:n_features], names[n_features:], draw(NAMES))


# file, how to write it, whether it keeps sparse features sparse, whether it keeps the labels
FORMATS = {
    "mulan": ("data.arff", {}, True, True),
    "meka": ("data.arff", {"format": "meka"}, True, True),
    "csv": ("data.csv", {}, False, False),
    "tsv": ("data.tsv.gz", {}, False, False),
    "npz": ("data.npz", {}, True, True),
}


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_read_gives_back_what_write_wrote(name, data):
    file, how, keeps_sparse, keeps_labels = FORMATS[name]
    dataset = data.draw(datasets())
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / file
        write(dataset, path, **how)
        options = {} if keeps_labels else {"labels": list(dataset.label_names)}
        if name == "csv":
            options["delimiter"] = ","  # which names may make ambiguous
        found = read(path, **options)
    assert found == dataset
    assert found.fingerprint() == dataset.fingerprint()
    if keeps_sparse:
        assert found.is_sparse == dataset.is_sparse
