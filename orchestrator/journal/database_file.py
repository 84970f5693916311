"""The database file: its identity, its numbered migrations, its named SQL, and how it is opened."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from orchestrator.core import errors as e
from orchestrator.core.system_errors import system_trouble
from orchestrator.journal.state_files import sync_above, sync_directory

FILE_NAME = "journal.db"
APPLICATION_ID = 0x0C4E57A7
"""Marks the file as ours."""

BUSY_TIMEOUT_S = 5.0
CHECKPOINT_PAGES = 4000
"""The log is folded into the database when it has so many, 16 MB; a page that many commits changed is written once.

Source: 32 callers with a session each dirty some hundred pages a commit. At SQLite's own 1000 an event took 43 µs of
processor time (55 µs in all), at 4000 40 µs (48), at 8000 as much.
"""

FULL = frozenset(("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"))
"""What SQLite says when there is no space: for a file of its own, and for the index of its log."""

CACHE_KIB = 16 * 1024

_NAMED = re.compile(r"^-- name: (\w+)\n(.*?);\s*$", re.MULTILINE | re.DOTALL)


@cache
def _queries() -> dict[str, str]:
    text = resources.files(__package__).joinpath("queries.sql").read_text(encoding="utf-8")
    return dict(_NAMED.findall(text))


def sql(name: str) -> str:
    """A statement of `queries.sql`. Raises KeyError."""
    return _queries()[name]


@cache
def migrations() -> tuple[str, ...]:
    """The scripts in order; the n-th leads to `user_version` n."""
    folder = resources.files(__package__).joinpath("migrations")
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql"))
    return tuple(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def open_writer(path: Path) -> sqlite3.Connection:
    """The one connection that writes and checkpoints; the schema is brought up to date.

    FULL: a committed event outlives a power loss. SQLite's automatic checkpoint runs on this
    connection only, since no other commits. Raises JournalCorrupt for a file that is not ours
    or not a database, JournalTooNew, WorkspaceHeld.
    """
    _make_private(path)
    with naming_trouble(path), _closed_on_error(_connect(path)) as connection:
        _check_identity(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA secure_delete = ON")  # what a redaction takes out must not lie in free space
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute("PRAGMA temp_store = MEMORY")  # a transaction opens no file, so none can be lacking
        _migrate(connection)
        _check_meta(connection, path)
        return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write and never checkpoints. Raises as `open_writer`."""
    uri = f"file:{quote(str(path))}?mode=ro"
    with naming_trouble(path), _closed_on_error(_connect(uri, uri=True)) as connection:
        if _check_identity(connection, path) == 0:
            raise e.JournalCorrupt(f"{path} holds no journal yet", hint="Start the daemon on this workspace first.")
        _check_meta(connection, path)
        for setting in ("query_only = ON", "wal_autocheckpoint = 0", "trusted_schema = OFF"):
            connection.execute(f"PRAGMA {setting}")
        return connection


def _connect(place: Path | str, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(place, uri=uri, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT_S)


@contextmanager
def naming_trouble(path: Path | str) -> Iterator[None]:
    """The driver's errors as ours, with the file's name."""
    try:
        yield
    except sqlite3.Error as error:
        raise trouble_of(error, path) from error


def trouble_of(error: sqlite3.Error, path: Path | str) -> e.OrchestratorError:
    """What an error of the driver means: only what the file itself is to blame for is corruption."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return e.WorkspaceHeld(
            f"another process is writing to {path}", hint="One daemon serves a workspace; end one of the two."
        )
    if name in FULL:
        return e.DiskFull(f"the disk of {path} is full; nothing was changed", hint="Free some space, then start again.")
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
        return lacking_descriptor(f"{path} can't be opened") or e.StateDirectoryUnusable(
            f"{path} can't be opened or written: {error}",
            hint="Every call is an event, reads too, so nothing is served without a journal that takes events. "
            "Give the state directory back to its owner, writable, on a file system that takes writes.",
        )
    return e.JournalCorrupt(
        f"{path} can't be used as a journal: {error}",
        hint="`orchestrator journal verify` says more; restore a backup.",
    )


def lacking_descriptor(what: str) -> e.OrchestratorError | None:
    """SQLite does not say why it could not open a file: as many descriptors as a database takes show it."""
    with ExitStack() as opened:
        try:
            for _ in range(4):  # the database, its log, the log's index, a temporary file
                opened.callback(os.close, os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        except OSError as error:
            return system_trouble(error, what)
    return None


@contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield connection
    except BaseException:
        connection.close()
        raise


def _make_private(path: Path) -> None:
    """The file 0600 in a 0700 directory, its name synced; SQLite gives its own side files the same mode."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        path.chmod(0o600)  # by name: closing any descriptor of the file would drop SQLite's own locks on it
    else:
        sync_above(path.parent)
    sync_directory(path.parent)


def _check_identity(connection: sqlite3.Connection, path: Path) -> int:
    """The schema's version, 0 for an empty file."""
    (found,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if (tables or found) and found != APPLICATION_ID:
        raise e.JournalCorrupt(
            f"{path} is a database of another program", hint="Move it away, or name another state directory."
        )
    if version > len(migrations()):
        raise e.JournalTooNew(
            f"{path} has schema {version}; this program knows up to {len(migrations())}",
            hint="Run the newer version of the program that wrote it.",
        )
    return int(version)


def _check_meta(connection: sqlite3.Connection, path: Path) -> None:
    """Raises JournalCorrupt where the rows are gone that each journal has from its begin on."""
    there = {key for (key,) in connection.execute("SELECT key FROM meta")}
    lacks = sorted({"journal", "epoch"} - there)
    if lacks:
        raise e.JournalCorrupt(
            f"{path} is damaged: its table meta lacks {' and '.join(lacks)}", hint="Restore it from a backup."
        )


def _migrate(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for number, script in enumerate(migrations()[version:], version + 1):
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{script}\nPRAGMA application_id = {APPLICATION_ID};\n"
                f"PRAGMA user_version = {number};\nCOMMIT;"
            )
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
