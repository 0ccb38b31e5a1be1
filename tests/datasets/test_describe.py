import json

import numpy as np
import pytest
import scipy.sparse as sp

from imcc.datasets import Dataset, describe

X = np.array([[1.0, 2], [0, 0], [1, 2], [1, 2], [0, np.nan], [5, 6]])
Y = np.array([[1, 1, 0, 0], [0, 0, 0, 1], [1, 1, 0, 0], [1, 0, 0, 1], [1, 0, 0, 1], [0, 0, 0, 0]])


@pytest.fixture(params=[False, True], ids=["dense", "sparse"])
def facts(request):
    features = sp.csr_array(X) if request.param else X
    return describe(Dataset(features, Y, label_names=("a", "b", "never", "d"), name="small"))


def test_by_hand(facts):
    assert (facts.n_rows, facts.n_features, facts.n_labels) == (6, 2, 4)
    assert facts.cardinality == pytest.approx(9 / 6)
    assert facts.density == pytest.approx(9 / 24)
    assert facts.n_label_sets == 4
    assert facts.label_set_proportion == pytest.approx(4 / 6)
    assert facts.label_counts == {"a": 4, "b": 2, "never": 0, "d": 3}
    assert facts.labels_never_on == ("never",)
    assert facts.labels_always_on == ()
    assert facts.mean_imbalance == pytest.approx((1 + 2 + 4 / 3) / 3)
    assert facts.max_imbalance == 2
    assert facts.duplicate_rows == 2
    assert facts.conflicting_rows == 1
    assert facts.all_zero_rows == 1
    assert facts.unlabelled_rows == 1
    assert facts.missing_values == 1


def test_feature_type():
    assert describe(Dataset([[0.0, 1.0]], [[1]])).feature_type == "nominal"
    assert describe(Dataset([[0.0, 0.5]], [[1]])).feature_type == "numeric"
    assert describe(Dataset(sp.csr_array([[0.0, 1.0]]), [[1]])).feature_type == "nominal"
    assert describe(Dataset(sp.csr_array([[0.0, 2.0]]), [[1]])).feature_type == "numeric"


def test_labels_that_never_or_always_occur():
    facts = describe(Dataset([[1.0], [2.0]], [[0, 0], [0, 0]]))
    assert facts.labels_never_on == ("label0", "label1")
    assert np.isnan(facts.mean_imbalance)
    assert json.loads(json.dumps(facts.to_dict(), allow_nan=False))["mean_imbalance"] is None
    assert describe(Dataset([[1.0]], [[1, 0]])).labels_always_on == ("label0",)


def test_prints_well(facts):
    text = str(facts)
    assert text.startswith("small\n  rows                 6\n")
    assert "labels never on      1 ('never')" in text


def test_goes_through_json(facts):
    found = json.loads(json.dumps(facts.to_dict(), allow_nan=False))
    assert found["label_counts"]["a"] == 4


def test_what_cannot_be_described(toy):
    with pytest.raises(TypeError, match="must be a Dataset, got str"):
        describe("yeast")
    with pytest.raises(ValueError, match="no rows"):
        describe(toy[:0])
