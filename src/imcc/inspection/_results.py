"""What all results have in common: text, data frames and JSON; names of labels and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.optional import require
from imcc._utils.plain import to_plain
from imcc._utils.text import printable
from imcc._utils.wrappers import layers

# Maximum number of rows in a ``repr``; the others are counted.
_MOST_LINES = 10
_LONGEST_NAME = 30


class Result:
    """Base class of the results: a title and a table, as text and as a data frame."""

    #: How many of the first columns of the table are the index of the data frame.
    _n_index: int = 0
    #: The columns that the text shows; all by default.
    _shown: tuple[str, ...] = ()

    def _title(self) -> str:
        raise NotImplementedError

    def _table(self) -> Mapping[str, Sequence[Any]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        table = self._table()
        return as_text(self._title(), {name: table[name] for name in self._shown or table})

    def to_frame(self) -> Any:
        """Return the table as a data frame.

        Returns
        -------
        pandas.DataFrame
        """
        columns = dict(self._table())
        index = {name: columns.pop(name) for name in list(columns)[: self._n_index]}
        return as_frame(columns, index)

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that can be written as JSON, with None for undefined values."""
        return to_plain(self)


def as_text(title: str, table: Mapping[str, Sequence[Any]]) -> str:
    """Return a title and the first ten rows of a table.

    Examples
    --------
    >>> print(as_text("Two labels", {"label": ["sea", "beach"], "f1": [0.5, float("nan")]}))
    Two labels
      label     f1
      sea    0.500
      beach      -
    """
    columns = []
    for heading, values in table.items():
        cells = [_word(cell) for cell in values[:_MOST_LINES]]
        width = max(map(len, [heading, *cells]))
        # Text is aligned to the left, numbers to the right.
        is_text = len(values) > 0 and isinstance(values[0], str)
        align = str.ljust if is_text else str.rjust
        columns.append([align(cell, width) for cell in [heading, *cells]])
    lines = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
    left_out = max((len(values) for values in table.values()), default=0) - _MOST_LINES
    if left_out > 0:
        lines.append(f"... and {left_out:,} more")
    return "\n".join([title, *(f"  {line}" for line in lines)])


def _word(cell: Any) -> str:
    if isinstance(cell, str):
        text = printable(cell)
        return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"
    if isinstance(cell, float):
        return "-" if cell != cell else f"{cell:.3f}"
    return f"{cell:,}"


def as_frame(
    values: Any,
    index: Mapping[str, Sequence[Any]] | None = None,
    names: Sequence[str] | None = None,
) -> Any:
    """Return a pandas DataFrame of columns, or of an array with names of its columns.

    ``index`` are the named levels of its index.
    """
    pandas = require("pandas", "A data frame")
    levels = None
    if index:
        levels = pandas.MultiIndex.from_arrays(list(index.values()), names=list(index))
    return pandas.DataFrame(values, index=levels, columns=names)


def names_of_labels(model: Any, count: int, given: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return a name for each column of a model's scores.

    Parameters
    ----------
    model : fitted classifier
        Also in pipelines, searches and wrappers: the outermost that keeps names has them.
    count : int
        The number of columns.
    given : sequence of str, optional
        Names to use instead; as many as there are columns.
    """
    if given is not None:
        return check_names("label_names", "label", count, given)
    for layer in layers(model):
        if getattr(layer, "target_kind_", None) in ("binary", "multiclass"):
            return tuple(str(name) for name in layer.classes_[-count:])
        kept = getattr(layer, "label_names_", None)
        if kept is not None and len(kept) == count:
            return tuple(str(name) for name in kept)
    return tuple(f"label{j}" for j in range(count))


def names_of_features(
    model: Any, count: int, given: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return a name for each feature of a model's rows; see :func:`names_of_labels`."""
    if given is not None:
        return check_names("feature_names", "column", count, given)
    for layer in layers(model):
        kept = getattr(layer, "feature_names_in_", None)
        if kept is not None and len(kept) == count:
            return tuple(str(name) for name in kept)
    return tuple(f"x{j}" for j in range(count))


def check_names(argument: str, of: str, count: int, given: Sequence[str]) -> tuple[str, ...]:
    """Return names that were given, one for each of ``count`` things, or say what is wrong."""
    if isinstance(given, str) or len(given) != count:
        got = repr(given) if isinstance(given, str) else len(given)
        raise InvalidArgumentError(argument, f"must be {count} names, one per {of}, got {got}")
    return tuple(str(name) for name in given)
