"""changes_since, tree_at and content_at: the tracked files at any point, and what happened to them after one."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

import anyio.lowlevel
import msgspec
from anyio import to_thread

from orchestrator.api import history as t
from orchestrator.api import results as r
from orchestrator.core.change import PathChange
from orchestrator.core.content import LargeContent
from orchestrator.core.errors import ApprovalRequired, Denied, JournalCorrupt, ParameterInvalid, VersionNotKept
from orchestrator.core.events.base import Event, Recorded, author_of
from orchestrator.core.events.codec import CHANGE_TAGS
from orchestrator.core.events.files import (
    ChangeApplied,
    DirectoryListed,
    ExternalFileCreated,
    ExternalFileRemoved,
    path_changes,
)
from orchestrator.core.ids import Seq, show
from orchestrator.core.paths import ROOT
from orchestrator.core.projections.versions import VersionRow
from orchestrator.core.text.answer_space import json_size, size
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.reads.content_pieces import ContentPieces
from orchestrator.engine.services import Services
from orchestrator.ports.journal import EventFilter

BATCH = 200

NEXT_BYTES = 600


class TimeTravel:
    """Answers with whole states of the workspace; what policy keeps from the caller is named, not given."""

    def __init__(self, services: Services) -> None:
        self._s, self._pieces = services, ContentPieces(services.journal.blocks)

    async def tree_at(self, caller: Caller, call: Call, params: t.TreeAt) -> t.Tree:
        at, after = self._where(params)
        await self._s.past.wait_for_changes(at)
        rows = await self._s.journal.tree_at(at, after=after, limit=params.limit + 1)
        more, rows = len(rows) > params.limit, rows[: params.limit]
        lacking = await self._s.journal.lacking([row.digest for row in rows if row.digest is not None])
        entries: list[t.TreeEntry] = []
        unlisted = held = 0
        for number, row in enumerate(rows, 1):
            if not self._s.access.lists(caller, row.path):
                unlisted += 1
                continue
            kept = row.digest is not None and row.digest not in lacking
            entries.append(await self._entry(caller, row, kept=kept, with_content=params.contents))
            held += len(entries[-1].data or b"")
            if held > t.CHUNK_BYTES:
                more, rows = more or number < len(rows), rows[:number]
                break
        event = DirectoryListed(operation=call.operation.name, path=ROOT, entries=len(entries))
        await self._s.notes.note_shown(caller, call, event)
        return t.Tree(
            at=show(at),
            entries=tuple(entries),
            unlisted=unlisted,
            cursor=f"{show(at)}:{rows[-1].path}" if more else None,
            warnings=self._s.past.within_first_scan(at),
        )

    def _where(self, params: t.TreeAt) -> tuple[Seq, str]:
        if params.cursor is None:
            now = params.at == "current"
            return self._s.journal.head if now else self._s.past.position(params.at, parameter="at", least=1), ""
        raw, colon, after = params.cursor.partition(":")
        if not colon:
            raise ParameterInvalid("cursor", "it is not the cursor of an earlier answer")
        return self._s.past.position(raw, parameter="cursor", least=1), after

    async def _entry(self, caller: Caller, row: VersionRow, *, kept: bool, with_content: bool) -> t.TreeEntry:
        """A file of the tree; a content that can't be read is left to `content_at`, which says why."""
        left_out: r.LeftOut | None = None if kept else "not_kept"
        access, data = self._s.access.content_of_many(caller, row.path), None
        if access is None:
            left_out = "policy"
        small = row.digest is not None and row.size is not None and row.size <= t.SMALL_BYTES
        if with_content and left_out is None and small and access is not None:
            with suppress(JournalCorrupt, VersionNotKept, Denied, ApprovalRequired):
                _, data = await self._s.past.content(access, row)
        return t.TreeEntry(
            path=row.path,
            version_id=show(row.seq),
            digest=row.digest if access is not None else None,
            mode=None if row.mode is None else f"{row.mode:04o}",
            size=row.size if access is not None else None,
            left_out=left_out,
            data=data,
        )

    async def content_at(self, caller: Caller, call: Call, params: t.ContentAt) -> t.Content:
        path = self._s.paths.file(params.path)
        access = self._s.access.content(caller, call, path)
        at = self._s.past.position(params.at, parameter="at", least=1)
        async with self._s.locks.shared(path):
            row = await self._s.past.at(path, at)
        digest, content = await self._s.past.content_of_any_size(access, row)
        total = len(content)
        if params.offset > total:
            raise ParameterInvalid("offset", f"{params.offset} is after the end, {total}")
        if params.offset == 0:
            await self._s.notes.note_metadata(caller, call, path)
        end = min(params.offset + params.limit, total)
        if isinstance(content, LargeContent):
            data = await to_thread.run_sync(self._pieces.read, content, params.offset, end)
        else:
            data = content[params.offset : end]
        return t.Content(
            path=path,
            version_id=show(row.seq),
            digest=digest,
            size=total,
            offset=params.offset,
            data=data,
            next=end if end < total else None,
        )

    async def changes_since(self, caller: Caller, call: Call, params: t.ChangesSince) -> t.Changes:
        head = self._s.journal.head
        after = self._s.past.position(params.version, parameter="version")
        globs = await to_thread.run_sync(self._s.paths.globs, params.globs)
        changes: list[t.PathChanged] = []
        left_out, more, at, skip = 0, False, after, params.skip
        room = call.room.framed().less(NEXT_BYTES)
        wanted = EventFilter(tags=CHANGE_TAGS, after=after, until=head)
        async for recorded in self._s.journal.events(wanted, batch=min(BATCH, params.limit + 1)):
            await anyio.lowlevel.checkpoint()  # a batch takes its time where globs are long
            more = len(changes) >= params.limit
            for number, change in enumerate(() if more else path_changes(recorded.event)):
                if number < skip or change.directory or (globs is not None and not globs.match(change.path)):
                    continue
                if not self._s.access.lists(caller, change.path):
                    left_out += self._s.access.may_be_counted(caller, change.path)
                    continue
                row = self._row(caller, recorded, change)
                cost = json_size(row)
                if changes and cost > room.bytes:
                    more, skip = True, number
                    break
                room = room.less(cost)
                changes.append(row)
            if more:
                break
            at, skip = recorded.seq, 0
        event = DirectoryListed(operation=call.operation.name, path=ROOT, globs=params.globs, entries=len(changes))
        await self._s.notes.note_shown(caller, call, event)
        return t.Changes(
            changes=tuple(changes),
            head=show(at if more else head),
            more=more,
            next=_next(params, show(at), skip) if more else None,
            left_out=left_out,
        )

    def _row(self, caller: Caller, recorded: Recorded, change: PathChange) -> t.PathChanged:
        event = recorded.event
        ours = event if isinstance(event, ChangeApplied) else None
        why = ours.provenance if ours else None
        counts = change.counts(change.before) if self._s.permissions.readable(caller, change.path) else None
        source = change.moved_from
        return t.PathChanged(
            version=show(recorded.seq),
            at=recorded.at,
            path=change.path,
            kind=_kind(event, change),
            by="change" if ours else "external",
            operation=why.operation if why else None,
            agent=author_of(recorded),
            lease_holder=getattr(event, "lease_holder", None),
            session=recorded.session,
            task=show(why.task) if why and why.task else None,
            change=show(ours.change) if ours else None,
            moved_from=source if source is not None and self._s.access.lists(caller, source) else None,
            reverts=tuple(map(show, why.reverts)) if why else (),
            added=counts[0] if counts else None,
            removed=counts[1] if counts else None,
        )


def _kind(event: Event, change: PathChange) -> Literal["created", "changed", "deleted", "moved"]:
    ours = isinstance(event, ChangeApplied)  # of others' changes a missing hash means that it is not known
    if change.moved_from is not None:
        return "moved"
    if isinstance(event, ExternalFileRemoved) or (ours and change.after is None):
        return "deleted"
    if isinstance(event, ExternalFileCreated) or (ours and change.before is None):
        return "created"
    return "changed"


def _next(params: t.ChangesSince, version: str, skip: int) -> str:
    """The call that goes on."""
    start = f'version="{version}"' + (f", skip={skip}" if skip else "")
    globs = f", globs={msgspec.json.encode(params.globs).decode()}" if params.globs else ""
    limit = f", limit={params.limit}" if params.limit != t.CHANGES_LIMIT else ""
    called = f"changes_since({start}{globs}{limit})"
    return called if size(called) <= NEXT_BYTES else f"the same call with {start}"
