"""The tables of file versions and of their permission bits: written with the events, and made of them alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.projections.state import first_difference
from orchestrator.core.projections.versions import HISTORY_VERSION, DigestLearned, VersionRow, history
from orchestrator.journal.database_file import naming_trouble, open_reader, sql
from orchestrator.journal.event_rows import DAMAGED, Columns, recorded_of
from orchestrator.journal.segments import ARCHIVE, Archive, all_rows, memory_database

TABLES = {"file_versions": "all_versions", "file_modes": "all_modes"}
"""All that `core.projections.history` makes, and the queries that read them, by path and position."""

MARK = "file_versions"
"""The row of `meta` that says which HISTORY_VERSION of the fold made the tables."""

_COLUMNS = Columns(
    "path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval, "
    "undoes, moved_from",
    "tiiittTiIIITTIIiT",
)


def add_versions(connection: sqlite3.Connection, items: Iterable[VersionRow | DigestLearned]) -> None:
    """Write them, in their order. Blocking."""
    waiting: list[tuple[Any, ...]] = []
    for item in items:
        if isinstance(item, VersionRow):
            waiting.append(msgspec.structs.astuple(item))
            continue
        connection.executemany(sql("add_version"), waiting)
        waiting.clear()
        connection.execute(sql("learn_digest"), (item.digest, item.size, item.path, item.version))
        connection.execute(sql("learn_mode"), (item.path, item.seq, item.mode, item.version))
    if waiting:
        connection.executemany(sql("add_version"), waiting)


def version_of(row: Any) -> VersionRow:
    """A row of file_versions, in the table's order of columns, which is that of the fields. Raises JournalCorrupt."""
    problem = _COLUMNS.problem(row)
    if problem is not None:
        raise JournalCorrupt(f"version @{row[1]} of {row[0]} cannot be read: its {problem}", hint=DAMAGED)
    values = dict(zip(VersionRow.__struct_fields__, row, strict=True))
    values["present"], values["undoes"] = bool(values["present"]), bool(values["undoes"])
    return VersionRow(**values)


def rebuild_versions(connection: sqlite3.Connection, archive: Archive) -> None:
    """Make the tables anew from all events where another version of the fold made them, in one transaction.

    Blocking. Raises JournalCorrupt, JournalTooNew, ArchiveMissing; the old rows stay then. Cost: O(events), once.
    """
    with naming_trouble("the journal"):
        (made_by,) = connection.execute(sql("mark"), (MARK,)).fetchone() or ("",)
        if made_by == str(HISTORY_VERSION):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            for table in TABLES:
                connection.execute(f"DELETE FROM {table}")
            for row in all_rows(connection, archive):
                add_versions(connection, history(recorded_of(row)))
            connection.execute(sql("set_mark"), (MARK, str(HISTORY_VERSION)))
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def table_differences(connection: sqlite3.Connection, expected: sqlite3.Connection) -> Iterator[str | None]:
    """Where the tables differ from a database that `add_versions` filled, with both values; None for a row that agrees.

    Blocking.
    """
    for table, query in TABLES.items():
        both = merge(_values(connection, query, "found"), _values(expected, query, "made"))
        for (path, seq), rows in groupby(both, key=itemgetter(0, 1)):
            where, values = f"/{table}/{path}/@{seq}", {side: value for _, _, side, value in rows}
            found, made = values.get("found"), values.get("made")
            yield (first_difference(found, made, where) or where) if found != made else None


def _values(connection: sqlite3.Connection, query: str, side: str) -> Iterator[tuple[WorkspacePath, int, str, object]]:
    for row in connection.execute(sql(query)):
        yield row[0], row[1], side, msgspec.to_builtins(version_of(row)) if query == "all_versions" else row[2]


def table_difference(path: Path) -> str | None:
    """The first place where the tables are not what the events say, with both values. Blocking.

    Cost: O(events) time, O(versions of files) memory. Raises JournalCorrupt, JournalTooNew, ArchiveMissing.
    """
    with closing(open_reader(path)) as connection, naming_trouble(path), closing(memory_database()) as expected:
        connection.execute("BEGIN")
        for row in all_rows(connection, Archive(path.parent / ARCHIVE)):
            add_versions(expected, history(recorded_of(row)))
        return next(filter(None, table_differences(connection, expected)), None)
