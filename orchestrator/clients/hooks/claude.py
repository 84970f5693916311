"""Claude Code's hooks: PreToolUse, PostToolUse and PostToolUseFailure of the tools that read, write and run."""

from __future__ import annotations

import json

from orchestrator.clients.hooks.event import PASS, Event, Unreadable, lines, member, named, parsed, replacement, text

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take 2 ms of each hook
    from typing import Any

    from orchestrator.clients.hooks.event import Kind


KINDS: dict[str, Kind] = {
    "Read": "read",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Write": "write",
    "NotebookEdit": "edit",
    "Bash": "command",
}
"""The tools that are judged and recorded; any other is none of ours."""

BEFORE = "PreToolUse"
__all__ = ["PASS", "denial", "read", "remark"]

AFTER = ("PostToolUse", "PostToolUseFailure")


def read(data: bytes) -> Event | None:
    """The event; None of a tool that is none of ours. Raises Unreadable."""
    given = parsed(data)
    if "cursor_version" in given:
        return None  # Cursor runs the hooks of Claude's settings, too; it has one of its own
    name, tool = named(given, "hook_event_name", (BEFORE, *AFTER)), text(given, "tool_name")
    kind = KINDS.get(tool)
    if kind is None:
        return None
    takes = member(given, "tool_input")
    before = name == BEFORE
    return Event(
        name=name,
        before=before,
        session=text(given, "session_id"),
        cwd=text(given, "cwd"),
        call=text(given, "tool_use_id"),
        tool=tool,
        kind=kind,
        path="" if kind == "command" else text(takes, "notebook_path" if tool == "NotebookEdit" else "file_path"),
        more=_proposed(tool, takes) if before else _shown(kind, given.get("tool_response")),
    )


def _proposed(tool: str, takes: dict[str, Any]) -> dict[str, Any]:
    """What the tool is about to write, where it says so."""
    match tool:
        case "Write":
            return {"content": text(takes, "content", empty=True)}
        case "Bash":
            return {"command": text(takes, "command")}
        case "Edit":
            return {"changes": [_replacement(takes)], "exact": True}
        case "MultiEdit":
            edits = takes.get("edits")
            if not isinstance(edits, list) or not all(isinstance(edit, dict) for edit in edits):
                raise Unreadable("edits is no list of objects")
            return {"changes": [_replacement(edit) for edit in edits], "exact": True}
        case _:
            return {}


def _replacement(edit: dict[str, Any]) -> dict[str, Any]:
    return replacement(edit, "old_string", "new_string", "replace_all")


def _shown(kind: str, response: Any) -> dict[str, Any]:
    """The lines that a read showed, where its answer says which."""
    file = response.get("file") if isinstance(response, dict) else None
    if kind != "read" or not isinstance(file, dict):
        return {}
    return lines(file.get("startLine"), file.get("numLines"))


def denial(reason: str) -> str:
    """Keeps the tool from acting; its model reads the reason."""
    decision = {"hookEventName": BEFORE, "permissionDecision": "deny", "permissionDecisionReason": reason}
    return json.dumps({"hookSpecificOutput": decision})


def remark(event: Event, said: str) -> str:
    """Tells the model something beside a tool's result."""
    return json.dumps({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": said}})
