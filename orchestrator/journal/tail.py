"""The end of the journal: what every start looks at, before anything is built on it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec

from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.events import chain
from orchestrator.core.events.catalog import tag_of
from orchestrator.core.events.journal import PayloadRedacted
from orchestrator.journal.rows import DAMAGED, UNDECODABLE, link_problem, origin_of
from orchestrator.journal.schema import naming_trouble, sql
from orchestrator.journal.segments import archived_end

TAIL = 1000
"""Events whose chain is checked at every start, at least."""

MOST_TAIL = 20_000
"""And at most; 0.3 s. What is older is checked while the daemon serves."""


def check_tail(connection: sqlite3.Connection) -> None:
    """Check the chain from the last snapshot on, at least TAIL and at most MOST_TAIL events.

    Raises JournalCorrupt, naming the first position that does not hold.
    """
    try:
        _check(connection)
    except UNDECODABLE as error:
        raise JournalCorrupt(f"the end of the journal cannot be read: {error}", hint=DAMAGED) from error


def _check(connection: sqlite3.Connection) -> None:
    with naming_trouble("the journal"):
        (head, _) = connection.execute(sql("last_event")).fetchone() or (0, b"")
        count = max(TAIL, min(head - _last_snapshot(connection), MOST_TAIL))
        rows = connection.execute(sql("tail"), (count + 1,)).fetchall()[::-1]
        archived = archived_end(connection)
    whole = len(rows) <= count
    if rows and whole:
        _demand(link_problem(rows[0], origin_of(rows[0]), archived or (0, chain.GENESIS)))
    for before, row in pairwise(rows):
        _demand(link_problem(row, origin_of(row), (before[0], before[17])))
    silenced = {row[0]: chain.payload_hash(row[14], row[13]).hex() for row in rows if chain.is_redacted(row[14])}
    for problem in silence_problems(silenced, _silencing(rows)):
        _demand(problem)


def _last_snapshot(connection: sqlite3.Connection) -> int:
    """0 where there is none, or where they can't be read: nothing hangs on them."""
    try:
        (seq,) = connection.execute(sql("last_snapshot")).fetchone()
    except sqlite3.DatabaseError:
        return 0
    return int(seq or 0)


def _silencing(rows: list[Any]) -> dict[int, tuple[int, str]]:
    """What the redactions among these rows say; one stands after its target, so those of a tail's events are in it."""
    told = ((row[0], row[13]) for row in rows if row[4] == tag_of(PayloadRedacted))
    return {event.target: (seq, event.rest_hash) for seq, event in ((seq, redaction_in(raw)) for seq, raw in told)}


def redaction_in(payload: bytes) -> PayloadRedacted:
    return msgspec.json.decode(payload, type=PayloadRedacted)


def silence_problems(silenced: dict[int, str], silencing: dict[int, tuple[int, str]]) -> Iterator[str]:
    """Redacted payloads that no event explains, or that are not what it left of them."""
    for seq, rest_hash in sorted(silenced.items()):
        by = silencing.get(seq)
        if by is None:
            yield f"the payload of event @{seq} was taken out, and no event says that it was redacted"
        elif by[1] != rest_hash:
            yield f"the payload of event @{seq} is not what its redaction @{by[0]} left of it"


def _demand(problem: str | None) -> None:
    if problem is not None:
        raise JournalCorrupt(problem, hint=DAMAGED)
