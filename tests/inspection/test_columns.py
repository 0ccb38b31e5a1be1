"""What drove a score, in terms of the columns, against brute force."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from imcc import IMCCClassifier
from imcc._utils.errors import InvalidArgumentError
from imcc.estimators import MultilabelCalibrator, TunedThresholds
from imcc.inspection import explain_columns
from imcc.tables import TableClassifier, TableEncoder
from tests.naive import inspection as naive


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5)).round(1)
    X[:, 3] = rng.integers(0, 2, 80)
    Y = np.column_stack([X[:, 0] * X[:, 1] > 0, X[:, 3] + X[:, 2] > 0.5, X[:, 4] > 0])
    return X, Y.astype(int)


@pytest.fixture(scope="module")
def clf(data):
    return IMCCClassifier(n_clusters=8, random_state=0).fit(*data)


def sums(found):
    return found.baseline + found.contributions.sum(axis=0)


def test_few_columns_are_exact(data, clf):
    X, _ = data
    found = explain_columns(clf, X[0], X[1:21])
    assert found.n_pairs == 0
    expected = naive.shapley(clf.decision_function, X[0], X[1:21], [[j] for j in range(5)])
    np.testing.assert_allclose(found.contributions, expected, atol=1e-12)
    np.testing.assert_allclose(found.baseline, clf.decision_function(X[1:21]).mean(axis=0))
    np.testing.assert_allclose(sums(found), clf.decision_function(X[:1])[0], atol=1e-12)
    assert not found.sampling_errors.any()
    assert not found.standard_errors.any()  # all rows that were given are used
    # Equal columns are not asked for: fewer than 20 * (2^5 - 2) rows.
    assert 0 < found.n_evaluations < 20 * 30


def test_sampled_orders(data, clf):
    X, _ = data
    exact = explain_columns(clf, X[0], X[1:21])
    errors = []
    for seed in range(8):
        found = explain_columns(clf, X[0], X[1:21], max_evaluations=350, random_state=seed)
        assert found.n_pairs == 2
        assert found.n_evaluations <= 350
        # The parts sum to the score, however few orders are drawn.
        np.testing.assert_allclose(sums(found), found.scores, atol=1e-12)
        off = found.contributions - exact.contributions
        assert (np.abs(off)[found.sampling_errors == 0] < 1e-12).all()
        errors.append(
            off[found.sampling_errors > 0] / found.sampling_errors[found.sampling_errors > 0]
        )
    # The standard errors are about right: two pairs give rough ones, many of them together do not.
    assert 0.7 < np.sqrt(np.mean(np.concatenate(errors) ** 2)) < 1.5
    again = explain_columns(clf, X[0], X[1:21], max_evaluations=350, random_state=7)
    np.testing.assert_array_equal(again.contributions, found.contributions)


def test_a_row_among_the_background(data, clf):
    X, _ = data
    found = explain_columns(clf, X[0], X[:20], max_evaluations=350)
    assert found.n_pairs > 0
    np.testing.assert_allclose(sums(found), found.scores, atol=1e-12)
    same = explain_columns(clf, X[0], X[[0, 0, 0]])
    assert not same.contributions.any()
    assert same.n_evaluations == 0


def test_standard_errors_of_the_background(data, clf):
    X, _ = data
    every = explain_columns(clf, X[0], X)
    off = []
    for seed in range(12):
        found = explain_columns(clf, X[0], X, n_background=20, random_state=seed)
        assert found.n_background == 20
        assert found.n_rows == 80
        off.append((found.contributions - every.contributions) / found.standard_errors)
    assert 0.7 < np.sqrt(np.mean(np.square(off))) < 1.4


def test_labels(data, clf):
    X, _ = data
    every = explain_columns(clf, X[0], X[1:11], label_names=["a", "b", "c"])
    assert every.label_names == ("a", "b", "c")
    assert every.parts("c") == every.parts(2)
    with pytest.raises(InvalidArgumentError, match="label"):
        every.parts("x")
    with pytest.raises(InvalidArgumentError, match="label_names"):
        explain_columns(clf, X[0], X, label_names=["a"])


def test_many_columns_are_pooled():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    Y = np.column_stack([X[:, 7] > 0, X[:, 7] + X[:, 30] > 0]).astype(int)
    ridge = IMCCClassifier(n_clusters=4, kernel="linear", random_state=0).fit(X, Y)
    found = explain_columns(ridge, X[0], X, max_columns=4, n_background=10)
    assert len(found.columns) == 4
    assert found.columns[-1] == "37 other columns"
    assert found.values[-1] == "37 columns"
    # For a linear model the contributions are coefficient times the difference from the mean row.
    rows = np.sort(np.random.default_rng(0).choice(60, 10, replace=False))
    slopes = ridge.decision_function(np.eye(40)) - ridge.decision_function(np.zeros((1, 40)))
    each = slopes * (X[0] - X[rows].mean(axis=0))[:, np.newaxis]
    own = [int(name[1:]) for name in found.columns[:-1]]
    np.testing.assert_allclose(found.contributions[:-1], each[own], atol=1e-9)
    assert own == sorted(np.argsort(-np.abs(each).max(axis=1))[:3])  # those that matter most
    # Looking for the columns that matter counts, too.
    few = explain_columns(ridge, X[0], X, max_columns=6, n_background=10, max_evaluations=1000)
    assert few.n_pairs > 0
    assert 900 < few.n_evaluations <= 1000
    with pytest.raises(InvalidArgumentError, match="max_evaluations"):
        explain_columns(ridge, X[0], X, max_evaluations=20)
    # Fewer background rows, rather than a single pair of orders.
    wide = explain_columns(ridge, X[0], X, max_columns=40, max_evaluations=1000)
    assert (wide.n_background, wide.n_rows) == (4, 60)
    assert wide.n_pairs >= 2
    total = wide.baseline + wide.contributions.sum(axis=0)
    np.testing.assert_allclose(total, ridge.decision_function(X[:1])[0])
    with pytest.raises(InvalidArgumentError, match="max_evaluations"):
        explain_columns(ridge, X[0], X, max_columns=40, max_evaluations=100)


def test_more_columns_than_a_power_of_two_has_room_for():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 1100))
    clf = IMCCClassifier(n_clusters=3, random_state=0).fit(X, (X[:, :2] > 0).astype(int))
    found = explain_columns(clf, X[0], X[1:2], max_columns=1100, max_evaluations=2**14)
    assert found.n_pairs == 7
    np.testing.assert_allclose(sums(found), found.scores, atol=1e-9)


def test_sparse_rows(data):
    X, Y = data
    X = np.where(X > 0.3, X, 0.0)
    clf = IMCCClassifier(n_clusters=8, random_state=0).fit(sp.csr_array(X), Y)
    expected = naive.shapley(clf.decision_function, X[0], X[1:11], [[j] for j in range(5)])
    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array):
        found = explain_columns(clf, kind(X[:1]), kind(X[1:11]))
        np.testing.assert_allclose(found.contributions, expected, atol=1e-12)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 60
    town = rng.choice(["Ulm", "Köln", "Süd, West"], n)
    age = rng.integers(20, 80, n).astype(float)
    late = rng.random(n) < 0.5
    text = ["still waiting for an answer" if on else "many thanks for the help" for on in late]
    opened = pd.date_range("2024-01-01", periods=n, freq="11D").strftime("%Y-%m-%d")
    frame = pd.DataFrame({"town": town, "age": age, "note": text, "opened": opened})
    frame.loc[::9, "age"] = np.nan
    frame.loc[::11, "town"] = None
    labels = pd.DataFrame({"late": late, "old": age > 50, "ulm": town == "Ulm"}).astype(int)
    return frame, labels


@pytest.fixture(scope="module")
def tabular(table):
    return TableClassifier(
        IMCCClassifier(n_clusters=6, random_state=0), kinds={"note": "text"}, random_state=0
    ).fit(*table)


def brute_force(model, frame, row, names, score="decision_function"):
    """Brute force on cells: rows of numbers that stand for the cells of a frame."""
    codes = np.arange(len(frame))[:, np.newaxis] * np.ones(len(names), dtype=int)

    def scores(rows):
        mixed = {name: frame[name].to_numpy()[rows[:, j]] for j, name in enumerate(names)}
        return np.asarray(getattr(model, score)(pd.DataFrame(mixed)))

    background = np.delete(codes, row, axis=0)
    return naive.shapley(scores, codes[row], background, [[j] for j in range(len(names))])


def test_a_table(table, tabular):
    frame, _ = table
    part = frame.iloc[:9]
    x, background = part.iloc[[3]], part.drop(index=3)
    found = explain_columns(tabular, x, background)
    assert found.columns == ("town", "age", "note", "opened")
    assert found.label_names == ("late", "old", "ulm")
    assert found.values == (*x[["town"]].iloc[0], f"{x['age'].iloc[0]:.6g}", *x.iloc[0, 2:])
    expected = brute_force(tabular, part, 3, found.columns)
    np.testing.assert_allclose(found.contributions, expected, atol=1e-9)
    assert found.parts("late", top=1)[0].column == "note"


def test_kinds_of_tables(table, tabular):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    frame, _ = table
    expected = explain_columns(tabular, frame.iloc[[3]], frame.iloc[10:20]).contributions
    for convert in (pl.from_pandas, pa.Table.from_pandas):
        x = convert(frame.iloc[[3]].reset_index(drop=True))
        background = convert(frame.iloc[10:20].reset_index(drop=True))
        found = explain_columns(tabular, x, background)
        np.testing.assert_allclose(found.contributions, expected, atol=1e-12)
    as_dict = frame.iloc[10:20].to_dict("list")
    found = explain_columns(tabular, frame.iloc[3].to_dict(), as_dict)
    np.testing.assert_allclose(found.contributions, expected, atol=1e-12)
    # A dict has other types than a column: whole numbers, and missing values without a type.
    x = {**frame.iloc[3].to_dict(), "age": 40, "town": None}
    expected = explain_columns(tabular, x, frame.iloc[10:20])
    assert expected.values[:2] == ("missing", "40")
    as_text = frame.iloc[10:20].astype(object).where(frame.notna(), "").astype(str)
    for background in (
        pl.from_pandas(frame.iloc[10:20]),
        pa.Table.from_pandas(frame.iloc[10:20]),
        pa.Table.from_pandas(as_text),
    ):
        found = explain_columns(tabular, x, background)
        assert found.values == expected.values
        np.testing.assert_allclose(found.contributions, expected.contributions, atol=1e-12)
    with pytest.raises(InvalidArgumentError, match="one row"):
        explain_columns(tabular, frame.iloc[:2], frame)
    with pytest.raises(InvalidArgumentError, match="lacks columns"):
        explain_columns(tabular, frame.iloc[[3]].drop(columns="age"), frame)
    with pytest.raises(InvalidArgumentError, match="as the background"):
        explain_columns(tabular, np.zeros(4), frame)


@pytest.mark.parametrize("wrapper", ["plain", "thresholds", "calibrated", "pipeline"])
def test_mixing_features_is_mixing_cells(table, tabular, wrapper, monkeypatch):
    frame, labels = table
    model = {
        "plain": lambda: tabular,
        "thresholds": lambda: TunedThresholds(tabular, cv="prefit").fit(frame, labels),
        "calibrated": lambda: MultilabelCalibrator(tabular, cv="prefit").fit(frame, labels),
        "pipeline": lambda: tabular.estimator_,
    }[wrapper]()
    x, background = frame.iloc[[5]], frame.iloc[20:32]
    fast = explain_columns(model, x, background, max_evaluations=160)
    np.testing.assert_allclose(sums(fast), fast.scores, atol=1e-9)
    monkeypatch.delattr(TableEncoder, "feature_columns")  # so that cells are mixed
    slow = explain_columns(model, x, background, max_evaluations=160)
    np.testing.assert_allclose(fast.contributions, slow.contributions, atol=1e-9)


class InAnotherOrder:
    """A wrapper of another package, which changes the rows of its estimator."""

    def __init__(self, estimator):
        self.estimator_ = estimator

    def decision_function(self, X):
        return self.estimator_.decision_function(X.assign(age=100 - X["age"]))


def test_wrappers_of_others_are_given_cells(table, tabular):
    frame, _ = table
    model = InAnotherOrder(tabular)
    part = frame.iloc[:6]
    found = explain_columns(model, part.iloc[[3]], part.drop(index=3))
    expected = brute_force(model, part, 3, list(part))
    np.testing.assert_allclose(found.contributions, expected, atol=1e-9)


def test_a_pipeline_made_by_hand(table):
    frame, labels = table
    frame = frame[["town", "age"]].fillna({"town": "-", "age": 50.0})
    columns = make_column_transformer((OneHotEncoder(), ["town"]), (StandardScaler(), ["age"]))
    for last in (
        OneVsRestClassifier(LogisticRegression()),
        MultiOutputClassifier(DecisionTreeClassifier(max_depth=3, random_state=0)),
    ):
        model = make_pipeline(columns, last).fit(frame, labels)
        found = explain_columns(model, frame.iloc[[0]], frame.iloc[1:], label_names=list(labels))
        assert found.columns == ("town", "age")
        np.testing.assert_allclose(sums(found), found.scores, atol=1e-12)
        assert found.scale == ("score" if hasattr(model, "decision_function") else "probability")
    assert found.thresholds.tolist() == [0.5] * 3
    assert found.parts("ulm", top=1)[0].column == "town"


def test_records(data, clf):
    X, _ = data
    found = explain_columns(clf, X[0], X[1:11], label_names=["a", "b", "c"])
    best = found.label_names[found.index()]
    assert f"ColumnAttribution of {best} (1 of 3 labels): score" in repr(found)
    frame = found.to_frame("a")
    assert list(frame.columns) == ["column", "value", "contribution", "standard_error"]
    assert frame["contribution"].abs().is_monotonic_decreasing
    assert found.to_frame().shape == (5, 3)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["label_names"] == ["a", "b", "c"]
    total = np.array(plain["baseline"]) + np.sum(plain["contributions"], axis=0)
    assert total == pytest.approx(plain["scores"])


def test_scores_that_are_not_finite(data):
    class Broken:
        classes_ = (0, 1)

        def decision_function(self, X):
            return np.full((len(X), 2), np.nan)

    with pytest.raises(ValueError, match="not finite"):
        explain_columns(Broken(), data[0][0], data[0])
    with pytest.raises(InvalidArgumentError, match="no rows"):
        explain_columns(Broken(), data[0][0], data[0][:0])
