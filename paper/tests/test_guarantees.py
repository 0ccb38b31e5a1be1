"""The script behind the numbers on promises."""

import numpy as np
import pytest

from imcc_paper import guarantees


def population(n=400):
    rng = np.random.default_rng(0)
    truth = rng.random((n, 3)) < 0.4
    return truth, truth + rng.normal(size=truth.shape)


@pytest.mark.parametrize("per", ["label", "overall"])
@pytest.mark.parametrize("kind", ["recall", "precision"])
def test_the_plug_in_threshold_is_the_best_on_its_own_rows(kind, per):
    truth, scores = population()
    found = guarantees.plug_in(truth, scores, 0.7, kind, per)
    kept, reached, count, nowhere = guarantees.outcome(truth, scores, found, 0.7, kind, per)
    assert kept == 1
    assert 0.7 <= reached < 0.75
    assert nowhere == 0
    # One row more or less would not do.
    step = np.nextafter(found, np.inf) if kind == "recall" else found - 0.05
    worse = guarantees.outcome(truth, scores, step, 0.7, kind, per)
    assert worse[0] < 1 or worse[2] == count


def test_missing_rows_are_added(tmp_path, monkeypatch):
    monkeypatch.setattr(guarantees, "FILE", tmp_path / "g.csv")
    monkeypatch.setattr(guarantees, "DATA", ("a",))
    monkeypatch.setattr(guarantees, "PROMISES", (("recall", 0.8),))
    monkeypatch.setattr(guarantees, "N_TIMES", {"plug-in": 5, "guaranteed": 5, "known": 1})
    asked = []

    def drawn(name):
        asked.append(name)
        return population()

    monkeypatch.setattr(guarantees, "population", drawn)
    guarantees.compute(with_mapie=False)
    rows = guarantees.stored_rows()
    assert len(rows) == 6
    table = guarantees.page_table(rows).splitlines()
    assert len(table) == 4
    assert "| a | recall 0.8, each label |" in table[2]
    guarantees.compute(with_mapie=False)
    assert asked == ["a"]


def test_the_stored_promises_are_kept():
    """What the page says: with a confidence of 90 %, at least 86 % of the calibrations."""
    rows = [row for row in guarantees.stored_rows() if row["method"] == "guaranteed"]
    assert len(rows) == 18
    assert min(float(row["kept"]) for row in rows) >= 0.86
