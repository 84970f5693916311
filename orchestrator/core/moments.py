"""Moments as callers write them: a position in the journal, a date, or milliseconds."""

from __future__ import annotations

import datetime
import re

import msgspec

from orchestrator.core.errors import ParameterInvalid, escaped
from orchestrator.core.ids import Seq

_POSITION = re.compile(r"@([0-9]{1,18})")
_MS = re.compile(r"[0-9]{1,15}")


class Moment(msgspec.Struct, frozen=True):
    """One of the two."""

    seq: Seq | None = None
    at: int | None = None  # ms since the epoch

    def before(self, seq: int, at: int) -> bool:
        """Whether an event at this position and time came after the moment."""
        return seq > self.seq if self.seq is not None else at >= (self.at or 0)


def parse_moment(raw: str | int, *, parameter: str) -> Moment:
    """Read `@42`, `2026-11-21`, `2026-11-21T09:30+01:00`, or milliseconds since the epoch.

    A time without a zone is UTC, a date alone its first moment. Raises ParameterInvalid.
    """
    text = str(raw)
    if position := _POSITION.fullmatch(text):
        return Moment(seq=Seq(int(position[1])))
    if _MS.fullmatch(text):
        return Moment(at=int(text))
    try:
        moment = datetime.datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        since_epoch = moment - datetime.datetime.fromtimestamp(0, datetime.UTC)
    except (ValueError, OverflowError) as error:
        raise ParameterInvalid(
            parameter,
            f"{escaped(text[:100])!r} is no moment",
            hint="Write '@42', '2026-11-21T09:30:00+01:00' (without a zone: UTC), or milliseconds since 1970.",
        ) from error
    return Moment(at=since_epoch // datetime.timedelta(milliseconds=1))


def written(at: int) -> str:
    """Milliseconds since the epoch as ISO 8601 in UTC."""
    moment = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(milliseconds=at)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
