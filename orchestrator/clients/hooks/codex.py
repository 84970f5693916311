"""Codex' hooks: PreToolUse and PostToolUse of its shell and its apply_patch, in the JSON of Claude Code's."""

from __future__ import annotations

import os
import re

from orchestrator.clients.hooks.claude import denial, remark
from orchestrator.clients.hooks.event import PASS, Event, member, named, parsed, text

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take 2 ms of each hook
    from typing import Any

    from orchestrator.clients.hooks.event import Kind


__all__ = ["PASS", "denial", "read", "remark"]

BEFORE, AFTER = "PreToolUse", "PostToolUse"

_HEREDOC = re.compile(
    r"\s*(?:cd\s+(?P<folder>'[^']*'|\"[^\"]*\"|[^\s'\";&|$`]+)\s*&&\s*)?(?:apply_patch|applypatch)\s*<<-?\s*"
    r"(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)\s*\n(?P<patch>.*)\n\s*(?P=end)\s*\Z",
    re.DOTALL,
)
"""A patch given to the shell: Codex applies it itself, and no PostToolUse follows."""


def read(data: bytes) -> Event | None:
    """The event; None of a tool that is none of ours. Raises Unreadable."""
    given = parsed(data)
    name, tool = named(given, "hook_event_name", (BEFORE, AFTER)), text(given, "tool_name")
    if tool not in ("Bash", "apply_patch"):
        return None
    told, cwd = text(member(given, "tool_input"), "command"), text(given, "cwd")
    kind: Kind = "patch" if tool == "apply_patch" else "command"
    more: dict[str, Any] = {"patch": told} if kind == "patch" else {"command": told} if name == BEFORE else {}
    heredoc = _HEREDOC.match(told) if kind == "command" else None
    if heredoc is not None:
        kind, more = "patch", {"patch": heredoc["patch"]}
        cwd = os.path.join(cwd, (heredoc["folder"] or "").strip("'\""))  # noqa: PTH118  # pathlib takes 6 ms
    return Event(
        name=name,
        before=name == BEFORE,
        session=text(given, "session_id"),
        cwd=cwd,
        call=text(given, "tool_use_id"),
        tool=tool,
        kind=kind,
        more=more,
    )
