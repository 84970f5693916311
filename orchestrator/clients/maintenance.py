"""What people have done to the journal itself, as methods of the Python client."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

from orchestrator.api import maintenance as r
from orchestrator.api import parameters as p
from orchestrator.api.results import Result

R = TypeVar("R", bound=Result)


class MaintenanceCalls:
    """Backing up, archiving, collecting."""

    @abstractmethod
    async def _call(self, result: type[R], params: p.Params) -> R: ...

    async def journal_backup(self, directory: str) -> r.BackupAnswer:
        """Copy the whole journal into a folder while it is in use, and verify the copy."""
        return await self._call(r.BackupAnswer, r.JournalBackup(directory=directory))

    async def journal_archive(self, before: str | int, *, approver: str | None = None) -> r.ArchiveAnswer:
        """Move old events from the database into compressed, sealed files; they stay readable."""
        return await self._call(r.ArchiveAnswer, r.JournalArchive(before=before, approver=approver))

    async def journal_unarchive(self, file: str, *, approver: str | None = None) -> r.ArchiveAnswer:
        """Put the newest archived file's events back into the database."""
        return await self._call(r.ArchiveAnswer, r.JournalUnarchive(file=file, approver=approver))

    async def journal_collect(
        self, *, approver: str | None = None, grace_days: int = 30, dry_run: bool = False
    ) -> r.CollectAnswer:
        """Remove kept contents that no event outside the archive needs and none named for a while."""
        params = r.JournalCollect(approver=approver, grace_days=grace_days, dry_run=dry_run)
        return await self._call(r.CollectAnswer, params)
