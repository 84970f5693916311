"""What each client's configuration says with `connect --native`: our hook around its own tools, which stay on.

What each hook judges and records is in docs/hooks.md. `make e2e` runs the real programs with these settings.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from orchestrator.clients.connect.settings_document import parse, value_at
from orchestrator.clients.connect.templates import (
    SERVER,
    TEMPLATES,
    Client,
    ClientFile,
    Hooks,
    Setting,
    Target,
    Template,
)
from orchestrator.clients.hooks import claude, cursor, gemini, opencode
from orchestrator.clients.hooks.program import CLIENTS
from orchestrator.core.errors import OperatorError

TIMEOUT_S: Final = 10
"""What a client grants the hook, which denies by itself after 5 s."""

NO_FILE: Final = "orchestrator-hook-check"
"""The file that the trial of a hook asks about; there is none."""

SESSION: Final = "orchestrator connect"
"""Of the trials of an agent's hook, in the journal one session."""

_OFF = (
    "none; our hook judges and records what they do, and a command that policy asks about waits for a person "
    "(`orchestrator policy init --from run_tests` allows the usual ones)"
)


class NoHook(OperatorError, code="no_hook"):
    """`--native` for a client whose own tools no hook of ours knows."""


def template_of(client: Client, *, native: bool) -> Template:
    """How a client is connected, with our tools or with its own. Raises NoHook."""
    if not native:
        return TEMPLATES[client]
    able = [name for name in HOOKED if name in CLIENTS]
    if client not in able:
        raise NoHook(
            f"there is no hook around the own tools of {TEMPLATES[client].title}: --native is for {', '.join(able)}",
            hint=f"`orchestrator connect {client}` without --native gives it our tools.",
        )
    return HOOKED[client]


def _beside(event: str, entry: Mapping[str, Any]) -> Setting:
    """Our entry in the list of an event's hooks, beside those that are there."""
    return Setting(("hooks", event), [entry], adds=True)


# --- Claude Code -------------------------------------------------------------------------


def _claude(to: Target) -> tuple[ClientFile, ...]:
    before = {"type": "command", "command": shlex.join(to.command), "timeout": TIMEOUT_S, "onFailure": "block"}
    after = {name: value for name, value in before.items() if name != "onFailure"}
    entries = (
        (claude.BEFORE, "|".join(claude.KINDS), before),
        (claude.AFTER[0], "|".join(claude.KINDS), after),
        (claude.AFTER[1], "Bash", after),
    )
    settings = (_beside(event, {"matcher": matcher, "hooks": [hook]}) for event, matcher, hook in entries)
    return (
        ClientFile(
            f"{to.workspace}/.claude/settings.local.json",
            "json",
            tuple(settings),
            "yours for this project: leave it out of commits",
        ),
    )


def _claude_events(workspace: str) -> tuple[Mapping[str, Any], ...]:
    event = {
        "hook_event_name": claude.BEFORE,
        "session_id": SESSION,
        "cwd": workspace,
        "tool_name": "Read",
        "tool_input": {"file_path": f"{workspace}/{NO_FILE}"},
        "tool_use_id": "check",
    }
    return (event,)


# --- Codex CLI ---------------------------------------------------------------------------

_CODEX_TOOLS = "^(Bash|apply_patch)$"


def _codex(to: Target) -> tuple[ClientFile, ...]:
    """Codex runs a hook of a project only if the person's own file has its hash, under its place in the list."""
    path = f"{to.workspace}/.codex/hooks.json"
    hook = {"type": "command", "command": shlex.join(to.command), "timeout": TIMEOUT_S}
    entry = {"matcher": _CODEX_TOOLS, "hooks": [hook]}
    settings, trust = [], []
    for event, label in (("PreToolUse", "pre_tool_use"), ("PostToolUse", "post_tool_use")):
        settings.append(_beside(event, entry))
        hashed = {"event_name": label, "matcher": _CODEX_TOOLS, "hooks": [{**hook, "async": False}]}
        text = json.dumps(hashed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
        state = ("hooks", "state", f"{path}:{label}:{_place(path, event, entry)}:0")
        trust.append(Setting((*state, "trusted_hash"), f"sha256:{digest}"))
    _, own = TEMPLATES["codex"].files(to)
    return (
        ClientFile(path, "json", tuple(settings), "the project's: other projects do without this hook"),
        own._replace(
            settings=(*own.settings, *trust),
            about="yours: without this trust Codex reads nothing of the project, and skips the hook",
        ),
    )


def _place(path: str, event: str, entry: Mapping[str, Any]) -> int:
    """The index in a file's list that an entry of ours has, or will have when another one of ours has made way."""
    try:
        listed = value_at(parse(Path(path).read_text(encoding="utf-8"), "json"), ("hooks", event))
    except (OSError, ValueError):
        return 0
    if not isinstance(listed, list):
        return 0
    ours = ("orchestrator" in str(each) and " hook codex " in str(each) for each in listed)
    return listed.index(entry) if entry in listed else len(listed) - sum(ours)


def _codex_events(workspace: str) -> tuple[Mapping[str, Any], ...]:
    """Of a command that was run: before one, policy may ask a person about it."""
    called = {"session_id": SESSION, "cwd": workspace, "tool_name": "Bash", "tool_use_id": "check"}
    return ({**called, "hook_event_name": "PostToolUse", "tool_input": {"command": NO_FILE}, "tool_response": ""},)


# --- Gemini CLI --------------------------------------------------------------------------


def _gemini(to: Target) -> tuple[ClientFile, ...]:
    hook = {"name": SERVER, "type": "command", "command": shlex.join(to.command), "timeout": TIMEOUT_S * 1000}
    entry = {"matcher": "|".join(gemini.KINDS), "hooks": [hook]}
    project, trust = TEMPLATES["gemini"].files(to)
    settings = (_beside(event, entry) for event in (gemini.BEFORE, gemini.AFTER))
    return (project._replace(settings=tuple(settings), servers=()), trust)


def _gemini_events(workspace: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(
        {**event, "hook_event_name": gemini.BEFORE, "tool_name": "read_file"} for event in _claude_events(workspace)
    )


# --- opencode ----------------------------------------------------------------------------


def _opencode(to: Target) -> tuple[ClientFile, ...]:
    return (
        ClientFile(
            f"{to.workspace}/.opencode/plugins/{SERVER}.js",
            "text",
            (Setting(("text",), opencode.plugin(to.command)),),
            "the project's: opencode runs each plugin that lies there",
        ),
    )


def _opencode_events(workspace: str) -> tuple[Mapping[str, Any], ...]:
    event = {"event": opencode.BEFORE, "session": SESSION, "call": "check", "cwd": workspace}
    return ({**event, "tool": "read", "args": {"filePath": f"{workspace}/{NO_FILE}"}},)


# --- Cursor ------------------------------------------------------------------------------


def _cursor(to: Target) -> tuple[ClientFile, ...]:
    hook = {"command": shlex.join(to.command), "timeout": TIMEOUT_S, "failClosed": True}
    settings = (_beside(event, hook) for event in cursor.KINDS)
    return (
        ClientFile(
            f"{to.workspace}/.cursor/hooks.json",
            "json",
            (Setting(("version",), 1, decided=True), *settings),
            "the project's: other projects do without this hook",
        ),
    )


def _cursor_events(workspace: str) -> tuple[Mapping[str, Any], ...]:
    event = {"hook_event_name": "beforeReadFile", "conversation_id": SESSION, "workspace_roots": [workspace]}
    return ({**event, "generation_id": "check", "content": "", "file_path": f"{workspace}/{NO_FILE}"},)


HOOKED: Final[Mapping[Client, Template]] = {
    "claude": TEMPLATES["claude"]._replace(
        files=_claude,
        off=_OFF,
        past=(
            "what Grep and Glob show, `@file` in a prompt, CLAUDE.md",
            "what a command of Bash reads; what it changed is recorded after it",
            "MCP servers, files outside of the workspace",
        ),
        instead=None,
        excludes=(),
        hooks=Hooks(
            events=_claude_events,
            beside=lambda to: (f"{to.workspace}/.claude/settings.json", f"{to.home}/.claude/settings.json"),
            off=(("disableAllHooks",), True),
        ),
    ),
    "codex": TEMPLATES["codex"]._replace(
        files=_codex,
        off=_OFF,
        past=(
            "what a command reads: Codex reads files by its shell; what a command changed is recorded after it",
            "every tool while the hook can't be started or runs out of time: Codex lets it act then",
            "images given with `-i`, AGENTS.md, MCP servers, files outside of the workspace",
        ),
        hooks=Hooks(
            events=_codex_events,
            beside=lambda to: (f"{to.workspace}/.codex/config.toml",),
            off=(("features", "hooks"), False),
        ),
    ),
    "gemini": TEMPLATES["gemini"]._replace(
        files=_gemini,
        off=_OFF,
        past=(
            "what grep_search, glob and read_many_files show, `@file` in a prompt, GEMINI.md",
            "what a command reads; what it changed is recorded after it",
            "every tool while the hook can't be started or runs out of time: Gemini CLI lets it act then",
            "MCP servers, files outside of the workspace",
        ),
        excludes=("hooksConfig", "disabled"),
        hooks=Hooks(
            events=_gemini_events,
            beside=lambda to: (f"{to.home}/.gemini/settings.json",),
            off=(("hooksConfig", "enabled"), False),
        ),
    ),
    "opencode": TEMPLATES["opencode"]._replace(
        files=_opencode,
        off=_OFF,
        past=(
            "what grep and glob show, files given with `-f` or attached to a prompt, AGENTS.md",
            "what a command reads; what it changed is recorded after it",
            "MCP servers, other plugins, files outside of the workspace",
        ),
        beside=(),
        switches=(),
        hooks=Hooks(events=_opencode_events, beside=lambda to: ()),
    ),
    "cursor": TEMPLATES["cursor"]._replace(
        files=_cursor,
        off=_OFF,
        past=(
            "what a command reads; what it changed is recorded after it",
            "files that you attach to a chat, MCP servers, files outside of the workspace",
            "these settings were written after its documentation, and not tried out with the program",
        ),
        hooks=Hooks(events=_cursor_events, beside=lambda to: (f"{to.home}/.cursor/hooks.json",)),
    ),
}
