"""The SQLite file of a store: its layout, how it is opened, and its errors."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from imcc.experiment._errors import StoreError
from imcc.experiment._records import RUN_FIELDS, STUDY_FIELDS
from imcc.experiment._scores import ALL_METRICS, LABEL_RANGES

FORMAT = 1  # the version of the layout below, kept in the file as user_version
APPLICATION = int.from_bytes(b"IMCC", "big")
_BUSY_SECONDS = 60
_ATTEMPTS = 100

_KEY = (
    "kind TEXT NOT NULL, dataset TEXT NOT NULL, method TEXT NOT NULL, repetition INTEGER NOT NULL"
)
_METRICS = ", ".join(f"{name} REAL" for name in ALL_METRICS)
_SQL = {
    "str": "TEXT NOT NULL",
    "int": "INTEGER NOT NULL",
    "int | None": "INTEGER",
    "float": "REAL NOT NULL",
    "tuple[str, ...]": "TEXT NOT NULL",  # as JSON
    "dict[str, Any]": "TEXT NOT NULL REFERENCES environments(id)",
}
_RUN, _STUDY = (
    ", ".join(f"{name} {_SQL[kind]}" for name, kind in fields.items())
    for fields in (RUN_FIELDS, STUDY_FIELDS)
)
_LAYOUT = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE environments (id TEXT PRIMARY KEY, content TEXT NOT NULL);
CREATE TABLE runs (
  id INTEGER PRIMARY KEY, {_KEY}, {_RUN},
  UNIQUE (kind, dataset, method, repetition)
);
CREATE TABLE selections (
  run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  position INTEGER NOT NULL, selection TEXT NOT NULL, setting TEXT NOT NULL, cv_score REAL,
  {_METRICS},
  PRIMARY KEY (run, selection)
);
CREATE TABLE studies (
  {_KEY}, axes TEXT NOT NULL, metrics TEXT NOT NULL, mean BLOB NOT NULL, std BLOB NOT NULL,
  {_STUDY},
  UNIQUE (kind, dataset, method, repetition)
);
CREATE TABLE failures (
  {_KEY}, error TEXT NOT NULL, traceback TEXT NOT NULL, seconds REAL NOT NULL,
  attempts INTEGER NOT NULL, environment TEXT NOT NULL, finished TEXT NOT NULL, at REAL NOT NULL,
  PRIMARY KEY (kind, dataset, method, repetition)
);
CREATE TABLE runners (
  id TEXT PRIMARY KEY, machine TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL,
  heartbeat REAL NOT NULL
);
CREATE TABLE claims (
  {_KEY}, runner TEXT NOT NULL REFERENCES runners(id) ON DELETE CASCADE, since REAL NOT NULL,
  PRIMARY KEY (kind, dataset, method, repetition)
);
"""
# What rows have since there is a record by the frequency of labels; made when the first one comes,
# so that stores without it stay as they are.
FREQUENCIES = f"""
CREATE TABLE IF NOT EXISTS frequencies (
  run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, selection TEXT NOT NULL,
  {", ".join(f"{name} REAL" for name in LABEL_RANGES)},
  PRIMARY KEY (run, selection)
)
"""


@contextmanager
def errors_in_words(path: Path) -> Iterator[None]:
    """Explain an error of SQLite."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(_in_words(path, error)) from error


def _in_words(path: Path, error: sqlite3.Error) -> str:
    text = str(error)
    if "disk is full" in text or "disk I/O" in text:
        return (
            f"{path} could not be written ({text}). What it held is safe; free some space and "
            "resume"
        )
    if "readonly" in text or "unable to open" in text:
        return f"{path} cannot be written ({text}): is its folder there, and may you write to it?"
    if "not a database" in text or "malformed" in text:
        return (
            f"{path} is not a results store, or is damaged ({text}). It was left as it is; restore "
            "a copy, or begin a new store and merge an export into it"
        )
    if "locked" in text or "busy" in text:
        return f"{path} was held by another process for {_BUSY_SECONDS} s ({text}); try again"
    return f"{path}: {text}"


def connect(path: Path, *, create: bool = False, read_only: bool = False) -> sqlite3.Connection:
    """Open the file of a store, and make sure that it is one.

    Parameters
    ----------
    path : Path
    create : bool
        Whether to create the tables if the file does not exist or is empty.
    read_only : bool
        Open without writing anything, as in a folder where one may not write.
    """
    if not path.exists() and not create:
        raise StoreError(f"there is no results store {path}")
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a results store")
    if create and not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent} for the store {path.name}")
    with errors_in_words(path):
        connection = _open(path, read_only)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            _check(connection, path, create)
            if not read_only:
                # Rows survive a power cut, and readers do not block the writer.  Only now: this
                # changes the file.
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
    return connection


def _open(path: Path, read_only: bool) -> sqlite3.Connection:
    def at(query: str) -> sqlite3.Connection:
        # isolation_level None: transactions begin where the code says so.
        return sqlite3.connect(
            path.resolve().as_uri() + query,
            uri=True,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )

    if not read_only:
        return at("")
    if os.access(path.parent, os.W_OK) and os.access(path, os.W_OK):
        # Reading needs two files beside the store for a while.  A connection that may write takes
        # them away again when it is closed, one that may not leaves them lying about.
        connection = at("?mode=rw")
        connection.execute("PRAGMA query_only = ON")
        return connection
    return _open_without_writing(path, at)


def _open_without_writing(
    path: Path, at: Callable[[str], sqlite3.Connection]
) -> sqlite3.Connection:
    """Open a store where no file can be made beside it, which SQLite needs to read a live one.

    While a process writes, these files exist, made by the writer, and the store is read
    through them.  Without them no process writes, and the file is read into memory as it is; if a
    writer came meanwhile, it is tried again.
    """
    log = path.with_name(path.name + "-wal")
    for _ in range(_ATTEMPTS):
        if log.exists():
            connection = at("?mode=ro")
            try:
                connection.execute("SELECT count(*) FROM sqlite_master")
            except sqlite3.OperationalError:  # the writer has just ended, and its files are gone
                connection.close()
                time.sleep(0.05)
                continue
            return connection
        before = path.stat().st_mtime_ns, path.stat().st_size
        content = bytearray(path.read_bytes())
        if log.exists() or (path.stat().st_mtime_ns, len(content)) != before:
            time.sleep(0.05)
            continue
        # In memory there is no write-ahead log; these two bytes say that there may be one.
        if content[18:20] == b"\x02\x02":
            content[18:20] = b"\x01\x01"
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        if content:
            connection.deserialize(bytes(content))
            connection.execute("PRAGMA query_only = ON")
        return connection
    raise StoreError(f"{path} is being written all the time by another process; try again")


def _check(connection: sqlite3.Connection, path: Path, create: bool) -> None:
    """Refuse what is not a store of this version; lay out an empty file."""
    begin = "BEGIN IMMEDIATE" if create else "BEGIN"
    with transaction(connection, begin):
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if create and not tables and not application:
            for statement in _LAYOUT.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            return
        if application != APPLICATION:
            raise StoreError(f"{path} is not a results store of imcc; it was left as it is")
        if version != FORMAT:
            raise StoreError(
                f"{path} has format {version}, this version of imcc writes format {FORMAT}: "
                + (
                    "update imcc"
                    if version > FORMAT
                    else "export it with the version that wrote it"
                )
            )
        found = connection.execute("PRAGMA quick_check").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(f"malformed: {found}")


def identity(path: Path) -> tuple[int, int] | None:
    """Return an identifier that changes when a file is replaced; None if there is no file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def check_in_place(path: Path, known: tuple[int, int] | None) -> None:
    """Raise an error if the file that was opened under a name does not exist any more.

    SQLite continues writing to a file that has been deleted: the rows would be lost.
    """
    found = identity(path)
    if found != known:
        what = "was deleted" if found is None else "was replaced by another file"
        raise StoreError(
            f"{path} {what} while it was in use. Nothing more is written; rows that came after "
            "that are lost"
        )


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Store everything that is written inside as a whole, or not at all."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # a full disk has rolled back already
            connection.execute("ROLLBACK")
        raise
