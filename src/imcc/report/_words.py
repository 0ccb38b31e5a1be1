"""Names and numbers as text, the same in all formats."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable

DASH = "\u2013"  # where there is no number
MINUS = "\u2212"
TIMES = "\u00d7"

_TITLES = {
    "one_error": "one-error",
    "hamming_loss": "Hamming loss",
    "ranking_loss": "ranking loss",
    "coverage": "coverage",
    "average_precision": "average precision",
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
    "subset_accuracy": "subset accuracy",
    "macro_auc": "macro AUC",
}


def metric_title(metric: str) -> str:
    """Return the name of a metric for use in text.

    >>> metric_title("hamming_loss")
    'Hamming loss'
    """
    return _TITLES.get(metric, metric.replace("_", " "))


def capital(text: str) -> str:
    """Return a text with its first letter capitalised; the rest is unchanged.

    >>> capital("macro AUC")
    'Macro AUC'
    """
    return text[:1].upper() + text[1:]


def arrow(greater_is_better: bool) -> str:
    """Return an arrow in the direction of better values.

    >>> arrow(True), arrow(False)
    ('↑', '↓')
    """
    return "↑" if greater_is_better else "↓"


def direction(greater_is_better: bool) -> str:
    """Return the direction of better values in words.

    >>> direction(False)
    'lower is better'
    """
    return "higher is better" if greater_is_better else "lower is better"


def one_line(name: str) -> str:
    r"""Return a name on one line: white space becomes a space, control characters a box.

    >>> one_line("a\nb")
    'a b'
    """
    text = " ".join(name.split())
    return "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)


def shorten(name: str, length: int = 24) -> str:
    """Return a name on one line, cut to a length.

    >>> shorten("a name that never ends", 10)
    'a name th…'
    """
    text = one_line(name)
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def number(value: float, decimals: int = 3) -> str:
    """Return a number as text; a dash for NaN.

    >>> number(0.12345), number(float("nan"))
    ('0.123', '–')
    """
    return DASH if math.isnan(value) else f"{value:.{decimals}f}"


def signed(value: float, decimals: int = 4) -> str:
    """Return a difference with its sign.

    >>> signed(0.01234), signed(-0.5, 1), signed(0)
    ('+0.0123', '−0.5', '0.0000')
    """
    text = f"{abs(value):.{decimals}f}"
    sign = "" if float(text) == 0 else "+" if value > 0 else MINUS
    return sign + text


def rank_text(rank: float) -> str:
    """Return a rank, with decimals only if needed.

    >>> rank_text(2.0), rank_text(2.5), rank_text(7 / 3)
    ('2', '2.5', '2.33')
    """
    return f"{rank:.2f}".rstrip("0").rstrip(".")


def p_text(p: float) -> str:
    """Return a p-value for use in text.

    >>> p_text(0.00004), p_text(0.0213)
    ('p < 0.001', 'p = 0.021')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def joined(names: Iterable[str]) -> str:
    """Return names as an enumeration.

    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    names = list(names)
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]


def counted(n: int, what: str, more: str | None = None) -> str:
    """Return a count with a noun in singular or plural.

    >>> counted(1, "data set"), counted(15, "data set"), counted(0, "class", "classes")
    ('1 data set', '15 data sets', '0 classes')
    """
    return f"{n:,} {what if n == 1 else more or what + 's'}"


def seconds_text(seconds: float) -> str:
    """Return a time with a suitable unit.

    >>> seconds_text(0.0123), seconds_text(4.2), seconds_text(250), seconds_text(9000)
    ('12 ms', '4.2 s', '4.2 min', '2.5 h')
    """
    for limit, factor, unit in ((1, 1000, "ms"), (60, 1, "s"), (3600, 1 / 60, "min")):
        if seconds < limit:
            value = seconds * factor
            return f"{value:.2g} {unit}" if value < 10 else f"{value:.0f} {unit}"
    hours = seconds / 3600
    return f"{hours:.2g} h" if hours < 10 else f"{hours:.0f} h"


def bytes_text(size: float) -> str:
    """Return a size in bytes with a suitable unit.

    >>> bytes_text(900), bytes_text(1_234_000), bytes_text(2.5e9)
    ('900 B', '1.2 MB', '2.5 GB')
    """
    for limit, unit in ((1e3, "B"), (1e6, "kB"), (1e9, "MB"), (math.inf, "GB")):
        if size < limit:
            value = size / (limit / 1e3) if unit != "GB" else size / 1e9
            return f"{value:.2g} {unit}" if value < 10 and unit != "B" else f"{value:.0f} {unit}"
    raise AssertionError("unreachable")  # pragma: no cover


def setting_value(value: object) -> str:
    """Return the value of a parameter as text, numbers in their shortest form.

    >>> setting_value(0.001), setting_value(1000.0), setting_value("rbf"), setting_value(None)
    ('0.001', '1000', 'rbf', 'None')
    """
    return f"{value:g}" if isinstance(value, float) else one_line(str(value))
