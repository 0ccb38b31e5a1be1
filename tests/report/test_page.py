"""The page as a text: what is in it, what is not, and for which stores it can be made."""

import re
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from imcc.datasets import list_datasets
from imcc.experiment import Experiment, Store, StoreError, load_experiment
from imcc.report import write_report, write_tables
from imcc.report._page import reproduction
from tests.report.conftest import SOME
from tests.report.synthetic import HOSTILE, build_page, make_store
from tests.report.synthetic import failure as failed

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Reads a page; knows its tags, ids, headings and texts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.headings, self.attributes = [], [], [], []
        self.open, self.texts = [], []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attributes]
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append([tag, ""])

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.open and re.fullmatch("h[1-6]", self.open[-1]):
            self.headings[-1][1] += data

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="session")
def pages(stores, published):
    made = {}

    def get(name):
        if name not in made:
            made[name] = build_page(stores(name), published=published)
        return made[name]

    return get


@pytest.mark.parametrize("name", ["three", "one", "single", "hostile"])
def test_the_page_is_sound(pages, name):
    text = pages(name)
    page = Page(text)
    assert text.startswith("<!doctype html>")
    assert page.tags.count("h1") == 1
    assert ("html", "lang", "en") in page.attributes
    assert page.tags.count("main") == page.tags.count("header") == page.tags.count("footer") == 1
    levels = [int(tag[1]) for tag, _ in page.headings]
    assert levels[0] == 1
    assert all(later <= before + 1 for before, later in pairwise(levels))
    assert len(page.ids) == len(set(page.ids))
    labels = [value for tag, n, value in page.attributes if (tag, n) == ("svg", "aria-label")]
    assert len(labels) == page.tags.count("svg")
    assert bool(labels) == (name not in ("one", "single"))  # one data set has no ranks to draw
    assert all(len(label) > 20 for label in labels)
    linked = {v[1:] for t, n, v in page.attributes if (t, n) == ("a", "href")}
    assert linked <= set(page.ids)


@pytest.mark.parametrize("name", ["three", "hostile"])
def test_the_page_asks_for_nothing(pages, name):
    page = Page(pages(name))
    assert not set(page.tags) & {"iframe", "object", "embed", "base", "form", "img"}
    for tag, attribute, value in page.attributes:
        if attribute in ("src", "srcset", "data", "action", "poster"):
            pytest.fail(f"<{tag} {attribute}={value}>")
        if attribute in ("href", "xlink:href"):
            assert value.startswith(("#", "data:,"))
        if attribute == "style":
            assert re.sub(r"url\(#[^)]+\)", "", value).count("url(") == 0
    css = re.search(r"<style>(.*?)</style>", pages(name), re.S)[1]
    assert "url(" not in css
    assert "@import" not in css


def test_names_are_escaped_everywhere(pages):
    text = pages("hostile")
    page = Page(text)
    assert page.tags.count("script") == page.tags.count("style") == 1
    assert not [a for a in page.attributes if a[1].startswith("on")]
    assert "alert(1)</script>" not in text
    shown = page.text
    for name in HOSTILE:
        assert " ".join(name.split())[:20] in shown


def test_hostile_failures_and_environments_are_escaped(tmp_path):
    path = make_store(
        tmp_path / "s.sqlite",
        failures=[failed("yeast", "imcc", 2, "ValueError: </pre><script>alert(3)</script>")],
        leave_out={("yeast", "imcc", 2)},
    )
    page = Page(build_page(path))
    assert page.tags.count("script") == 1
    assert "ValueError: </pre><script>alert(3)</script>" in page.text
    assert "Traceback (most recent call last)" in page.text
    assert "a <fast> one" in page.text
    assert "yeast, imcc, split 3" in page.text
    assert "Not finished: 8 of 9 tasks are done, 1 failed" in page.text.replace(" :", ":")


def test_only_our_script_may_run(pages):
    import base64
    import hashlib

    text = pages("hostile")
    script = re.search(r"<script>(.*)</script>", text, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert f"script-src &#39;sha256-{digest}&#39;" in policy or f"'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_every_metric_has_its_tables(pages):
    page = pages("three")
    for metric in SOME:
        assert f'data-metric="{metric}"' in page
    assert 'data-metric="macro_auc"' not in page  # which no run has
    scores = page.split('id="scores"')[1].split("</section>")[0]
    assert len(re.findall(r'class="sortable( dense)?" data-best="min"', scores)) == 2


def test_sections_of_one_data_set_and_one_split(pages):
    text = Page(pages("one")).text
    assert "Not known" in text
    assert "at least two data sets are needed" in text
    assert "Time to search the parameters and fit" in text


def test_one_method(tmp_path):
    text = Page(
        build_page(make_store(tmp_path / "s.sqlite", methods=["ecc"], metrics=["coverage"]))
    ).text
    assert "One method only" in text
    assert "Not finished" not in text


def test_an_empty_store(tmp_path):
    path = tmp_path / "s.sqlite"
    Store.create(path, Experiment("yeast", ["imcc", "extra_trees"], n_repeats=2)).close()
    text = Page(build_page(path)).text
    assert "There are no results yet" in text
    assert "0 of 4 tasks are done" in text


def test_missing_cells_are_left_out_and_said(tmp_path):
    path = make_store(
        tmp_path / "s.sqlite",
        datasets=("yeast", "scene", "image"),
        metrics=("coverage",),
        leave_out={("scene", "imcc", r) for r in range(3)},
    )
    text = Page(build_page(path)).text
    # The two others keep their three data sets.
    assert "of 2 methods on 3 data sets" in text
    assert "imcc: runs on 2 of 3 data sets" in text


def test_undefined_main_metric(tmp_path):
    path = make_store(tmp_path / "s.sqlite", metrics=("coverage",))
    page = build_page(path)
    assert 'data-metric="coverage"' in page
    assert "By coverage, lower is better (the experiment" in page


def test_control_and_title_have_an_effect(stores, pages):
    assert "to both sides of imcc (diamond)" in pages("hostile")
    control = HOSTILE[4]
    other = build_page(stores("hostile"), control=control, title="My <title>")
    assert f"to both sides of {control} (diamond)" in other
    assert ["h1", "My <title>"] in Page(other).headings
    with pytest.raises(ValueError, match="control must be one of"):
        build_page(stores("hostile"), control="nobody")


def test_no_control_without_imcc(tmp_path):
    sets, methods = ("yeast", "scene", "image"), ("ecc", "lift", "mahr")
    path = make_store(tmp_path / "s.sqlite", sets, methods, metrics=("coverage",))
    page = build_page(path)
    assert "(diamond)" not in page
    assert "How large the differences from" not in page


def test_times_are_geometric_means_of_ratios(tmp_path):
    """Of the runs with the usual number of threads, separately on CPU and GPU."""
    path = make_store(tmp_path / "s.sqlite", ("yeast", "scene"), metrics=("coverage",))
    with Store(path) as store:
        experiment, runs = store.experiment, store.runs()
    seconds = {"imcc": 6.0, "kernel_ridge": 2.0, "extra_trees": 1.0}
    changed = []
    for run in runs:
        environment = {**run.environment, "threads": 1}
        if run.key.repetition == 2:
            environment |= {"threads": 8} if run.key.method == "imcc" else {"device": "cuda"}
        size = 10.0 if run.key.dataset == "scene" else 0.1
        time = seconds[run.key.method] * size
        changed.append(replace(run, environment=environment, fit_seconds=time))
    with Store.create(tmp_path / "new.sqlite", experiment) as store:
        store.add(*changed)
    page = build_page(tmp_path / "new.sqlite")
    section = page.split('<section id="time"')[1].split("</section>")[0].partition(">")[2]
    text = Page(section).text
    assert "divided by that of extra_trees on a CPU (1 s)" in text
    assert "All with 1 thread (2 runs with another number left out)." in text
    rows = ("extra_trees CPU 2 1", "extra_trees GPU 2 1", "kernel_ridge CPU 2 2", "imcc CPU 2 6")
    assert all(row in text for row in rows)
    assert "on different machines" in text


def test_published_results_are_shown_where_a_file_has_them(stores, pages):
    assert 'id="published"' not in build_page(stores("one"))
    page = pages("three")
    assert 'id="published"' in page
    assert "those published in A paper of 2022;" in page
    assert page.count("another data set&#39;s number") == 3  # metrics of yeast
    assert "0.777</small>" in page
    assert 'id="published"' not in pages("hostile")


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_what_is_not_installed_is_named(stores, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"'{package}'.*pip install {package}$"):
        build_page(stores("three"))


def test_an_open_store(stores, pages, published, tmp_path):
    with Store(stores("one"), read_only=True) as store:
        path = write_report(store, tmp_path / "open.html", published=published)
        assert path.read_text("utf-8") == pages("one")
        assert store.keys()  # left open


def test_no_store(tmp_path):
    with pytest.raises(StoreError, match="there is no results store"):
        build_page(tmp_path / "none.sqlite")


# Files.


def test_a_report_replaces_a_report_and_nothing_else(stores, tmp_path):
    path = tmp_path / "report.html"
    assert write_report(stores("one"), path) == path
    first = path.read_bytes()
    write_report(stores("one"), path, title="again")
    assert path.read_bytes() != first
    path.write_text("my own notes")
    with pytest.raises(FileExistsError, match="not a report"):
        write_report(stores("one"), path)
    assert path.read_text() == "my own notes"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    path.write_text("")  # an empty file holds nothing that could be lost
    write_report(stores("one"), path)
    with pytest.raises(ValueError, match="path"):
        write_tables(stores("one"), tmp_path / "tables.md")


def test_where_nothing_can_be_written(stores, tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_report(stores("one"), tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_report(stores("one"), tmp_path / "none" / "report.html")
    assert not list(tmp_path.iterdir())


# How to reproduce it.


def test_the_description_comes_back_from_its_file(tmp_path):
    experiment = Experiment(
        ["yeast", "scene"],
        {
            "imcc": "imcc",
            'a <b>\\ "name"\x7f é': ("sklearn.neighbors.KNeighborsClassifier", {"p": [1, 2]}),
            "llsf": "llsf",
            "tree": {
                "estimator": "sklearn.tree.DecisionTreeClassifier",
                "params": {"max_depth": None},
            },
        },
        n_repeats=2,
    )
    again = reproduction(experiment, "s.sqlite")
    (tmp_path / again["file"]).write_text(again["description"], encoding="utf-8")
    assert load_experiment(tmp_path / again["file"]).to_dict() == experiment.to_dict()


def test_the_commands():
    own = reproduction(Experiment("yeast", "imcc", seed=5), "a b.sqlite")
    assert own["commands"] == [
        "imcc experiment run experiment.json -o 'a b.sqlite'",
        "imcc report 'a b.sqlite' -o report.html",
    ]
    foreign = {"e": {"estimator": "elsewhere.Classifier", "params": {"max_depth": None}}}
    other = reproduction(Experiment("yeast", foreign, allow=["elsewhere"]), "s.sqlite")
    assert "experiment.json --allow elsewhere -o" in other["commands"][0]


def test_data_from_memory_must_be_given_again(pages):
    assert "Some data sets were given in memory" in pages("hostile")
    assert "given in memory" not in pages("three")


@pytest.mark.slow
def test_a_large_report_is_small_and_quick(tmp_path):
    """Eight methods on fifteen data sets, nine metrics."""
    methods = ("imcc", "brsvm", "ecc", "mahr", "llsf", "jfsc", "lift", "kernel_ridge")
    path = make_store(tmp_path / "s.sqlite", list_datasets("paper"), methods, 1)
    start = time.process_time()
    written = write_report(path, tmp_path / "report.html")
    assert time.process_time() - start < 30
    assert written.stat().st_size < 2_000_000
