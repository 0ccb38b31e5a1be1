"""The SQLite file of a store: tables, opening, transactions and errors.

The file has no write-ahead log, so that a copy of it is complete, and every change is a transaction
that starts with the lock for writing, so that runners wait for each other.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from imcc.experiment._errors import StoreError

FORMAT = 3  # version of the tables below, stored in the file as user_version
APPLICATION = int.from_bytes(b"IMCC", "big")
_BUSY_SECONDS = 60
# SQLite stores values of any type in any column.  The constraints make it refuse them, also in a
# file that someone else wrote: PRAGMA quick_check looks at them.
TABLES = (
    "CREATE TABLE experiment (description TEXT CHECK (typeof(description) = 'text'))",
    """CREATE TABLE tasks (
        dataset TEXT CHECK (typeof(dataset) = 'text'),
        method TEXT CHECK (typeof(method) = 'text'),
        repetition INTEGER CHECK (typeof(repetition) = 'integer' AND repetition >= 0),
        state TEXT NOT NULL CHECK (state IN ('running', 'failed', 'done')),
        content TEXT CHECK (typeof(content) = 'text'),
        at REAL CHECK (typeof(at) = 'real'),
        PRIMARY KEY (dataset, method, repetition)
    )""",
)


def connect(path: Path, *, create: bool = False, read_only: bool = False) -> sqlite3.Connection:
    """Open a file, which need not be a store (see :func:`check`)."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a results store")
    # A killed writer leaves a journal, and the next connection that may write undoes its half
    # transaction: also one that only reads, where it can.
    writable = not read_only or (os.access(path.parent, os.W_OK) and os.access(path, os.W_OK))
    mode = "rwc" if create else "rw" if writable else "ro"
    with errors_in_words(path):
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode={mode}",
            uri=True,
            timeout=_BUSY_SECONDS,
            isolation_level=None,  # transactions are started explicitly
            check_same_thread=False,
        )
        connection.execute(f"PRAGMA query_only = {int(read_only)}")
        return connection


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Run a transaction: all changes are stored, or none."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # with a full disk, it is already rolled back
            connection.execute("ROLLBACK")
        raise


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Check that a file is a store of this version."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise StoreError(f"{path} is not a results store of imcc; it was not changed")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != FORMAT:
        raise StoreError(
            f"{path} has format {version}, but this version of imcc uses format {FORMAT}: use the "
            "version of imcc that wrote it"
        )
    # Anything else, such as a view or a trigger, computes something when rows are read.
    if layout(connection) != _expected_layout():
        raise StoreError(_damaged(path, "it has other tables"))
    found = connection.execute("PRAGMA quick_check").fetchone()[0]
    if found != "ok":
        raise StoreError(_damaged(path, found))


def layout(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return the definitions of all tables, views, triggers and indexes."""
    return connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    ).fetchall()


@cache
def _expected_layout() -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in TABLES:
            connection.execute(statement)
        return layout(connection)


def identity(path: Path) -> tuple[int, int] | None:
    """Return an identifier that changes when a file is replaced; None if there is no file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _damaged(path: Path, reason: str) -> str:
    return (
        f"{path} is not a results store, or is damaged ({reason}). It was not changed; restore a "
        "copy, or create a new store and merge an export into it"
    )


@contextmanager
def damage_in_words(path: Path) -> Iterator[None]:
    """Convert errors in what a store contains to StoreError."""
    try:
        yield
    except StoreError:
        raise
    except (
        ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError
    ) as error:  # fmt: skip
        raise StoreError(_damaged(path, f"{type(error).__name__}: {error}")) from error


@contextmanager
def errors_in_words(path: Path) -> Iterator[None]:
    """Convert SQLite errors to StoreError with an explanation."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        message = f"{path}: {text}"
        if "disk is full" in text or "disk I/O" in text:
            message = (
                f"{path} could not be written ({text}). The existing rows are safe; free some "
                "space and run the same command again"
            )
        elif "readonly" in text or "unable to open" in text:
            message = (
                f"{path} cannot be written ({text}): check that its folder exists and that you may "
                "write to it"
            )
        elif "not a database" in text or "malformed" in text:
            message = _damaged(path, text)
        elif "locked" in text or "busy" in text:
            message = (
                f"{path} was locked by another process for {_BUSY_SECONDS} s ({text}); try again"
            )
        raise StoreError(message) from error
