"""tree_at and content_at: the tracked files at any point."""

from __future__ import annotations

from contextlib import suppress

from orchestrator.api import history as t
from orchestrator.api import results as r
from orchestrator.core.errors import JournalCorrupt, ParameterInvalid
from orchestrator.core.events.files import DirectoryListed
from orchestrator.core.ids import Seq, show
from orchestrator.core.paths import ROOT
from orchestrator.core.projections.versions import VersionRow
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.services import Services


class TimeTravel:
    """Answers with whole states of the workspace; what policy keeps from the caller is named, not given."""

    def __init__(self, services: Services) -> None:
        self._s = services

    async def tree_at(self, caller: Caller, call: Call, params: t.TreeAt) -> t.Tree:
        at, after = self._where(params)
        await self._s.past.wait_for_changes(at)
        rows = await self._s.journal.tree_at(at, after=after, limit=params.limit + 1)
        more, rows = len(rows) > params.limit, rows[: params.limit]
        lacking = await self._s.journal.lacking([row.digest for row in rows if row.digest is not None])
        entries: list[t.TreeEntry] = []
        unlisted = held = 0
        for number, row in enumerate(rows, 1):
            if not self._s.permissions.listable(caller, row.path):
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
        readable, data = self._s.permissions.readable(caller, row.path), None
        if not readable:
            left_out = "policy"
        small = row.digest is not None and row.size is not None and row.size <= t.SMALL_BYTES
        if with_content and left_out is None and small and row.digest is not None:
            with suppress(JournalCorrupt):
                data = await self._s.contents.get(row.digest)
        return t.TreeEntry(
            path=row.path,
            version_id=show(row.seq),
            digest=row.digest if readable else None,
            mode=None if row.mode is None else f"{row.mode:04o}",
            size=row.size if readable else None,
            left_out=left_out,
            data=data,
        )

    async def content_at(self, caller: Caller, call: Call, params: t.ContentAt) -> t.Content:
        path = self._s.paths.file(params.path)
        self._s.permissions.permit_now(caller, "read", path)
        at = self._s.past.position(params.at, parameter="at", least=1)
        async with self._s.locks.shared(path):
            row = await self._s.past.at(path, at)
        digest, data = await self._s.past.content(row)
        if params.offset > len(data):
            raise ParameterInvalid("offset", f"{params.offset} is after the end, {len(data)}")
        if params.offset == 0:
            await self._s.notes.note_metadata(caller, call, path)
        end = min(params.offset + params.limit, len(data))
        return t.Content(
            path=path,
            version_id=show(row.seq),
            digest=digest,
            size=len(data),
            offset=params.offset,
            data=data[params.offset : end],
            next=end if end < len(data) else None,
        )
