"""Schemas as TOML files that can be edited by hand."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imcc._utils.files import write_whole
from imcc.datasets import DataFormatError
from imcc.tables._schema import KINDS, Schema

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
