"""A table in, a model out: labels in every form, weights, groups, thresholds, what is refused."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from imcc import IMCCClassifier, KernelEnsembleClassifier
from imcc._utils.errors import ImccError
from imcc.baselines import LLSF
from imcc.estimators import MultilabelCalibrator, TunedThresholds
from imcc.estimators.thresholds import decision_thresholds
from imcc.tables import (
    TableClassifier,
    TableEncoder,
    TableError,
    infer_schema,
    read_tags,
    tag_matrix,
)

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
polars = pytest.importorskip("polars")

WORDS = np.array(["the", "of", "and", "with", "new", "old", "small", "large"])
IMCC = IMCCClassifier(n_clusters=8, beta=0.1, random_state=0)
FAST = KernelEnsembleClassifier(random_state=0)


def table(n=300, seed=0):
    """Labels that depend on a number, a category and a word of a text."""
    rng = np.random.default_rng(seed)
    word = rng.choice(["apple", "car", "tree"], n)
    frame = pandas.DataFrame(
        {
            "size": rng.normal(0, 1, n),
            "noise": rng.normal(0, 100, n),
            "town": rng.choice(["Ulm", "Bonn", "Köln"], n),
            "note": [" ".join([*rng.choice(WORDS, 4), w, *rng.choice(WORDS, 2)]) for w in word],
        }
    )
    labels = pandas.DataFrame(
        {
            "large": (frame["size"] > 0.3).astype(int),
            "south": (frame["town"] == "Ulm").astype(int),
            "fruit": (word == "apple").astype(int),
        }
    )
    frame.loc[rng.choice(n, n // 10, replace=False), "noise"] = np.nan
    return frame, labels


@pytest.fixture(scope="module")
def fitted():
    """A model, the table and the labels that it is fitted to."""
    frame, labels = table(80)
    return TableClassifier(IMCC, weights={}).fit(frame, labels), frame, labels


def test_it_learns_from_columns_of_every_kind():
    frame, labels = table()
    new, truth = table(seed=1)
    model = TableClassifier(IMCC, random_state=0).fit(frame, labels)
    scores = f1_score(truth, model.predict(new), average=None)
    assert (scores > 0.85).all()
    assert model.label_names_.tolist() == ["large", "south", "fruit"]
    assert [c.kind for c in model.schema_] == ["number", "number", "category", "text"]
    assert model.decision_function(new).shape == (300, 3)
    assert not hasattr(model, "predict_proba")
    assert "note has 'apple'" in model.get_feature_names_out()


def test_probabilities_where_the_classifier_has_them():
    frame, labels = table(100)
    model = TableClassifier(MultilabelCalibrator(IMCC, cv=3), weights={}).fit(frame, labels)
    chances = model.predict_proba(frame)
    np.testing.assert_array_equal(model.predict(frame), chances >= 0.5)
    rows = [model.label_names_[row >= 0.5].tolist() for row in chances]
    assert model.predict_tags(frame) == rows


@pytest.mark.parametrize("weight", [0.01, 100.0])
def test_weights_matter(weight):
    frame, labels = table(150)
    new, truth = table(150, seed=1)
    model = TableClassifier(IMCC, weights={"text": weight}).fit(frame, labels)
    assert model.weights_["text"] == weight
    fruit, large = (
        f1_score(truth[name], model.predict(new)[:, j]) for name, j in (("fruit", 2), ("large", 0))
    )
    assert (fruit > large) == (weight > 1)


def test_labels_in_every_form(fitted):
    """For fit and for score."""
    expected_model, frame, labels = fitted
    expected = expected_model.decision_function(frame)
    right = (expected_model.predict(frame) == labels.to_numpy()).all(axis=1)
    weights = np.arange(80) % 3
    tags = ["|".join(labels.columns[row > 0]) for row in labels.to_numpy()]
    lists = [text.split("|") if text else [] for text in tags]
    joined = pandas.concat([frame, labels], axis=1).assign(tags=tags)
    names = ["large", "south", "fruit"]
    for X, y in (
        *((frame, labels), (frame, labels.to_numpy()), (frame, tags), (frame, lists)),
        *((joined.drop(columns="tags"), names), (joined.drop(columns="tags"), np.array(names))),
        (joined.drop(columns=names), "tags"),
        (polars.from_pandas(frame), pandas.Series(tags)),
    ):
        model = TableClassifier(IMCC, weights={}).fit(X, y)
        if model.label_names_[0] != "label0":  # a matrix has no names
            assert set(model.label_names_) == set(names)
            by_name = [names.index(name) for name in model.label_names_]
            scores = model.decision_function(frame)
            np.testing.assert_allclose(scores, expected[:, by_name], atol=1e-9)
        assert list(model.feature_names_in_) == list(frame.columns)
        found = expected_model.score(X, y, sample_weight=weights)
        assert found == pytest.approx(np.average(right, weights=weights))
    assert expected_model.score(joined, names[::-1]) == pytest.approx(right.mean())
    for y in (["south", "large"], "labels"):
        with pytest.raises(ValueError, match="y "):
            expected_model.score(joined, y)
    with pytest.raises(ValueError, match="sample_weight"):
        expected_model.score(frame, labels, sample_weight=weights[:5])


def test_what_is_wrong_with_labels(fitted):
    model, frame, labels = fitted
    joined = pandas.concat([frame, labels], axis=1)
    towns = [None, *(["Nord", "Ost", "West"] * len(joined))][: len(joined)]
    for wrong, said in ((7, "'large'"), (None, "'large'"), (towns, r"row 1: .*'large'.*'Nord'")):
        with pytest.raises(TableError, match=said):
            clone(model).fit(joined.assign(large=wrong), ["large", "south"])
    for y, said in (
        *(("labels", "y names 'labels'"), (["large", "none"], "y names 'none'")),
        *(([], "y names no label columns"), (["large", "large"], "y names .*'large'")),
        *((np.empty((80, 0)), "y has no labels"), (labels[:10], "the same number of rows")),
        *((["a"] * 7, "y names 'a'"), ([""] * 80, "no row has a tag")),
    ):
        with pytest.raises(ValueError, match=said):
            clone(model).fit(joined, y)
    with pytest.warns(UserWarning, match="'large' is 1 in every row$"):
        constant = clone(model).fit(joined.assign(large=1), ["large", "south"])
    assert (constant.predict(joined)[:, 0] == 1).all()


def test_tags():
    assert read_tags(["a;b", "b", ""]) == [["a", "b"], ["b"], []]
    assert read_tags(["a, b", None], separator=";") == [["a, b"], []]
    assert read_tags(["b|a|a"]) == [["a", "b"]]
    assert read_tags([4, "4,27"]) == [["4"], ["27", "4"]]
    assert read_tags(['["x, y", "z"]', "[]"]) == [["x, y", "z"], []]
    found = read_tags(['["x", 12345678901234567890, null]', None])
    assert found == [["12345678901234567890", "x"], []]
    assert read_tags([["x", None], [1.5, 2]]) == [["x"], ["1.5", "2"]]
    with pytest.raises(ValueError, match="separator"):
        TableClassifier(IMCC, separator="").fit({"x": [1.5, 2.5]}, ["a", "b"])


NO_TAGS = ["[x", "[" * 100_000, '["a", []]', '[{"a": 1}]', "[true]", r'["\ud800"]', ["a", []], True]


@pytest.mark.parametrize("cell", NO_TAGS, ids=lambda cell: str(cell)[:10])
def test_what_are_no_tags(cell):
    with pytest.raises(TableError, match="row 1: ") as caught:
        read_tags(['["x"]', cell])
    assert len(str(caught.value)) < 200


def test_a_matrix_of_tags_that_is_out_of_proportion():
    """It would take 5.4 GB, and is refused before it is made."""
    rows = [[f"{(6 * k + j) % 60_000:x}" for j in range(6)] for k in range(11_250)]
    with pytest.raises(TableError, match=r"60,000 different tags of 11,250 rows .* 5\.0 GiB"):
        tag_matrix(rows)
    matrix, _ = tag_matrix(rows, ["0", "1"])
    assert matrix.dtype == np.int64
    assert matrix.sum() == 4
    wide = [[f"tag{k % 1000}", f"tag{k % 7}"] for k in range(20_000)]
    assert tag_matrix(wide)[0].shape == (20_000, 1000)
    # Tags that occur in one row each are not refused, but warned of.
    rows = [[f"a sentence about {i}"] for i in range(30)] + [["news"], ["news"]]
    with pytest.warns(UserWarning, match="30 of the 31 tags .*'a sen"):
        matrix, names = tag_matrix(rows)
    tag_matrix(rows, names)  # the tags of a model are known to be tags
    tag_matrix(rows * 2)
    tag_matrix(rows[:10])


def test_any_classifier_and_clone(fitted):
    _, frame, labels = fitted
    model = TableClassifier(OneVsRestClassifier(LogisticRegression()), drop=["noise"])
    copy = clone(model)
    assert copy.get_params()["drop"] == ["noise"]
    assert model.fit(frame, labels).predict_proba(frame).shape == (80, 3)
    assert not hasattr(copy, "estimator_")


def test_a_fit_that_fails_or_is_interrupted_leaves_the_model_as_it_was(fitted, monkeypatch):
    model, frame, labels = fitted
    before = dict(vars(model))
    with pytest.raises(ValueError, match="the same number of rows"):
        model.fit(frame[:10], labels)
    assert vars(model) == before

    def interrupted(*_):
        raise KeyboardInterrupt

    # After the new pipeline has been stored.
    monkeypatch.setattr("imcc.tables._classifier.tag_separator", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(frame[["size"]].assign(tags=["a|b", ""] * 40), "tags")
    assert vars(model) == before


def features_of(model, rows):
    """The features of a fitted model's rows, and its classifier without what it was fitted to."""
    encoder, classifier = model.estimator_[0], clone(model.estimator_[-1])
    return encoder.transform(rows), classifier


@pytest.mark.parametrize(
    "model",
    [
        TableClassifier(IMCC),
        TableClassifier(IMCC, thresholds="f1"),
        TableClassifier(MultilabelCalibrator(IMCC, cv=3)),
        TableClassifier(FAST, random_state=0),
        TableClassifier(make_pipeline(StandardScaler(with_mean=False), IMCC)),
    ],
    ids=["plain", "thresholds", "calibrated", "trees", "pipeline"],
)
def test_weights_reach_all_that_learns(model):
    frame, labels = table(80)
    frame = frame[["size", "town"]]
    Y, weights = labels.to_numpy(), np.random.default_rng(0).uniform(0.2, 3, 80)
    model = clone(model).fit(frame, Y, sample_weight=weights)
    X, classifier = features_of(model, frame)
    name = "imccclassifier__" * isinstance(classifier, Pipeline) + "sample_weight"
    expected = classifier.fit(X, Y, **{name: weights})
    np.testing.assert_array_equal(model.decision_function(frame), expected.decision_function(X))
    np.testing.assert_array_equal(model.predict(frame), expected.predict(X))
    plain = clone(model).fit(frame, Y)
    assert np.abs(plain.decision_function(frame) - model.decision_function(frame)).max() > 1e-3


def test_weight_2_for_all_rows_is_the_table_twice():
    """The encoder has the same statistics then; the classifier is not that of weight 1."""
    frame, labels = table(60)
    frame = frame[["town"]].assign(old=frame["size"] > 0.1, new=frame["noise"] > 0)
    model = TableClassifier(RidgeClassifier())
    weighted = clone(model).fit(frame, labels, sample_weight=2).decision_function(frame)
    twice = clone(model).fit(pandas.concat([frame] * 2), pandas.concat([labels] * 2))
    np.testing.assert_allclose(weighted, twice.decision_function(frame), atol=1e-10)
    assert np.abs(weighted - clone(model).fit(frame, labels).decision_function(frame)).max() > 1e-3


def test_rows_of_weight_zero_are_left_out():
    frame, labels = table(90)
    weights = np.arange(90) % 3 * 0.7
    frame.loc[weights == 0, "town"] = [f"town {i}" for i in range(30)]  # text, with these rows
    some = weights > 0
    model = TableClassifier(IMCC, random_state=0)
    every = clone(model).fit(frame, labels, sample_weight=weights)
    rest = clone(model).fit(frame[some], labels[some], sample_weight=weights[some])
    assert every.schema_.to_dict() == rest.schema_.to_dict()
    assert every.weights_ == rest.weights_
    new, _ = table(30, seed=1)
    np.testing.assert_array_equal(every.decision_function(new), rest.decision_function(new))
    # Rows are counted in the table that was given.
    frame["size"] = frame["size"].astype(str)
    frame.loc[[30, 31], "size"] = "large"
    with pytest.raises(TableError, match="row 31: column 'size'"):
        clone(model).set_params(kinds={"size": "number"}).fit(frame, labels, sample_weight=weights)
    with pytest.raises(TableError, match="a single row"):
        clone(model).fit(frame, labels, sample_weight=np.eye(90)[0])


@pytest.mark.parametrize(
    "model",
    [
        TableClassifier(FAST, random_state=0),
        TableClassifier(IMCC, thresholds="f1"),
        TableClassifier(TunedThresholds(IMCC, cv=4)),
    ],
    ids=["trees", "thresholds", "wrapper"],
)
def test_groups_are_held_out_together(model):
    """Rows that occur twice: a row's twin says what its labels are, unless both are held out."""
    frame, labels = table(40)
    frame, Y = pandas.concat([frame[["size"]]] * 2), np.vstack([labels.to_numpy()[:, :2]] * 2)
    groups = np.tile(np.arange(40), 2)
    model = clone(model).fit(frame, Y, groups=groups)
    X, classifier = features_of(model, frame)
    expected = classifier.fit(X, Y, groups=groups)
    np.testing.assert_array_equal(model.decision_function(frame), expected.decision_function(X))
    np.testing.assert_array_equal(model.estimator_[-1].thresholds_, expected.thresholds_)
    with pytest.raises(ValueError, match="groups"):
        clone(model).fit(frame, Y, groups=np.zeros(80))
    with pytest.raises(ImccError, match="groups must be 80 values"):
        clone(model).fit(frame, Y, groups=groups[:7])


def test_groups_for_the_weight_of_text():
    frame, labels = table(40)
    model = TableClassifier(IMCC, thresholds="f1", random_state=0)
    with pytest.raises(ImccError, match="groups"):
        model.fit(frame, labels, groups=np.zeros(40))
    model.fit(frame, labels, groups=np.arange(40) % 3)  # fewer than five


@pytest.mark.parametrize(
    ("model", "more", "argument"),
    [
        (TableClassifier(IMCC), {"groups": np.arange(80)}, "groups would have no effect"),
        (
            TableClassifier(OneVsRestClassifier(LogisticRegression())),
            {"sample_weight": np.ones(80)},
            "sample_weight was passed, but OneVsRestClassifier",
        ),
        (TableClassifier(IMCC), {"sample_weight": np.ones(79)}, "sample_weight"),
        (TableClassifier(IMCC, weights="equal"), {}, "weights"),
        (TableClassifier(IMCC, thresholds="best"), {}, "thresholds"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(fitted, model, more, argument):
    _, frame, labels = fitted
    with pytest.raises(ImccError, match=argument):
        model.fit(frame, labels, **more)


def test_thresholds_of_rare_labels():
    """By default chosen for F1 where that costs nothing; the probabilities are the same."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(160, 3)), columns=list("abc"))
    often = frame["a"] + rng.normal(size=160) > 0
    rare = frame["b"] + 1.5 * rng.normal(size=160) > 2.2
    Y = np.column_stack([often, rare]).astype(int)
    tuned = TableClassifier(random_state=0).fit(frame, Y)
    half = TableClassifier(random_state=0, thresholds=None).fit(frame, Y)
    chances = half.predict_proba(frame)
    np.testing.assert_array_equal(tuned.predict_proba(frame), chances)
    np.testing.assert_array_equal(half.predict(frame), chances >= 0.5)
    limits = decision_thresholds(tuned, 2)
    assert limits[1] < 0.45
    np.testing.assert_array_equal(tuned.predict(frame), chances >= limits)
    given = IMCCClassifier(n_clusters=3, random_state=0)
    assert not decision_thresholds(TableClassifier(given).fit(frame, Y), 2).any()
    wanted = TableClassifier(given, thresholds="balanced_accuracy").fit(frame, Y)
    assert wanted.estimator_[-1].criterion == "balanced_accuracy"
    assert decision_thresholds(wanted, 2)[1] < -0.2


def test_one_label_and_text_beside_numbers():
    """There is no average precision to weigh the text by; no warning of a grid that is ours."""
    notes = ["a red apple pie", "an old blue car", "the green tree of apples", "no car at all"]
    table = {
        "note": [f"{notes[i % 4]} {i % 7}" for i in range(60)],
        "price": [float(i % 5) for i in range(60)],
        "car": [i % 2 for i in range(60)],
    }
    classifier = IMCCClassifier(n_clusters=4, random_state=0)
    model = TableClassifier(classifier, kinds={"note": "text"}).fit(table, ["car"])
    assert model.predict(table).shape == (60, 1)
    assert model.score(table, np.array(table["car"])[:, np.newaxis]) == 1


# Tables with hardly anything in them.

N = 40
LABELS = ["l", "m"]


def small(**more):
    columns = {
        "a": np.arange(N) * 1.5,
        "b": ["x", "y"] * (N // 2),
        "l": [0, 1] * (N // 2),
        "m": [0, 0, 1, 1] * (N // 4),
    }
    return pandas.DataFrame(columns | more)


def classifier(**more):
    return TableClassifier(IMCCClassifier(n_clusters=2, random_state=0), random_state=0, **more)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: infer_schema(small()[:0]), "has no rows"),
        (lambda: TableEncoder().fit(small()[:0]), "has no rows"),
        (lambda: classifier().fit(small()[:0], LABELS), "has no rows"),
        (lambda: classifier().fit(small(), LABELS).predict(small()[:0]), "has no rows"),
        (lambda: infer_schema({}), "no rows"),
        (lambda: classifier().fit(small()[LABELS], LABELS), "no columns that could be features"),
        (lambda: TableEncoder().fit(pandas.DataFrame(index=range(5))), "no columns that could be"),
        (lambda: classifier().fit(small()[:1], LABELS), "has a single row"),
        (lambda: classifier().fit({"a": [1, 2], "l": [0]}, ["l"]), "of different lengths"),
        (lambda: classifier().fit(small(a=[1, "x"] * 20), LABELS), "of different types"),
        (lambda: classifier().fit(small().set_axis(list("aalm"), axis=1), LABELS), "X has .*'a'"),
        (
            lambda: classifier(kinds={"b": "text"}).fit(small(b=["!", "?x?"] * 20), LABELS),
            r"'b' is of the kind text.*drop=\['b'\].*kinds=\{'b': 'category'\}",
        ),
    ],
)
def test_what_is_wrong_is_said_in_our_words(call, problem):
    with pytest.raises(ImccError, match=problem):
        call()


def test_a_column_without_values_is_left_out_or_changes_nothing():
    plain = classifier().fit(small(), LABELS).predict(small())
    model = classifier().fit(small(z=None), LABELS)
    assert "no values" in model.schema_["z"].becomes
    for kinds in ({}, {"z": "number"}, {"z": "category"}):
        model = classifier(kinds=kinds).fit(small(z=None), LABELS)
        assert np.array_equal(model.predict(small(z=None)), plain)


# Labels that are not known.


def test_unknown_labels_are_passed_on():
    features, labels = small()[["a", "b"]], small()[LABELS].astype(float)
    labels.loc[::5, "l"] = np.nan
    model = classifier().fit(features, labels)
    encoded = TableEncoder().fit_transform(features)
    alone = IMCCClassifier(n_clusters=2, random_state=0).fit(encoded, labels.to_numpy())
    np.testing.assert_allclose(model.decision_function(features), alone.decision_function(encoded))
    assert model.label_names_.tolist() == LABELS
    with pytest.raises(ValueError, match="NaN"):
        TableClassifier(LLSF()).fit(features, labels)
    with pytest.raises(ValueError, match="unknown in all rows"):
        classifier().fit(features, labels.assign(l=np.nan))
    # In columns of the table, they are an error unless it is said what they mean.
    table = small(l=labels["l"])
    with pytest.raises(TableError, match=r"row 0: .* 'l' has missing .*unknown_labels=True"):
        classifier().fit(table, LABELS)
    said = classifier(unknown_labels=True).fit(table, LABELS)
    assert np.array_equal(said.predict(table), model.predict(table))


def test_the_ensemble_its_trees_and_thresholds_take_unknown_labels():
    rng = np.random.default_rng(0)
    features = pandas.DataFrame({name: rng.normal(size=400) for name in "abcdefgh"})
    labels = np.column_stack([features["a"] > 0.2, features["b"] < 0]).astype(float)
    labels[:30, 1] = np.nan
    few = KernelEnsembleClassifier(views=("raw",), random_state=0)
    model = TableClassifier(few, random_state=0).fit(features, labels)
    assert model.estimator_[-1].estimator_.n_trees_ > 0
    assert (model.predict(features)[30:] == labels[30:]).mean() > 0.9


def test_records_are_rows(fitted):
    model, frame = fitted[0], fitted[1]
    rows = frame[:5]
    records = rows.astype(object).where(rows.notna(), None).to_dict("records")
    np.testing.assert_array_equal(model.decision_function(records), model.decision_function(rows))
    assert model.predict_tags(records[:1]) == model.predict_tags(rows[:1])
    del records[3]["town"]
    with pytest.raises(ImccError, match=r"row 3 .*'town'"):
        model.predict(records)
    with pytest.raises(TableError, match="town"):
        model.predict(records[3:4])
    with pytest.raises(ImccError, match="X must be a table"):
        model.predict([1, 2])
