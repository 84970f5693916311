"""Types of identifiers: sequence numbers, digests, paths, agents, sessions; and points in time."""

from __future__ import annotations

import datetime
import re
from typing import NewType

import msgspec

from orchestrator.core.errors import ParameterInvalid, escaped

Seq = NewType("Seq", int)
"""A position in the journal, 1, 2, 3 …; shown as `@N`. 0 is before the first event."""

Digest = NewType("Digest", str)
"""A content hash, `sha256:` and 64 hex digits, of a file's bytes as they are on disk."""

WorkspacePath = NewType("WorkspacePath", str)
"""A path relative to the workspace, `/`-separated, canonical (`core.paths.parse_path`); `.` is the root."""

EscapedPath = NewType("EscapedPath", str)
"""A path as a caller gave it, made safe to show (`core.errors.escaped`); it need not name anything."""

Checksum = NewType("Checksum", str)
"""A hash, written as a `Digest` is, of what is no content of a file: a policy, an archive."""

AgentName = NewType("AgentName", str)
SessionId = NewType("SessionId", str)

_SEQ = re.compile(r"(@?)([0-9]{1,18})\Z")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")

_RESERVED = re.compile(r"(person|class|client|reviewer):|(outside|unnamed|found|policy|daemon|person)\Z", re.IGNORECASE)


def is_reserved(name: str) -> bool:
    """Whether histories and policies use a name for something else than an agent."""
    return _RESERVED.match(name) is not None


def is_person(name: str) -> bool:
    """Whether a name is that of a person at the command line; no agent can have one like it."""
    return name.startswith("person:")


def show(seq: int) -> str:
    """Write a position the one way that callers see it."""
    return f"@{seq}"


START = "@start"
"""The position at which the first scan of the workspace was over."""


def parse_seq(raw: str | int, *, parameter: str = "version", start: Seq | None = None) -> Seq:
    """Read `"@42"`, `"42"` or `42`, and `"@start"` where it is given. Raises ParameterInvalid on anything else."""
    if raw == START and start is not None:
        return start
    match = _SEQ.match(str(raw)) if not isinstance(raw, bool) else None
    if match is None:
        raise ParameterInvalid(parameter, f"{raw!r} is not a version; write it as '@42'")
    return Seq(int(match[2]))


def parse_digest(raw: str) -> Digest | None:
    """The digest that a text is, or None if it is not one."""
    return Digest(raw) if _DIGEST.match(raw) else None


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


def written(at: int) -> str:
    """Milliseconds since the epoch as ISO 8601 in UTC."""
    moment = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(milliseconds=at)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
