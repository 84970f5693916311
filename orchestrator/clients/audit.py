"""Taking the journal out, as a method of the Python client."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

from orchestrator.api import audit as r
from orchestrator.api.audit import Format, JournalExport
from orchestrator.api.parameters import Params
from orchestrator.api.results import Result
from orchestrator.core.events.outcomes import Outcome

R = TypeVar("R", bound=Result)


class AuditCalls:
    """Written out so that editors and type checkers know it; a test holds it equal to the catalogue."""

    @abstractmethod
    async def _call(self, result: type[R], params: Params) -> R: ...

    async def journal_export(
        self,
        path: str | None = None,
        *,
        agent: str | None = None,
        session: str | None = None,
        task: str | int | None = None,
        kind: str | None = None,
        since: str | int | None = None,
        until: str | int | None = None,
        outcome: Outcome | None = None,
        format: Format = "jsonl",
        after: str | int = "@0",
        limit: int = 500,
    ) -> r.ExportPage:
        """Events of the journal as JSON Lines, CSV or OCSF, oldest first, page by page."""
        params = JournalExport(
            path=path,
            agent=agent,
            session=session,
            task=task,
            kind=kind,
            since=since,
            until=until,
            outcome=outcome,
            format=format,
            after=after,
            limit=limit,
        )
        return await self._call(r.ExportPage, params)
