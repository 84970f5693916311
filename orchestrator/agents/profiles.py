"""For each agent: how it is started, and what is advertised to it. The versions are in docs/launching.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Profile(NamedTuple):
    """One agent. `delegates_files`: it reads and writes files through us, and leaves the disk alone.

    Where that is not so, `fs/*` is not advertised: an agent that writes the disk itself and sends the same
    content besides would have its edit applied twice.
    """

    title: str
    command: tuple[str, ...]
    delegates_files: bool = False
    drops: tuple[str, ...] = ()  # variables that it is not to have
    authentication: Mapping[str, str] = {}  # by the variable that holds its key: the method to name


PROFILES: Final[Mapping[str, Profile]] = {
    # With this variable the adapter asks Claude Code to skip its permissions, which that refuses as root.
    "claude": Profile("Claude Code", ("claude-agent-acp",), drops=("IS_SANDBOX",)),
    "codex": Profile("Codex CLI", ("codex-acp",)),
    "gemini": Profile(
        "Gemini CLI", ("gemini", "--acp"), delegates_files=True, authentication={"GEMINI_API_KEY": "gemini-api-key"}
    ),
    "opencode": Profile("opencode", ("opencode", "acp")),
}


def environment(profile: Profile, given: Mapping[str, str]) -> dict[str, str]:
    """What of a person's environment the agent gets: all but our own variables and those that do it harm."""
    dropped = ("ORCHESTRATOR_", *profile.drops)
    return {name: value for name, value in given.items() if not name.startswith(dropped)}
