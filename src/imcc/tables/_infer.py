"""The kinds of the columns of a table, inferred by the rules of :func:`infer_schema`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from imcc._utils.cells import (
    MISSING,
    mostly_distinct,
    numbers_are_keys,
    words_are_keys,
    yes_no_words,
)
from imcc._utils.errors import InvalidArgumentError, Message, given
from imcc.datasets._errors import warn_user
from imcc.tables._columns import (
    TableError,
    arrow,
    as_table,
    check_column,
    compute,
    has_zone,
    is_plain,
    is_text,
    plain_column,
    release_memory,
    to_python,
)
from imcc.tables._dates import DATE_FORMATS, DATE_SHAPE, ISO, is_date_format, parse_date, to_times
from imcc.tables._numbers import MOSTLY, number_form, plain_numbers, to_numbers, unclear_numbers
from imcc.tables._schema import KINDS, Column, Schema, require_rows

# A column with more distinct values is not yes/no, however the words are capitalised.
_MOST_SPELLINGS = 20


def infer_schema(
    frame: Any,
    *,
    kinds: Mapping[str, str] | None = None,
    date_formats: Mapping[str, str] | None = None,
    drop: Collection[str] = (),
    labels: Collection[str] = (),
    missing_words: Collection[str] = (),
) -> Schema:
    """Infer the kinds of the columns of a table.

    Parameters
    ----------
    frame : pandas or polars data frame, pyarrow table, or mapping of names to columns
        The table.
    kinds : mapping of str to str, default=None
        Kinds that override the inferred ones: ``{"zip": "category"}``.
    date_formats : mapping of str to str, default=None
        Formats of dates, as for ``datetime.strptime``, or "ISO 8601".
    drop : collection of str, default=()
        Columns that are not included in the schema.
    labels : collection of str, default=()
        Label columns.
    missing_words : collection of str, default=()
        Further words for a missing value.

    Returns
    -------
    Schema

    Raises
    ------
    TableError
        If the kind of a column is ambiguous, or a given kind does not fit.

    Warns
    -----
    imcc.datasets.DataWarning
        If a column of ids has repeated values, or if most values of a column look like numbers,
        with percent signs or commas, but are written in different ways.  Stating the kind of the
        column with ``kinds`` avoids the warning.

    Notes
    -----
    The rules are applied to the values that are not missing, in this order:

    1. *constant*: no value, or the same value in every row.
    2. *yes/no*: booleans, 0 and 1, or a pair of words such as yes and no.
    3. *number*: every value is a finite decimal number, with a point or, in the whole column, with
       a comma (1,5 or 1.234,5; a column in which every comma may be a thousands separator is an
       error).  Commas are thousands separators if some value shows it (1,234.5 or 1,234,567).
       Every value, or none, has a percent sign; 12 % is the number 12.  The sign of one currency
       (€, $, £, ¥, EUR, USD, GBP or CHF) is removed: € 3.682,18 is the number 3682.18.  If at least
       80 % but not all values are numbers, this is an error: the others are an unknown word for a
       missing value, or the column is not a number.  Digits of which some begin with 0, such as the
       zip code 01067, are no numbers.
    4. *date*: all values are dates that exist, in the same format: ISO 8601 (2021-05-31, with or
       without a time such as 14:30:05 and a time zone such as Z or +02:00), 2021/05/31,
       31.05.2021, 31/05/2021 or 05/31/2021 (with or without a time such as 14:30 or 14:30:05).
       If at least 80 % look like dates and most are, but not all, this is an error, and so are
       years of two digits.
    5. *id*: at least 20 values, all distinct, that are consecutive integers, or integers in a
       column whose name ends in id, key or similar (without missing values); or single words with
       a digit.  If 95 % or more, but not all, are distinct, a warning is issued.
    6. *text*: at least three words per distinct value on average, if more than 10 % of the values
       are distinct; or at least two words, if more than half of the values are distinct.
    7. *category*: all other columns.

    Examples
    --------
    >>> schema = infer_schema(
    ...     {"age": [31, 45, None], "town": ["Ulm", "Köln", "Ulm"], "member": ["yes", "no", "yes"]}
    ... )
    >>> [(column.name, column.kind) for column in schema]
    [('age', 'number'), ('town', 'category'), ('member', 'yes/no')]
    """
    table = as_table(frame)
    require_rows(table)
    kinds, date_formats = dict(kinds or {}), dict(date_formats or {})
    named = {"kinds": kinds, "date_formats": date_formats, "drop": drop, "labels": labels}
    for argument, names in named.items():
        for name in names:
            check_column(argument, name, table.column_names)
    for name, kind in kinds.items():
        if kind not in KINDS:
            raise InvalidArgumentError(
                "kinds", f"must name kinds of {', '.join(KINDS)}; {name!r} has {kind!r}"
            )
    for name, layout in date_formats.items():
        if not is_date_format(layout):
            raise InvalidArgumentError(
                "date_formats",
                f"must have formats of datetime.strptime, such as %d.%m.%Y, or {ISO}; {name!r} has "
                f"{layout!r}",
            )
        kinds.setdefault(name, "date")
    words = tuple(sorted(MISSING | {word.strip().lower() for word in missing_words}))
    columns = []
    for name in table.column_names:
        if name in drop:
            continue
        known = "label" if name in labels else kinds.get(name)
        columns.append(infer_column(name, table[name], words, known, date_formats.get(name)))
        release_memory()
    return Schema(tuple(columns), words)


def column_options(source: Any) -> dict[str, Any]:
    """Return the arguments of :func:`infer_schema` that an estimator or a schema file gives."""
    names = ("kinds", "date_formats", "drop", "missing_words")
    return {name: getattr(source, name) for name in names}


def infer_column(
    name: str,
    values: Any,
    missing_words: Collection[str],
    kind: str | None = None,
    date_format: str | None = None,
) -> Column:
    """Return what a column is: of the given kind, which is checked, or of an inferred one."""
    overruled = kind is not None and kind != "label"
    if kind in ("label", "id", "constant") and not is_plain(values):
        return Column(name, kind, values.null_count, n_rows=len(values), overruled=overruled)
    reader = _Reader(name, values, missing_words)
    return Column(
        name,
        missing=reader.values.null_count,
        # Other than empty cells.
        spelled=reader.values.null_count - plain_column(name, values, [""]).null_count,
        n_rows=len(values),
        n_values=len(reader.distinct),
        examples=tuple(map(str, to_python(reader.distinct[:3]))),
        overruled=overruled,
        **(reader.infer() if kind is None else reader.details(kind, date_format)),
    )


class _Reader:
    """Determines the kind of a column."""

    def __init__(self, name: str, values: Any, words: Collection[str]) -> None:
        self.name = name
        self.values = values = plain_column(name, values, words)
        self.is_text = is_text(values)
        self.form: dict[str, Any] = {}
        self.distinct = compute().unique(values.drop_null())
        self.n_present = len(values) - values.null_count

    def infer(self) -> dict[str, Any]:
        """Return the kind and its attributes by the rules."""
        pa = arrow()
        n_values = len(self.distinct)
        if n_values == 0 or (n_values == 1 and self.values.null_count == 0):
            return {"kind": "constant"}
        if self.yes_no() is not None:
            return self.details("yes/no", None)
        if pa.types.is_temporal(self.values.type):
            return self.details("date", None)
        if not self.is_text or self.all_numeric():
            kind = "id" if self.counts_rows() else "number"
            return {"kind": kind, **self.form}
        if (layout := self.date_format()) is not None:
            return self.date_details(layout)
        kind = "id" if self.are_keys() else "text" if self.are_sentences() else "category"
        numbers, others = unclear_numbers(self.values)
        if numbers:
            shown = ", ".join(map(repr, [*numbers, *others][:4]))
            declare = "declare words for missing values with " + given("missing_words", others)
            warn_user(
                Message(
                    f"column {self.name!r} is of the kind {kind}: most of its values look like "
                    f"numbers, but not all are written in the same way ({shown}); correct them, ",
                    declare + ", " if others else "",
                    "or state the kind with ",
                    given("kinds", {self.name: kind}),
                )
            )
        return {"kind": kind}

    def details(self, kind: str, date_format: str | None) -> dict[str, Any]:
        """Check a given kind, and return its attributes."""
        pa = arrow()
        if kind in ("yes/no", "date", "text") and not len(self.distinct):
            raise TableError(
                f"column {self.name!r} cannot be of the kind {kind}: it has no values; leave it "
                "out with " + given("drop", [self.name])
            )
        if kind == "yes/no":
            words = self.yes_no()
            if words is None:
                raise TableError(
                    f"column {self.name!r} cannot be yes/no: its values are "
                    f"{to_python(self.distinct[:5])}"
                )
            return {"kind": kind, "words": words if self.is_text else None}
        if kind == "number" and self.is_text:
            self.all_numeric(forced=True)
            return {"kind": kind, **self.form}
        if kind == "date" and self.is_text:
            layout = date_format or self.date_format()
            if layout is None:
                raise TableError(
                    f"column {self.name!r}: the format of its dates is not known, an example is "
                    f"{self.distinct[0].as_py()!r}: specify it with "
                    + given("date_formats", {self.name: "%d/%m/%Y"})
                )
            return self.date_details(layout)
        if kind == "date":
            if not pa.types.is_temporal(self.values.type):
                raise TableError(f"column {self.name!r} holds numbers, not dates")
            zone = has_zone(self.values)
            times, _, _ = to_times(self.distinct, None, zone)
            has_time = bool((times != times.astype("datetime64[D]")).any())
            return {"kind": kind, "date_format": ISO, "has_time": has_time, "has_zone": zone}
        return {"kind": kind}

    def date_format(self) -> str | None:
        """Return the format of a column of text that has dates, and None if it has none.

        It is an error if the format is not clear, or if most values are dates, but not all.
        """
        pc = compute()
        alike = pc.sum(pc.match_substring_regex(self.values, DATE_SHAPE)).as_py() or 0
        if alike < MOSTLY * self.n_present:
            return None
        texts = self.distinct.to_pylist()
        few = texts[:: max(1, len(texts) // 100)]

        def others_of(formats: Sequence[str]) -> dict[str, list[str]]:
            """Return the values that are not in a format, for formats that fit half of them."""
            likely = [f for f in formats if 2 * len(_no_dates(few, f)) <= len(few)]
            return {layout: _no_dates(texts, layout) for layout in likely}

        others = others_of(DATE_FORMATS)
        fits = [layout for layout in others if not others[layout]]
        if len(fits) == 1 or ISO in fits:
            return fits[0]
        if fits:
            raise TableError(
                f"column {self.name!r} has dates such as {texts[0]!r}, in which day and month "
                "cannot be distinguished: specify the format with "
                + given("date_formats", {self.name: fits[0]})
            )
        if others:
            layout = min(others, key=lambda layout: len(others[layout]))
            self._refuse_others("date", f"dates in the format {layout}", others[layout])
        others = others_of([layout.replace("%Y", "%y") for layout in DATE_FORMATS[1:]])
        if others:
            layout = min(others, key=lambda layout: len(others[layout]))
            raise TableError(
                f"column {self.name!r} has values such as {texts[0]!r}: if they are dates with "
                "years of two digits, specify the format with "
                + given("date_formats", {self.name: layout})
                + " (69 to 99 are then 1969 to 1999, and 00 to 68 are 2000 to 2068); otherwise "
                "the kind with " + given("kinds", {self.name: "category"})
            )
        return None

    def date_details(self, layout: str) -> dict[str, Any]:
        """Check the dates of a column of text, and return their attributes."""
        moments = {text: parse_date(text, layout) for text in self.distinct.to_pylist()}
        if others := [text for text, moment in moments.items() if moment is None]:
            self._refuse_others("date", f"dates in the format {layout}", others)
        zoned = [text for text, moment in moments.items() if moment and moment.tzinfo]
        if 0 < len(zoned) < len(moments):
            bare = next(text for text in moments if text not in zoned)
            raise TableError(
                f"column {self.name!r} has dates with a time zone, such as {zoned[0]!r}, and "
                f"without one, such as {bare!r}: write all in the same way"
            )
        if layout == ISO:
            has_time = any(":" in text for text in moments)
        else:
            has_time = any(part in layout for part in ("%H", "%I", "%X", "%c"))
        return {
            "kind": "date",
            "date_format": layout,
            "has_time": has_time,
            "has_zone": bool(zoned),
        }

    def yes_no(self) -> tuple[str, str] | None:
        """Return the words for no and yes if these are the values of the column, else None."""
        pa = arrow()
        if pa.types.is_boolean(self.values.type):
            return ("0", "1")
        if len(self.distinct) > _MOST_SPELLINGS:
            return None
        if self.is_text:
            return yes_no_words(self.distinct.to_pylist())
        if pa.types.is_integer(self.values.type) or pa.types.is_floating(self.values.type):
            return ("0", "1") if set(self.distinct.to_pylist()) == {0, 1} else None
        return None

    def all_numeric(self, forced: bool = False) -> bool:
        """Return whether all values are numbers; an error if most are, or if ``forced``."""
        pc, written = compute(), self.values
        is_digits = pc.all(pc.match_substring_regex(self.distinct, r"^\d+$")).as_py()
        begins_with_0 = pc.any(pc.match_substring_regex(self.distinct, r"^0\d")).as_py()
        if is_digits and begins_with_0 and not forced:  # codes, such as zip codes
            return False
        form = number_form(self.name, written, stated=forced)
        values = plain_numbers(written, **form)
        n_numeric = len(values) - values.null_count
        if n_numeric == self.n_present:
            self.values, self.form = values, form
            return True
        if forced or n_numeric >= MOSTLY * self.n_present:
            others = pc.unique(written.filter(pc.is_null(values)).drop_null())
            self._refuse_others("number", "numbers", others.to_pylist())
        return False

    def _refuse_others(self, kind: str, what: str, others: Sequence[str]) -> NoReturn:
        """Raise an error that names values that are not of the kind of most values."""
        pa, pc = arrow(), compute()
        wrong = pc.is_in(self.values, value_set=pa.array(others, self.values.type))
        rows = np.flatnonzero(wrong.to_numpy(zero_copy_only=False))
        shown = ", ".join(map(repr, others[:3])) + (", ..." if len(others) > 3 else "")
        raise TableError(
            Message(
                f"column {self.name!r}: {self.n_present - len(rows)} of its {self.n_present} "
                f"values are {what}, and {len(rows)} are not ({shown}). If that means a missing "
                "value, say so with ",
                given("missing_words", list(others[:3])),
                f"; if the column is no {kind}, with ",
                given("kinds", {self.name: "category"}),
            ),
            int(rows[0]),
        )

    def counts_rows(self) -> bool:
        """Return whether numbers are keys, which name rows."""
        if self.form.get("percent") or self.values.null_count:
            return False
        if not numbers_are_keys(self.name, to_numbers(self.values)):
            return False
        self._warn_if_repeated("number")
        return True

    def are_keys(self) -> bool:
        """Return whether words are keys, which name rows."""
        if not mostly_distinct(len(self.distinct), self.n_present):
            return False
        if not words_are_keys(word.as_py() for word in self.distinct):
            return False
        self._warn_if_repeated("category")
        return True

    def _warn_if_repeated(self, otherwise: str) -> None:
        """Say that not all keys are distinct; ``otherwise`` is the kind if they are none."""
        if len(self.distinct) < self.n_present:
            warn_user(
                Message(
                    f"column {self.name!r} is left out, because its values look like keys that "
                    f"name rows, although only {len(self.distinct):,} of {self.n_present:,} are "
                    "distinct; "
                    "to use it, state its kind with ",
                    given("kinds", {self.name: otherwise}),
                    "; if it is a key, with ",
                    given("kinds", {self.name: "id"}),
                )
            )

    def are_sentences(self) -> bool:
        """Return whether values are text rather than names of categories."""
        pc = compute()
        n_words = pc.mean(pc.add(pc.count_substring_regex(self.distinct, r"\s+"), 1)).as_py()
        different = len(self.distinct) / self.n_present
        return bool(n_words >= 3 and different > 0.1) or bool(n_words >= 2 and different > 0.5)


def _no_dates(texts: Sequence[str], layout: str) -> list[str]:
    return [text for text in texts if parse_date(text, layout) is None]
