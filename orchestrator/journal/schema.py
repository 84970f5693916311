"""The database file: its identity, its numbered migrations, its named SQL."""

from __future__ import annotations

import re
import sqlite3
from functools import cache
from importlib import resources

from orchestrator.core.errors import JournalCorrupt, JournalTooNew

APPLICATION_ID = 0x0C4E57A7
"""Marks the file as ours."""

_NAMED = re.compile(r"^-- name: (\w+)\n(.*?);\s*$", re.MULTILINE | re.DOTALL)


@cache
def sql(name: str) -> str:
    """A statement of `queries.sql`. Raises KeyError."""
    return _queries()[name]


@cache
def _queries() -> dict[str, str]:
    text = resources.files(__package__).joinpath("queries.sql").read_text(encoding="utf-8")
    return dict(_NAMED.findall(text))


@cache
def migrations() -> tuple[str, ...]:
    """The scripts in order; the n-th leads to `user_version` n."""
    folder = resources.files(__package__).joinpath("migrations")
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql"))
    return tuple(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def open_writer(path: str) -> sqlite3.Connection:
    """The one connection that writes and checkpoints; the schema is brought up to date.

    Raises JournalCorrupt for a file that is not ours or not a database, JournalTooNew.
    """
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    try:
        _check_identity(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        _migrate(connection)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise JournalCorrupt(
            f"{path} can't be used as a journal: {error}", hint="Restore it from a backup, or move it away."
        ) from error
    except JournalCorrupt:
        connection.close()
        raise
    return connection


def reader_uri(path: str) -> str:
    """For a connection that can only read; it never checkpoints, since it never commits."""
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?mode=ro"


def _check_identity(connection: sqlite3.Connection, path: str) -> None:
    (found,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if tables and found != APPLICATION_ID:
        raise JournalCorrupt(f"{path} is a database of another program")
    if version > len(migrations()):
        raise JournalTooNew(
            f"{path} has schema {version}; this program knows up to {len(migrations())}",
            hint="Run the newer version of the program that wrote it.",
        )


def _migrate(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for number, script in enumerate(migrations()[version:], version + 1):
        connection.executescript(
            f"BEGIN IMMEDIATE;\n{script}\nPRAGMA application_id = {APPLICATION_ID};\n"
            f"PRAGMA user_version = {number};\nCOMMIT;"
        )
