"""What proves a snapshot: the digest of its bytes, and a seal that only who has the journal's key can make."""

from __future__ import annotations

import hashlib

import msgspec

from orchestrator.core.errors import JournalCorrupt, SigningKeyUnusable
from orchestrator.journal.blobs import zstd
from orchestrator.journal.signing_key import KeyFile
from orchestrator.ports.journal import Snapshot

SEAL = "snapshot_seal:"
"""Rows of `meta`: a keyed hash for each snapshot with its bytes, so that an edited table is not believed."""

MOST_BYTES = 1 << 30
"""Of a snapshot, unpacked."""


def sealed_bytes(journal: str, snapshot: Snapshot) -> bytes:
    """What a seal stands for: these bytes of state, at this event, in this journal."""
    return msgspec.json.encode(
        (journal, snapshot.seq, snapshot.hash.hex(), snapshot.digest.hex(), snapshot.version), order="deterministic"
    )


def seal_problem(key: KeyFile, journal: str, snapshot: Snapshot, seal: str | None) -> str | None:
    """Why a snapshot is not taken for one that this state directory's daemon made. Blocking."""
    if seal is None:
        return f"the snapshot at @{snapshot.seq} has no seal"
    try:
        holds = key.sealed(sealed_bytes(journal, snapshot), bytes.fromhex(seal))
    except (SigningKeyUnusable, ValueError, TypeError) as error:
        return f"the seal of the snapshot at @{snapshot.seq} can't be checked: {error}"
    return (
        None if holds else f"the snapshot at @{snapshot.seq} was altered, or sealed with another key: its seal differs"
    )


def unpacked(seq: int, digest: bytes, packed: bytes) -> bytes:
    """A snapshot's bytes, by its digest. Blocking. Raises JournalCorrupt."""
    try:
        data = zstd.ZstdDecompressor().decompress(packed, max_length=MOST_BYTES)
    except (zstd.ZstdError, EOFError, TypeError) as error:
        raise JournalCorrupt(f"the snapshot at @{seq} can't be read: {error}") from error
    if hashlib.sha256(data).digest() != digest:
        raise JournalCorrupt(f"the snapshot at @{seq} is not what its digest says")
    return data
