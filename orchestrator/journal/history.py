"""The table of file versions: its SQL, kept in the transaction of the events that it comes from."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

import msgspec

from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath
from orchestrator.core.projections.history import VERSION, DigestLearned, VersionRow, history
from orchestrator.journal.rows import EVENT_COLUMNS, recorded_of
from orchestrator.journal.schema import naming_trouble, sql

MARK = "file_versions"
"""The row of `meta` that says which VERSION of the fold made the table."""

_SHADOW = "file_versions_shadow"


class Versions:
    """The same rows in memory: what the table must hold after these events."""

    def __init__(self) -> None:
        self.by_path: dict[WorkspacePath, dict[int, VersionRow]] = {}

    def add(self, item: VersionRow | DigestLearned) -> None:
        """One row, or what became known about an earlier one."""
        rows = self.by_path.setdefault(item.path, {})
        if isinstance(item, VersionRow):
            rows[item.seq] = item
            return
        known = rows.get(item.version)
        if known is not None and known.present and known.digest is None:
            rows[item.version] = msgspec.structs.replace(known, digest=item.digest, size=item.size)


def add_versions(
    connection: sqlite3.Connection, items: Iterable[VersionRow | DigestLearned], *, table: str = "file_versions"
) -> None:
    """Write them, in their order. Blocking."""
    add, learn = (sql(name).replace("file_versions", table) for name in ("add_version", "learn_digest"))
    waiting: list[tuple[Any, ...]] = []
    for item in items:
        if isinstance(item, VersionRow):
            waiting.append(version_values(item))
            continue
        connection.executemany(add, waiting)
        waiting.clear()
        connection.execute(learn, (item.digest, item.size, item.path, item.version))
    if waiting:
        connection.executemany(add, waiting)


def renew_versions(connection: sqlite3.Connection) -> bool:
    """Make the table anew where another version of the fold made it.

    Beside the old one, then a swap, all in one transaction. False where it was of this version
    already. Blocking. Raises JournalCorrupt, JournalTooNew; the old one stays then.
    Cost: O(events), once.
    """
    with naming_trouble("the journal"):
        (made_by,) = connection.execute(sql("mark"), (MARK,)).fetchone() or ("",)
        if made_by == str(VERSION):
            return False
        connection.execute("BEGIN IMMEDIATE")
        try:
            _build_shadow(connection)
            _swap(connection)
            connection.execute(sql("set_mark"), (MARK, str(VERSION)))
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    return True


def _build_shadow(connection: sqlite3.Connection) -> None:
    (table,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'file_versions'").fetchone()
    connection.execute(f"CREATE TABLE {_SHADOW} {table[table.index('(') :]}")
    for row in connection.execute(f"SELECT {EVENT_COLUMNS} FROM events ORDER BY seq"):
        add_versions(connection, history(recorded_of(row)), table=_SHADOW)


def _swap(connection: sqlite3.Connection) -> None:
    """The indexes of the old table go with it, so they are made again from their own words."""
    indexes = connection.execute(
        "SELECT sql FROM sqlite_schema WHERE tbl_name = 'file_versions' AND type = 'index' AND sql IS NOT NULL"
    ).fetchall()
    connection.execute("DROP TABLE file_versions")
    connection.execute(f"ALTER TABLE {_SHADOW} RENAME TO file_versions")
    for (index,) in indexes:
        connection.execute(index)


def version_of(row: Any) -> VersionRow:
    """A row of file_versions, in the table's order of columns."""
    return VersionRow(
        path=WorkspacePath(row[0]),
        seq=Seq(row[1]),
        effective=Seq(row[2]),
        at=row[3],
        kind=row[4],
        operation=row[5],
        digest=Digest(row[6]) if row[6] is not None else None,
        present=bool(row[7]),
        size=row[8],
        mode=row[9],
        change=_seq(row[10]),
        agent=AgentName(row[11]) if row[11] is not None else None,
        session=row[12],
        task=_seq(row[13]),
        approval=_seq(row[14]),
        reverts=msgspec.json.decode(row[15], type=tuple[Seq, ...]),
        moved_from=WorkspacePath(row[16]) if row[16] is not None else None,
    )


def version_values(row: VersionRow) -> tuple[Any, ...]:
    """The other way."""
    return (
        row.path,
        row.seq,
        row.effective,
        row.at,
        row.kind,
        row.operation,
        row.digest,
        int(row.present),
        row.size,
        row.mode,
        row.change,
        row.agent,
        row.session,
        row.task,
        row.approval,
        msgspec.json.encode(row.reverts).decode(),
        row.moved_from,
    )


def _seq(value: int | None) -> Seq | None:
    return Seq(value) if value is not None else None
