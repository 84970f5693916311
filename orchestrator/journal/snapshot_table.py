"""Snapshots of the state in their table, each with what proves it: a digest of its bytes, and a keyed seal."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator

import msgspec

from orchestrator.core.errors import JournalCorrupt, OrchestratorError, SigningKeyUnusable
from orchestrator.core.ids import show
from orchestrator.core.projections.state import State, encode, freeze
from orchestrator.journal.blobs import LEVEL, zstd
from orchestrator.journal.database_file import sql
from orchestrator.journal.segments import Archive, pieces
from orchestrator.journal.signatures import KeyFile
from orchestrator.ports.journal import Snapshot

KEPT = 3
"""Snapshots; should the newest be damaged, an older one and a longer tail do."""

PIECE = 500
"""Events folded at once."""

MAX_BYTES = 1 << 30
"""Of a snapshot, unpacked."""


def sealed_row(key: KeyFile, journal: str, snapshot: Snapshot, data: bytes) -> tuple[object, ...]:
    """A row of the table: the state's bytes packed, and all of it sealed. Blocking. Raises SigningKeyUnusable."""
    seal = key.seal(sealed_bytes(journal, snapshot))
    return snapshot.seq, snapshot.hash, snapshot.digest, snapshot.version, seal, zstd.compress(data, LEVEL)


def keep(row: tuple[object, ...], connection: sqlite3.Connection) -> None:
    """Put a snapshot beside the events, and drop all but the newest `KEPT`. Blocking."""
    connection.execute(sql("add_snapshot"), row)
    connection.execute(sql("drop_older_snapshots"), (KEPT,))


def sealed_bytes(journal: str, snapshot: Snapshot) -> bytes:
    """What a seal covers: these bytes of state, at this event, in this journal."""
    return msgspec.json.encode(
        (journal, snapshot.seq, snapshot.hash.hex(), snapshot.digest.hex(), snapshot.version), order="deterministic"
    )


def check_seal(key: KeyFile, journal: str, snapshot: Snapshot, seal: bytes) -> None:
    """Raises JournalCorrupt unless the daemon of this state directory made the snapshot. Blocking."""
    try:
        holds = key.sealed(sealed_bytes(journal, snapshot), seal)
    except (SigningKeyUnusable, TypeError) as error:
        raise JournalCorrupt(f"the seal of the snapshot at @{snapshot.seq} can't be checked: {error}") from error
    if not holds:
        raise JournalCorrupt(
            f"the snapshot at @{snapshot.seq} was altered, or sealed with another key: its seal differs"
        )


def unpacked(seq: int, digest: bytes, packed: bytes) -> bytes:
    """A snapshot's bytes, by its digest. Blocking. Raises JournalCorrupt."""
    try:
        data = zstd.ZstdDecompressor().decompress(packed, max_length=MAX_BYTES)
    except (zstd.ZstdError, EOFError, TypeError) as error:
        raise JournalCorrupt(f"the snapshot at @{seq} can't be read: {error}") from error
    if hashlib.sha256(data).digest() != digest:
        raise JournalCorrupt(f"the snapshot at @{seq} is not what its digest says")
    return data


def snapshot_problems(connection: sqlite3.Connection, archive: Archive, uncompared: list[str]) -> Iterator[str | None]:
    """The snapshots that are not what a replay of the events makes, and None between two pieces of the replay.

    Appends to `uncompared` those of other versions of this program. Blocking. Cost: 12 µs for an event, and for each
    snapshot the state's bytes: 50 ms with 100,000 files.
    """
    state = State()
    for seq, version, digest in connection.execute(sql("kept_snapshots")).fetchall():
        if version != state.version:
            uncompared.append(f"the snapshot at {show(seq)}: it is of another version of this program")
            continue
        try:
            for piece in pieces(connection, archive, after=state.head, until=seq, most=PIECE):
                state.apply_all(piece)
                yield None
            yield _problem(connection, state, seq, digest)
        except (OrchestratorError, ValueError) as error:
            yield f"the events can't be folded after @{state.head}: {error}"
            return


def _problem(connection: sqlite3.Connection, state: State, seq: int, digest: bytes) -> str | None:
    if state.head != seq:
        return f"the snapshot at {show(seq)} is of an event that is not there"
    hash_, _, _, _, packed = connection.execute(sql("snapshot_data"), (seq,)).fetchone()
    try:
        unpacked(seq, digest, packed)
    except JournalCorrupt as error:
        return error.message
    if hash_ != state.tip:
        return f"the snapshot at {show(seq)} is of another history than the journal's"
    if hashlib.sha256(encode(freeze(state))).digest() != digest:
        return f"the snapshot at {show(seq)} is not what the events make: a start from it would believe it"
    return None
