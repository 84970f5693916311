"""What each client's configuration says: our MCP server, its own file tools and shell off.

The settings of Claude Code, Codex, Gemini CLI and opencode are those that `make e2e` runs the real programs with.
With `--native` they are those of `hook_settings.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

SERVER: Final = "orchestrator"
"""The name of our MCP server in each client's settings."""

Client = Literal["claude", "codex", "gemini", "opencode", "cursor", "vscode"]


class Setting(NamedTuple):
    """A value at a place of a configuration file.

    `adds`: a list whose items join those that are there. `decided`: where it says something else, a person has
    decided so, and it is not replaced.
    """

    keys: tuple[str, ...]
    value: Any
    adds: bool = False
    decided: bool = False

    @property
    def name(self) -> str:
        """As messages show it."""
        return ".".join(key if key.replace("_", "").isalnum() else f'"{key}"' for key in self.keys)


class ClientFile(NamedTuple):
    """One of a client's configuration files, and what it is to say."""

    path: str
    form: Literal["json", "toml", "text"]  # text: a file of ours, whose whole content is the setting `text`
    settings: tuple[Setting, ...]
    about: str  # whose it is, and why this one
    servers: tuple[str, ...] = ()  # the keys of its table of MCP servers, if it has one


class Target(NamedTuple):
    """What a template is filled in with."""

    workspace: str
    home: str
    command: tuple[str, ...]  # starts the transport, or is the hook, with its arguments
    denied: tuple[str, ...] = ()  # globs that policy lets no agent read
    codex_home: str = ""  # where the environment says that Codex keeps its settings


class Instead(NamedTuple):
    """A place where a server of our name is taken in place of the one that is written, and how to remove it."""

    path: str
    keys: tuple[str, ...]
    removed_by: str


class Hooks(NamedTuple):
    """How a client that keeps its own tools runs our hook. `off`: its setting, and the value, that turns hooks off."""

    events: Callable[[str], tuple[Mapping[str, Any], ...]]  # of a workspace: some that change nothing
    beside: Callable[[Target], tuple[str, ...]]  # further settings files, whose hooks it runs as well
    off: tuple[tuple[str, ...], bool] | None = None


class Template(NamedTuple):
    """How one client is connected. `off` and `past` are sentences for a person."""

    title: str
    program: str
    tried: str  # the version that `make e2e` runs; empty: none
    files: Callable[[Target], tuple[ClientFile, ...]]
    off: str
    past: tuple[str, ...]
    start: str
    beside: tuple[str, ...] = ()  # further files of the project that it reads, and that can say otherwise
    switches: tuple[str, ...] = ()  # the table that turns its tools on and off; of its members the last one counts
    instead: Callable[[Target], Instead] | None = None
    excludes: tuple[str, ...] = ()  # the list, in any of its files, whose servers it does not start
    hooks: Hooks | None = None  # with `--native`


# --- Claude Code -------------------------------------------------------------------------

CLAUDE_TOOLS: Final = (
    "Bash BashOutput Edit Glob Grep KillShell LSP Monitor NotebookEdit PowerShell Read Write"
).split()
"""Its tools that read or change files, or run something; a name in `deny` takes the tool away, in subagents too."""


def _claude(to: Target) -> tuple[ClientFile, ...]:
    server = {"command": to.command[0], "args": list(to.command[1:]), "alwaysLoad": True}
    return (
        ClientFile(
            f"{to.workspace}/.mcp.json",
            "json",
            (Setting(("mcpServers", SERVER), server),),
            "where Claude Code looks for MCP servers; it names paths of this machine: leave it out of commits",
            ("mcpServers",),
        ),
        ClientFile(
            f"{to.workspace}/.claude/settings.local.json",
            "json",
            (
                Setting(("permissions", "allow"), [f"mcp__{SERVER}"], adds=True),
                Setting(("permissions", "deny"), [*CLAUDE_TOOLS, *map(_read_rule, to.denied)], adds=True),
                Setting(("enabledMcpjsonServers",), [SERVER], adds=True),
            ),
            "yours for this project: leave it out of commits",
        ),
    )


def _claude_instead(to: Target) -> Instead:
    return Instead(
        f"{to.home}/.claude.json",
        ("projects", to.workspace, "mcpServers", SERVER),
        f"claude mcp remove --scope local {SERVER}",
    )


def _read_rule(glob: str) -> str:
    """A glob of a policy as Claude Code's rule; one without a folder counts at any depth, as in gitignore files."""
    return f"Read({glob if '/' in glob.rstrip('/') else f'**/{glob}'})"


# --- Codex CLI ---------------------------------------------------------------------------


def _codex(to: Target) -> tuple[ClientFile, ...]:
    server = {
        "command": to.command[0],
        "args": list(to.command[1:]),
        "required": True,
        "default_tools_approval_mode": "approve",
    }
    return (
        ClientFile(
            f"{to.workspace}/.codex/config.toml",
            "toml",
            (
                Setting(("sandbox_mode",), "read-only"),
                Setting(("features", "shell_tool"), value=False),
                Setting(("features", "view_image"), value=False),
                Setting(("mcp_servers", SERVER), server),
            ),
            "the project's: other projects keep their shell",
            ("mcp_servers",),
        ),
        ClientFile(
            f"{to.codex_home or f'{to.home}/.codex'}/config.toml",
            "toml",
            (Setting(("projects", to.workspace, "trust_level"), "trusted", decided=True),),
            "yours: without this trust Codex ignores the project's file, and keeps its shell",
        ),
    )


# --- Gemini CLI --------------------------------------------------------------------------


def _gemini(to: Target) -> tuple[ClientFile, ...]:
    return (
        ClientFile(
            f"{to.workspace}/.gemini/settings.json",
            "json",
            (
                Setting(("mcpServers", SERVER), {"command": to.command[0], "args": list(to.command[1:])}),
                Setting(("tools", "core"), []),
                Setting(("tools", "allowed"), [f"mcp_{SERVER}_*"], adds=True),
            ),
            "the project's: other projects keep their tools",
            ("mcpServers",),
        ),
        ClientFile(
            f"{to.home}/.gemini/trustedFolders.json",
            "json",
            (Setting((to.workspace,), "TRUST_FOLDER", decided=True),),
            "yours: without this trust Gemini CLI ignores the project's file",
        ),
    )


# --- opencode, Cursor, VS Code -----------------------------------------------------------


def _opencode(to: Target) -> tuple[ClientFile, ...]:
    server = {"type": "local", "command": list(to.command), "enabled": True}
    return (
        ClientFile(
            f"{to.workspace}/opencode.json",
            "json",
            (
                Setting(("mcp", SERVER), server),
                Setting(("tools", "*"), value=False),
                Setting(("tools", f"{SERVER}_*"), value=True),
            ),
            "the project's: other projects keep their tools",
            ("mcp",),
        ),
    )


def _cursor(to: Target) -> tuple[ClientFile, ...]:
    server = {"command": to.command[0], "args": list(to.command[1:])}
    return (
        ClientFile(
            f"{to.workspace}/.cursor/mcp.json",
            "json",
            (Setting(("mcpServers", SERVER), server),),
            "the project's: other projects do without this server",
            ("mcpServers",),
        ),
    )


def _vscode(to: Target) -> tuple[ClientFile, ...]:
    server = {"type": "stdio", "command": to.command[0], "args": list(to.command[1:])}
    return (
        ClientFile(
            f"{to.workspace}/.vscode/mcp.json",
            "json",
            (Setting(("servers", SERVER), server),),
            "the project's: other projects do without this server",
            ("servers",),
        ),
    )


_EDITORS_TOOLS = (
    "its own file tools and its terminal: no settings file turns them off, so switch them off in its list of tools",
    "files that you attach to a chat",
    "these settings were not tried out with the program",
)

TEMPLATES: Final[Mapping[Client, Template]] = {
    "claude": Template(
        "Claude Code",
        "claude",
        "2.1.316",
        _claude,
        "all that read or change files or run commands, also in subagents; `@file` adds nothing to prompts",
        ("images that you paste", "its own memory files: CLAUDE.md itself is read", "other MCP servers, web tools"),
        "claude",
        instead=_claude_instead,
        excludes=("disabledMcpjsonServers",),
    ),
    "codex": Template(
        "Codex CLI",
        "codex",
        "0.169.0",
        _codex,
        "its shell and view_image",
        (
            "its apply_patch, for models that it knows: the read-only sandbox refuses it, unless you say yes to it",
            "AGENTS.md itself is read",
            "images given with `-i`",
            "other MCP servers, web search",
        ),
        "codex",
    ),
    "gemini": Template(
        "Gemini CLI",
        "gemini",
        "0.61.0",
        _gemini,
        "all of them",
        ("files that GEMINI.md names with `@`", "other MCP servers that `tools.allowed` lets through"),
        "gemini",
        excludes=("mcp", "excluded"),
    ),
    "opencode": Template(
        "opencode",
        "opencode",
        "1.18.33",
        _opencode,
        "all of them",
        ("files given with `-f` or attached to a prompt", "AGENTS.md itself is read"),
        "opencode",
        beside=("opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
        switches=("tools",),
    ),
    "cursor": Template("Cursor", "cursor-agent", "", _cursor, "none", _EDITORS_TOOLS, "cursor ."),
    "vscode": Template("VS Code", "code", "", _vscode, "none", _EDITORS_TOOLS, "code ."),
}
