"""Tables: what is in their cells, and that LaTeX is sound."""

import shutil
import subprocess

import numpy as np
import pytest

from imcc.comparison import ScoreTable
from imcc.report import paper_table, to_latex, write_tables
from imcc.report._words import DASH
from tests.report.synthetic import HOSTILE


def small(values, greater=True, datasets=None, methods=None):
    values = np.asarray(values, dtype=float)
    return ScoreTable(
        "average_precision",
        greater,
        tuple(datasets or [f"d{i}" for i in range(values.shape[0])]),
        tuple(methods or [f"m{i}" for i in range(values.shape[1])]),
        values,
    )


def texts(table, row=0):
    return [cell.text("±") for cell in table.cells[row]]


def test_cells_are_mean_std_and_rank():
    table = paper_table(small([[[0.7, 0.8], [0.5, 0.6], [0.7, 0.8]]]))
    assert texts(table) == ["0.750±0.071 (1.5)", "0.550±0.071 (3)", "0.750±0.071 (1.5)"]
    assert [cell.best for cell in table.cells[0]] == [True, False, True]
    assert table.mean_ranks == [("1.50", True), ("3.00", False), ("1.50", True)]
    assert [name for name, _ in table.rows("±")] == ["d0", "average rank"]


def test_one_repetition_has_no_deviation_and_the_lowest_loss_is_best():
    table = paper_table(small([[[0.7], [0.6]]], greater=False))
    assert texts(table) == ["0.700 (2)", "0.600 (1)"]
    assert [cell.best for cell in table.cells[0]] == [False, True]


def test_rows_with_gaps_are_shown_but_not_ranked():
    table = paper_table(
        small([[[0.7, 0.8], [0.5, 0.6]], [[0.7, 0.9], [np.nan, np.nan]], [[0.1, 0.2], [0.3, 0.4]]])
    )
    assert texts(table, 1) == ["0.800±0.141", DASH]
    assert not any(cell.best for cell in table.cells[1])
    assert table.mean_ranks == [("1.50", True), ("1.50", True)]  # of the two complete rows
    assert table.notes == ("d1: no repetition that all of the ranked methods have",)


def test_numbers_are_over_the_repetitions_that_all_methods_have():
    table = paper_table(small([[[0.2, 0.8, 0.9], [0.5, 0.6, np.nan]]]))
    assert table.cells[0][0].mean == pytest.approx(0.5)  # without the last one
    assert "over 2 repetitions instead of 3: d0" in table.notes


def test_a_method_that_hardly_ran_does_not_spoil_the_rest():
    values = np.full((3, 3, 1), 0.5)
    values[:, 1] = 0.6
    values[1:, 2] = np.nan  # the last method has run on one data set of three
    table = paper_table(small(values))
    assert table.mean_ranks == [("2.00", False), ("1.00", True), (DASH, False)]
    assert "m2: runs on 1 of 3 data sets" in table.notes


def test_one_method_has_no_rank():
    table = paper_table(small([[[0.7, 0.8]]]))
    assert table.mean_ranks == []
    assert texts(table) == ["0.750±0.071"]
    assert len(table.rows("±")) == 1


def test_nothing_at_all():
    assert texts(paper_table(small(np.full((1, 2, 1), np.nan)))) == [DASH, DASH]


def test_tables_of_a_store(stores, tmp_path):
    text = write_tables(stores("three"), tmp_path / "t.tex").read_text("utf-8")
    captions = [line for line in text.splitlines() if line.startswith(r"\caption{")]
    titles = ("Average precision", "Hamming loss", "Coverage", "Macro F1")
    assert [line.partition(" (")[0] for line in captions] == [rf"\caption{{{t}" for t in titles]
    assert "3 random splits" in captions[0]
    assert text.count("average rank & ") == 4


def test_latex_escapes_and_marks():
    table = paper_table(
        small([[[0.7, 0.8], [0.5, 0.6]]], datasets=["a_b 50%"], methods=["$x$", "#1"]),
        caption="mean ± std",
    )
    text = to_latex([table])
    assert r"data set & \$x\$ & \#1 \\" in text
    assert r"a\_b 50\% & \textbf{0.750$\pm$0.071 (1)} & 0.550$\pm$0.071 (2) \\" in text
    assert r"mean $\pm$ std" in text
    assert "resizebox" not in text
    wide = paper_table(small(np.random.default_rng(0).random((2, 9, 2))))
    assert r"\resizebox{\linewidth}{!}{%" in to_latex([wide])


def test_latex_compiles(stores, tmp_path):
    engine = next(filter(None, map(shutil.which, ("xelatex", "lualatex", "pdflatex"))), None)
    if engine is None:
        pytest.skip("there is no LaTeX engine here")
    packages = subprocess.run(
        ["kpsewhich", "booktabs.sty", "graphicx.sty"], capture_output=True, text=True
    )
    if len(packages.stdout.splitlines()) < 2:
        pytest.skip("booktabs and graphicx are not installed")
    names = [name for name in HOSTILE if name.isascii()]
    values = np.random.default_rng(0).random((len(names), len(names), 2))
    hostile = paper_table(small(values, datasets=names, methods=names), caption="as printed ±")
    (tmp_path / "t.tex").write_text(
        "\\documentclass{article}\n\\usepackage{booktabs,graphicx}\n\\begin{document}\n"
        + to_latex([hostile])
        + write_tables(stores("single"), tmp_path / "tables.tex").read_text("utf-8")
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
