"""The hash chain: each event's hash covers its header, its salted payload, and the hash before it."""

from __future__ import annotations

import hashlib

import msgspec

from orchestrator.core.events.base import Origin

GENESIS = bytes(32)
"""`prev_hash` of event @1."""

HEADER_VERSION = 1
SALT_BYTES = 16
REDACTED_SALT_BYTES = 24
"""A redacted payload has a salt of this length, made with the redaction; the first one is gone."""

_ENCODER = msgspec.json.Encoder()


def payload_hash(salt: bytes, payload: bytes) -> bytes:
    """32 bytes; the salt keeps a redacted payload from being guessed."""
    return hashlib.sha256(salt + payload).digest()


def is_redacted(salt: bytes) -> bool:
    """Whether a stored payload is what a redaction left, so that `payload_hash` can't be checked any more."""
    return len(salt) == REDACTED_SALT_BYTES


def header(*, seq: int, at: int, stream: str, stream_version: int, tag: str, origin: Origin) -> bytes:
    """The envelope as a versioned array: its order is part of the format and never changes."""
    return _ENCODER.encode(
        (
            HEADER_VERSION,
            seq,
            at,
            stream,
            stream_version,
            tag,
            origin.session,
            origin.agent,
            origin.owner,
            origin.request_id,
            origin.request_digest,
            origin.cause,
            origin.trace_id,
            origin.client_call_id,
        )
    )


def header_of(columns: tuple[object, ...]) -> bytes:
    """As `header`, of the first 13 columns of a stored row, which are in its order."""
    return _ENCODER.encode((HEADER_VERSION, *columns))


def link(prev_hash: bytes, header_bytes: bytes, payload_digest: bytes) -> bytes:
    """The event's own hash, 32 bytes."""
    return hashlib.sha256(prev_hash + hashlib.sha256(header_bytes).digest() + payload_digest).digest()
