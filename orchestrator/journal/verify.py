"""Does the journal hold what it should: the chain, the payloads, the contents, the table of versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from orchestrator.core.errors import JournalCorrupt, OrchestratorError
from orchestrator.core.events import chain
from orchestrator.core.ids import Digest, Seq
from orchestrator.core.projections.history import VersionRow, history
from orchestrator.journal.blobs import BlobFiles
from orchestrator.journal.rows import EVENT_COLUMNS, event_of, origin_of, recorded_of, version_values
from orchestrator.journal.schema import reader_uri, sql
from orchestrator.ports import VerifyReport

TAIL = 1000
"""Events whose chain is checked at every start."""

MOST_PROBLEMS = 50


def check_tail(connection: sqlite3.Connection) -> None:
    """Check the last events' chain. Raises JournalCorrupt, naming the first position that does not hold."""
    try:
        rows = connection.execute(f"SELECT {EVENT_COLUMNS} FROM events ORDER BY seq DESC LIMIT {TAIL}").fetchall()
    except sqlite3.DatabaseError as error:
        raise JournalCorrupt(f"the journal can't be read: {error}", hint="Restore it from a backup.") from error
    rows.reverse()
    before: Any = None
    for row in rows:
        wrong = _link_problem(row, before)
        if wrong:
            raise JournalCorrupt(wrong, hint="`orchestrator journal verify` says more; restore a backup.")
        before = row


def verify(path: str, blobs: BlobFiles) -> VerifyReport:
    """Walk over everything. Blocking; reads from one snapshot."""
    connection = sqlite3.connect(reader_uri(path), uri=True, isolation_level=None)
    try:
        connection.execute("BEGIN")
        return _verify(connection, blobs)
    finally:
        connection.close()


def _verify(connection: sqlite3.Connection, blobs: BlobFiles) -> VerifyReport:
    problems: list[str] = []
    before: Any = None
    streams: dict[str, int] = {}
    versions: dict[tuple[str, int], tuple[Any, ...]] = {}
    count = 0
    for row in connection.execute(f"SELECT {EVENT_COLUMNS} FROM events ORDER BY seq"):
        count += 1
        problems += filter(None, (_link_problem(row, before), _stream_problem(row, streams), _payload_problem(row)))
        before = row
        if len(problems) >= MOST_PROBLEMS:
            break
        _fold_versions(row, versions)
    checked = 0
    for problem in _blob_problems(connection, blobs):
        checked += 1
        if problem:
            problems.append(problem)
    problems += _version_problems(connection, versions)
    head = before[0] if before else 0
    return VerifyReport(
        events=count,
        head=Seq(head),
        head_hash=(before[17] if before else chain.GENESIS).hex(),
        blobs=checked,
        problems=tuple(problems[:MOST_PROBLEMS]),
        unchecked=(
            "who can rewrite the whole journal can rewrite the chain: compare head_hash with a copy kept elsewhere",
        ),
    )


def _link_problem(row: Any, before: Any) -> str | None:
    seq = row[0]
    if before is not None and seq != before[0] + 1:
        return f"events @{before[0] + 1} to @{seq - 1} are missing"
    if before is None and seq == 1 and row[16] != chain.GENESIS:
        return "event @1 does not begin the chain"
    if before is not None and row[16] != before[17]:
        return f"event @{seq} does not follow @{before[0]}: the chain is broken"
    if chain.payload_hash(row[14], row[13]) != row[15]:
        return f"the payload of event @{seq} was altered"
    header = chain.header(seq=seq, at=row[1], stream=row[2], stream_version=row[3], tag=row[4], origin=origin_of(row))
    if chain.link(row[16], header, row[15]) != row[17]:
        return f"the envelope of event @{seq} was altered"
    return None


def _stream_problem(row: Any, streams: dict[str, int]) -> str | None:
    expected = streams.get(row[2], 0) + 1
    streams[row[2]] = row[3]
    if row[3] != expected:
        return f"event @{row[0]} is number {row[3]} of {row[2]}, where {expected} should be"
    return None


def _payload_problem(row: Any) -> str | None:
    try:
        event_of(row)
    except OrchestratorError as error:
        return error.message
    return None


def _fold_versions(row: Any, versions: dict[tuple[str, int], tuple[Any, ...]]) -> None:
    try:
        recorded = recorded_of(row)
    except OrchestratorError:
        return  # named by _payload_problem
    for item in history(recorded):
        if isinstance(item, VersionRow):
            versions.setdefault((item.path, item.seq), version_values(item))
            continue
        known = versions.get((item.path, item.version))
        if known is not None and known[6] is None:
            versions[item.path, item.version] = (*known[:6], item.digest, known[7], item.size, *known[9:])


def _blob_problems(connection: sqlite3.Connection, blobs: BlobFiles) -> Iterator[str | None]:
    digests = [Digest(digest) for (digest,) in connection.execute(sql("all_blobs"))]
    for digest in digests:
        size, data = connection.execute(sql("blob"), (digest,)).fetchone()
        try:
            blobs.read(digest, size, data)
        except JournalCorrupt as error:
            yield error.message
        else:
            yield None


def _version_problems(
    connection: sqlite3.Connection, versions: dict[tuple[str, int], tuple[Any, ...]]
) -> Iterator[str]:
    """The table against its rebuild from the events."""
    left = dict(versions)
    for row in connection.execute(sql("all_versions")):
        expected = left.pop((row[0], row[1]), None)
        if expected != tuple(row):
            yield f"the version @{row[1]} of {row[0]} in the table is not what the events say"
    for path, seq in left:
        yield f"the version @{seq} of {path} is missing in the table"
