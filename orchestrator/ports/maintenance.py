"""Backups, archives and collection of a journal."""

from __future__ import annotations

from typing import Annotated, Protocol

import msgspec

from orchestrator.api.journal_operations import BackupAnswer
from orchestrator.core.events.base import Origin
from orchestrator.core.ids import Digest, Seq


class ArchivedFile(msgspec.Struct, frozen=True):
    """A file that holds events first to last, and nothing else does."""

    first: Seq
    last: Seq
    file: Annotated[str, msgspec.Meta(pattern=r"\A\d{12,}-\d{12,}\.segment\.zst\Z")]  # a name in the archive's folder
    size: int


class Collected(msgspec.Struct, frozen=True):
    """Contents that nothing needs: removed, or to be."""

    digests: tuple[Digest, ...]
    size: int  # of the plain contents
    young: int = 0  # contents that nothing needs, but for too short a time


class JournalMaintenance(Protocol):
    """What people have done to the journal itself; one such act at a time, while appends go on."""

    @property
    def archived(self) -> tuple[ArchivedFile, ...]:
        """In the journal's order; nothing between them is left out."""

    async def archive(self, last: Seq, origin: Origin) -> tuple[ArchivedFile, ...]:
        """Move every event up to `last` that is not archived yet into files.

        Each file is whole and read back before its events leave the database, in the
        transaction of its SegmentArchived. Raises DiskFull, JournalCorrupt, WritesStopped.
        """

    async def unarchive(self, file: str, origin: Origin) -> ArchivedFile:
        """Put the newest file's events back. Raises VersionUnknown, ArchiveMissing, JournalCorrupt."""

    async def collect(
        self, *, needed: frozenset[Digest], as_of: Seq, before_ms: int, origin: Origin, dry_run: bool
    ) -> Collected:
        """Remove contents that nothing needs and that no event named since `before_ms`.

        `needed` is what waited at position `as_of`.
        """

    async def backup(self, directory: str) -> BackupAnswer:
        """Copy the journal into a new or empty folder, and check the copy.

        Raises BackupRefused, DiskFull, JournalCorrupt; then nothing of it is left.
        """
