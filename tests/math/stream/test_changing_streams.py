"""Streams that give other rows or labels in a later pass than in the first one."""

import numpy as np
import pytest
import scipy.sparse as sp

from imcc import IMCCClassifier
from tests.backends import BACKENDS, array, backend

random = np.random.default_rng(0)
X = random.normal(size=(60, 4))
Y = (X[:, :3] + random.normal(size=(60, 3)) > 0).astype(int)
KINDS = {
    "linear": {"kernel": "linear"},
    "nystroem": {"approximation": "nystroem", "n_components": 15},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


class Changing:
    """Chunks whose rows and labels are changed from some pass on."""

    def __init__(self, change, from_pass=1, make=np.asarray, labels=Y):
        self.change, self.from_pass, self.make, self.labels = change, from_pass, make, labels
        self.passes = 0

    def __iter__(self):
        rows, labels = X.copy(), self.labels.copy()
        if self.passes >= self.from_pass:
            rows, labels = self.change(rows, labels)
        self.passes += 1
        for part in (slice(0, 25), slice(25, 40), slice(40, None)):
            yield self.make(rows[part]), labels[part]


def changed(at, value):
    def change(rows, labels):
        rows[at] = value
        return rows, labels

    return change


def fewer(rows, labels):
    return rows[:-1], labels[:-1]


def other_labels(rows, labels):
    labels[50, 1] = 1 - labels[50, 1]
    return rows, labels


def classifier(kind, **parameters):
    return IMCCClassifier(4, random_state=0, **KINDS[kind], **parameters)


@every_kind
@pytest.mark.parametrize("lloyd_passes", [0, 2])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_changed_values(kind, lloyd_passes, make):
    for from_pass in range(1, 2 + lloyd_passes):
        stream = Changing(changed((45, 2), 0.123), from_pass, make)
        with pytest.raises(ValueError, match=r"rows of the stream changed.*column 2"):
            classifier(kind, lloyd_passes=lloyd_passes).fit(stream)
        assert stream.passes == from_pass + 1


@every_kind
def test_changed_labels(kind):
    with pytest.raises(ValueError, match=r"changed .* rows have label 1 instead of"):
        classifier(kind).fit(Changing(other_labels))


def test_fewer_rows():
    with pytest.raises(ValueError, match="59 rows"):
        classifier("linear").fit(Changing(fewer))


@every_kind
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize("lloyd_passes", [0, 1])
def test_values_that_are_not_finite_in_a_later_pass_are_named(kind, value, lloyd_passes):
    where = r"chunk 2, row 5 of the chunk \(row 45 of all\), column 2"
    for from_pass in range(1, 2 + lloyd_passes):
        stream = Changing(changed((45, 2), value), from_pass)
        message = where if not np.isfinite(value) else r"column 2"
        with pytest.raises(ValueError, match=message):
            classifier(kind, lloyd_passes=lloyd_passes).fit(stream)


@every_kind
@pytest.mark.parametrize("library", BACKENDS)
def test_on_devices(kind, library):
    def make(rows):
        return array(library, rows)

    with pytest.raises(ValueError, match=r"changed.*column 2"):
        classifier(kind).fit(Changing(changed((45, 2), 0.123), make=make))
    with pytest.raises(ValueError, match=r"chunk 2, row 5"):
        classifier(kind).fit(Changing(changed((45, 2), np.nan), make=make))


@every_kind
def test_moved_to_a_device(kind):
    backend("torch")
    with pytest.raises(ValueError, match=r"changed.*column 2"):
        classifier(kind, device="cpu").fit(Changing(changed((45, 2), 0.123)))


def test_large_offsets_and_scales_are_not_taken_for_changes():
    """Rounding of the sums, which are taken in another order, is not a change."""
    scaled = X * [1e-12, 1.0, 1e9, 1e5] + [1e-3, 1e8, 0.0, 1e12]
    chunks = [(scaled[k : k + 1], Y[k : k + 1]) for k in range(60)]
    clf = classifier("linear", lloyd_passes=2, beta=1e3).fit(chunks)
    assert np.isfinite(clf.decision_function(scaled)).all()
    single = [(rows.astype(np.float32), labels) for rows, labels in chunks]
    assert classifier("linear", beta=1e3).fit(single).coef_.shape == (3, 4)
