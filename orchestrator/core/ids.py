"""Types of identifiers: sequence numbers, digests, paths, agents, sessions."""

from __future__ import annotations

import re
from typing import NewType

from orchestrator.core.errors import ParameterInvalid

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

_SEQ = re.compile(r"@?([0-9]{1,18})\Z")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")


_RESERVED = re.compile(r"(person|class|reviewer):|(outside|unnamed|found|policy|daemon|person)\Z", re.IGNORECASE)


def is_reserved(name: str) -> bool:
    """Whether histories and policies use a name for something else than an agent."""
    return _RESERVED.match(name) is not None


def show(seq: int) -> str:
    """Write a position the one way that callers see it."""
    return f"@{seq}"


def parse_seq(raw: str | int, *, parameter: str = "version") -> Seq:
    """Read `"@42"`, `"42"` or `42`. Raises ParameterInvalid on anything else."""
    match = _SEQ.match(str(raw)) if not isinstance(raw, bool) else None
    if match is None:
        raise ParameterInvalid(parameter, f"{raw!r} is not a version; write it as '@42'")
    return Seq(int(match[1]))


def parse_digest(raw: str) -> Digest | None:
    """The digest that a text is, or None if it is not one."""
    return Digest(raw) if _DIGEST.match(raw) else None
