"""The comparison on tables: what the pipelines by hand choose, and what the page shows."""

import pytest

pandas = pytest.importorskip("pandas")


def test_the_rows_can_be_compared():
    from imcc_paper.tables import FIELDS, METHODS, TABLES, stored_rows

    rows = stored_rows()
    assert list(rows.columns) == list(FIELDS)
    assert not rows.duplicated(["table", "split", "method"]).any()
    assert set(rows["table"]) <= set(TABLES)
    # Means of methods over different splits could not be compared.
    splits = rows.groupby(["table", "method"])["split"].agg(set)
    for name in set(rows["table"]):
        assert {"imcc", "logistic"} <= set(splits[name].index) <= set(METHODS)
        assert len({frozenset(found) for found in splits[name]}) == 1


def test_a_pipeline_by_hand_chooses_its_setting_and_thresholds_on_training_rows():
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    from imcc.tables import example_table
    from imcc_paper.tables import ByHand

    table, labels = example_table(200)
    table["message"] = table["message"].fillna("")
    useless = OneVsRestClassifier(DummyClassifier(strategy="uniform", random_state=0))
    good = OneVsRestClassifier(LogisticRegression(max_iter=500))
    Y = labels.to_numpy()
    model = ByHand([useless, good], 0).fit(table, Y)
    assert model.pipeline_[-1] is good
    chances = model.predict_proba(table)
    assert chances.shape == Y.shape
    assert ((chances >= model.thresholds_) == model.predict(table)).all()
    assert (model.thresholds_ != 0.5).any()
    vectors = model.pipeline_[0].get_feature_names_out()
    assert any("tfidfvectorizer-2" in name for name in vectors)  # parts of words


@pytest.mark.slow
def test_a_table_takes_at_most_three_times_its_file():
    pytest.importorskip("pyarrow")
    pytest.importorskip("resource")
    from imcc_paper import table_memory
    from imcc_paper._measured import Measurements

    found = Measurements()
    table_memory.measure(found)
    own = found.of("memory", "mixed")
    assert own["most_bytes"] < 3 * own["file_bytes"], own
