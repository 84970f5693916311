"""The hash chain: each event's hash covers its header, its salted payload, and the hash before it."""

from __future__ import annotations

import hashlib

import msgspec

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
