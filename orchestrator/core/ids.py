"""Types of identifiers: sequence numbers, digests, paths, agents, sessions; and points in time."""

from __future__ import annotations

import datetime
import re
from typing import NewType

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


def parse_digest(raw: str) -> Digest | None:
    """The digest that a text is, or None if it is not one."""
    return Digest(raw) if _DIGEST.match(raw) else None


def to_the_second(at: int) -> str:
    """Milliseconds since the epoch as a person reads them in UTC, `2026-11-21 09:30:05Z`."""
    return datetime.datetime.fromtimestamp(at / 1000, datetime.UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def written(at: int) -> str:
    """Milliseconds since the epoch as ISO 8601 in UTC."""
    moment = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(milliseconds=at)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
