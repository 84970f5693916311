"""Summaries of texts by programs of the operator."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from orchestrator.core.ids import WorkspacePath


class PluginSummary(NamedTuple):
    """What a plugin says of a text; or, without a text, why none did."""

    by: str = ""  # its name and version
    text: str = ""
    failures: tuple[str, ...] = ()


class SummaryPlugins(Protocol):
    """The plugins that summarize texts. Raises nothing, whatever they do."""

    @property
    def summarizers(self) -> tuple[str, ...]:
        """Those that are asked, by name and version, in the operator's order."""

    async def summarize(self, path: WorkspacePath, text: str, max_tokens: int) -> PluginSummary:
        """The first summary that one has, within the time that the operator gives each; nothing waits for a thread."""
