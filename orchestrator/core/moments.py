"""Points in the journal's time: a position, or a moment of wall time."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.ids import Seq, parse_seq

EARLIEST_MS = 100_000_000_000
"""Bare numbers from here on are ms since the epoch (1973); smaller ones are positions."""


class Moment(msgspec.Struct, frozen=True):
    """One of the two is set."""

    seq: Seq | None = None
    ms: int | None = None

    def before(self, seq: int, at: int) -> bool:
        """Whether an event at this position and time came after the moment."""
        return seq > self.seq if self.seq is not None else at >= (self.ms or 0)


def parse_moment(raw: str | int, *, parameter: str) -> Moment:
    """Read `@42`, ISO 8601 (UTC where it names no zone), or ms since the epoch. Raises ParameterInvalid."""
    text = str(raw).strip()
    if text.startswith("@"):
        return Moment(seq=parse_seq(text, parameter=parameter))
    if text.isdecimal() and len(text) <= 16:
        number = int(text)
        return Moment(ms=number) if number >= EARLIEST_MS else Moment(seq=Seq(number))
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ParameterInvalid(
            parameter,
            f"{text[:60]!r} is no moment",
            hint="Send '@42', a time as 2026-01-31T12:00:00Z, or ms since the epoch.",
        ) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return Moment(ms=int(found.timestamp() * 1000))
