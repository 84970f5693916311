"""Rows of the events table, as values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.events.base import Event, Origin, Recorded, SlimRecorded
from orchestrator.core.events.codec import decode, decode_all, decode_call
from orchestrator.core.ids import AgentName, Seq, SessionId

EVENT_COLUMNS = (
    "seq, at, stream, stream_version, tag, session, agent, owner, request_id, request_digest, cause, trace_id, "
    "client_call_id, payload, salt, payload_hash, prev_hash, hash, details, details_hash"
)

_TYPES = {"i": int, "t": str, "b": bytes}


class Columns:
    """The columns of a query and what each may hold: a flipped bit makes a text of bytes, whatever the schema says."""

    def __init__(self, names: str, types: str) -> None:
        """`types`: a letter for each: integer, text, bytes; a capital one if it may be null."""
        expected = ((_TYPES[kind.lower()], type(None) if kind.isupper() else _TYPES[kind]) for kind in types)
        self._expected = tuple(zip(names.split(", "), expected, strict=True))

    def problem(self, row: Any) -> str | None:
        """Which column holds what the schema never lets in. Cost: 1 µs."""
        for (name, types), value in zip(self._expected, row, strict=True):
            if type(value) not in types:
                return f"{name} is {type(value).__name__}, not {types[0].__name__}"
        return None


_EVENT = Columns(EVENT_COLUMNS, "iititTTTTTITTbbbbbBB")

DAMAGED = "`orchestrator journal verify` says more; restore a backup."

UNDECODABLE = (TypeError, ValueError, AttributeError, LookupError, OverflowError)
"""What comes of a value that is not of its column's type, wherever it is first used."""


def recorded_of(row: Any) -> Recorded:
    """A row of EVENT_COLUMNS. Raises JournalTooNew, JournalCorrupt."""
    problem = mistyped(row)
    if problem is not None:
        raise JournalCorrupt(problem, hint=DAMAGED)
    return recorded_with(row, event_of(row), origin_of(row))


def mistyped(row: Any) -> str | None:
    """Which column of an event can't be read, if there is one."""
    problem = _EVENT.problem(row)
    return f"event @{row[0]} cannot be read: its {problem}" if problem is not None else None


def recorded_with(row: Any, event: Event, origin: Origin) -> Recorded:
    """As `recorded_of`, for whoever has the two parts already."""
    if row[18] is not None:
        origin = msgspec.structs.replace(origin, call=decode_call(row[18], seq=row[0]))
    return Recorded(
        seq=Seq(row[0]),
        at=row[1],
        stream=row[2],
        stream_version=row[3],
        origin=origin,
        event=event,
        payload_hash=row[15],
        prev_hash=row[16],
        hash=row[17],
    )


def origin_of(row: Any) -> Origin:
    """The envelope's part that says by whom and why; the call's details are read separately."""
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


def replayed(rows: Sequence[Any]) -> list[SlimRecorded]:
    """Rows of the query `replay`, for a fold. Raises JournalTooNew, JournalCorrupt."""
    if not rows:
        return []
    seqs, ats, sessions, agents, tags, payloads, hashes = zip(*rows, strict=True)
    if set(map(type, payloads)) != {bytes} or set(map(type, hashes)) != {bytes}:
        wrong = next(row for row in rows if not type(row[5]) is type(row[6]) is bytes)
        raise JournalCorrupt(f"event @{wrong[0]} cannot be read: it is not stored as bytes", hint=DAMAGED)
    return list(map(SlimRecorded, seqs, ats, sessions, agents, decode_all(payloads, tags=tags, seqs=seqs), hashes))
