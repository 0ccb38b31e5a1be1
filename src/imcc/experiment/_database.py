"""The SQLite file of a store: tables, opening and errors.

The file has no write-ahead log, so that a copy of it is complete, and every change is a transaction
that starts with the lock for writing, so that runners wait for each other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from imcc.experiment._errors import StoreError

FORMAT = 4  # version of the tables below, stored in the file as user_version
APPLICATION = int.from_bytes(b"IMCC", "big")
_BUSY_SECONDS = 60
_KEY = """
        dataset TEXT CHECK (typeof(dataset) = 'text'),
        method TEXT CHECK (typeof(method) = 'text'),
        repetition INTEGER CHECK (typeof(repetition) = 'integer' AND repetition >= 0),
        at REAL CHECK (typeof(at) = 'real'),
        PRIMARY KEY (dataset, method, repetition)"""
# SQLite stores values of any type in any column.  The constraints make it refuse them, also in a
# file that someone else wrote: PRAGMA quick_check looks at them.
TABLES = (
    "CREATE TABLE experiment (description TEXT CHECK (typeof(description) = 'text'))",
    f"""CREATE TABLE tasks (
        state TEXT NOT NULL CHECK (state IN ('failed', 'done')),
        content TEXT CHECK (typeof(content) = 'text'),{_KEY}
    )""",
    f"CREATE TABLE claims (runner TEXT CHECK (typeof(runner) = 'text'),{_KEY})",
)
_FULL = "the existing rows are safe; free some space and run the same command again"
_CLOSED = "check that its folder exists and that you may write to it"
# What helps, by a part of the message of SQLite.
_ADVICE = {
    "disk is full": _FULL,
    "disk I/O": _FULL,
    "readonly": _CLOSED,
    "unable to open": _CLOSED,
    "locked": f"another process used it for {_BUSY_SECONDS} s; try again",
}


def connect(path: Path, *, create: bool = False, read_only: bool = False) -> sqlite3.Connection:
    """Open a file, which need not be a store (see :func:`check`)."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a results store")
    # Also a reader opens the file for writing, where it can: a killed writer leaves a journal, and
    # the next connection undoes its half transaction.
    uri = f"{path.resolve().as_uri()}?mode={'rwc' if create else 'rw'}"
    with store_errors(path):
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=_BUSY_SECONDS,
            isolation_level=None,  # transactions are started explicitly
            check_same_thread=False,
        )
        connection.execute(f"PRAGMA query_only = {int(read_only)}")
        return connection


@contextmanager
def writing(connection: sqlite3.Connection, path: Path) -> Iterator[sqlite3.Connection]:
    """Run a transaction: all changes are stored, or none."""
    with store_errors(path), connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


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
    result = connection.execute("PRAGMA quick_check").fetchone()[0]
    if result != "ok":
        raise StoreError(_damaged(path, result))


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
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _damaged(path: Path, reason: str) -> str:
    return (
        f"{path} is not a results store, or is damaged ({reason}). It was not changed; restore a "
        "copy, or create a new store and merge an export into it"
    )


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Convert errors of SQLite, and those due to what a store contains, to StoreError."""
    try:
        yield
    except StoreError:
        raise
    except sqlite3.Error as error:
        text = str(error)
        if "not a database" in text or "malformed" in text:
            raise StoreError(_damaged(path, text)) from error
        advice = next((advice for part, advice in _ADVICE.items() if part in text), None)
        message = f"{path} cannot be used ({text})"
        raise StoreError(message if advice is None else f"{message}: {advice}") from error
    except (
        ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError
    ) as error:  # fmt: skip
        raise StoreError(_damaged(path, f"{type(error).__name__}: {error}")) from error
