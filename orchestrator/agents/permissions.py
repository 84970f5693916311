"""What is answered to an agent that asks for permission, before a person is."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from orchestrator.agents.wire import Option, Permission, ToolCall

YesTo = Literal["none", "reads", "edits"]
PolicyAction = Literal["read", "write", "delete", "move"]
PolicyAnswer = Literal["allow", "ask", "deny"]

READS = ("read", "search")
EDITS = ("edit", "delete", "move")

_OWN_TOOL = re.compile(r"(mcp__)?orchestrator_+[a-z_]{1,40}|[a-z_]{1,40} \(orchestrator MCP Server\)")
"""As Claude Code, opencode and Gemini CLI name the tools of our server: the daemon decides each of those calls."""

_BEYOND_FILES = ("execute", "fetch", "switch_mode")


class Verdict(NamedTuple):
    """What policy says of one path."""

    path: str
    answer: PolicyAnswer
    rule: str


class Decision(NamedTuple):
    """`ask`: a person decides, and where there is none, it is a no."""

    answer: Literal["allow", "reject", "ask"]
    why: str


def inside(root: str, path: str) -> str | None:
    """An absolute path as one relative to the workspace; None for one outside. The daemon judges links."""
    if not path.startswith("/") or "\0" in path:
        return None
    normal = posixpath.normpath(path)
    return normal[len(root) + 1 :] if normal.startswith(f"{root.rstrip('/')}/") else None


def action_of(call: ToolCall) -> PolicyAction | None:
    """What a call does to the files that it names; None where policy has no word for it."""
    match call.kind:
        case "delete" | "move":
            return call.kind
        case "edit":
            return "write"
        case "read" | "search":
            return "write" if call.diffs else "read"
        case _:
            return "write" if call.diffs else None


def decide(call: ToolCall, yes_to: YesTo, verdicts: Sequence[Verdict], *, outside: bool) -> Decision:
    """Policy's no holds; its yes does so far as the person said beforehand; the rest is for the person.

    `verdicts`: one for each file of the call that is inside the workspace.
    """
    for verdict in verdicts:
        if verdict.answer == "deny":
            return Decision("reject", f"policy rule {verdict.rule!r} denies {verdict.path}")
    if call.kind not in _BEYOND_FILES and not call.paths and _is_ours(call):
        return Decision("allow", "a tool of the orchestrator, which decides each call itself")
    if outside:
        return Decision("ask", "it names a file outside of the workspace")
    action = action_of(call)
    if action is None or not verdicts:
        return Decision("ask", "it names no file" if not verdicts else f"it is a call of kind {call.kind or 'other'}")
    waiting = next((verdict for verdict in verdicts if verdict.answer != "allow"), None)
    if waiting is not None:
        return Decision("ask", f"policy rule {waiting.rule!r} asks about {waiting.path}")
    if yes_to == "edits" or (yes_to == "reads" and action == "read"):
        return Decision("allow", f"policy allows it, and --yes-to {yes_to}")
    return Decision("ask", f"--yes-to {yes_to}")


def _is_ours(call: ToolCall) -> bool:
    """Codex CLI says which server and tool it is in what it gives the tool."""
    given = call.raw_input if isinstance(call.raw_input, dict) else {}
    named = {"server", "tool", "arguments"} >= given.keys() >= {"server", "tool"} and given["server"] == "orchestrator"
    return named or _OWN_TOOL.fullmatch(call.title or "") is not None


def option_for(options: Sequence[Option], *kinds: Permission) -> Option | None:
    """The first option of the first kind that is offered."""
    return next((option for kind in kinds for option in options if option.kind == kind), None)
