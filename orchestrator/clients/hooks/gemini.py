"""Gemini CLI's hooks: BeforeTool and AfterTool of the tools that read, write and run."""

from __future__ import annotations

import json

from orchestrator.clients.hooks.event import (
    PASS,
    Event,
    call_of,
    lines,
    member,
    named,
    parsed,
    replacement,
    text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take 2 ms of each hook
    from typing import Any

    from orchestrator.clients.hooks.event import Kind


KINDS: dict[str, Kind] = {"read_file": "read", "replace": "edit", "write_file": "write", "run_shell_command": "command"}

__all__ = ["PASS", "denial", "read", "remark"]

BEFORE, AFTER = "BeforeTool", "AfterTool"

_CUT = "\nStatus: Showing lines "
"""Stands in what a read shows of a part of a file, with `FIRST-LAST of ALL` behind it."""


def read(data: bytes) -> Event | None:
    """The event; None of a tool that is none of ours. Raises Unreadable."""
    given = parsed(data)
    name, tool = named(given, "hook_event_name", (BEFORE, AFTER)), text(given, "tool_name")
    kind = KINDS.get(tool)
    if kind is None:
        return None
    takes = member(given, "tool_input")
    response = given.get("tool_response")
    if kind == "read" and isinstance(response, dict) and response.get("error"):
        return None  # it showed nothing
    return Event(
        name=name,
        before=name == BEFORE,
        session=text(given, "session_id"),
        cwd=text(given, "cwd"),
        call=call_of(given, "session_id", "tool_name", "tool_input"),
        tool=tool,
        kind=kind,
        path=str(takes.get("dir_path") or "") if kind == "command" else text(takes, "file_path"),
        more=_proposed(kind, takes) if name == BEFORE else _shown(kind, takes, response),
    )


def _proposed(kind: Kind, takes: dict[str, Any]) -> dict[str, Any]:
    match kind:
        case "write":
            return {"content": text(takes, "content", empty=True)}
        case "command":
            return {"command": text(takes, "command")}
        case "edit":
            return {"changes": [replacement(takes, "old_string", "new_string", "allow_multiple")]}
        case _:
            return {}


def _shown(kind: Kind, takes: dict[str, Any], response: Any) -> dict[str, Any]:
    """The lines that a read showed: those that it was asked for, unless it says that it cut them."""
    if kind != "read":
        return {}
    said = response.get("llmContent") if isinstance(response, dict) else None
    if isinstance(said, str) and _CUT in said[:200]:
        first, _, last = said.partition(_CUT)[2].partition(" ")[0].partition("-")
        if first.isdecimal() and last.isdecimal():
            return lines(int(first), int(last) - int(first) + 1)
    start, end = takes.get("start_line") or 1, takes.get("end_line")
    if type(end) is int:
        return lines(start, end - start + 1)
    return {"start": start} if type(start) is int and start > 0 else {}


def denial(reason: str) -> str:
    """Keeps the tool from acting; its model reads the reason."""
    return json.dumps({"decision": "deny", "reason": reason})


def remark(event: Event, said: str) -> str:
    """Tells the model something beside a tool's result."""
    return json.dumps({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": said}})
