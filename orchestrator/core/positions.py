"""Positions in the journal and points in time, as callers write them."""

from __future__ import annotations

import datetime
import re

import msgspec

from orchestrator.core.errors import ParameterInvalid, escaped
from orchestrator.core.ids import START, Seq, show

_SEQ = re.compile(r"(@?)([0-9]{1,18})\Z")


def parse_seq(raw: str | int, *, parameter: str = "version", start: Seq | None = None) -> Seq:
    """Read `"@42"`, `"42"` or `42`, and `"@start"` where it is given. Raises ParameterInvalid on anything else."""
    if raw == START and start is not None:
        return start
    match = _SEQ.match(str(raw)) if not isinstance(raw, bool) else None
    if match is None:
        raise ParameterInvalid(parameter, f"{raw!r} is not a version; write it as '@42'")
    return Seq(int(match[2]))


_HINT = "A time is written as '2026-11-21T09:30:00+01:00' (without a zone: UTC), a position as '@42'."


class Timestamp(msgspec.Struct, frozen=True):
    """One of the two."""

    seq: Seq | None = None
    at: int | None = None  # ms since the epoch

    def before(self, seq: int, at: int) -> bool:
        """Whether an event at this position and time is after the moment."""
        return seq > self.seq if self.seq is not None else at >= (self.at or 0)


def parse_timestamp(raw: str | int, *, parameter: str, head: int, start: Seq) -> Timestamp:
    """Read `@42`, `42`, `@start`, `2026-11-21` or `2026-11-21T09:30+01:00`.

    A bare number is a position, as everywhere; one past `head` was meant as a time, and is refused.
    A time without a zone is UTC, a date alone its first moment. Raises ParameterInvalid.
    """
    text = str(raw)
    if text == START:
        return Timestamp(seq=start)
    if position := _SEQ.match(text):
        seq = Seq(int(position[2]))
        if seq > head and not position[1]:
            raise ParameterInvalid(
                parameter, f"{text} is a position ahead of the journal, which ends at {show(head)}", hint=_HINT
            )
        return Timestamp(seq=seq)
    try:
        moment = datetime.datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        since_epoch = moment - datetime.datetime.fromtimestamp(0, datetime.UTC)
    except (ValueError, OverflowError) as error:
        raise ParameterInvalid(
            parameter, f"{escaped(text[:100])!r} is neither a sequence number nor a date and time", hint=_HINT
        ) from error
    return Timestamp(at=since_epoch // datetime.timedelta(milliseconds=1))
