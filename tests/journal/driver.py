"""The journal's code on a SQLite whose files are ours: `apsw` in the shape of the few `sqlite3` calls that it makes.

The program itself uses the standard `sqlite3`, which can't be given a file system. What differs here is the driver;
statements, pragmas, the writer and its answers are the program's own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from typing import Any

import apsw

AUTOCHECKPOINT = "PRAGMA wal_autocheckpoint = "


@contextmanager
def as_sqlite3() -> Iterator[None]:
    """The errors of one as those of the other, with SQLite's own name."""
    try:
        yield
    except (apsw.ConstraintError, apsw.MismatchError) as error:
        raise named(sqlite3.IntegrityError(str(error)), error) from error
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise named(sqlite3.DatabaseError(str(error)), error) from error
    except apsw.Error as error:
        raise named(sqlite3.OperationalError(str(error)), error) from error


def named(ours: sqlite3.Error, error: apsw.Error) -> sqlite3.Error:
    code = getattr(error, "extendedresult", 0) or getattr(error, "result", 0)
    ours.sqlite_errorcode = code
    name = apsw.mapping_extended_result_codes.get(code) or apsw.mapping_result_codes.get(code & 0xFF, "")
    ours.sqlite_errorname = str(name)
    return ours


class Cursor:
    """What `execute` gives."""

    def __init__(self, cursor: apsw.Cursor) -> None:
        self._cursor = cursor

    def fetchone(self) -> Any:
        with as_sqlite3():
            return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        with as_sqlite3():
            return list(self._cursor.fetchall())

    def __iter__(self) -> Iterator[Any]:
        with as_sqlite3():
            yield from self._cursor

    def close(self) -> None:
        with as_sqlite3():
            self._cursor.close()


class Through:
    """A connection through the file system of that name."""

    def __init__(self, path: str, *, vfs: str, uri: bool, timeout: float, synchronous: str) -> None:
        self._synchronous = synchronous
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        with as_sqlite3():
            self._db = apsw.Connection(path, flags=flags | (apsw.SQLITE_OPEN_URI if uri else 0), vfs=vfs)
            self._db.set_busy_timeout(int(timeout * 1000))

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    def execute(self, statement: str, values: Iterable[Any] = ()) -> Cursor:
        with as_sqlite3():
            if statement.startswith(AUTOCHECKPOINT):
                self._checkpoint_after(int(statement.removeprefix(AUTOCHECKPOINT)))
                return Cursor(self._db.cursor())
            statement = statement.replace("synchronous = FULL", f"synchronous = {self._synchronous}")
            return Cursor(self._db.execute(statement, tuple(values)))

    def _checkpoint_after(self, pages: int) -> None:
        """As `sqlite3WalDefaultHook`: a checkpoint that fails leaves the commit before it what it is.

        `apsw` would raise the file system's error out of the commit that SQLite answers with OK.
        """

        def folded(connection: apsw.Connection, name: str, count: int) -> int:
            if pages and count >= pages:
                with suppress(apsw.Error):
                    connection.wal_checkpoint(name)
            return apsw.SQLITE_OK

        self._db.set_wal_hook(folded)

    def executemany(self, statement: str, rows: Iterable[Iterable[Any]]) -> Cursor:
        with as_sqlite3():
            return Cursor(self._db.executemany(statement, [tuple(row) for row in rows]))

    def executescript(self, script: str) -> None:
        with as_sqlite3():
            self._db.execute(script)

    def close(self) -> None:
        """Never fails, as SQLite's own: the last checkpoint's trouble is left to the next opening."""
        with suppress(apsw.Error):
            self._db.close()


class Driver:
    """Stands where `journal.database_file` has the module `sqlite3`; `synchronous` in place of FULL."""

    Error, Connection = sqlite3.Error, sqlite3.Connection

    def __init__(self, vfs: str, *, synchronous: str = "FULL") -> None:
        self._vfs, self._synchronous = vfs, synchronous

    def connect(self, path: str | PathLike[str], *, timeout: float, uri: bool = False, **_: object) -> Through:
        return Through(str(path), vfs=self._vfs, uri=uri, timeout=timeout, synchronous=self._synchronous)
