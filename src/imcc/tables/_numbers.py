"""Numbers as people write them, and words for yes and no, as numbers.

Numbers can have a decimal comma, signs between thousands, a percent sign or that of a currency; how
they are written is found out from a whole column.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from imcc._utils.cells import label_values, truth
from imcc._utils.errors import given
from imcc.tables._columns import TableError, arrow, compute, is_text

# A finite decimal number.  Words such as "inf" and hexadecimal numbers are not numbers in a table.
_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
# Points between thousands and a decimal comma, and the reverse.
_POINTS = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?$"
_THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$"
# Numbers by their form: 1.5, 1,5, 1.234,5 and 1,234.5.
_FORMS = {
    ".": _NUMBER,
    ",": r"^[+-]?\d+(,\d+|([eE][+-]?\d+)?)$",
    ".,": _POINTS,
    ",.": f"{_THOUSANDS}|{_NUMBER}",
}
# Numbers whose commas cannot be decimal commas: there are several, or there is a point as well; and
# one with a comma that may be either.
_SURELY_THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(,\d{3}|\.\d*)$"
_PERHAPS_THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"

# A number with a percent sign, also after a space that does not break: 12 %, 12.5% or 12,5 %.
_SPACE = r"[\s\x{00a0}\x{202f}]*"
_PERCENTAGE = rf"^([-+.,\deE]+){_SPACE}%$"
# Signs of amounts, before or after the number.
_CURRENCIES = ("€", "$", "£", "¥", "EUR", "USD", "GBP", "CHF")

#: With at least this fraction of numbers, the other values of a column are an error.
MOSTLY = 0.8


def _counted(text: Any, pattern: str) -> int:
    """Return how many cells match a pattern."""
    pc = compute()
    return pc.sum(pc.match_substring_regex(text, pattern)).as_py() or 0


def _amount(currency: str) -> str:
    """Return the pattern of amounts in a currency; its groups are those of a number."""
    sign = re.escape(currency)
    return rf"^(?:([-+]?){_SPACE}{sign}{_SPACE}([-+]?[.,\d]+)|([-+]?[.,\d]+){_SPACE}{sign})$"


def _without_signs(text: Any, percent: bool, currency: str) -> Any:
    """Return a column without the signs; cells without a percent sign are missing then."""
    pa, pc = arrow(), compute()
    if currency:
        text = pc.replace_substring_regex(text, _amount(currency), r"\1\2\3")
    if not percent:
        return text
    bare = pc.replace_substring_regex(text, _PERCENTAGE, r"\1")
    has_sign = pc.match_substring_regex(text, _PERCENTAGE)
    return pc.if_else(has_sign, bare, pa.scalar(None, text.type))  # 0.12 may be 12 %


def plain_numbers(text: Any, decimal: str = ".", percent: bool = False, currency: str = "") -> Any:
    """Return the cells of a clean column of text that are numbers, with decimal points.

    Other cells are missing.  How numbers are written is described as in :class:`Column`.
    """
    pa, pc = arrow(), compute()
    text = _without_signs(text, percent, currency)
    is_number = pc.match_substring_regex(text, _FORMS[decimal])
    text = pc.if_else(is_number, text, pa.scalar(None, text.type))
    if decimal == ",.":
        return pc.replace_substring(text, ",", "")
    if decimal == ".":
        return text
    return pc.replace_substring(pc.replace_substring(text, ".", ""), ",", ".")


def number_form(name: str, text: Any, stated: bool = False) -> dict[str, Any]:
    """Return how the numbers of a clean column of text are written, if most cells are numbers.

    They are the attributes ``decimal``, ``percent`` and ``currency`` of its :class:`Column`.

    Parameters
    ----------
    name : str
        Name of the column, for messages.
    text : pyarrow array of text
        The column.
    stated : bool, default=False
        Whether it is known that the column has numbers.  Then not all of them need percent signs,
        and commas stand between thousands if they cannot all be decimal commas; otherwise, some
        cell must show it: by several commas, or one and a point.
    """
    pc = compute()
    present = len(text) - text.null_count
    most = MOSTLY * present
    currency = next((c for c in _CURRENCIES if 0 < most <= _counted(text, _amount(c))), "")
    bare = _without_signs(text, False, currency)
    n_signs = _counted(bare, _PERCENTAGE)
    percent = n_signs > 0 and n_signs >= (most if stated else present)
    bare = _without_signs(bare, percent, "")
    form = {"decimal": ".", "percent": percent, "currency": currency}
    with_comma = bare.filter(pc.match_substring(bare, ","))
    if not len(with_comma):
        return form
    sure = _counted(bare, _SURELY_THOUSANDS) > 0
    if stated and not sure and _counted(bare, _THOUSANDS):
        sure = not pc.all(pc.match_substring_regex(bare, _POINTS)).as_py()
    if sure and _counted(bare, _FORMS[",."]) >= most:
        return {**form, "decimal": ",."}
    # A point before the comma shows that numbers without it are not the rule.
    forms = (".,", ",") if _counted(with_comma, r"\.\d{3},") else (",", ".,")
    for decimal in forms:
        pattern = _FORMS[decimal]
        if _counted(bare, pattern) >= most and _counted(with_comma, pattern):
            if decimal == "," and _counted(with_comma, _PERHAPS_THOUSANDS) == len(with_comma):
                raise TableError(
                    f"column {name!r} holds numbers such as {with_comma[0].as_py()!r}, in which "
                    "the comma may stand for decimals or between thousands: write them with a "
                    "decimal point, or say that it is no number with "
                    + given("kinds", {name: "category"})
                )
            return {**form, "decimal": decimal}
    return form


def unclear_numbers(text: Any) -> tuple[list[str], list[str]]:
    """Return examples of numbers that are written in different ways, with signs or commas.

    Parameters
    ----------
    text : pyarrow array of text
        Clean column that is not read as numbers.

    Returns
    -------
    numbers : list of str
        One example of each way; empty if most cells are no numbers, or none has such a sign.
    words : list of str
        Up to three values that are no numbers.
    """
    pc = compute()
    amounts = "|".join(map(_amount, _CURRENCIES))
    bare = pc.replace_substring_regex(text, f"{_SPACE}%$", "")
    number = pc.or_(
        pc.match_substring_regex(bare, "|".join(_FORMS.values())),
        pc.match_substring_regex(text, amounts),
    )
    numbers, words = (pc.unique(text.filter(which)) for which in (number, pc.invert(number)))
    most = MOSTLY * (len(text) - text.null_count)
    if not _counted(numbers, f"[%,]|{amounts}") or pc.sum(number).as_py() < most:
        return [], []
    ways: dict[tuple[bool, ...], str] = {}
    for cell in numbers[:1000].to_pylist():
        ways.setdefault(tuple(sign in cell for sign in (*"%,.", *_CURRENCIES)), cell)
    return list(ways.values()), words[:3].to_pylist()


def to_numbers(values: Any) -> np.ndarray:
    """Return a clean column of numbers as float64, NaN if missing."""
    pa, pc = arrow(), compute()
    if is_text(values):
        # Arrow does not read a leading plus sign.
        values = pc.replace_substring_regex(values, r"^\+", "")
    if pa.types.is_decimal(values.type):
        values = pc.cast(values, pa.float64(), safe=False)
    found = pc.cast(values, pa.float64(), safe=False)
    return np.asarray(pc.fill_null(found, float("nan")).to_numpy(), dtype=np.float64)


def to_flags(values: Any, *, signs: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return a yes/no column as 0.0 and 1.0, NaN if missing, and which cells are neither.

    With ``signs``, -1 and 1 mean no and yes if there are no other values.
    """
    pa, pc = arrow(), compute()
    if pa.types.is_boolean(values.type):
        values = pc.cast(values, pa.uint8())
    if not is_text(values):
        flags = to_numbers(values)
        if signs and np.isin(flags[~np.isnan(flags)], (-1, 1)).all():
            flags = np.where(flags == -1, 0.0, flags)
        return flags, ~(np.isnan(flags) | (flags == 0) | (flags == 1))
    words = values.drop_null().unique()
    spellings = words.to_pylist()
    means = label_values(spellings) if signs else {word: truth(word) for word in spellings}
    numbers = np.array([*(means[word] for word in spellings), None], dtype=np.float64)
    codes = pc.fill_null(pc.index_in(values, value_set=words), len(words)).to_numpy()
    flags = numbers[codes]
    return flags, np.isnan(flags) & (codes < len(words))
