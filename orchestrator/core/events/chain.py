"""The hash chain, and signed checkpoints of it.

Each event's hash covers its header, its salted payload, and the hash before it. A checkpoint states that the chain has
a hash at a position: what is signed, byte for byte, and the file that carries it.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from orchestrator.core.errors import CheckpointInvalid
from orchestrator.core.ids import Seq

GENESIS = bytes(32)
"""`prev_hash` of event @1."""

HEADER_VERSION = 1
DETAILED_HEADER_VERSION = 2
"""Of an event that carries the details of its call: version 1's array and the hash of the details, hex."""

SALT_BYTES = 16
REDACTED_SALT_BYTES = 24
"""A redacted payload has a salt of this length, made with the redaction; the first one is gone."""

_ENCODER = msgspec.json.Encoder()


def payload_hash(salt: bytes, payload: bytes) -> bytes:
    """Of a payload or of details, 32 bytes; the salt keeps what was redacted from being guessed."""
    return hashlib.sha256(salt + payload).digest()


def is_redacted(salt: bytes) -> bool:
    """Whether a stored payload is what a redaction left, so that `payload_hash` can't be checked any more."""
    return len(salt) == REDACTED_SALT_BYTES


def header(columns: tuple[object, ...], details_digest: bytes | None = None) -> bytes:
    """The envelope as a versioned array: its order is part of the format and never changes.

    `columns`: the first 13 of a stored event: seq, at, stream, stream_version, tag, then its origin.
    """
    if details_digest is None:
        return _ENCODER.encode((HEADER_VERSION, *columns))
    return _ENCODER.encode((DETAILED_HEADER_VERSION, *columns, details_digest.hex()))


def link(prev_hash: bytes, header_bytes: bytes, payload_digest: bytes) -> bytes:
    """The event's own hash, 32 bytes."""
    return hashlib.sha256(prev_hash + hashlib.sha256(header_bytes).digest() + payload_digest).digest()


# --- checkpoints --------------------------------------------------------------------------

FORMAT: Final = "orchestrator-checkpoint"
FORMAT_VERSION = 1

Hex32 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]
Hex64 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Hex128 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{128}\Z")]


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The holder of `key` states that the chain of `journal` has `hash` at event `seq`; as a file, indented JSON."""

    format: Literal["orchestrator-checkpoint"] = FORMAT
    version: int = FORMAT_VERSION
    journal: Hex32  # the journal's own id
    seq: Annotated[Seq, Meta(ge=1)]
    hash: Hex64  # of event `seq`
    key: Hex64  # the public key, Ed25519
    signature: Hex128  # of `message`
    signed_at: int = 0  # ms since the epoch; 0: not known. It is not signed

    @property
    def message(self) -> bytes:
        """The signed bytes."""
        return message(self.journal, self.seq, self.hash)

    def text(self) -> str:
        """The file's content."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode() + "\n"


def message(journal: str, seq: int, head_hash: str) -> bytes:
    """What is signed, format 1: four lines of ASCII, each ended by a line feed. It never changes.

    Its first line keeps the signature from being valid for anything else.
    """
    return f"{FORMAT} {FORMAT_VERSION}\njournal {journal}\nseq {seq}\nhash {head_hash}\n".encode("ascii")


def parse_checkpoint(text: str | bytes) -> Checkpoint:
    """Read a checkpoint file. Raises CheckpointInvalid, naming what is wrong with its form."""
    try:
        found = msgspec.json.decode(text, type=Checkpoint)
    except msgspec.MsgspecError as error:
        raise CheckpointInvalid(f"this is no checkpoint file: {error}") from error
    if found.version != FORMAT_VERSION:
        raise CheckpointInvalid(
            f"its format version is {found.version}; this program knows {FORMAT_VERSION}",
            hint="Verify it with the version of the program that made it, or a newer one.",
        )
    return found
