"""Rows of the events table: as values, as links of the chain, and the query that a filter is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.events import chain
from orchestrator.core.events.base import Event, Origin, Recorded, SlimRecorded
from orchestrator.core.events.codec import decode, decode_all, decode_call, tag_of
from orchestrator.core.events.journal_maintenance import PayloadRedacted
from orchestrator.core.ids import AgentName, Seq, SessionId
from orchestrator.ports.journal import EventFilter, Mention

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


_REDACTION = tag_of(PayloadRedacted)


class ChainWalk:
    """Takes events in order, and says of each what does not hold.

    `end` is the position and hash that the next event must follow; an empty hash is not compared.
    """

    def __init__(self, end: tuple[int, bytes] = (0, chain.GENESIS)) -> None:
        self.end = end
        self.redacted: dict[int, str] = {}
        """Redacted events, and the hash of what is left of each."""
        self.redactions: dict[int, tuple[int, str]] = {}
        """By redacted event: the event that says so, and the hash that it says."""

    def take(self, row: Any) -> str | None:
        """What is wrong with the next event, a row of EVENT_COLUMNS."""
        problem, before = mistyped(row), self.end
        self.end = row[0], row[17] if problem is None else b""
        problem = problem or _link_problem(row, before)
        if problem is None and chain.is_redacted(row[14]):
            self.redacted[row[0]] = chain.payload_hash(row[14], row[13]).hex()
        if problem is None and row[4] == _REDACTION:  # a redacted one counts too; what is left of it is checked as well
            event = msgspec.json.decode(row[13], type=PayloadRedacted)
            self.redactions[event.target] = row[0], event.rest_hash
        return problem

    def redaction_problems(self) -> Iterator[str]:
        """Redacted events that no event explains, or that are not what it left of them."""
        for seq, rest_hash in sorted(self.redacted.items()):
            by = self.redactions.get(seq)
            if by is None:
                yield f"the payload of event @{seq} was taken out, and no event says that it was redacted"
            elif by[1] != rest_hash:
                yield f"the payload of event @{seq} is not what its redaction @{by[0]} left of it"


def _link_problem(row: Any, before: tuple[int, bytes]) -> str | None:
    """What is wrong with an event and its place in the chain. A redaction leaves only the hashes."""
    seq, (payload, salt, digest, prev_hash, own_hash, details, details_digest) = row[0], row[13:]
    redacted = chain.is_redacted(salt)
    if seq != before[0] + 1:
        missing = f"@{before[0] + 1}" if seq == before[0] + 2 else f"@{before[0] + 1} to @{seq - 1}"
        return f"missing before event @{seq}: {missing}"
    if before[1] and prev_hash != before[1]:
        return f"event @{seq} does not follow @{before[0]}: the chain is broken"
    if not redacted and chain.payload_hash(salt, payload) != digest:
        return f"the payload of event @{seq} was altered"
    details_hash = chain.payload_hash(salt, details) if details is not None else None
    if details_hash != details_digest and not (details is None and redacted):
        return f"the details of the call of event @{seq} were altered"
    if chain.link(prev_hash, chain.header(row[:13], details_digest), digest) != own_hash:
        return f"the envelope of event @{seq} was altered"
    return None


def select(wanted: EventFilter, *, after: int, until: int, limit: int, newest: bool) -> tuple[str, tuple[Any, ...]]:
    """A query for the events that fit.

    One index leads, in the journal's order, so that `limit` ends the work: the stream's, else
    the session's, the agent's, the tag's. Several tags are as many short walks, merged.
    """
    tags, order = tuple(dict.fromkeys(wanted.tags)), f"ORDER BY seq {'DESC' if newest else 'ASC'} LIMIT ?"
    if len(tags) > 1 and wanted.stream is wanted.session is wanted.agent is None:
        parts, values = list[str](), list[Any]()
        for tag in tags:
            where, more = _where(wanted, (tag,), after, until)
            parts.append(f"SELECT * FROM (SELECT seq FROM events WHERE {where} {order})")
            values += (*more, limit)
        where = f"seq IN ({' UNION ALL '.join(parts)})"
    else:
        where, values = _where(wanted, tags, after, until)
    return f"SELECT {EVENT_COLUMNS} FROM events WHERE {where} {order}", (*values, limit)


def _where(wanted: EventFilter, tags: tuple[str, ...], after: int, until: int) -> tuple[str, list[Any]]:
    """The conditions. The index of the first column leads; a `+` keeps SQLite from using another."""
    clauses, values, plus = ["seq > ?", "seq <= ?"], list[Any]((after, until)), ""
    for column, value in (("stream", wanted.stream), ("session", wanted.session), ("agent", wanted.agent)):
        if value is not None:
            clauses.append(f"{plus}{column} = ?")
            values.append(value)
            plus = "+"
    if len(tags) == 1:
        clauses.append(f"{plus}tag = ?")
    elif tags:
        clauses.append(f"+tag IN ({', '.join('?' * len(tags))})")
    values += tags
    beside = (("at >= ?", wanted.since_at), ("at <= ?", wanted.until_at), ("client_call_id = ?", wanted.client_call_id))
    for clause, asked in beside:
        if asked is not None:
            clauses.append(clause)
            values.append(asked)
    for mention in wanted.mentions:
        clause, more = _mentions(mention)
        clauses.append(clause)
        values += more
    return " AND ".join(clauses), values


def _mentions(mention: Mention) -> tuple[str, tuple[Any, ...]]:
    """Looks into the rows that another column led to; SQLite compares the bytes faster than we decode them."""
    parts, values = list[str](), list[Any]()
    if mention.streams:
        parts.append(f"+stream IN ({', '.join('?' * len(mention.streams))})")
        values += mention.streams
    for text in mention.texts:
        parts.append("instr(payload, ?) > 0")
        values.append(text)
    if mention.session is not None:
        parts.append("(+session = ? AND +seq BETWEEN ? AND ?)")
        values += (mention.session, mention.first, mention.last)
    return f"({' OR '.join(parts)})" if parts else "FALSE", tuple(values)
