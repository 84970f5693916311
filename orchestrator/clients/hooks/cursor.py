"""Cursor's hooks: before it reads a file, uses a tool that writes, or runs a command; after an edit or a command.

Its forms are those of its documentation, and of what people report: they were not tried with the program.
"""

from __future__ import annotations

import json

from orchestrator.clients.hooks.event import Event, Unreadable, call_of, member, named, parsed, replacement, text

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take 2 ms of each hook
    from typing import Any

    from orchestrator.clients.hooks.event import Kind


KINDS: dict[str, tuple[Kind, bool]] = {
    "beforeReadFile": ("read", True),
    "beforeShellExecution": ("command", True),
    "afterShellExecution": ("command", False),
    "preToolUse": ("edit", True),
    "afterFileEdit": ("edit", False),
}
"""What each event tells of, and whether it comes before it."""

WRITING = ("Write", "StrReplace", "Edit", "MultiEdit", "Delete", "EditNotebook", "ApplyPatch")
"""The tools of preToolUse that are judged; those that read and run have events of their own."""

UNNAMED = "Edit"
"""What a tool that writes is called whose name Cursor leaves out, as 3.12 did."""

PASS = "{}"
"""It takes no answer but JSON; this one leaves the decision to its own rules."""


def read(data: bytes) -> Event | None:
    """The event; None of a tool that is none of ours. Raises Unreadable."""
    given = parsed(data)
    name = named(given, "hook_event_name", KINDS)
    kind, before = KINDS[name]
    tool = _tool(given) if name == "preToolUse" else kind.capitalize()
    if name == "preToolUse" and tool not in WRITING:
        return None
    roots = given.get("workspace_roots")
    cwd = given.get("cwd") or (roots[0] if isinstance(roots, list) and roots else None)
    path, same = "", "command"
    more: dict[str, Any] = {}
    if kind == "command":
        more = {"command": text(given, "command")} if before else {}
    elif tool == "ApplyPatch":
        kind, more = "patch", {"patch": _patch(given.get("tool_input"))}
    else:
        takes = member(given, "tool_input") if name == "preToolUse" else given
        path = text(takes, "file_path" if "file_path" in takes else "path")
        same = path
        if name == "preToolUse":
            kind, more = _proposed(takes)
    return Event(
        name=name,
        before=before,
        session=text(given, "conversation_id"),
        cwd=text({"cwd": cwd}, "cwd"),
        call=call_of({**given, "same": same}, "conversation_id", "generation_id", "command", "same"),
        tool=tool,
        kind=kind,
        path=path,
        more=more,
        alone=name == "beforeReadFile",
    )


def _tool(given: dict[str, Any]) -> str:
    takes = given.get("tool_input")
    writes = isinstance(takes, dict) and not {"old_string", "content", "contents"}.isdisjoint(takes)
    return UNNAMED if not given.get("tool_name") and writes else text(given, "tool_name")


def _patch(takes: Any) -> str:
    """The patch, which is all that the tool takes, or one of its members. Raises Unreadable."""
    for value in takes.values() if isinstance(takes, dict) else (takes,):
        if isinstance(value, str) and value.lstrip().startswith("*** Begin Patch"):
            return value
    raise Unreadable("tool_input holds no patch; edit the file with another tool")


def _proposed(takes: dict[str, Any]) -> tuple[Kind, dict[str, Any]]:
    if "old_string" in takes:
        return "edit", {"changes": [replacement(takes, "old_string", "new_string", "replace_all")]}
    for name in ("content", "contents"):
        if name in takes:
            return "write", {"content": text(takes, name, empty=True)}
    return "edit", {}


def denial(reason: str) -> str:
    """Keeps the tool from acting; its model reads the reason."""
    return json.dumps({"permission": "deny", "user_message": reason, "agent_message": reason})


def remark(event: Event, said: str) -> str:
    """Its model reads nothing beside a tool's result."""
    return PASS
