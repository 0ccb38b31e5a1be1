"""Data sets for property tests: odd names, odd numbers, missing values, dense and sparse."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from imcc.datasets import Dataset

# Any character that text can hold, and those that the formats give a meaning to, often.
_ANY = st.characters(exclude_categories=["Cs", "Cc"])
_ODD = st.sampled_from("'\"\\ ,;:{}%?#@<>&\t\n\r=|$é")
NAMES = st.text(st.one_of(_ANY, _ODD), min_size=1, max_size=6)
NUMBERS = st.one_of(
    st.floats(allow_infinity=False, allow_nan=True, width=64),
    st.sampled_from([0.0, 1.0, -0.0, 1e-300, 0.1, 1e22]),
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
