"""Labels that look wrong."""

import csv

import numpy as np
import pytest

from imcc import IMCCClassifier, KernelEnsembleClassifier
from imcc._utils.errors import InvalidArgumentError
from imcc.estimators import TunedThresholds
from imcc.inspection import find_label_issues, model_page


def make(kind, n=2000, rate=0.05, seed=0):
    """Three labels of different frequencies, of which some are flipped, and their probabilities."""
    rng = np.random.default_rng(seed)
    z = 3 * rng.normal(size=(n, 3)) + [0, -2, -4]
    truth = rng.random((n, 3)) < 1 / (1 + np.exp(-2 * z))
    flips = (rng.random((n, 3)) < rate) & {"both": True, "missing": truth, "added": ~truth}[kind]
    r0, r1 = rate * (kind != "missing"), rate * (kind != "added")
    q = 1 / (1 + np.exp(-2 * z))
    return (truth ^ flips).astype(int), flips, q * (1 - r1) + (1 - q) * r0


@pytest.mark.parametrize("kind", ["both", "missing", "added"])
def test_flips_are_found(kind):
    given, flips, chances = make(kind)
    found = find_label_issues(chances, given)
    hits = flips[found.rows, found.label_indices]
    assert hits.mean() > 0.6
    assert hits.sum() > 0.4 * flips.sum()
    assert (np.diff(found.scores) <= 0).all()
    # By the order of the scores, at least as good as by the probability of the given label.
    every = find_label_issues(chances, given, min_score=0)
    order = np.argsort(np.where(given, chances, 1 - chances), axis=None)[: flips.sum()]
    n = flips.sum()
    own = flips[every.rows[:n], every.label_indices[:n]].sum()
    assert own >= 0.9 * flips.ravel()[order].sum()
    if kind == "missing":
        assert own > 1.2 * flips.ravel()[order].sum()


def test_kinds_of_labels():
    given, _, chances = make("both", n=300)
    found = find_label_issues(chances, given, label_names=list("abc"))
    np.testing.assert_array_equal(found.rows, find_label_issues(chances, 2 * given - 1).rows)
    sets = [{"abc"[j] for j in np.flatnonzero(row)} for row in given]
    assert find_label_issues(chances, sets).labels == found.labels
    # Unknown labels cannot be wrong, and neither can those without a probability.
    unknown = given.astype(float)
    unknown[found.rows[0], found.label_indices[0]] = np.nan
    without = chances.copy()
    without[found.rows[0], found.label_indices[0]] = np.nan
    for y, p in ((unknown, chances), (given, without)):
        less = find_label_issues(p, y)
        entries = list(zip(less.rows, less.label_indices, strict=True))
        assert (found.rows[0], found.label_indices[0]) not in entries
        assert less.n_entries == 899
    constant = given.copy()
    constant[:, 1] = 1
    assert 1 not in find_label_issues(chances, constant, min_score=0).label_indices


def test_of_a_model(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    Y = (X[:, :2] > 0).astype(float)
    Y[5, 0] = 1 - Y[5, 0]
    Y[9, 1] = np.nan
    model = KernelEnsembleClassifier(views=("raw",), random_state=0)
    model = TunedThresholds(model, cv="held_out").fit(X, Y)
    found = find_label_issues(model)
    assert 5 in found.rows[found.label_indices == 0]
    np.testing.assert_array_equal(found.scores, find_label_issues(model, Y).scores)
    assert found.n_entries == 399
    # The columns of a frame are found by their names.
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(Y, columns=["a", "b"])
    model.fit(X, frame)
    turned = find_label_issues(model, frame[["b", "a"]])
    assert turned.labels == find_label_issues(model).labels
    np.testing.assert_array_equal(turned.rows, found.rows)
    with pytest.raises(InvalidArgumentError, match="y"):
        find_label_issues(model, frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("held_out_proba_", np.full((40, 2), 2.0)),
        ("held_out_proba_", np.full((1, 2), 0.5)),
        ("held_out_labels_", np.full((40, 2), 3, dtype=np.int8)),
        ("held_out_labels_", np.full((1, 2), 1, dtype=np.int8)),
    ],
)
def test_a_changed_model(name, value):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = KernelEnsembleClassifier(views=("raw",), random_state=0).fit(X, X > 0)
    setattr(model, name, value)
    for show in (find_label_issues, model_page):
        with pytest.raises(InvalidArgumentError, match="model"):
            show(model)


def test_as_text_and_csv():
    given, _, chances = make("both")
    names = ["=1+1", 'a "b", c', "wren"]
    found = find_label_issues(chances, given, label_names=names)
    lines = list(csv.DictReader(found.to_csv().splitlines()))
    assert len(lines) == len(found)
    assert {line["label"] for line in lines} == {"'=1+1", 'a "b", c', "wren"}
    first = lines[0]
    assert int(first["row"]) == found.rows[0]
    assert float(first["score"]) == pytest.approx(found.scores[0], abs=1e-4)
    assert f"{len(found)} of 6,000" in repr(found)
    assert find_label_issues(chances, given, min_score=0.999).to_csv().count("\n") == 1


@pytest.mark.parametrize(
    ("held_out", "y", "name"),
    [
        (np.full((4, 2), 0.5), None, "y"),
        (np.full((4, 2), 0.5), np.eye(4), "held_out"),
        (np.full((4, 2), 1.5), np.eye(4)[:, :2], "held_out"),
        (IMCCClassifier(2).fit(np.eye(4), np.eye(4)), np.eye(4), "held_out"),
    ],
)
def test_wrong_arguments(held_out, y, name):
    with pytest.raises(InvalidArgumentError, match=name):
        find_label_issues(held_out, y)
