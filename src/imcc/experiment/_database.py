"""The SQLite file of a store: schema, opening and errors."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from imcc.experiment._errors import StoreError
from imcc.experiment._records import RUN_FIELDS, STUDY_FIELDS
from imcc.experiment._scores import ALL_METRICS, LABEL_RANGES

FORMAT = 2  # version of the tables below, stored in the file as user_version
APPLICATION = int.from_bytes(b"IMCC", "big")
_BUSY_SECONDS = 60
_ATTEMPTS = 100
_MAX_DEPTH = 50  # of JSON


def _columns(kinds: Mapping[str, str]) -> str:
    """Return the SQL of columns; a question mark after the type allows NULL.

    SQLite stores values of any type in any column.  The constraints make it refuse them, also in a
    file that someone else wrote: ``PRAGMA quick_check`` looks at them.
    """
    columns = []
    for name, kind in kinds.items():
        optional = kind.endswith("?")
        kind = kind.rstrip("?")
        types = f"'{kind.lower()}'" + (", 'null'" if optional else "")
        finite = f" AND abs({name}) < 1e30" if kind == "REAL" else ""
        columns.append(f"{name} {kind} CHECK (typeof({name}) IN ({types}){finite})")
    return ", ".join(columns)


_SQL = {
    "str": "TEXT",
    "int": "INTEGER",
    "int | None": "INTEGER?",
    "float": "REAL",
    "tuple[str, ...]": "TEXT",  # as JSON
    "dict[str, Any]": "TEXT",  # the id of an environment
}
_RUN, _STUDY = (
    {name: _SQL[kind] for name, kind in fields.items()} for fields in (RUN_FIELDS, STUDY_FIELDS)
)
_KEY = {"kind": "TEXT", "dataset": "TEXT", "method": "TEXT", "repetition": "INTEGER"}
_TABLES = {
    "meta": {"name": "TEXT", "value": "TEXT"},
    "environments": {"id": "TEXT", "content": "TEXT"},
    "runs": {"id": "INTEGER", **_KEY, **_RUN},
    "selections": {
        **{"run": "INTEGER", "position": "INTEGER", "selection": "TEXT", "setting": "TEXT"},
        **dict.fromkeys(("cv_score", *ALL_METRICS, *LABEL_RANGES), "REAL?"),
    },
    "studies": {
        **{**_KEY, "axes": "TEXT", "metrics": "TEXT", "mean": "BLOB", "std": "BLOB"},
        **_STUDY,
    },
    "failures": {
        **{**_KEY, "error": "TEXT", "traceback": "TEXT", "seconds": "REAL", "attempts": "INTEGER"},
        **{"environment": "TEXT", "finished": "TEXT", "at": "REAL"},
    },
    "runners": {
        **{"id": "TEXT", "machine": "TEXT", "pid": "INTEGER", "started": "TEXT"},
        **{"heartbeat": "REAL"},
    },
    "claims": {**_KEY, "runner": "TEXT", "since": "REAL"},
}
_KEYS = {
    "meta": "name",
    "environments": "id",
    "runs": "id",
    "selections": "run, selection",
    "runners": "id",
}
_LAYOUT = [
    f"CREATE TABLE {table} ({_columns(kinds)}, PRIMARY KEY ({_KEYS.get(table, ', '.join(_KEY))}))"
    for table, kinds in _TABLES.items()
] + [f"CREATE UNIQUE INDEX run_keys ON runs ({', '.join(_KEY)})"]


@contextmanager
def errors_in_words(path: Path) -> Iterator[None]:
    """Convert SQLite errors to StoreError with an explanation."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(_in_words(path, error)) from error


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


def parsed(text: str, kind: type | tuple[type, ...]) -> Any:
    """Return the value of JSON text, which must be of a type and may not be nested deeply."""
    value = json.loads(text)
    if not isinstance(value, kind) or _depth(value) > _MAX_DEPTH:
        raise ValueError(f"{text[:50]!r} has another type, or is nested too deeply")
    return value


def _depth(value: Any) -> int:
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


def _damaged(path: Path, reason: str) -> str:
    return (
        f"{path} is not a results store, or is damaged ({reason}). It was not changed; restore a "
        "copy, or create a new store and merge an export into it"
    )


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
        return _damaged(path, text)
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
        if create and not _layout(connection) and not application:
            for statement in _LAYOUT:
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
        # Anything else, such as a view or a trigger, computes something when rows are read.
        if _layout(connection) != _expected_layout():
            raise StoreError(_damaged(path, "it has other tables"))
        found = connection.execute("PRAGMA quick_check").fetchone()[0]
        if found != "ok":
            raise StoreError(_damaged(path, found))


def _layout(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    ).fetchall()


@cache
def _expected_layout() -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in _LAYOUT:
            connection.execute(statement)
        return _layout(connection)


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
