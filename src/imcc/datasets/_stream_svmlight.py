"""The rows of svmlight files, parsed as they are read."""

from __future__ import annotations

import bz2
import gzip
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from imcc._utils.validation import check_choice
from imcc.datasets._dataset import default_names
from imcc.datasets._errors import DataFormatError
from imcc.datasets._files import UNPACK_ERRORS
from imcc.datasets._svmlight import INDEX_BASES, Rows, features_of, labels_of, parse_line

# Rows that are looked at together when the files are read for their sizes.
_SCANNED = 10_000


@dataclass(frozen=True)
class SvmlightRows:
    """The rows of one file, and what all files of the stream have in common.

    Attributes
    ----------
    path : Path
    feature_names, label_names : tuple of str
    label_numbers : tuple of int
        The numbers that stand for the labels.
    from_zero : bool
        Whether features are counted from 0.
    """

    path: Path
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    label_numbers: tuple[int, ...]
    from_zero: bool

    @classmethod
    def open(
        cls, paths: Sequence[Path], n_features: int | None, index_base: str
    ) -> list[SvmlightRows]:
        """Read the files once, to see how many features and which labels there are."""
        check_choice("index_base", index_base, INDEX_BASES)
        largest, zero_occurs = -1, False
        used: set[int] = set()
        header: dict[str, Any] = {}
        for path in paths:
            for rows in _blocks(path, _SCANNED, header):
                largest = max([largest, *rows.indices])
                zero_occurs = zero_occurs or 0 in rows.indices
                used.update(label for labels in rows.labels for label in labels)
        names = tuple(header.get("feature_names", ()))
        declared = header.get("n_features") or len(names) or None
        from_zero = index_base == "zero" or (
            index_base == "auto" and (declared is not None or zero_occurs)
        )
        # The checks of one file read as a whole, on what was seen of all files.
        seen = Rows([largest] if largest >= 0 else [], [], [0], [sorted(used)], dict(header))
        seen.values, seen.starts = [1.0] * len(seen.indices), [0, len(seen.indices)]
        if zero_occurs and largest > 0:
            seen.indices, seen.values, seen.starts = [0, largest], [1.0, 1.0], [0, 2]
        try:
            X, feature_names = features_of(seen, n_features, index_base)
            _, label_names = labels_of(seen)
        except ValueError as error:
            raise DataFormatError(str(error), ", ".join(map(str, paths))) from error
        counted = bool(header.get("label_names") or header.get("n_labels"))
        numbers = tuple(range(len(label_names))) if counted else tuple(sorted(used))
        if len(feature_names) != X.shape[1]:
            feature_names = default_names("x", X.shape[1])
        return [cls(path, feature_names, label_names, numbers, from_zero) for path in paths]

    def chunks(self, rows: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Read the file from its beginning."""
        base = "zero" if self.from_zero else "one"
        columns = {number: column for column, number in enumerate(self.label_numbers)}
        for block in _blocks(self.path, rows, {}):
            try:
                X, _ = features_of(block, len(self.feature_names), base)
                Y = np.zeros((len(block.labels), len(columns)), dtype=np.int8)
                for row, labels in enumerate(block.labels):
                    Y[row, [columns[label] for label in labels]] = 1
            except (ValueError, KeyError) as error:
                raise DataFormatError(
                    f"it is not the file that was opened: {error}", str(self.path)
                ) from error
            yield X, Y


def _blocks(path: Path, size: int, header: dict[str, Any]) -> Iterator[Rows]:
    """Parse a file, so many rows at a time; what its comments say is put into the header."""
    rows, found = Rows(header=header), 0
    promised: int | None = None
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                promised = parse_line(line, rows, str(path), number) or promised
                if len(rows.labels) == size:
                    found += size
                    yield rows
                    rows = Rows(header=header)
    except UNPACK_ERRORS as error:
        if isinstance(error, (DataFormatError, FileNotFoundError)):
            raise
        raise DataFormatError(f"it is damaged or cut off ({error})", str(path)) from error
    if rows.labels:
        yield rows
    found += len(rows.labels)
    if not found:
        raise DataFormatError("the file has no rows", str(path))
    if promised is not None and promised != found:
        raise DataFormatError(
            f"the first line promises {promised} rows, and there are {found}; the file may be cut "
            "off",
            str(path),
        )


def _open(path: Path) -> IO[str]:
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    binary = openers.get(path.suffix.lower(), open)(path, "rb")
    return io.TextIOWrapper(binary, encoding="utf-8-sig")
