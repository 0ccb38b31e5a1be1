"""From a table to features: every kind, missing values, new tables, names, balance."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, RobustScaler, StandardScaler

from imcc.tables import TableEncoder, TableError, UnknownValuesWarning
from imcc.tables._columns import as_table
from imcc.tables._typed import date_parts, typed_arrays

pa = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

WORDS = np.array(["red", "green", "blue", "apple", "car", "tree", "house", "river", "stone"])


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    frame = pandas.DataFrame(
        {
            "key": [f"k{i:04d}" for i in range(n)],
            "size": rng.normal(40, 10, n).round(2),
            "price": rng.lognormal(3, 2, n).round(2),
            "town": rng.choice(["Ulm", "Bonn", "Köln"], n),
            "note": [" ".join(rng.choice(WORDS, 5)) for _ in range(n)],
            "sold": pandas.date_range("2020-01-01", periods=n).astype(str),
            "new": rng.choice(["yes", "no"], n),
            "same": 1,
        }
    )
    frame.loc[rng.choice(n, n // 6, replace=False), "price"] = np.nan
    frame.loc[3, "size"] = np.nan
    frame.loc[5, "town"] = None
    return frame


def dense(features):
    return features.toarray() if sp.issparse(features) else features


def obvious_features(encoder, frame, rows=None):
    """The features by a ColumnTransformer that is fitted to a frame of all rows, of some rows."""
    schema = encoder.schema_
    numbers, frequent = [], []
    for column in schema:
        names = [column.name] if column.kind == "number" else []
        if column.kind == "date":
            names = date_parts(column)
        numbers += names
        if names and column.often_missing:
            frequent.append(names[0])
    scale = RobustScaler(quantile_range=(5.0, 95.0), unit_variance=True)
    impute = SimpleImputer(strategy="median", keep_empty_features=True)
    flags = Pipeline(
        [
            ("impute", SimpleImputer(strategy="most_frequent", keep_empty_features=True)),
            ("scale", StandardScaler()),
        ]
    )
    indicators = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=3, dtype=np.float64
    )
    steps = [
        ("numbers", Pipeline([("impute", impute), ("scale", scale)]), numbers),
        ("missing", MissingIndicator(features="all"), frequent),
        ("yes/no", flags, schema.of_kind("yes/no")),
        ("categories", indicators, schema.of_kind("category")),
    ]
    steps = [step for step in steps if step[2]]
    for j, name in enumerate(schema.of_kind("text")):
        # Terms that occur in a single row are not informative, unless there are very few rows.
        least = 1 if schema[name].n_rows < 50 else 3
        common = {
            "sublinear_tf": True,
            "strip_accents": "unicode",
            "max_features": 20_000,
        }
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=min(2, least), **common)
        parts = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=least, **common)
        steps.append((f"text {j}", FeatureUnion([("words", words), ("parts", parts)]), name))
    weights = dict(zip([step.part for step in encoder.steps_], encoder.scales_, strict=True))
    transformer = ColumnTransformer(steps, transformer_weights=weights)
    transformer.fit(pandas.DataFrame(typed_arrays(as_table(frame), schema)))
    rows = frame if rows is None else rows
    return transformer.transform(pandas.DataFrame(typed_arrays(as_table(rows), schema)))


def test_every_kind_becomes_features_with_names():
    encoder = TableEncoder()
    features = encoder.fit_transform(table())
    names = encoder.get_feature_names_out().tolist()
    assert features.shape == (120, len(names))
    assert names[:2] == ["size", "price"]
    assert "price is missing" in names
    assert "size is missing" not in names  # one row in 120
    assert {"town=Bonn", "town=Köln", "town=Ulm", "new", "sold: weekday (sin)"} <= set(names)
    assert "note has 'apple'" in names
    assert "note has '...app...'" in names
    assert not any(name.startswith(("key", "same")) for name in names)
    assert np.isfinite(dense(features)).all()


def test_transform_is_fit_transform_and_frames_are_alike():
    frame = table()
    encoder = TableEncoder()
    expected = dense(encoder.fit_transform(frame))
    for other in (frame, polars.from_pandas(frame), pa.Table.from_pandas(frame), frame[::-1]):
        found = dense(encoder.transform(other))
        if other is not frame and isinstance(other, pandas.DataFrame):
            found = found[::-1]
        np.testing.assert_allclose(found, expected, atol=1e-12)
    # Numbers as text, as a file has them, and columns in another order.
    texts = frame.astype({"size": str, "price": str})[frame.columns[::-1]]
    np.testing.assert_allclose(dense(encoder.transform(texts)), expected, atol=1e-12)


def test_blocks_have_the_variance_of_their_weights():
    for weights in (None, {"text": 1.0, "numbers": 3.0}):
        encoder = TableEncoder(weights=weights)
        features = dense(encoder.fit_transform(table()))
        names = encoder.get_feature_names_out()
        of_text = np.array(["note has" in name for name in names])
        of_town = np.array([name.startswith("town=") for name in names])
        variances = features.var(axis=0)
        used = {"numbers": 1.0, "categories": 1.0, "text": 4.0, **(weights or {})}
        assert variances[of_text].sum() == pytest.approx(used["text"])
        assert variances[of_town].sum() == pytest.approx(used["categories"])
        # size, price, sold, new
        assert variances[~of_text & ~of_town].sum() == pytest.approx(4 * used["numbers"])
    with pytest.raises(ValueError, match="weights must give numbers above 0"):
        TableEncoder(weights={"texts": 1.0}).fit(table())


def test_values_that_training_did_not_have_are_counted():
    encoder = TableEncoder().fit(table())
    new = table()
    new.loc[:6, "town"] = "Mars"
    with pytest.warns(UserWarning, match=r"'town' in 7 rows \('Mars'\)"):
        encoder.transform(new)
    new["town"] = "Mars"
    with pytest.warns(UnknownValuesWarning) as caught:
        encoder.transform(new)
    assert caught[0].message.counts == {"town": {"Mars": 120}}
    # Without end, they are counted together.
    new = pandas.concat([table()] * 10, ignore_index=True)
    with pytest.warns(UnknownValuesWarning, match="'town' in 1200 rows") as caught:
        encoder.transform(new.assign(town=[f"planet {i}" for i in range(1200)]))
    counts = caught[0].message.counts["town"]
    assert len(counts) == 1001
    assert counts["(others)"] == 200
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        missing = table().assign(town=None)
        assert np.isfinite(dense(encoder.transform(missing))).all()


@pytest.mark.parametrize("as_words", [False, True])
def test_a_column_of_0_and_1_that_turns_out_to_count(as_words):
    frame = pandas.DataFrame({"doors": [0, 1, 1, 0] * 10, "size": np.arange(40.0) % 7})
    new = pandas.DataFrame({"doors": [4, 1, 2.5, None], "size": [1.0, 2.0, 3.0, 4.0]})
    if as_words:
        frame["doors"] = frame["doors"].astype(str)
        new["doors"] = ["4", "1", "2.5", ""]
    encoder = TableEncoder().fit(frame)
    with pytest.warns(UnknownValuesWarning) as caught:
        doors = encoder.transform(new)[:, 1]
    assert caught[0].message.counts == {"doors": {"4": 1, "2.5": 1}}
    step = doors[1] - doors[3]  # from 0, which is the most frequent, to 1
    np.testing.assert_allclose((doors - doors[3]) / step, [4, 1, 2.5, 0])
    with pytest.raises(TableError, match=r"row 1: .* but 'x' is neither '0' nor '1'"):
        encoder.transform({"doors": ["4", "x"], "size": ["1", "2"]})
    said = TableEncoder(kinds={"doors": "yes/no"}).fit(frame)
    with pytest.raises(TableError, match="neither '0' nor '1'"):
        said.transform(new)


def test_later_tables_with_other_values():
    encoder = TableEncoder().fit(table())
    for name, values, said in (
        ("size", ["1", "2", *["abc"] * 118], "row 2: .*'size'.*'abc'"),
        ("size", np.inf, "'size'.* infinite"),
        ("new", "maybe", "'new'.*'maybe'"),
        ("sold", "tomorrow", "'sold'.*'tomorrow'"),
    ):
        with pytest.raises(TableError, match=said):
            encoder.transform(table().assign(**{name: values}))
    with pytest.raises(TableError, match="missing: 'size'"):
        encoder.transform(table().drop(columns="size"))
    with pytest.warns(UnknownValuesWarning, match="'town' in 120 rows"):
        encoder.transform(table().assign(town=np.arange(120.0)))
    missing = table().assign(size=None, price="n/a", note=None, sold="")
    assert np.isfinite(dense(encoder.transform(missing))).all()
    # Columns that the model does not use may be anything, or be left out.
    encoder.transform(table().drop(columns=["key", "same"]).assign(extra="x"))


def test_numbers_as_categories_are_the_same_as_their_texts():
    frame = pandas.DataFrame({"zip": [89073, 53113, 89073, 50667] * 5, "size": np.arange(20) / 7})
    encoder = TableEncoder(kinds={"zip": "category"}).fit(frame)
    expected = encoder.transform(frame)
    np.testing.assert_array_equal(encoder.transform(frame.astype({"zip": str})), expected)
    np.testing.assert_array_equal(encoder.transform(frame.astype({"zip": float})), expected)


def test_a_clone_is_unfitted_and_nothing_to_learn_is_an_error():
    encoder = TableEncoder(drop=["note"]).fit(table())
    assert "note" not in [column.name for column in encoder.schema_]
    assert not hasattr(clone(encoder), "schema_")
    with pytest.raises(TableError, match="no columns that could be features"):
        TableEncoder().fit(pandas.DataFrame({"same": [1, 1, 1]}))


@pytest.mark.parametrize("sparse", [True, False])
def test_blocks_of_rows_change_nothing(sparse):
    rng = np.random.default_rng(0)
    n = 6000
    words = [f"w{k}" for k in range(40 if sparse else 2)]
    frame = pandas.DataFrame({"size": rng.normal(size=n), "town": rng.choice(words, n)})
    frame.loc[rng.random(n) < 0.1, "size"] = np.nan
    encoder = TableEncoder()
    whole = encoder.fit_transform(frame)
    assert sp.issparse(whole) == sparse
    assert whole.shape[0] == n
    np.testing.assert_allclose(dense(encoder.transform(frame)), dense(whole), atol=1e-12)
    parts = [dense(encoder.transform(frame[i : i + 2500])) for i in range(0, n, 2500)]
    np.testing.assert_allclose(np.vstack(parts), dense(whole), atol=1e-12)
    np.testing.assert_allclose(dense(obvious_features(encoder, frame)), dense(whole), atol=1e-12)
    np.testing.assert_allclose(
        [dense(whole)[:, :2].var(axis=0).sum(), dense(whole)[:, 2:].var(axis=0).sum()], [1, 1]
    )
    bad = frame.astype(object)
    bad.loc[5000, "size"] = "abc"
    with pytest.raises(TableError) as caught:
        encoder.transform(bad.astype(str).replace("nan", ""))
    assert caught.value.row == 5000
    new = frame.assign(town=np.where(np.arange(n) % 2, "Mars", frame["town"]))
    with pytest.warns(UnknownValuesWarning) as caught:
        encoder.transform(new)
    assert [w.message.counts for w in caught] == [{"town": {"Mars": n // 2}}]


@pytest.mark.parametrize("is_sparse", [True, False])
def test_features_are_those_of_the_column_transformer_to_the_last_digit(is_sparse):
    rng = np.random.default_rng(1)
    n = 300
    words = [f"Wört{k}" for k in range(200)] if is_sparse else ["Öl", "ab"]
    frame = pandas.DataFrame(
        {
            "size": rng.normal(size=n),
            "often missing": rng.normal(size=n),
            "member": rng.choice(["yes", "no", None], n),
            "sold": rng.choice(["2021-05-31", "2022-01-02", None], n),
            "town": rng.choice(["Ulm", "Bonn", None], n),
            "street": [f"street {length:.0f}" for length in rng.exponential(2, n)],
            "colour": rng.choice(["red", "blue"], n),
            "note": [" ".join(rng.choice(words, 6)) for _ in range(n)],
        }
    )
    frame.loc[rng.random(n) < 0.3, "often missing"] = np.nan
    frame.loc[4, "note"] = None
    encoder = TableEncoder(kinds={"street": "category", "note": "text"}).fit(frame)
    new = frame.assign(colour="green", street="new", town=frame["town"].where(frame.index > 9, "?"))
    for some in (frame, frame[:1], frame[4:5], new, new[7:8]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = encoder.transform(some)
            wanted = obvious_features(encoder, frame, some)
        assert sp.issparse(found) == sp.issparse(wanted) == is_sparse
        np.testing.assert_array_equal(dense(found), dense(wanted))
        if is_sparse:
            np.testing.assert_array_equal(found.indices, sp.csr_matrix(wanted).indices)


def test_names_of_features_when_columns_begin_alike():
    frame = pandas.DataFrame(
        {
            "a": ["b_x", "y"] * 20,
            "a_b": ["x", "z"] * 20,
            "the__note": ["one two three", "two three four", "three four five six"] * 13 + ["one"],
        }
    )
    names = TableEncoder(kinds={"the__note": "text"}).fit(frame).get_feature_names_out().tolist()
    assert names[:4] == ["a=b_x", "a=y", "a_b=x", "a_b=z"]
    assert "the__note has 'two three'" in names


def test_a_long_table_is_fitted_in_parts_as_in_one():
    """Learned a few columns at a time, and from some rows of each category: the same numbers."""
    rng = np.random.default_rng(3)
    n = 14_000
    values = rng.normal(size=(n, 20)).round(3)
    values[rng.random((n, 20)) < 0.1] = np.nan
    frame = pandas.DataFrame(values).add_prefix("number ")
    frame = frame.join(pandas.DataFrame(rng.integers(0, 2, (n, 20))).add_prefix("flag "))
    frame["town"] = rng.choice(["Ulm", "Bonn", "Köln"], n)
    frame["rare"] = rng.choice([f"v{i}" for i in range(5000)], n)
    frame["sold"] = pandas.Timestamp("2020-01-01") + pandas.to_timedelta(
        rng.integers(0, 900, n), unit="D"
    )
    encoder = TableEncoder()
    features = encoder.fit_transform(frame)
    assert abs(features - obvious_features(encoder, frame)).max() < 1e-12
    again = encoder.transform(frame)
    assert abs(again - features).max() < 1e-12
    assert again.has_sorted_indices == features.has_sorted_indices


def test_the_column_of_each_feature_is_the_one_that_changes_it():
    frame = table()
    encoder = TableEncoder().fit(frame)
    before, made_from = dense(encoder.transform(frame)), encoder.feature_columns()
    assert len(made_from) == before.shape[1]
    assert set(made_from) == set(encoder.schema_.features)
    for name in encoder.schema_.features:
        other = frame.assign(**{name: frame[name].to_numpy()[::-1]})
        changed = (dense(encoder.transform(other)) != before).any(axis=0)
        assert set(made_from[changed]) == {name}
