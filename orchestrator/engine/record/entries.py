"""Events as a caller may see them: what only the daemon may know is left out, and hashes of what they may not read."""

from __future__ import annotations

from orchestrator.api import results as r
from orchestrator.core.change import PathChange
from orchestrator.core.events.base import Event, Recorded
from orchestrator.core.events.catalog import outcome_of, tag_of
from orchestrator.core.events.conflicts import ApprovalRequested
from orchestrator.core.events.files import (
    ChangeApplied,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    FilesFound,
)
from orchestrator.core.events.visibility import visible
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.engine.caller import Caller
from orchestrator.engine.services import Services


class Entries:
    """Makes the entries of one answer."""

    def __init__(self, services: Services, caller: Caller) -> None:
        self._s, self._caller = services, caller
        self._readable: dict[str, bool] = {}

    async def entry(self, item: Recorded, *, path: WorkspacePath | None = None) -> r.JournalEntry:
        """One event; with `path` a scan's list is cut down to it."""
        event, call = item.event, item.origin.call
        if path is not None and isinstance(event, FilesFound):
            event = FilesFound(entries=tuple(found for found in event.entries if found.path == path))
        about = getattr(event, "provenance", event)
        approval = item.seq if isinstance(event, ApprovalRequested) else getattr(about, "approval", None)
        return r.JournalEntry(
            seq=show(item.seq),
            at=item.at,
            kind=tag_of(event),
            stream=item.stream,
            agent=item.agent,
            session=item.session,
            event=visible(event, item.stream, self.readable),
            owner=item.origin.owner,
            outcome=outcome_of(event),
            operation=(call.operation if call is not None else getattr(about, "operation", None)) or None,
            arguments=(call.arguments or None) if call is not None else None,
            took_us=call.took_us if call is not None else None,
            tokens=getattr(event, "tokens", None),
            approval=show(approval) if isinstance(approval, int) else None,
            cause=show(item.origin.cause) if item.origin.cause is not None else None,
            paths=await self._paths(item.seq, event),
        )

    def readable(self, path: WorkspacePath) -> bool:
        """Whether this caller may be shown hashes of a path."""
        known = self._readable.get(path)
        if known is None:
            known = self._readable[path] = self._s.readable(self._caller, path)
        return known

    async def _paths(self, seq: Seq, event: Event) -> tuple[r.EntryPath, ...]:
        """The files that an event left otherwise than they were."""
        match event:
            case ChangeApplied(paths=paths):
                return tuple([self._changed(seq, change) for change in paths])
            case ExternalFileChanged() | ExternalFileCreated() | ExternalFileRemoved():
                return (await self._external(seq, event),)
            case _:
                return ()

    def _changed(self, seq: Seq, change: PathChange) -> r.EntryPath:
        shown = self.readable(change.path)
        return r.EntryPath(
            path=change.path,
            before=show(change.previous) if change.previous is not None else None,
            after=show(seq) if change.after is not None or change.directory else None,
            before_hash=change.before if shown else None,
            after_hash=change.after if shown else None,
            moved_from=change.moved_from,
        )

    async def _external(
        self, seq: Seq, event: ExternalFileChanged | ExternalFileCreated | ExternalFileRemoved
    ) -> r.EntryPath:
        created, removed = isinstance(event, ExternalFileCreated), isinstance(event, ExternalFileRemoved)
        earlier = () if created else await self._s.journal.versions(event.path, limit=1, before=seq)
        shown = self.readable(event.path)
        return r.EntryPath(
            path=event.path,
            before=show(earlier[0].seq) if earlier else None,
            after=None if removed else show(seq),
            before_hash=getattr(event, "before", None) if shown else None,
            after_hash=getattr(event, "after", None) if shown else None,
            moved_from=getattr(event, "moved_from", None),
        )
