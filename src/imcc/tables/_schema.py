"""What the columns of a table are: their kinds, how each is read, and files that say so."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from imcc._utils.cells import MISSING
from imcc._utils.files import write_whole
from imcc.datasets import DataFormatError
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

# Values in the file other than the kinds of columns.
DROP, TAGS = "drop", "tags"
_WORDS = (*KINDS, TAGS, DROP)
#: Settings about reading the file, and all settings above the columns, with their types.
READING = {"delimiter": str, "encoding": str, "header": bool, "member": str}
_SETTINGS = {"missing": list, "separator": str, "unknown_labels": bool, **READING}
_MUST_BE = {list: 'a list of words, such as ["unknown"]', str: "text", bool: "true or false"}
# Parsing a key such as a.b.c takes the square of its number of parts in memory.
_MOST_DOTS = 100


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
        raise TableError(f"the table has no rows, only {table.num_columns} column(s)")


@dataclass(frozen=True)
class KnownColumns:
    """User-defined properties of the columns of a table.

    Attributes
    ----------
    kinds : dict of str to str
        Kinds of columns, except labels.
    date_formats : dict of str to str
        Formats of dates.
    drop : tuple of str
        Columns that are not used.
    labels : tuple of str
        Label columns of 0 and 1.
    tags : str or None
        Column of tags.
    missing_words : tuple of str
        Further words for a missing value.
    separator : str or None
        Separator of the tags.
    unknown_labels : bool
        Whether missing values in label columns are unknown labels.
    reading : dict
        How to read the file: values of ``delimiter``, ``encoding``, ``header`` and ``member``.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    date_formats: dict[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    tags: str | None = None
    missing_words: tuple[str, ...] = ()
    separator: str | None = None
    unknown_labels: bool = False
    reading: dict[str, Any] = field(default_factory=dict)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Columns with the labels: of 0 and 1, or the one of tags."""
        return self.labels if self.tags is None else (self.tags,)

    @property
    def target(self) -> str | list[str]:
        """The labels, for :meth:`TableClassifier.fit`."""
        return list(self.labels) if self.tags is None else self.tags

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of a :class:`TableClassifier` that the columns determine."""
        return {
            "kinds": self.kinds,
            "date_formats": self.date_formats,
            "drop": list(self.drop),
            "missing_words": list(self.missing_words),
            "separator": self.separator,
            "unknown_labels": self.unknown_labels,
        }


def write_schema(
    schema: Schema, path: str | os.PathLike[str], known: KnownColumns | None = None
) -> Path:
    r"""Write the kinds of the columns of a table to a TOML file, for editing.

    Parameters
    ----------
    schema : Schema
        The schema.
    path : path-like
        File to write.
    known : KnownColumns, default=None
        What else the file says: the column of tags and their separator, columns that are not used,
        whether labels may be unknown, and how to read the file.

    Returns
    -------
    pathlib.Path
        The file.

    See Also
    --------
    read_schema : Read the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from imcc.tables import infer_schema
    >>> folder = tempfile.TemporaryDirectory()
    >>> schema = infer_schema({"größe, cm": [1.5, 2.5], "town": ["Ulm", "Bonn"]})
    >>> file = write_schema(schema, pathlib.Path(folder.name, "schema.toml"))
    >>> print(file.read_text("utf-8").partition("[columns]\n")[2].strip())
    "größe, cm" = "number"
    "town" = "category"
    >>> read_schema(file).kinds
    {'größe, cm': 'number', 'town': 'category'}
    >>> folder.cleanup()
    """
    known = known or KnownColumns()
    lines = [
        "# What the columns of a table are, for `imcc tune FILE --schema THIS`.",
        f"# Kinds: {', '.join(KINDS[:-1])}; label (a column of 0 and 1),",
        "# tags (a column such as a|b), drop (left out).",
        '# A date can have a format: { kind = "date", format = "%d.%m.%Y" }.',
        "",
        "# Words that mean a missing value, besides the usual ones.",
        f"missing = {_quoted(sorted(set(schema.missing_words) - set(Schema(()).missing_words)))}",
        "# Whether empty cells in label columns are labels that are not known.",
        f"unknown_labels = {_quoted(known.unknown_labels)}",
    ]
    if known.separator is not None:
        lines += ["# What stands between tags.", f"separator = {_quoted(known.separator)}"]
    lines += ["# How to read the file, if it is not detected: delimiter, encoding, header, member."]
    lines += [f"{name} = {_quoted(value)}" for name, value in known.reading.items()]
    lines += ["", "[columns]"]
    for column in schema:
        kind = TAGS if column.name == known.tags else column.kind
        if column.kind == "date" and column.date_format:
            value = f'{{ kind = "date", format = {_quoted(column.date_format)} }}'
        else:
            value = _quoted(kind)
        lines.append(f"{_quoted(column.name)} = {value}")
    lines += [f"{_quoted(name)} = {_quoted(DROP)}" for name in known.drop]
    return write_whole(path, ("\n".join(lines) + "\n").encode("utf-8"))


def _quoted(value: Any) -> str:
    # JSON strings are valid in TOML, except for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_schema(path: str | os.PathLike[str]) -> KnownColumns:
    """Read a TOML file written by :func:`write_schema`, possibly edited.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    KnownColumns

    Raises
    ------
    imcc.datasets.DataFormatError
        If the file is not a valid schema.
    """
    name = os.fspath(path)
    with open(name, encoding="utf-8", newline="") as file:
        try:
            text = file.read()
            if any(line.count(".") > _MOST_DOTS for line in text.splitlines()):
                raise ValueError(f"a line has more than {_MOST_DOTS} dots")
            content = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataFormatError(f"this is not a schema in TOML: {error}", name) from error
    columns = content.pop("columns", {})
    for key, value in content.items():
        if key not in _SETTINGS:
            raise DataFormatError(
                f"{key!r} has no meaning here; there are {', '.join(_SETTINGS)} and [columns]", name
            )
        wanted = _SETTINGS[key]
        words = value if wanted is list else [""]
        if not isinstance(value, wanted) or not all(isinstance(word, str) for word in words):
            raise DataFormatError(f"{key} must be {_MUST_BE[wanted]}", name)
    if not isinstance(columns, dict):
        raise DataFormatError("[columns] must give columns their kinds", name)
    kinds: dict[str, str] = {}
    formats: dict[str, str] = {}
    for column, value in columns.items():
        kind, layout = _entry(column, value, name)
        kinds[column] = kind
        if layout is not None:
            formats[column] = layout
    tags = [column for column, kind in kinds.items() if kind == TAGS]
    labels = [column for column, kind in kinds.items() if kind == "label"]
    if len(tags) > 1 or (tags and labels):
        raise DataFormatError("labels are columns of kind label, or one of tags; not both", name)
    return KnownColumns(
        {column: kind for column, kind in kinds.items() if kind in KINDS[:-1]},
        formats,
        tuple(column for column, kind in kinds.items() if kind == DROP),
        tuple(labels),
        tags[0] if tags else None,
        tuple(content.get("missing", ())),
        content.get("separator"),
        content.get("unknown_labels", False),
        {key: content[key] for key in READING if key in content},
    )


def _entry(column: str, value: Any, path: str) -> tuple[str, str | None]:
    layout = None
    if isinstance(value, Mapping) and set(value) == {"kind", "format"} and value["kind"] == "date":
        value, layout = value["kind"], value["format"]
    if not isinstance(value, str) or value not in _WORDS or not isinstance(layout, str | None):
        raise DataFormatError(
            f"column {column!r} is {value!r}, and must be one of {', '.join(_WORDS)}, or for dates "
            '{ kind = "date", format = "%d.%m.%Y" }',
            path,
        )
    return value, layout
