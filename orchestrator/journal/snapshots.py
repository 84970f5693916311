"""Snapshots of the state in their table, each with what proves it: a digest of its bytes, and a keyed seal."""

from __future__ import annotations

import hashlib

import msgspec

from orchestrator.core.errors import JournalCorrupt, SigningKeyUnusable
from orchestrator.journal.blobs import zstd
from orchestrator.journal.signing_key import KeyFile
from orchestrator.ports.journal import Snapshot

KEPT = 3
"""Snapshots; should the newest be damaged, an older one and a longer tail do."""

MAX_BYTES = 1 << 30
"""Of a snapshot, unpacked."""


def sealed_bytes(journal: str, snapshot: Snapshot) -> bytes:
    """What a seal stands for: these bytes of state, at this event, in this journal."""
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
