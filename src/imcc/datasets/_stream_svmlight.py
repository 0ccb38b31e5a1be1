"""Reading svmlight files in chunks of rows."""

from __future__ import annotations

import bz2
import gzip
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from imcc._utils.errors import message_of
from imcc._utils.validation import check_choice
from imcc.datasets._errors import DataFormatError
from imcc.datasets._files import UNPACK_ERRORS, Content
from imcc.datasets._svmlight import (
    INDEX_BASES,
    Rows,
    base_of,
    features_of,
    indicators_of,
    labels_of,
    parse_line,
)

# Number of rows read at a time to determine the sizes.
_SCANNED = 10_000

# Limit of the length of a line, which could otherwise exhaust the memory in a compressed file.
_LONGEST = 2**26


@dataclass(frozen=True)
class SvmlightRows:
    """The rows of a file, with the columns of all files of the stream.

    Attributes
    ----------
    path : Path
    feature_names, label_names : tuple of str
    label_numbers : tuple of int
        The number of each label in the file.
    index_base : {0, 1} or None
        Index of the first feature.
    """

    path: Path
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    label_numbers: tuple[int, ...]
    index_base: int | None

    @classmethod
    def open(
        cls, paths: Sequence[Path], n_features: int | None, index_base: str
    ) -> list[SvmlightRows]:
        """Read the files once to determine the features and labels."""
        check_choice("index_base", index_base, INDEX_BASES)
        seen = Rows()
        declared = []
        used: set[int] = set()
        for path in paths:
            header: dict[str, Any] = {}
            lowest, highest = None, -1
            for rows in _blocks(path, _SCANNED, header):
                if rows.indices:
                    lowest = min(rows.indices) if lowest is None else min(lowest, *rows.indices)
                    highest = max(highest, *rows.indices)
                used.update(rows.labels)
            declared.append(bool(header))
            for key, value in header.items():
                if seen.header.setdefault(key, value) != value and key != "name":
                    raise DataFormatError(f"its {key} differ from those of {paths[0]}", str(path))
            # One row per file, with its smallest and largest index.
            ends = [] if lowest is None else sorted({lowest, highest})
            seen.indices.extend(ends)
            seen.values.extend([1.0] * len(ends))
            seen.starts.append(len(seen.indices))
            seen.label_starts.append(0)
        seen.labels.extend(sorted(used))
        seen.label_starts[-1] = len(used)
        shown = ", ".join(map(str, paths))
        try:
            # The same checks as for whole files, on this summary of all files.
            base = base_of(seen, index_base, n_features, all(declared), None, shown)
            size = sum(path.stat().st_size for path in paths)
            limits = Content(b"", "", "", paths[0], packed=size)
            _, feature_names = features_of(seen, n_features, base, limits.max_columns)
            _, label_names = labels_of(seen, limits.max_cells, limits.max_columns)
        except ValueError as error:
            if isinstance(error, DataFormatError):
                raise
            raise DataFormatError(message_of(error), shown) from error
        counted = bool(seen.header.get("label_names") or seen.header.get("n_labels"))
        numbers = tuple(range(len(label_names))) if counted else tuple(sorted(used))
        return [cls(path, feature_names, label_names, numbers, base) for path in paths]

    def chunks(self, rows: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield the chunks (X, Y) of the file."""
        width = len(self.feature_names)
        for block in _blocks(self.path, rows, {}):
            try:
                X, _ = features_of(block, width, self.index_base, width)
                Y = indicators_of(block, self.label_numbers)
            except ValueError as error:
                raise DataFormatError(
                    f"the file has changed since it was opened: {error}", str(self.path)
                ) from error
            yield X, Y


def _blocks(path: Path, size: int, header: dict[str, Any]) -> Iterator[Rows]:
    """Parse a file in blocks of ``size`` rows; names and sizes are stored in ``header``."""
    rows, found = Rows(header=header), 0
    promised: int | None = None
    try:
        with _open(path) as file:
            for number, line in enumerate(iter(lambda: file.readline(_LONGEST), ""), 1):
                if len(line) == _LONGEST:
                    raise DataFormatError(
                        f"the line is longer than {_LONGEST:,} characters", str(path), number
                    )
                promised = parse_line(line, rows, str(path), number) or promised
                if len(rows) == size:
                    found += size
                    yield rows
                    rows = Rows(header=header)
    except UNPACK_ERRORS as error:
        if isinstance(error, (DataFormatError, FileNotFoundError)):
            raise
        raise DataFormatError(f"the file is damaged or incomplete ({error})", str(path)) from error
    if len(rows):
        yield rows
    found += len(rows)
    if not found:
        raise DataFormatError("the file has no rows", str(path))
    if promised is not None and promised != found:
        raise DataFormatError(
            f"the first line declares {promised} rows, but there are {found}; the file may be "
            "incomplete",
            str(path),
        )


def _open(path: Path) -> IO[str]:
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    binary = openers.get(path.suffix.lower(), open)(path, "rb")
    return io.TextIOWrapper(binary, encoding="utf-8-sig")
