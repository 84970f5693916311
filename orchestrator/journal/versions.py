"""The tables of file versions and of their permission bits: written with the events, and made of them alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.projections.history import VERSION, DigestLearned, VersionRow, history
from orchestrator.core.projections.state import first_difference
from orchestrator.journal.rows import DAMAGED, Columns, recorded_of
from orchestrator.journal.schema import naming_trouble, open_reader, sql
from orchestrator.journal.segments import ARCHIVE, Archive, all_rows

TABLES = ("file_versions", "file_modes")
"""All that `core.projections.history` makes."""

MARK = "file_versions"
"""The row of `meta` that says which VERSION of the fold made the tables."""

_COLUMNS = Columns(
    "path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval, "
    "undoes, moved_from",
    "tiiittTiIIITTIIiT",
)


class Versions:
    """The same rows in memory: what the table must hold after these events."""

    def __init__(self) -> None:
        self.by_path: dict[WorkspacePath, dict[int, VersionRow]] = {}
        self.modes: dict[WorkspacePath, dict[int, int]] = {}
        """By path and position: permission bits that changed without a new version."""

    def add(self, item: VersionRow | DigestLearned) -> None:
        """One row, or what became known about an earlier one."""
        rows = self.by_path.setdefault(item.path, {})
        if isinstance(item, VersionRow):
            rows[item.seq] = item
            return
        known = rows.get(item.version)
        if known is not None and known.present and known.digest is None:
            rows[item.version] = msgspec.structs.replace(known, digest=item.digest, size=item.size)
        if known is not None and self.mode_at(known, item.seq) != item.mode:
            self.modes.setdefault(item.path, {})[item.seq] = item.mode

    def mode_at(self, row: VersionRow, at: int) -> int | None:
        """The permission bits of a version at a position from which it holds."""
        later = [seq for seq in self.modes.get(row.path, {}) if row.seq < seq <= at]
        return self.modes[row.path][max(later)] if later else row.mode


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
        if made_by == str(VERSION):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            for table in TABLES:
                connection.execute(f"DELETE FROM {table}")
            for row in all_rows(connection, archive):
                add_versions(connection, history(recorded_of(row)))
            connection.execute(sql("set_mark"), (MARK, str(VERSION)))
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


class Difference(NamedTuple):
    """A place where a table is not what the events say; None: a row that is not there."""

    table: str
    path: WorkspacePath
    seq: int
    found: VersionRow | int | None
    expected: VersionRow | int | None

    def __str__(self) -> str:
        where = f"/{self.table}/{self.path}/@{self.seq}"
        found = first_difference(msgspec.to_builtins(self.found), msgspec.to_builtins(self.expected), where)
        return found or where


def table_differences(connection: sqlite3.Connection, versions: Versions) -> Iterator[Difference | None]:
    """Every difference; None for a row that is as the events say. Blocking. Empties `versions`."""
    for row in connection.execute(sql("all_versions")):
        path, seq = row[0], row[1]
        found, expected = version_of(row), versions.by_path.get(path, {}).pop(seq, None)
        yield Difference(TABLES[0], path, seq, found, expected) if found != expected else None
    for path, left in versions.by_path.items():
        for seq, expected in left.items():
            yield Difference(TABLES[0], path, seq, None, expected)
    for path, seq, mode in connection.execute(sql("all_modes")):
        known = versions.modes.get(path, {}).pop(seq, None)
        yield Difference(TABLES[1], path, seq, mode, known) if mode != known else None
    for path, modes in versions.modes.items():
        for seq, mode in modes.items():
            yield Difference(TABLES[1], path, seq, None, mode)


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
        return next((str(found) for found in table_differences(connection, versions) if found is not None), None)
