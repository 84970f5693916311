"""The tables beside the events, made anew from every event, archived ones too: to replace them, or to compare."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from orchestrator.core.projections.history import VERSION, VersionRow, history
from orchestrator.core.projections.state import first_difference
from orchestrator.journal.history import TABLES, Versions, add_versions, version_of
from orchestrator.journal.rows import recorded_of
from orchestrator.journal.schema import naming_trouble, open_reader, sql
from orchestrator.journal.segments import ARCHIVE, Archive, all_rows

MARK = "file_versions"
"""The row of `meta` that says which VERSION of the fold made the tables."""

_SHADOW = "_shadow"


def rebuild_versions(connection: sqlite3.Connection, archive: Archive) -> bool:
    """Make the tables anew where another version of the fold made them.

    Beside the old ones, then a swap, all in one transaction. False where they were of this version
    already. Blocking. Raises JournalCorrupt, JournalTooNew, ArchiveMissing; the old ones stay then.
    Cost: O(events), once.
    """
    with naming_trouble("the journal"):
        (made_by,) = connection.execute(sql("mark"), (MARK,)).fetchone() or ("",)
        if made_by == str(VERSION):
            return False
        connection.execute("BEGIN IMMEDIATE")
        try:
            _build_shadows(connection, archive)
            for table in TABLES:
                _swap(connection, table)
            connection.execute(sql("set_mark"), (MARK, str(VERSION)))
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    return True


def _build_shadows(connection: sqlite3.Connection, archive: Archive) -> None:
    for table in TABLES:
        (made,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
        connection.execute(f"CREATE TABLE {table}{_SHADOW} {made[made.index('(') :]}")
    for row in all_rows(connection, archive):
        add_versions(connection, history(recorded_of(row)), suffix=_SHADOW)


def _swap(connection: sqlite3.Connection, table: str) -> None:
    """The indexes of the old table go with it, so they are made again from their own words."""
    indexes = connection.execute(
        "SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND type = 'index' AND sql IS NOT NULL", (table,)
    ).fetchall()
    connection.execute(f"DROP TABLE {table}")
    connection.execute(f"ALTER TABLE {table}{_SHADOW} RENAME TO {table}")
    for (index,) in indexes:
        connection.execute(index)


def table_difference(path: Path) -> str | None:
    """The first place where the tables are not what the events say, with both values. Blocking.

    Cost: O(events) time, O(versions of files) memory. Raises JournalCorrupt, JournalTooNew, ArchiveMissing.
    """
    with closing(open_reader(path)) as connection, naming_trouble(path):
        connection.execute("BEGIN")
        versions = Versions()
        for row in all_rows(connection, Archive(path.parent / ARCHIVE)):
            for item in history(recorded_of(row)):
                versions.add(item)
        table = {(row[0], row[1]): version_of(row) for row in connection.execute(sql("all_versions"))}
        modes = {(row[0], row[1]): row[2] for row in connection.execute(sql("all_modes"))}
    rebuilt = {(path, seq): row for path, rows in versions.by_path.items() for seq, row in rows.items()}
    learned = {(path, seq): mode for path, known in versions.modes.items() for seq, mode in known.items()}
    return _difference("file_versions", table, rebuilt) or _difference("file_modes", modes, learned)


def _difference(name: str, table: dict[Any, Any], rebuilt: dict[Any, Any]) -> str | None:
    for key in sorted(table.keys() | rebuilt.keys()):
        found = first_difference(_plain(table.get(key)), _plain(rebuilt.get(key)), f"/{name}/{key[0]}/@{key[1]}")
        if found is not None:
            return found
    return None


def _plain(row: VersionRow | int | None) -> Any:
    return msgspec.to_builtins(row)
