"""journal_query and journal_export: who did what, in pages, as far as the caller may see it."""

from __future__ import annotations

from functools import cache, partial

import msgspec

from orchestrator.api import journal_operations as k
from orchestrator.core.change import PathChange
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.catalog import outcome_of, tag_of
from orchestrator.core.events.conflicts import ApprovalRequested
from orchestrator.core.events.files import (
    ChangeApplied,
    ExternalFileCreated,
    ExternalFileRemoved,
    FilesFound,
    path_changes,
)
from orchestrator.core.events.visibility import visible
from orchestrator.core.ids import WorkspacePath, parse_seq, show
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.path_resolution import Paths
from orchestrator.engine.permissions import Permissions
from orchestrator.engine.record.event_search import EventSearch, newest, oldest
from orchestrator.ports.journal import Journal

PAGE_CHARACTERS = 2 * 1024 * 1024
"""A page that has grown past this ends, however few its events are; an answer has to fit into a frame."""

_ENCODER = msgspec.json.Encoder()


class Auditor:
    """Answers from the journal, never from the disk."""

    def __init__(self, journal: Journal, permissions: Permissions, paths: Paths) -> None:
        self._journal, self._permissions = journal, permissions
        self._finder = EventSearch(journal, paths)

    async def journal_query(self, caller: Caller, call: Call, params: k.JournalQuery) -> k.JournalPage:
        before = int(parse_seq(params.cursor, parameter="cursor")) if params.cursor else None
        wanted = await self._finder.wanted(caller, params)
        if wanted is None:
            return k.JournalPage(entries=())
        found = await newest(self._journal, wanted, before=before, limit=params.limit + 1)
        page = found.events[: params.limit]
        entries = Entries(self._journal, self._permissions, caller)
        answer = tuple([await entries.entry(item, path=wanted.path) for item in page])
        if len(found.events) > params.limit:
            return k.JournalPage(entries=answer, cursor=answer[-1].seq)
        if found.last is None:
            return k.JournalPage(entries=answer)
        return k.JournalPage(entries=answer, cursor=show(found.last), partial=True)

    async def journal_export(self, caller: Caller, call: Call, params: k.JournalExport) -> k.ExportPage:
        after = parse_seq(params.after, parameter="after")
        wanted = await self._finder.wanted(caller, params)
        lines: list[str] = []
        size, last = 0, None
        if wanted is not None:
            found = await oldest(self._journal, wanted, after=after, limit=params.limit)
            entries, last = Entries(self._journal, self._permissions, caller), found.last
            for item in found.events:
                entry = await entries.entry(item, path=wanted.path)
                lines.append(_ENCODER.encode(entry).decode() + "\n")
                size += len(lines[-1])
                if size > PAGE_CHARACTERS:
                    last = item.seq
                    break
        return k.ExportPage(
            text="".join(lines),
            events=len(lines),
            after=show(self._journal.head if last is None else last),
            more=last is not None,
        )


class Entries:
    """Makes the entries of one answer, without hashes of what the caller may not read."""

    def __init__(self, journal: Journal, permissions: Permissions, caller: Caller) -> None:
        self._journal = journal
        self._readable = cache(partial(permissions.readable, caller))

    async def entry(self, item: Recorded, *, path: WorkspacePath | None = None) -> k.JournalEntry:
        """One event; with `path` a scan's list is cut down to it."""
        event, call = item.event, item.origin.call
        if path is not None and isinstance(event, FilesFound):
            event = FilesFound(entries=tuple(found for found in event.entries if found.path == path))
        about = getattr(event, "provenance", event)
        approval = item.seq if isinstance(event, ApprovalRequested) else getattr(about, "approval", None)
        return k.JournalEntry(
            seq=show(item.seq),
            at=item.at,
            kind=tag_of(event),
            stream=item.stream,
            agent=item.agent,
            session=item.session,
            event=visible(event, item.stream, self._readable),
            owner=item.origin.owner,
            outcome=outcome_of(event),
            operation=(call.operation if call is not None else getattr(about, "operation", None)) or None,
            arguments=(call.arguments or None) if call is not None else None,
            took_us=call.took_us if call is not None else None,
            tokens=getattr(event, "tokens", None),
            approval=show(approval) if isinstance(approval, int) else None,
            cause=show(item.origin.cause) if item.origin.cause is not None else None,
            paths=tuple([await self._path(item, change) for change in path_changes(event)]),
        )

    async def _path(self, item: Recorded, change: PathChange) -> k.EntryPath:
        """What an event did to a path: the versions before and after."""
        event, before = item.event, change.previous
        if isinstance(event, ChangeApplied):
            there = change.after is not None or change.directory
        else:
            there = not isinstance(event, ExternalFileRemoved)
            if not isinstance(event, ExternalFileCreated):
                rows = await self._journal.versions(change.path, limit=1, before=item.seq)
                before = rows[0].seq if rows else None
        readable = self._readable(change.path)
        return k.EntryPath(
            path=change.path,
            before=show(before) if before is not None else None,
            after=show(item.seq) if there else None,
            before_hash=change.before if readable else None,
            after_hash=change.after if readable else None,
            moved_from=change.moved_from,
        )
