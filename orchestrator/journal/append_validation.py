"""What an append means, without a store: positions, stream versions, request claims and the chain's end."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec

from orchestrator.core.errors import RequestIdReused
from orchestrator.core.events import chain
from orchestrator.core.events.base import Origin, Recorded
from orchestrator.core.events.codec import encode, readable, tag_of
from orchestrator.core.ids import Seq
from orchestrator.ports.journal import ANY_VERSION, AppendBatch, RequestSeen, StreamMoved
from orchestrator.ports.machine import Clock, Entropy

Row = tuple[Any, ...]
"""One event in the order of `EVENT_COLUMNS`."""

CACHED_STREAMS = 50_000

_columns = attrgetter(
    "session", "agent", "owner", "request_id", "request_digest", "cause", "trace_id", "client_call_id"
)


class AppendValidator:
    """Where the journal ends, for one transaction at a time: `validate` units, then `keep` or `drop` all of them.

    `version_of` and `claim_of` ask the store about what is committed; what was validated
    since is known here.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        entropy: Entropy,
        version_of: Callable[[str], int],
        claim_of: Callable[[str, str], RequestSeen | None],
        head: int = 0,
        tip: bytes = chain.GENESIS,
    ) -> None:
        self._clock, self._entropy = clock, entropy
        self._version_of, self._claim_of = version_of, claim_of
        self.head, self.tip = head, tip
        self._kept = head, tip
        self._versions: dict[str, int] = {}
        self._moved: dict[str, int] = {}
        self.claims: dict[tuple[str, str], RequestSeen] = {}
        """What the validated units claimed, by agent and request id."""

    def validate(self, unit: AppendBatch) -> tuple[tuple[Recorded, ...], list[Row]]:
        """Give a unit its positions.

        Raises StreamMoved, RequestIdReused, EventNotSerializable; then nothing of it counts.
        """
        origin = unit.origin
        claim = self._claim(origin) if unit.events and origin.request_id is not None else None
        head, tip, at = self.head, self.tip, self._clock.now_ms()
        moved: dict[str, int] = {}
        recorded: list[Recorded] = []
        rows: list[Row] = []
        call = origin.call
        if call is not None:  # the first event alone carries it
            later = msgspec.structs.replace(origin, call=None)
            call = call.taken(self._clock.ticks_us())
            origin = msgspec.structs.replace(origin, call=call)
        for new in unit.events:
            stream, event = new.stream, new.event
            found = moved[stream] if stream in moved else self._version(stream)
            if new.expected not in (ANY_VERSION, found):
                raise StreamMoved(stream, new.expected, found)
            version = moved[stream] = found + 1
            head += 1
            tag, payload, salt = tag_of(event), readable(event), self._entropy.bytes(chain.SALT_BYTES)
            digest = chain.payload_hash(salt, payload)
            details = encode(call) if call is not None else None
            details_digest = chain.payload_hash(salt, details) if details is not None else None
            columns = head, at, stream, version, tag, *_columns(origin)
            header = chain.header(columns, details_digest)
            before, tip = tip, chain.link(tip, header, digest)
            recorded.append(
                Recorded(
                    seq=Seq(head),
                    at=at,
                    stream=stream,
                    stream_version=version,
                    origin=origin,
                    event=event,
                    payload_hash=digest,
                    prev_hash=before,
                    hash=tip,
                )
            )
            rows.append((*columns, payload, salt, digest, before, tip, details, details_digest))
            if call is not None:
                origin, call = later, None
        self.head, self.tip = head, tip
        self._moved.update(moved)
        if claim is not None:
            self.claims[claim[0]] = RequestSeen(claim[1], recorded[0].seq)
        return tuple(recorded), rows

    def keep(self) -> None:
        """All that was validated is committed."""
        self._kept = self.head, self.tip
        self._versions.update(self._moved)
        self._moved.clear()
        self.claims.clear()
        while len(self._versions) > CACHED_STREAMS:
            del self._versions[next(iter(self._versions))]

    def drop(self) -> None:
        """Nothing that was validated since the last `keep` happened."""
        self.head, self.tip = self._kept
        self._moved.clear()
        self.claims.clear()

    def _version(self, stream: str) -> int:
        found = self._moved.get(stream)
        if found is None:
            found = self._versions.get(stream)
        if found is None:
            found = self._versions[stream] = self._version_of(stream)
        return found

    def _claim(self, origin: Origin) -> tuple[tuple[str, str], str]:
        key, digest = (origin.agent or "", origin.request_id or ""), origin.request_digest or ""
        known = self.claims.get(key) or self._claim_of(*key)
        if known is not None and known.digest != digest:
            raise RequestIdReused(f"request_id {origin.request_id!r} was used before, with other parameters")
        return key, digest
