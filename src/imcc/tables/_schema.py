"""What the columns of a table are: their kinds, and how each is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from imcc._utils.cells import MISSING
from imcc.tables._columns import TableError

#: The kinds of columns.
KINDS = ("number", "category", "text", "date", "yes/no", "id", "constant", "label")
_FEATURE_KINDS = KINDS[:5]

# If at least this fraction of the values is missing, an indicator of missing values is added.
FREQUENTLY_MISSING = 0.05

_BECOMES = {
    "number": "scaled; median if missing",
    "category": "an indicator per value",
    "text": "TF-IDF of words and parts of words",
    "date": "day, month, weekday",
    "yes/no": "0 or 1",
    "id": "left out: it names rows",
    "constant": "left out: it is the same in every row",
    "label": "what is predicted",
}


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : str
        One of :data:`KINDS`.
    missing : int
        Number of missing values in the training table.
    spelled : int
        Number of missing values given as a word such as ``n/a``.
    n_rows : int
        Number of rows of the training table.
    n_values : int
        Number of distinct values.
    examples : tuple of str
        Up to three values.
    words : tuple of two str, or None
        Words for no and yes, for the kind "yes/no".
    date_format : str or None
        Format of dates that are text, as for ``datetime.strptime``, or "ISO 8601".
    has_time : bool
        Whether dates have a time of day.
    has_zone : bool
        Whether dates have a time zone, and are converted to UTC.
    overruled : bool
        Whether the kind was given by the user.
    decimal : {".", ",", ".,", ",."}
        Form of numbers that are text: 1.5, 1,5, 1.234,5 or 1,234.5.
    percent : bool
        Whether numbers that are text have a percent sign; 12 % is the number 12.
    currency : str
        Sign of the amounts that numbers are, such as "€"; € 12 is the number 12.
    """

    name: str
    kind: str
    missing: int = 0
    spelled: int = 0
    n_rows: int = 0
    n_values: int = 0
    examples: tuple[str, ...] = ()
    words: tuple[str, str] | None = None
    date_format: str | None = None
    has_time: bool = False
    has_zone: bool = False
    overruled: bool = False
    decimal: str = "."
    percent: bool = False
    currency: str = ""

    @property
    def becomes(self) -> str:
        """Description of how the column is encoded."""
        text = _BECOMES[self.kind]
        if self.kind == "date" and self.has_time:
            text += ", hour (UTC)" if self.has_zone else ", hour"
        if self.kind == "constant" and self.missing == self.n_rows > 0:
            return "left out: it has no values"
        if self.kind in ("number", "date") and self.often_missing:
            text += ", and a flag"
        if self.kind == "number" and self.decimal == ",.":
            text += "; 1,234.5 is read as 1234.5"
        if self.kind == "number" and self.percent:
            text += "; 12 % is read as 12"
        if self.kind == "number" and self.currency:
            text += f"; {self.currency} 12 is read as 12"
        if self.kind == "id" and self.n_values < self.n_rows - self.missing:
            text += ", although some values are repeated"
        return text

    @property
    def often_missing(self) -> bool:
        """Whether at least 5 % of the values are missing, so that an indicator is added."""
        return self.n_rows > 0 and self.missing >= FREQUENTLY_MISSING * self.n_rows


@dataclass(frozen=True)
class Schema:
    """Kinds and other properties of the columns of a table.

    Iterating over a schema yields its columns; ``schema[name]`` is the column of that name.

    Attributes
    ----------
    columns : tuple of Column
        The columns.
    missing_words : tuple of str
        Words for a missing value, in lower case.
    """

    columns: tuple[Column, ...]
    missing_words: tuple[str, ...] = field(default=tuple(sorted(MISSING)))

    def __iter__(self) -> Any:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def of_kind(self, *kinds: str) -> list[str]:
        """Return the names of the columns of the given kinds.

        Parameters
        ----------
        *kinds : str
            Values of :data:`KINDS`.

        Returns
        -------
        list of str
        """
        return [column.name for column in self.columns if column.kind in kinds]

    @property
    def features(self) -> list[str]:
        """Names of the columns that a model uses."""
        return self.of_kind(*_FEATURE_KINDS)

    @property
    def feature_columns(self) -> list[Column]:
        """The columns that a model uses."""
        return [column for column in self.columns if column.kind in _FEATURE_KINDS]

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that can be written as JSON."""
        columns = [{**asdict(c), "becomes": c.becomes} for c in self.columns]
        return {"columns": columns, "missing_words": list(self.missing_words)}

    def __repr__(self) -> str:
        rows = [("column", "kind", "missing", "examples", "what becomes of it")]
        rows += [
            (c.name, c.kind, f"{c.missing / max(c.n_rows, 1):.0%}", _short(c.examples), c.becomes)
            for c in self.columns
        ]
        widths = [max(len(row[j]) for row in rows) for j in range(4)]
        lines = [
            "  ".join([*(row[j].ljust(widths[j]) for j in range(4)), row[4]]).rstrip()
            for row in rows
        ]
        return "\n".join(lines)


def _short(examples: Sequence[str], width: int = 30) -> str:
    text = ", ".join(examples)
    return text if len(text) <= width else text[: width - 3] + "..."


def require_rows(table: Any) -> None:
    """Refuse a table that has the names of columns only."""
    if not table.num_rows:
        raise TableError(
            f"the table has no rows, only the names of {table.num_columns} column(s)"
            if table.num_columns
            else "the table has neither rows nor columns"
        )
