"""The page about one model: what it says, and that it is safe, small and usable in a browser."""

import csv
import json
import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import f1_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imcc import IMCCClassifier, KernelEnsembleClassifier, TableClassifier
from imcc._utils.errors import InvalidArgumentError
from imcc.estimators import (
    GuaranteedThresholds,
    MultilabelCalibrator,
    NoGuaranteeWarning,
    TunedThresholds,
)
from imcc.inspection import find_label_issues, model_page

pytest.importorskip("jinja2")

HOSTILE = "</script><img src=x onerror=alert(1)>"
PHONE, DESKTOP = {"width": 375, "height": 812}, {"width": 1280, "height": 900}


def content(page):
    """Return the data inside a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(found[1])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4))
    Y = (X @ rng.normal(size=(4, 3)) + rng.normal(size=(240, 3)) > 0.4).astype(float)
    Y[3, 1] = np.nan
    return X, Y


@pytest.fixture(scope="module")
def ensemble(data):
    inner = KernelEnsembleClassifier(views=("raw",), random_state=0)
    return TunedThresholds(inner, cv="held_out").fit(*data)


def test_numbers(data, ensemble):
    X, Y = data
    page = model_page(ensemble, X, Y, n_explained=2)
    found = content(page)
    limits = ensemble.thresholds_
    chances = ensemble.held_out_proba_
    for j, label in enumerate(found["labels"]):
        known = ~np.isnan(Y[:, j])
        on, p = Y[known, j] > 0, chances[known, j]
        assert (label["n"], label["support"]) == (known.sum(), on.sum())
        grid = np.insert(found["grid"], label["at"], limits[j])
        assert (np.diff(grid) >= 0).all()
        for k in (0, label["at"], 60, len(grid) - 1):
            assert label["called"][k] == (p >= grid[k]).sum()
            assert label["tp"][k] == (on & (p >= grid[k])).sum()
        assert sum(n for n, _, _ in label["bins"]) == known.sum()
        for side, wrong in (("fp", ~on & (p >= limits[j])), ("fn", on & (p < limits[j]))):
            rows, values = zip(*label[side], strict=True)
            assert set(rows) <= set(np.flatnonzero(known)[wrong])
            assert list(values) == sorted(values, reverse=side == "fp")
            extreme = p[wrong].max() if side == "fp" else p[wrong].min()
            assert values[0] == pytest.approx(extreme, rel=1e-3)
    explained = [row for row in found["rows"].values() if "why" in row]
    assert len(explained) == 2
    together = ((Y[:, 0] == 1) & (Y[:, 1] == 1)).sum()
    assert found["pairs"]["given"][0][1] == together
    assert len(list(csv.reader(found["csv"].splitlines()))) == 1 + len(find_label_issues(ensemble))


def test_training_rows_are_judged_by_held_out_probabilities(data, ensemble):
    X, Y = data
    assert "240 held-out rows" in model_page(ensemble, X, Y, n_explained=0)
    other = model_page(ensemble, X[:100], Y[:100], n_explained=0)
    assert "100 given rows" in other
    # Without rows: the same numbers, and the page says that rows are not in it.
    page = model_page(ensemble)
    assert "are not in this file" in page
    with_rows = content(model_page(ensemble, X, Y, n_explained=0))
    assert content(page)["labels"] == with_rows["labels"]
    assert content(page)["rows"] == {}
    assert "are not in this file" not in other


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), MultiOutputClassifier(LogisticRegression())),
        make_pipeline(StandardScaler(), RidgeClassifier()),
        MultilabelCalibrator(IMCCClassifier(4, random_state=0), cv=3),
        IMCCClassifier(4, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_classifier(data, model):
    X, Y = data[0], np.nan_to_num(data[1]).astype(int)
    model.fit(X[:150], Y[:150])
    page = model_page(model, X[150:], Y[150:], n_explained=1, n_resamples=10)
    found = content(page)
    predicted = np.asarray(model.predict(X[150:]))
    for j, label in enumerate(found["labels"]):
        assert label["called"][label["at"]] == predicted[:, j].sum()
        tp = label["tp"][label["at"]]
        f1 = 2 * tp / (label["support"] + predicted[:, j].sum())
        assert f1 == pytest.approx(f1_score(Y[150:, j], predicted[:, j], zero_division=0))
    assert ("bins" in found["labels"][0]) == hasattr(model, "predict_proba")


def test_binary_and_constant_labels(data):
    X, Y = data
    words = np.where(Y[:, 0] > 0, "spam", "ham")
    page = model_page(LogisticRegression().fit(X, words), X, words, n_explained=1)
    assert len(content(page)["labels"]) == 1
    constant = np.column_stack([Y[:, 0], np.zeros(len(Y))])
    model = KernelEnsembleClassifier(views=("raw",), random_state=0).fit(X, constant)
    assert content(model_page(model))["labels"][1]["support"] == 0


def test_names_and_orders_of_labels(data):
    pandas = pytest.importorskip("pandas")
    X, Y = data[0], np.nan_to_num(data[1]).astype(int)
    frame = pandas.DataFrame(Y, columns=["a", "b", "c"])
    model = MultilabelCalibrator(IMCCClassifier(4, random_state=0), cv=3).fit(X, frame)
    expected = content(model_page(model, X[:90], frame[:90], n_explained=0))["labels"]
    turned = content(model_page(model, X[:90], frame[["c", "a", "b"]][:90], n_explained=0))
    assert turned["labels"] == expected
    sets = [{"abc"[j] for j in np.flatnonzero(row)} for row in Y[:90]]
    assert content(model_page(model, X[:90], sets, n_explained=0))["labels"] == expected
    with pytest.raises(InvalidArgumentError, match="y"):
        model_page(model, X[:90], frame[:90].rename(columns={"a": "z"}))


def test_labels_of_a_table():
    pandas = pytest.importorskip("pandas")
    notes = ["red apple pie", "green apple tree", "red car", "old blue car"]
    tags = ["red|fruit", "fruit", "red|car", "car"]
    table = pandas.DataFrame({"note": notes * 10, "price": np.arange(40.0), "tags": tags * 10})
    model = TableClassifier(IMCCClassifier(4, random_state=0), kinds={"note": "text"})
    model.fit(table, "tags")
    pages = [
        content(model_page(model, table, y, n_explained=0))
        for y in ("tags", table["tags"], [text.split("|") for text in table["tags"]])
    ]
    assert [label["support"] for label in pages[0]["labels"]] == [20, 20, 20]
    assert pages[0] == pages[1] == pages[2]


def test_costs(data, ensemble):
    costs = {"label1": (2.0, 5.0)}
    found = content(model_page(ensemble, costs=costs))
    assert [label["cost"] for label in found["labels"]] == [[1, 1], [2, 5], [1, 1]]
    assert content(model_page(ensemble, costs=(1, 3)))["labels"][2]["cost"] == [1, 3]
    assert content(model_page(ensemble))["labels"][0]["cost"] is None
    for wrong in ({"other": (1, 1)}, (1,), (-1, 2)):
        with pytest.raises(InvalidArgumentError, match="costs"):
            model_page(ensemble, costs=wrong)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"X": np.zeros((3, 4))}, "y"),
        ({"y": np.eye(3)}, "X"),
        ({"row_names": ["a"]}, "row_names"),
        ({"n_explained": -1}, "n_explained"),
        ({"X": np.zeros((3, 4)), "y": np.eye(3)[:, :2]}, "y"),
    ],
)
def test_wrong_arguments(ensemble, arguments, name):
    with pytest.raises(InvalidArgumentError, match=name):
        model_page(ensemble, **arguments)


def test_models_without_held_out_rows_need_some(data):
    X, Y = data
    model = IMCCClassifier(4, random_state=0).fit(X, Y)
    with pytest.raises(InvalidArgumentError, match="X"):
        model_page(model)
    several = LogisticRegression().fit(X, np.arange(len(X)) % 3)
    with pytest.raises(InvalidArgumentError, match="y"):
        model_page(several, X, np.arange(len(X)) % 3)


@pytest.mark.parametrize(("promise", "share"), [("recall", 1), ("precision", 0)])
def test_infinite_thresholds(data, promise, share):
    """Where nothing can be promised, a label is always predicted, or never."""
    X, Y = data[0], np.nan_to_num(data[1]).astype(int)
    inner = MultilabelCalibrator(IMCCClassifier(4, random_state=0), cv=3)
    model = GuaranteedThresholds(inner, **{promise: 0.999}, confidence=0.999, random_state=0)
    with pytest.warns(NoGuaranteeWarning):
        model.fit(X, Y)
    for label in content(model_page(model, X, Y, n_explained=0))["labels"]:
        assert label["own"] == 1 - share
        assert label["called"][label["at"]] == share * len(X)


class Chances:
    """A classifier that repeats given probabilities."""

    def __init__(self, values):
        self.values = values

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return self.values[np.asarray(X)[:, 0].astype(int)]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A page about 5,000 rows, 30 labels and 21 columns of which one has long texts."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    truth = rng.random((5000, 30)) < np.linspace(0.02, 0.5, 30)
    noise = 0.15 * rng.normal(size=truth.shape)
    chances = np.clip(np.where(truth, 0.75, 0.2) + noise, 0.001, 0.999)
    truth ^= rng.random(truth.shape) < 0.03
    table = pandas.DataFrame({"number": np.arange(5000.0)})
    for j in range(19):
        table[f"column {j}"] = rng.normal(size=5000)
    table["text"] = ["lorem <b>ipsum</b> & dolor " * 100] * 5000
    path = tmp_path_factory.mktemp("page") / "page.html"
    truth = truth.astype(int)
    model_page(Chances(chances), table, truth, path=path, n_explained=0, n_resamples=10)
    return path, find_label_issues(chances, truth)


def test_size(large):
    path, _ = large
    assert path.stat().st_size < 5e6
    found = content(path.read_text("utf-8"))
    assert len(found["rows"]) > 300
    assert max(len(row["cells"][-1]) for row in found["rows"].values()) <= 400


@pytest.fixture(scope="module")
def hostile_page(data, tmp_path_factory):
    """A table with markup in names of labels, columns, rows and cells."""
    pandas = pytest.importorskip("pandas")
    X, Y = data
    table = pandas.DataFrame(X, columns=["a", "b", HOSTILE, "d"])
    words = np.array([HOSTILE, "plain", "=cmd()", "wren\x1b[2J", "dipper"])
    table["words"] = words[np.arange(len(X)) % 5]
    frame = pandas.DataFrame(Y, columns=[HOSTILE, "=1+1", "x" * 300])
    inner = KernelEnsembleClassifier(views=("raw",), random_state=0)
    model = TableClassifier(inner, unknown_labels=True, random_state=0).fit(table, frame)
    names = [f"{HOSTILE}{i}" for i in range(len(X))]
    path = tmp_path_factory.mktemp("page") / "page.html"
    page = model_page(model, table, frame, path=path, title=HOSTILE, row_names=names, n_explained=3)
    assert path.read_text("utf-8") == page
    return path


def test_nothing_from_the_data_is_markup(hostile_page):
    page = hostile_page.read_text("utf-8")
    assert "<img" not in page
    assert page.count("</script>") == 2
    assert "\x1b" not in page
    assert f'"name":"{HOSTILE}"' not in page
    assert content(page)["labels"][0]["name"] == HOSTILE
    lines = list(csv.reader(content(page)["csv"].splitlines()))
    assert all(not cell.startswith("=") for line in lines for cell in line)
    assert not re.search(r"""(?:src|href)=["'](?!#|data:,)""", page)


# In a real browser


@pytest.fixture
def visit(browser):
    """Open a page; at the end, nothing may have been fetched and nothing gone wrong."""
    contexts, wrong, requests = [], [], []

    def go(path, *, viewport=DESKTOP, **options):
        context = browser.new_context(viewport=viewport, accept_downloads=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else 0)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield go
    for context in contexts:
        context.close()
    assert not wrong
    assert {url for url in requests if not url.startswith(("file:", "blob:"))} == set()


def tile(page, name):
    return page.locator(f"#label .tiles div:has(dt:text-is('{name}')) dd").inner_text()


@pytest.mark.slow
def test_slider_and_costs(visit, data, ensemble, tmp_path):
    X, Y = data
    model_page(ensemble, X, Y, path=tmp_path / "page.html", n_explained=2, costs=(1, 10))
    found = content((tmp_path / "page.html").read_text("utf-8"))
    page = visit(tmp_path / "page.html")
    page.locator("#labels a[data-label='2']").click()
    label = found["labels"][2]
    assert page.locator("#label h3").inner_text() == label["name"]
    slider = page.get_by_role("slider")
    for k in (label["at"], 10, 90):
        slider.fill(str(k))
        tp, called = label["tp"][k], label["called"][k]
        assert tile(page, "precision") == f"{100 * tp / called:.0f} %"
        assert tile(page, "recall") == f"{100 * tp / label['support']:.0f} %"
        cost = called - tp + 10 * (label["support"] - tp)
        assert tile(page, "cost of errors") == f"{cost:,}"
    page.get_by_role("button", name="Cheapest threshold").click()
    prices = [
        called - tp + 10 * (label["support"] - tp)
        for tp, called in zip(label["tp"], label["called"], strict=True)
    ]
    assert tile(page, "cost of errors") == f"{min(prices):,}"
    page.get_by_role("button", name="Back to the model").click()
    assert int(slider.input_value()) == label["at"]
    # By keyboard, and the other list follows.
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert int(slider.input_value()) == label["at"] + 1
    page.locator("#wrong select").select_option("0")
    assert page.locator("#label h3").inner_text() == found["labels"][0]["name"]
    assert page.locator("#wrong .error").count() == len(
        found["labels"][0]["fp"] + found["labels"][0]["fn"]
    )
    # Tables sort.
    heading = page.locator("#labels thead th").nth(4)
    heading.get_by_role("button").click()
    cells = page.locator("#labels tbody td:nth-child(5)").all()
    values = [float(cell.get_attribute("data-v")) for cell in cells]
    assert values == sorted(values, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_names_in_a_browser(visit, hostile_page, viewport, scheme):
    page = visit(hostile_page, viewport=viewport, color_scheme=scheme)
    assert page.locator("img").count() == 0
    assert page.locator("#title").inner_text() == HOSTILE
    assert page.locator("#label h3").count() == 1
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= viewport["width"]
    for j in range(3):
        page.locator(f"#labels a[data-label='{j}']").click()
    assert page.locator("img").count() == 0
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 23, 28)"
    assert dark == (scheme == "dark")
    page.get_by_role("button", name="Light" if dark else "Dark").click()
    assert dark != (
        page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 23, 28)"
    )


@pytest.mark.slow
def test_export_and_time(visit, large, tmp_path):
    path, expected = large
    page = visit(path)
    assert page.locator("#label h3").is_visible()
    shown = page.evaluate("performance.timing.loadEventEnd - performance.timing.navigationStart")
    assert shown < 5000  # about 400 ms; the machine may be busy
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as CSV").click()
    download.value.save_as(tmp_path / "list.csv")
    lines = list(csv.DictReader((tmp_path / "list.csv").read_text("utf-8").splitlines()))
    assert [int(line["row"]) for line in lines] == expected.rows.tolist()
