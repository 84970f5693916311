"""Which contents can still be needed, and since when the others are not.

Needed is what a kept event may lead back to: each version of a file that began after the last
archived event, the one that was current when it ended, and every content that a kept event names.
The exceptions are events that propose (intents, approvals, conflicts, reviews) and are over: what was applied
of them is a version, and the rest leads nowhere. What still waits is named by the caller.
"""

from __future__ import annotations

import re
import sqlite3
from itertools import groupby
from typing import Any

import msgspec

from orchestrator.core.annotations import Mark, contents_of, fields_with
from orchestrator.core.events.catalog import BY_TAG, PROPOSAL_TAGS
from orchestrator.core.events.codec import decode
from orchestrator.core.ids import Digest
from orchestrator.journal.database_file import sql
from orchestrator.journal.segments import archived_end

_REMOVALS = frozenset(tag for tag, event in BY_TAG.items() if fields_with(event, Mark.GONE))
_DIGEST = re.compile(rb"sha256:[0-9a-f]{64}")


class UnreferencedBlob(msgspec.Struct, frozen=True):
    """A content that nothing needs, and the time of the last event that named it, at the latest."""

    digest: Digest
    size: int
    last_named: int  # ms since the epoch


def _named(seq: int, tag: str, payload: bytes) -> set[Digest]:
    """Every content that a stored event names, save as gone; whatever looks like one, where none can be gone."""
    if tag in _REMOVALS:
        return set(contents_of(decode(payload, tag=tag, seq=seq)))
    return {Digest(found.decode()) for found in _DIGEST.findall(payload)}


def named_since(connection: sqlite3.Connection, seq: int) -> set[Digest]:
    """Every content that events after `seq` name, save as gone. Blocking."""
    named: set[Digest] = set()
    for number, _, tag, payload in connection.execute(sql("payloads"), (seq,)):
        named |= _named(number, tag, payload)
    return named


def unreferenced_blobs(
    connection: sqlite3.Connection, *, needed: frozenset[Digest], as_of: int
) -> list[UnreferencedBlob]:
    """Contents that nothing needs, in no order.

    `needed` is what waited at position `as_of`; events after it count whatever their kind.
    Blocking; cost: O(kept events + versions + contents).
    """
    end = archived_end(connection)
    archived = end[0] if end is not None else 0
    reached, named = set(needed), dict[Digest, int]()
    oldest: int | None = None
    for seq, at, tag, payload in connection.execute(sql("payloads"), (0,)):
        oldest = at if oldest is None else oldest
        for digest in _named(seq, tag, payload):
            named[digest] = max(at, named.get(digest, 0))
            if tag not in PROPOSAL_TAGS or seq > as_of:
                reached.add(digest)
    for _, rows in groupby(connection.execute(sql("named_contents")), key=lambda row: row[0]):
        _versions(list(rows), archived, reached, named)
    found = []
    for digest, size in connection.execute(sql("blob_sizes")):
        # Named by archived events alone: those are older than the oldest that is kept. By none: it just came.
        last = named.get(digest, oldest if archived else None)
        if digest not in reached and last is not None:
            found.append(UnreferencedBlob(digest, size, last))
    return found


def _versions(rows: list[Any], archived: int, reached: set[Digest], named: dict[Digest, int]) -> None:
    """Of one path: the versions that began after the archived events, and the one that was current at their end."""
    before = [row for row in rows if row[1] <= archived]
    current = [max(before, key=lambda row: row[1]), max(before, key=lambda row: (row[2], row[1]))] if before else []
    for row in (*current, *(row for row in rows if row[1] > archived)):
        if row[4] is not None:
            reached.add(row[4])
    for _, _, _, at, digest in rows:
        if digest is not None:
            named[digest] = max(at, named.get(digest, 0))
