"""opencode's hooks: its plugin `opencode.js` sends the calls of the tools that read, write and run."""

from __future__ import annotations

import json

from orchestrator.clients.hooks.event import PASS, Event, lines, member, named, parsed, replacement, text

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take 2 ms of each hook
    from typing import Any

    from orchestrator.clients.hooks.event import Kind


KINDS: dict[str, Kind] = {
    "read": "read",
    "edit": "edit",
    "write": "write",
    "bash": "command",
    "apply_patch": "patch",
    "patch": "patch",
}

__all__ = ["PASS", "denial", "read", "remark"]

BEFORE, AFTER = "before", "after"


def plugin(command: tuple[str, ...]) -> str:
    """What the plugin's file holds, to run this command."""
    from importlib.resources import files

    source = files(__package__).joinpath("opencode.js").read_text(encoding="utf-8")
    return source.replace('["orchestrator", "hook", "opencode"]', json.dumps(command), 1)


def read(data: bytes) -> Event | None:
    """The event; None of a tool that is none of ours. Raises Unreadable."""
    given = parsed(data)
    name, tool = named(given, "event", (BEFORE, AFTER)), text(given, "tool")
    kind = KINDS.get(tool)
    if kind is None:
        return None
    takes = member(given, "args")
    if kind == "patch":
        path, more = "", {"patch": text(takes, "patchText")}
    else:
        path = str(takes.get("workdir") or "") if kind == "command" else text(takes, "filePath")
        more = _proposed(kind, takes) if name == BEFORE else _shown(kind, given.get("shown"))
    return Event(
        name=name,
        before=name == BEFORE,
        session=text(given, "session"),
        cwd=text(given, "cwd"),
        call=text(given, "call"),
        tool=tool,
        kind=kind,
        path=path,
        more=more,
    )


def _proposed(kind: Kind, takes: dict[str, Any]) -> dict[str, Any]:
    match kind:
        case "write":
            return {"content": text(takes, "content", empty=True)}
        case "command":
            return {"command": text(takes, "command")}
        case "edit":
            return {"changes": [replacement(takes, "oldString", "newString", "replaceAll")]}
        case _:
            return {}


def _shown(kind: Kind, shown: Any) -> dict[str, Any]:
    if kind != "read" or not isinstance(shown, dict):
        return {}
    start, end = shown.get("start"), shown.get("end")
    return lines(start, end - start + 1) if type(start) is int and type(end) is int else {}


def denial(reason: str) -> str:
    """Keeps the tool from acting: the plugin throws the reason, and its model reads it."""
    return json.dumps({"deny": reason})


def remark(event: Event, said: str) -> str:
    """Tells the model something beside a tool's result."""
    return json.dumps({"tell": said})
