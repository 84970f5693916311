"""What a run may use besides its time."""

from __future__ import annotations

import anyio

from orchestrator.agents.connection import AgentFailed
from orchestrator.core.errors import plural


class AgentOverBudget(
    AgentFailed,
    code="agent_over_budget",
    hint="What it had changed stays, and is in the journal. Give it more: --max-calls, --max-tokens.",
):
    """The agent used more than it was given."""


class Budget:
    """Tool calls that an agent tells of, and the tokens of its context, as it counts them. None: no limit."""

    def __init__(self, calls: int | None, tokens: int | None) -> None:
        self._calls, self._tokens = calls, tokens
        self.tokens: int | None = None
        """The last that it told."""
        self.spent = anyio.Event()
        self.failure: AgentOverBudget | None = None

    def used_calls(self, count: int) -> None:
        """So many until now."""
        if self._calls is not None and count > self._calls:
            self._fail(f"the agent made more than {plural(self._calls, 'tool call')}")

    def used_tokens(self, count: int) -> None:
        """So many, it says."""
        self.tokens = count
        if self._tokens is not None and count > self._tokens:
            self._fail(f"the agent used {count} tokens, more than {self._tokens}")

    def _fail(self, message: str) -> None:
        self.failure = self.failure or AgentOverBudget(message)
        self.spent.set()
