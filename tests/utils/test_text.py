import pytest

from imcc._utils.text import escaped_formula, printable

ESCAPES = ("\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\r over", "a\x00b")
UNSEEN = ("\u202eabc", "\ud800", "\u2028")
FORMULAS = ("=1+1", "+cmd", "-cmd|' /C calc'!A0", "@SUM(A1)", "-1+1", "|x", "%0")


@pytest.mark.parametrize("name", ESCAPES + UNSEEN)
def test_nothing_that_controls_a_terminal_is_left(name):
    shown = printable(f"wren {name}")
    assert shown.isprintable()
    assert shown.startswith("wren ")
    assert shown != f"wren {name}"


@pytest.mark.parametrize("name", ["wren", "Zaunkönig", "鷦鷯", "a [b] \\ 'c'", "é"])
def test_ordinary_names_stay(name):
    assert printable(name) == name


def test_lines_may_stay():
    assert printable("a\n\x1bb", keep="\n") == "a\n\\x1bb"


@pytest.mark.parametrize("cell", [*FORMULAS, "\t=1", "\r=1", " =1"])
def test_formulas_are_defused(cell):
    assert escaped_formula(cell) == f"'{cell}"


@pytest.mark.parametrize(
    "cell", ["wren", "a=b", "", "-1.5", "+3e-7", "-inf", "nan", " -2 ", -1.5, 0, True, None]
)
def test_other_cells_stay(cell):
    assert escaped_formula(cell) is cell
