"""The rows around a row, groups of rows in words, and the page about a row."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from imcc import IMCCClassifier
from imcc._utils.errors import InvalidArgumentError
from imcc.inspection import (
    RowReport,
    cluster_of,
    describe_group,
    diagnose,
    diagnose_probabilities,
    draw_columns,
    draw_diagnostics,
    explain_columns,
    inspect_model,
    nearest_rows,
    page,
)
from imcc.tables import TableClassifier

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 90
    region = np.array(["Süd"] * 30 + ["Nord"] * 40 + ["Ost"] * 20)
    age = rng.normal(40, 10, n) + 25 * (region == "Süd")
    note = np.where(region == "Ost", "still waiting for a call", "many thanks for your help")
    opened = pd.date_range("2024-01-01", periods=n, freq="3D").strftime("%Y-%m-%d")
    frame = pd.DataFrame(
        {
            "key": [f"K-{i}" for i in range(n)],
            "region": region,
            "age": age.round(1),
            "note": note,
            "opened": opened,
            "member": np.where(region == "Nord", "yes", "no"),
        }
    )
    frame.loc[::7, "age"] = None
    labels = pd.DataFrame({"old": age > 50, HOSTILE: region == "Ost"}).astype(int)
    return frame, labels


@pytest.fixture(scope="module")
def model(table):
    frame, labels = table
    inside = IMCCClassifier(n_clusters=3, random_state=0)
    return TableClassifier(inside, kinds={"note": "text"}, random_state=0).fit(frame, labels)


def test_nearest_rows(table, model):
    frame, labels = table
    seen = []
    found = nearest_rows(
        model,
        frame.iloc[[80]],
        frame,
        labels,
        n_nearest=4,
        names=frame["key"],
        label_names=list(labels),
        leave_out=[80],
        progress=lambda *counts: seen.append(counts),
    )
    features = np.asarray(model.estimator_["table"].transform(frame))
    distances = np.sqrt(((features - features[80]) ** 2).sum(axis=1))
    order = [i for i in np.argsort(distances, kind="stable") if i != 80][:4]
    assert list(found.rows) == order
    np.testing.assert_allclose(found.distances, distances[order])
    assert found.names == tuple(frame["key"].iloc[order])
    assert found.columns == ("region", "age", "note", "opened", "member")
    assert found.values[0][0] == frame["region"].iloc[order[0]]
    assert found.labels[0] == tuple(labels.columns[labels.iloc[order[0]] > 0])
    assert seen[-1] == (90, 90)
    assert list(found.to_frame().columns) == list(found.columns)
    assert found.first(2).rows == found.rows[:2]
    assert "NearestRows: 4 rows" in repr(found)
    json.dumps(found.to_dict())
    with pytest.raises(InvalidArgumentError, match="names has 3"):
        nearest_rows(model, frame.iloc[[0]], frame, names=[1, 2, 3])


def test_nearest_rows_of_arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    clf = IMCCClassifier(n_clusters=3, random_state=0).fit(X, (X > 0).astype(int))
    dense = nearest_rows(clf, X[4], X)
    assert dense.rows[0] == 4
    assert dense.distances[0] == 0
    assert dense.names == tuple(map(str, dense.rows))
    assert dense.labels is None
    assert nearest_rows(clf, sp.csr_array(X[4:5]), sp.csr_array(X)).rows == dense.rows
    # What is not known is not listed.
    Y = np.where(X > 0, 1.0, 0.0)
    Y[4] = [np.nan, 1, 0]
    named = nearest_rows(clf, X[4], X, Y, label_names=np.array(["a", "b", "c"]), n_nearest=1)
    assert named.labels == (("b",),)
    assert nearest_rows(clf, X[4], X[:3], leave_out=[0, 0]).rows in ((1, 2), (2, 1))
    for rows, left_out in ((X[:0], ()), (X[:2], (0, 1))):
        with pytest.raises(InvalidArgumentError, match="no rows"):
            nearest_rows(clf, X[4], rows, leave_out=left_out)


def test_a_group_in_words(table, model):
    frame, _ = table
    found = describe_group(model, frame, frame["region"] == "Süd")
    assert (found.size, found.n_rows) == (30, 90)
    first = found.facts[0]
    assert first.text == "region = Süd (100% of these rows, 33% of all)"
    assert first.strength == pytest.approx((1 - 1 / 3) / np.sqrt(2 / 9))
    known = frame["age"].dropna()
    gap = known[frame["region"] == "Süd"].mean() - known.mean()
    assert f"{gap:.3g} above the mean in age" in str(found)
    assert "days before the mean in opened" in str(found)
    east = str(describe_group(model, frame, np.flatnonzero(frame["region"] == "Ost")))
    assert "note has 'call' (100% of these rows, 22% of all)" in east
    north = str(describe_group(model, frame, frame["region"] == "Nord"))
    assert "member = yes (100% of these rows, 44% of all)" in north
    gaps = str(describe_group(model, frame, frame["age"].isna()))
    assert gaps.startswith("age is missing (100% of these rows, 14% of all)")
    assert len(describe_group(model, frame, frame["region"] == "Süd", top=1).facts) == 1
    assert "GroupDescription of 30 of 90 rows" in repr(found)
    assert found.to_dict()["facts"][0]["column"] == "region"


def test_a_random_group_has_nothing_to_be_said_about(table, model):
    frame, _ = table
    rng = np.random.default_rng(1)
    said = [describe_group(model, frame, rng.choice(90, 20, replace=False)) for _ in range(20)]
    assert sum(len(found.facts) for found in said) <= 2
    assert "no column stands out" in map(str, said)
    with pytest.raises(InvalidArgumentError, match="empty"):
        describe_group(model, frame, [])


def test_groups_of_arrays_and_frames():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    X[:20, 1] += 5
    expected = str(describe_group(None, X, range(20)))
    assert re.fullmatch(r"3\.\d+ above the mean in x1", expected)
    assert str(describe_group(None, sp.csr_array(X), range(20))) == expected
    frame = pd.DataFrame(X, columns=["a", "x1"])
    assert str(describe_group(None, frame, range(20))) == expected
    large = describe_group(None, 10_000 * X, range(20))
    assert re.fullmatch(r"3\d,\d\d\d above the mean in x1", str(large))


def test_the_cluster_of_a_row(table, model):
    frame, _ = table
    inside = model.estimator_["classifier"]
    for i in (0, 50, 85):
        cluster, rows = cluster_of(model, frame.iloc[[i]])
        assert cluster == inside.assignment_[i]
        assert i in rows
        np.testing.assert_array_equal(rows, np.flatnonzero(inside.assignment_ == cluster))


@pytest.fixture(scope="module")
def report(table, model):
    frame, labels = table
    found = explain_columns(model, frame.iloc[[85]], frame, n_background=20)
    nearest = nearest_rows(
        model, frame.iloc[[85]], frame, labels, names=frame["key"], label_names=list(labels)
    )
    group = describe_group(model, frame, cluster_of(model, frame.iloc[[85]])[1])
    return RowReport("<b>85", found, "20 rows of <i>x", nearest, "t.csv", group, "its <u>cluster")


def bars(text):
    """Return side and length of the bars of a page."""
    return [
        (kind, float(left), float(width))
        for kind, left, width in re.findall(
            r'class="bar (up|down)" style="left: ([\d.]+)%; width: ([\d.]+)%"', text
        )
    ]


def test_the_page_about_a_row(report, model):
    text = page(None, title="t", rows=[(report, ())])
    for harmful in ("<b>85", "<i>x", "<u>cluster", "<script>alert"):
        assert harmful not in text
    assert "Virtual examples" not in text
    j = report.attribution.index()
    sizes = [part.contribution for part in report.attribution.parts(j)]
    found = bars(text)
    assert len(found) == len(sizes)
    for size, (kind, left, width) in zip(sizes, found, strict=True):
        # Down to the left of the middle, up to the right.
        assert kind == ("down" if size < 0 else "up")
        assert left + (width if size < 0 else 0) == pytest.approx(50, abs=0.02)
        assert width == pytest.approx(50 * abs(size) / max(map(abs, sizes)), abs=0.01)
    both = page(inspect_model(model), rows=[(report, ["old", HOSTILE])])
    assert "Virtual examples" in both
    assert len(bars(both)) == 2 * len(sizes)
    json.dumps(report.to_dict())


def test_figures(report, table, tmp_path):
    pytest.importorskip("matplotlib")
    found = report.attribution
    whole = draw_columns(found, tmp_path / "c.svg", label="old").read_text()
    assert draw_columns(found, tmp_path / "c.svg", label="old", top=2).read_text() != whole
    rng = np.random.default_rng(0)
    Y, chances = rng.random((40, 3)) < 0.4, rng.random((40, 3))
    judged = diagnose_probabilities(Y, chances, n_resamples=10)
    plain = draw_diagnostics(diagnose(Y, chances), tmp_path / "d.svg").read_text()
    drawn = diagnose(Y, chances, n_resamples=10)
    more = draw_diagnostics(drawn, tmp_path / "d.svg", calibration=judged).read_text()
    assert len(more) > len(plain)
    without = diagnose_probabilities(Y, chances, n_resamples=0)
    few = draw_diagnostics(drawn, tmp_path / "d.svg", calibration=without, max_labels=1)
    assert len(few.read_text()) < len(more)


@pytest.mark.slow
def test_the_page_fits_on_a_phone(report, model, tmp_path, browser):
    file = tmp_path / "p.html"
    file.write_text(page(inspect_model(model), rows=[(report, ["old", HOSTILE])]), "utf-8")
    context = browser.new_context(viewport={"width": 390, "height": 844})
    opened = context.new_page()
    wrong = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    opened.goto(file.as_uri())
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    # The bars are on their side of the middle, and inside of the page.
    middles = opened.evaluate(
        """() => [...document.querySelectorAll(".parts li")].map(li => {
          const axis = li.querySelector(".axis").getBoundingClientRect();
          const bar = li.querySelector(".bar").getBoundingClientRect();
          return [li.querySelector(".bar").classList.contains("up"),
                  bar.left + bar.width / 2 - axis.left - axis.width / 2, bar.right];
        })"""
    )
    assert len(middles) == 10
    assert all((middle >= -0.5) if up else (middle <= 0.5) for up, middle, _ in middles)
    assert max(right for *_, right in middles) <= 390
    assert not wrong
    context.close()
