"""What a run needs from around it: the daemon, which decides and records, and a person's screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from orchestrator.agents import wire
from orchestrator.agents.permissions import PolicyAction, Verdict


class Edit(NamedTuple):
    """Of a file in the workspace; without `old` its whole content."""

    path: str
    old: str | None
    new: str


class Gate(Protocol):
    """The daemon, for this agent. Its methods raise OrchestratorError."""

    async def verdict(self, action: PolicyAction, path: str) -> Verdict:
        """What policy says."""

    async def read(self, path: str) -> str:
        """The whole text of a file."""

    async def write(self, path: str, content: str) -> None:
        """Make this a file's content; returns when it is."""

    async def ask(self, call: wire.ToolCall, paths: Sequence[str], edits: Sequence[Edit], why: str) -> str | None:
        """Put a call into the queue of what waits for a person; its number there. None: nobody could say yes."""

    async def granted(self, approval: str) -> bool:
        """A person's answer, however long that takes; a request that expires is a no."""

    async def withdraw(self, call: wire.ToolCall) -> None:
        """Nobody need answer any more; nothing happens where somebody has."""

    async def begun(self, call: wire.ToolCall, edits: Sequence[Edit]) -> None:
        """The agent is about to make these edits, to delete or move the files that it names, or to run a command."""

    async def ended(self, call: wire.ToolCall, edits: Sequence[Edit]) -> None:
        """A call is over: what it has changed is recorded."""


class Screen(Protocol):
    """Where a person follows the run, and answers."""

    def text(self, text: str, *, thought: bool) -> None:
        """A part of what the agent says."""

    def call(self, call: wire.ToolCall, *, edits: bool) -> None:
        """A tool call that has begun or ended, with its edits if they are new."""

    def plan(self, entries: Sequence[wire.PlanEntry]) -> None:
        """What the agent is going to do."""

    def note(self, text: str) -> None:
        """What we have to say."""

    async def ask(self, call: wire.ToolCall, options: Sequence[wire.Option], why: str) -> str | None:
        """The id of the option that a person chose; None where there is no person."""
