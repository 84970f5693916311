"""Rows of the database to values and back."""

from __future__ import annotations

from typing import Any

import msgspec

from orchestrator.core.events.base import Event, Origin, Recorded
from orchestrator.core.events.codec import decode
from orchestrator.core.ids import AgentName, Digest, Seq, SessionId, WorkspacePath
from orchestrator.core.projections.history import VersionRow

EVENT_COLUMNS = (
    "seq, at, stream, stream_version, tag, session, agent, owner, request_id, request_digest, cause, trace_id, "
    "client_call_id, payload, salt, payload_hash, prev_hash, hash"
)


def recorded_of(row: Any) -> Recorded:
    """A row of EVENT_COLUMNS. Raises JournalTooNew, JournalCorrupt."""
    return Recorded(
        seq=Seq(row[0]),
        at=row[1],
        stream=row[2],
        stream_version=row[3],
        origin=origin_of(row),
        event=event_of(row),
        payload_hash=row[15],
        prev_hash=row[16],
        hash=row[17],
    )


def origin_of(row: Any) -> Origin:
    """The envelope's part that says by whom and why."""
    return Origin(
        session=SessionId(row[5]) if row[5] is not None else None,
        agent=AgentName(row[6]) if row[6] is not None else None,
        owner=row[7],
        request_id=row[8],
        request_digest=row[9],
        cause=Seq(row[10]) if row[10] is not None else None,
        trace_id=row[11],
        client_call_id=row[12],
    )


def event_of(row: Any) -> Event:
    """The payload."""
    return decode(row[13], tag=row[4], seq=row[0])


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
        reverts=tuple(msgspec.json.decode(row[15], type=list[Seq])),
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
