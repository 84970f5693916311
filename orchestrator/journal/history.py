"""The tables of file versions and of their permission bits: their SQL, kept in the transaction of the events."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec

from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath
from orchestrator.core.projections.history import DigestLearned, VersionRow
from orchestrator.journal.rows import DAMAGED, Columns
from orchestrator.journal.schema import sql

TABLES = ("file_versions", "file_modes")
"""All that `core.projections.history` makes."""

_COLUMNS = Columns(
    "path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval, "
    "undoes, moved_from",
    "tiiittTiIIITTIIiT",
)

_TABLE = re.compile(rf"\b({'|'.join(TABLES)})\b")


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


def add_versions(
    connection: sqlite3.Connection, items: Iterable[VersionRow | DigestLearned], *, suffix: str = ""
) -> None:
    """Write them, in their order; with a suffix, into the tables that are called so. Blocking."""
    add, learn_digest, learn_mode = _statements(suffix)
    waiting: list[tuple[Any, ...]] = []
    for item in items:
        if isinstance(item, VersionRow):
            waiting.append(version_values(item))
            continue
        connection.executemany(add, waiting)
        waiting.clear()
        connection.execute(learn_digest, (item.digest, item.size, item.path, item.version))
        connection.execute(learn_mode, (item.path, item.seq, item.mode, item.version))
    if waiting:
        connection.executemany(add, waiting)


@cache
def _statements(suffix: str) -> tuple[str, ...]:
    named = (sql("add_version"), sql("learn_digest"), sql("learn_mode"))
    return tuple(_TABLE.sub(lambda found: found.group() + suffix, statement) for statement in named)


def version_of(row: Any) -> VersionRow:
    """A row of file_versions, in the table's order of columns. Raises JournalCorrupt."""
    problem = _COLUMNS.problem(row)
    if problem is not None:
        raise JournalCorrupt(f"version @{row[1]} of {row[0]} cannot be read: its {problem}", hint=DAMAGED)
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
        undoes=bool(row[15]),
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
        int(row.undoes),
        row.moved_from,
    )


def _seq(value: int | None) -> Seq | None:
    return Seq(value) if value is not None else None
