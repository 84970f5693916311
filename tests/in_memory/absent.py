"""Parts that the small engines of the tests do without."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.rules import Checks
from orchestrator.ports.reviewers import CheckReport
from orchestrator.ports.summaries import PluginSummary


class NoCache:
    """Forgets at once."""

    def get(self, name: str) -> bytes | None:
        return None

    def put(self, name: str, data: bytes) -> None:
        return

    def __len__(self) -> int:
        return 0

    held_bytes = 0

    def clear(self) -> None:
        return


class NoSummaries:
    """Without plugins."""

    summarizers: tuple[str, ...] = ()

    async def summarize(self, path: WorkspacePath, text: str, max_tokens: int) -> PluginSummary:
        return PluginSummary()


class NoChecks:
    """Lets everything pass."""

    async def check(
        self, checks: Checks, path: WorkspacePath, data: bytes, others: Sequence[WorkspacePath]
    ) -> CheckReport:
        return CheckReport(passed=True, message="")
