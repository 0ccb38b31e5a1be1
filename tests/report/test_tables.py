import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

from imcc.comparison import ScoreTable
from imcc.published import SLIPS
from imcc.published import table as published
from imcc.report import format_tables, paper_table, tables, to_html, to_latex, to_markdown
from imcc.report._words import DASH
from tests.report.synthetic import HOSTILE, make_store


def small(values, greater=True, datasets=None, methods=None):
    values = np.asarray(values, dtype=float)
    return ScoreTable(
        "average_precision",
        greater,
        tuple(datasets or [f"d{i}" for i in range(values.shape[0])]),
        tuple(methods or [f"m{i}" for i in range(values.shape[1])]),
        values,
    )


def test_cells_are_mean_std_and_rank():
    block = paper_table(small([[[0.7, 0.8], [0.5, 0.6], [0.7, 0.8]]]))
    first, second, third = block.cells[0]
    assert (first.mean, second.mean, third.mean) == pytest.approx((0.75, 0.55, 0.75))
    assert first.std == pytest.approx(np.std([0.7, 0.8], ddof=1))
    assert [cell.rank for cell in block.cells[0]] == [1.5, 3.0, 1.5]
    assert [cell.best for cell in block.cells[0]] == [True, False, True]
    assert first.text() == "0.750±0.071 (1.5)"
    assert block.rows()[0] == [
        ("d0", False),
        ("0.750±0.071 (1.5)", True),
        ("0.550±0.071 (3)", False),
        ("0.750±0.071 (1.5)", True),
    ]
    assert block.rows()[-1] == [
        ("average rank", False),
        ("1.50", True),
        ("3.00", False),
        ("1.50", True),
    ]


def test_the_direction_decides_what_is_best():
    assert paper_table(small([[[0.1], [0.2]]], greater=False)).cells[0][0].best
    assert paper_table(small([[[0.1], [0.2]]], greater=True)).cells[0][1].best


def test_one_repetition_has_no_deviation():
    assert paper_table(small([[[0.7], [0.6]]])).cells[0][0].text() == "0.700 (1)"


def test_decimals():
    block = paper_table(small([[[0.71234], [0.6]]]), decimals=4)
    assert block.cells[0][0].text(block.decimals) == "0.7123 (1)"
    assert block.rows()[0][1][0] == "0.7123 (1)"
    with pytest.raises(ValueError, match="decimals must be a whole number"):
        paper_table(small([[[0.7]]]), decimals=-1)


def test_rows_with_gaps_are_shown_but_not_ranked():
    block = paper_table(
        small([[[0.7, 0.8], [0.5, 0.6]], [[0.7, 0.9], [np.nan, np.nan]], [[0.1, 0.2], [0.3, 0.4]]])
    )
    assert [cell.text() for cell in block.cells[1]] == ["0.800±0.141", DASH]
    assert not any(cell.best for cell in block.cells[1])
    assert block.mean_ranks == (1.5, 1.5)  # of the two complete rows
    assert block.notes == ("d1: no repetition that all of the ranked methods have",)


def test_numbers_are_over_the_repetitions_that_all_methods_have():
    block = paper_table(small([[[0.2, 0.8, 0.9], [0.5, 0.6, np.nan]]]))
    assert block.cells[0][0].mean == pytest.approx(0.5)  # without the last one
    assert block.cells[0][0].n == 2
    assert any("over 2 repetitions instead of 3: d0" in note for note in block.notes)


def test_a_method_that_hardly_ran_does_not_spoil_the_rest():
    values = np.full((3, 3, 1), 0.5)
    values[:, 1] = 0.6
    values[1:, 2] = np.nan  # the last method has run on one data set of three
    block = paper_table(small(values))
    assert block.mean_ranks == (2.0, 1.0, None)
    assert block.rows()[-1][-1] == (DASH, False)
    assert "m2: runs on fewer than 2 data sets of 3" in block.notes


def test_one_method_has_no_rank():
    block = paper_table(small([[[0.7, 0.8]]]))
    assert block.mean_ranks == ()
    assert block.cells[0][0].text() == "0.750±0.071"
    assert len(block.rows()) == 1


def test_nothing_at_all():
    block = paper_table(small(np.full((1, 2, 1), np.nan)))
    assert [cell.text() for cell in block.cells[0]] == [DASH, DASH]


@pytest.mark.parametrize("metric", ["one_error", "average_precision"])
def test_bold_is_where_the_paper_prints_rank_1(metric):
    printed = published(metric)
    block = paper_table(printed.to_scores())
    wrong = {(s.dataset, s.method) for s in SLIPS if s.what == "rank" and s.metric == metric}
    for i, dataset in enumerate(block.datasets):
        for j, method in enumerate(block.methods):
            if (dataset, method) not in wrong:
                assert block.cells[i][j].best == (printed.ranks[i, j] == 1), (dataset, method)


def test_markdown_has_as_many_cells_in_every_line(stores):
    text = format_tables(stores("hostile"), format="markdown")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert lines
    for line in lines:
        bare = line.replace(r"\\", "").replace(r"\|", "")
        assert bare.count("|") == len(HOSTILE) + 3
    assert "<script" not in text.replace(r"\<", "")
    assert text.count("### ") == 2


def test_markdown_bold():
    text = to_markdown([paper_table(small([[[0.7], [0.6]]]))], "a_caption")
    assert "| d0 | **0.700 (1)** | 0.600 (2) |" in text
    assert "a\\_caption" in text


class Cells(HTMLParser):
    """Collects the texts of the cells, and the tags."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip("\n")


def test_html_says_the_same_as_the_terminal():
    block = paper_table(
        small([[[0.7, 0.8], [0.5, 0.6]]], datasets=[HOSTILE[0]], methods=["<b>", "a & b"])
    )
    found = Cells(to_html([block]))
    assert found.rows[0] == block.headings()
    texts = [[text for text, _ in row] for row in block.rows()]
    assert found.rows[1:] == texts
    assert "script" not in found.tags


def test_latex_compiles(stores, tmp_path):
    engine = next(filter(None, map(shutil.which, ("pdflatex", "xelatex", "lualatex"))), None)
    if engine is None:
        pytest.skip("there is no LaTeX engine here")
    packages = subprocess.run(
        ["kpsewhich", "booktabs.sty", "graphicx.sty"], capture_output=True, text=True
    )
    if packages.returncode != 0:
        pytest.skip("LaTeX is here without booktabs or graphicx")
    fragments = [
        format_tables(stores(name), format="latex", metrics="all") for name in ("hostile", "one")
    ]
    fragments.append(to_latex([paper_table(published("one_error").to_scores())], "as printed ±"))
    body = "\n".join(fragments)
    (tmp_path / "t.tex").write_text(
        "\\documentclass{article}\n\\usepackage{booktabs,graphicx}\n\\begin{document}\n"
        + body
        + "\n\\end{document}\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [engine, "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "t.pdf").stat().st_size > 1000


def test_latex_escapes_and_marks():
    block = paper_table(
        small([[[0.7, 0.8], [0.5, 0.6]]], datasets=["a_b 50%"], methods=["$x$", "#1"])
    )
    text = to_latex([block], "mean ± std")
    assert r"data set & \$x\$ & \#1 \\" in text
    assert r"a\_b 50\% & \textbf{0.750$\pm$0.071 (1)} & 0.550$\pm$0.071 (2) \\" in text
    assert r"mean $\pm$ std" in text
    assert "resizebox" not in text
    wide = paper_table(small(np.random.default_rng(0).random((2, 9, 2))))
    assert r"\resizebox{\linewidth}{!}{%" in to_latex([wide])


def test_selection_and_metrics_choose(stores):
    own, each = (tables(stores("three"), selection=s) for s in ("own", "each"))
    assert [block.metric for block in own] == [block.metric for block in each]
    assert len(own) == 5
    assert len(tables(stores("three"), metrics="all")) == 9
    by_metric = {block.metric: block for block in own}, {block.metric: block for block in each}
    assert by_metric[0]["coverage"].cells != by_metric[1]["coverage"].cells
    assert by_metric[0]["average_precision"].cells == by_metric[1]["average_precision"].cells
    with pytest.raises(ValueError, match="selection"):
        tables(stores("three"), selection="best")
    with pytest.raises(ValueError, match="metrics"):
        tables(stores("three"), metrics="some")


def test_without_any_search_both_selections_are_one(tmp_path):
    path = make_store(tmp_path / "s.sqlite", searched=set().__contains__)
    assert tables(path, selection="each") == tables(path, selection="own")
