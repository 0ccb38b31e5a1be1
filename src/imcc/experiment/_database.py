"""The SQLite file of a store: schema, opening and errors."""

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

FORMAT = 1  # version of the schema below, stored in the file as user_version
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
# Average precision by label frequency, which earlier versions did not record; the table is created
# with the first such row, so that older stores are not changed.
FREQUENCIES = f"""
CREATE TABLE IF NOT EXISTS frequencies (
  run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, selection TEXT NOT NULL,
  {", ".join(f"{name} REAL" for name in LABEL_RANGES)},
  PRIMARY KEY (run, selection)
)
"""


@contextmanager
def errors_in_words(path: Path) -> Iterator[None]:
    """Convert SQLite errors to StoreError with an explanation."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(_in_words(path, error)) from error


def _in_words(path: Path, error: sqlite3.Error) -> str:
    text = str(error)
    if "disk is full" in text or "disk I/O" in text:
        return (
            f"{path} could not be written ({text}). The existing rows are safe; free some space "
            "and resume"
        )
    if "readonly" in text or "unable to open" in text:
        return (
            f"{path} cannot be written ({text}): check that its folder exists and that you may "
            "write to it"
        )
    if "not a database" in text or "malformed" in text:
        return (
            f"{path} is not a results store, or is damaged ({text}). It was not changed; restore a "
            "copy, or create a new store and merge an export into it"
        )
    if "locked" in text or "busy" in text:
        return f"{path} was locked by another process for {_BUSY_SECONDS} s ({text}); try again"
    return f"{path}: {text}"


def connect(path: Path, *, create: bool = False, read_only: bool = False) -> sqlite3.Connection:
    """Open the file of a store and check that it is one.

    Parameters
    ----------
    path : Path
    create : bool, default=False
        Whether to create the tables if the file does not exist or is empty.
    read_only : bool, default=False
        Whether to open without writing; also possible in a folder without write permission.
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
                # Rows survive a power failure, and readers do not block the writer.  Done after
                # the checks, because it changes the file.
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
    return connection


def _open(path: Path, read_only: bool) -> sqlite3.Connection:
    def at(query: str) -> sqlite3.Connection:
        # isolation_level None: transactions are started explicitly.
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
        # Reading needs two temporary files next to the store.  A connection that may write removes
        # them when it is closed, a read-only connection does not.
        connection = at("?mode=rw")
        connection.execute("PRAGMA query_only = ON")
        return connection
    return _open_without_writing(path, at)


def _open_without_writing(
    path: Path, at: Callable[[str], sqlite3.Connection]
) -> sqlite3.Connection:
    """Open a store in a folder without write permission.

    SQLite needs temporary files next to a store in use.  While another process writes, it has
    created them, and they are used.  If they do not exist, no process writes, and the file is read
    into memory; this is repeated if a writer started in the meantime.
    """
    log = path.with_name(path.name + "-wal")
    for _ in range(_ATTEMPTS):
        if log.exists():
            connection = at("?mode=ro")
            try:
                connection.execute("SELECT count(*) FROM sqlite_master")
            except sqlite3.OperationalError:  # the writer has just closed, its files are gone
                connection.close()
                time.sleep(0.05)
                continue
            return connection
        before = path.stat().st_mtime_ns, path.stat().st_size
        content = bytearray(path.read_bytes())
        if log.exists() or (path.stat().st_mtime_ns, len(content)) != before:
            time.sleep(0.05)
            continue
        # These two bytes declare a write-ahead log, which does not exist in memory.
        if content[18:20] == b"\x02\x02":
            content[18:20] = b"\x01\x01"
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        if content:
            connection.deserialize(bytes(content))
            connection.execute("PRAGMA query_only = ON")
        return connection
    raise StoreError(f"{path} is continuously being written by another process; try again")


def _check(connection: sqlite3.Connection, path: Path, create: bool) -> None:
    """Check that a file is a store of this version; create the tables in an empty file."""
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
            raise StoreError(f"{path} is not a results store of imcc; it was not changed")
        if version != FORMAT:
            raise StoreError(
                f"{path} has format {version}, but this version of imcc uses format {FORMAT}: "
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
    """Raise an error if an opened file has been deleted or replaced.

    SQLite continues to write to a deleted file, so that rows would be lost.
    """
    found = identity(path)
    if found != known:
        what = "was deleted" if found is None else "was replaced by another file"
        raise StoreError(
            f"{path} {what} while it was in use. Nothing more is written; rows computed after "
            "that are lost"
        )


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
