"""Tables with hardly anything in them, and labels that are not known: said in our own words."""

import numpy as np
import pytest

from imcc import IMCCClassifier, KernelEnsembleClassifier
from imcc._utils.errors import ImccError, InvalidArgumentError
from imcc.baselines import LLSF
from imcc.datasets import DataFormatError
from imcc.tables import (
    TableClassifier,
    TableEncoder,
    TableError,
    TreeCorrectedClassifier,
    infer_schema,
    read_schema,
)
from imcc.tables._labels import indicator_columns

pandas = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

N = 40
LABELS = ["l", "m"]


def frame(**more):
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
        (lambda: infer_schema(frame()[:0]), "has no rows, only the names of 4 column"),
        (lambda: TableEncoder().fit(frame()[:0]), "has no rows"),
        (lambda: classifier().fit(frame()[:0], LABELS), "has no rows"),
        (lambda: classifier().fit(frame(), LABELS).predict(frame()[:0]), "has no rows"),
        (lambda: infer_schema({}), "neither rows nor columns"),
        (lambda: classifier().fit(frame()[LABELS], LABELS), "no columns that could be features"),
        (lambda: TableEncoder().fit(pandas.DataFrame(index=range(5))), "no columns that could be"),
        (lambda: classifier().fit(frame(), []), "names no label columns"),
        (lambda: classifier().fit(frame(), np.empty((N, 0))), "has no labels"),
        (lambda: classifier().fit(frame(), ["l", "l"]), "y names label columns twice: 'l'"),
        (lambda: classifier().fit(frame(), ["l", "none"]), "y names 'none'"),
        (lambda: classifier().fit(frame()[:1], LABELS), "has a single row"),
        (lambda: classifier().fit(frame(t=None), "t"), "no row has a tag"),
        (lambda: classifier().fit(frame(l=None), LABELS), "'l' has no values"),
        (lambda: classifier().fit({"a": [1, 2], "l": [0]}, ["l"]), "of different lengths"),
        (lambda: classifier().fit(frame(a=[1, "x"] * 20), LABELS), "of different types"),
        (lambda: infer_schema({"a": [1, "x"]}), "column 'a' whose values are of different types"),
        *(
            (lambda kind=kind: infer_schema(frame(z=None), kinds={"z": kind}), "has no values")
            for kind in ("text", "date", "yes/no")
        ),
        (
            lambda: classifier(kinds={"b": "text"}).fit(frame(b=["!", "?x?"] * 20), LABELS),
            r"'b' is of the kind text, but has no words.*drop=\['b'\].*kinds=\{'b': 'category'\}",
        ),
    ],
)
def test_what_is_wrong_is_said_in_our_words(call, problem):
    with pytest.raises(ImccError, match=problem):
        call()


def test_columns_of_the_same_name():
    twice = frame()
    twice.columns = ["a", "a", "l", "m"]
    with pytest.raises(InvalidArgumentError, match="X has .*'a'"):
        classifier().fit(twice, LABELS)


def test_a_column_without_values_is_left_out():
    model = classifier().fit(frame(z=None), LABELS)
    assert model.schema_["z"].becomes == "left out: it has no values"
    assert model.predict(frame(z=None)).shape == (N, 2)


@pytest.mark.parametrize("kind", ["number", "category"])
def test_a_column_without_values_may_be_named_a_number_or_a_category(kind):
    model = classifier(kinds={"z": kind}).fit(frame(z=None), LABELS)
    plain = classifier().fit(frame(), LABELS)
    assert np.array_equal(model.predict(frame(z=None)), plain.predict(frame()))


def test_labels_that_never_change_are_named():
    with pytest.warns(UserWarning, match="cannot be learned: 'l' is 1 in every row$"):
        model = classifier().fit(frame(l=1), LABELS)
    assert (model.predict(frame())[:, 0] == 1).all()


def test_names_of_labels_may_be_an_array_or_an_index():
    expected = classifier().fit(frame(), LABELS).predict(frame())
    for names in (np.array(LABELS), frame().columns[2:], tuple(LABELS)):
        model = classifier().fit(frame(), names)
        assert model.label_names_.tolist() == LABELS
        assert np.array_equal(model.predict(frame()), expected)


@pytest.mark.parametrize(
    "text", ["missing = " + "[" * 100_000, "[columns]\n" + ".".join("a" * 3000) + " = 1"]
)
def test_a_schema_that_is_nested_too_deeply(tmp_path, text):
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(DataFormatError, match=r"schema\.toml: this is not a schema"):
        read_schema(path)


def test_dates_promise_what_they_become():
    days, times = ["2024-01-01", "2024-02-03"], ["2024-01-01 10:00", "2024-02-03 11:30"]
    schema = infer_schema({"day": days, "time": times})
    assert schema["day"].becomes == "day, month, weekday"
    assert schema["time"].becomes == "day, month, weekday, hour"
    names = TableEncoder().fit({"day": days, "time": times}).get_feature_names_out()
    for column in schema:
        parts = {n.split(": ")[1].split(" ")[0] for n in names if n.startswith(column.name)}
        assert parts == set(column.becomes.split(", "))


# Labels that are not known


def unknown_labels():
    found = frame()[LABELS].astype(float)
    found.loc[::5, "l"] = np.nan
    return found


def test_nan_in_a_matrix_of_labels_is_passed_on():
    features, known = frame()[["a", "b"]], unknown_labels()
    model = classifier().fit(features, known)
    encoded = TableEncoder().fit_transform(features)
    alone = IMCCClassifier(n_clusters=2, random_state=0).fit(encoded, known.to_numpy())
    np.testing.assert_allclose(model.decision_function(features), alone.decision_function(encoded))
    assert model.label_names_.tolist() == LABELS


def test_the_ensemble_its_trees_and_thresholds_take_unknown_labels():
    rng = np.random.default_rng(0)
    features = pandas.DataFrame({"a": rng.normal(size=120), "b": rng.normal(size=120)})
    labels = np.column_stack([features["a"] > 0.2, features["b"] < 0]).astype(float)
    labels[:30, 1] = np.nan
    small = KernelEnsembleClassifier(
        views=("raw",), kernels=("rbf",), width_scales=(1.0,), coupling=(0.0,), random_state=0
    )
    model = TableClassifier(small, random_state=0).fit(features, labels)
    assert isinstance(model.estimator_[-1].estimator_, TreeCorrectedClassifier)
    assert (model.predict(features)[30:] == labels[30:]).mean() > 0.9


def test_missing_values_in_label_columns_are_an_error_unless_said():
    table = frame(l=[None, 0.0, 1.0, 0.0] * 10)
    with pytest.raises(TableError, match=r"row 0: .* 'l' has missing .*unknown_labels=True"):
        classifier().fit(table, LABELS)
    model = classifier(unknown_labels=True).fit(table, LABELS)
    expected = classifier().fit(table[["a", "b"]], table[LABELS])
    assert np.array_equal(model.predict(table), expected.predict(table))


def test_indicator_columns_of_words_and_gaps():
    table = pa.table({"l": ["yes", "", "no", "n/a"], "m": [1, 0, 1, 1]})
    found = indicator_columns(table, LABELS, unknown=True)
    np.testing.assert_array_equal(found, [[1, 1], [np.nan, 0], [0, 1], [np.nan, 1]])
    assert indicator_columns(table, ["m"], unknown=True).dtype == np.int64


def test_a_classifier_that_takes_no_unknown_labels_says_so():
    with pytest.raises(ValueError, match="NaN"):
        TableClassifier(LLSF()).fit(frame()[["a", "b"]], unknown_labels())


def test_labels_that_no_row_knows_are_refused():
    labels = np.column_stack([np.full(N, np.nan), frame()["m"]])
    with pytest.raises(ValueError, match="unknown in all rows"):
        classifier().fit(frame()[["a", "b"]], labels)
