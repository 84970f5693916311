"""file_history and get_diff: looks at the past."""

from __future__ import annotations

from functools import partial
from typing import Literal

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.content import SeenLines
from orchestrator.core.errors import (
    FileNotFound,
    ParameterInvalid,
)
from orchestrator.core.events.files import ChangeIntended, DiffShown, ExternalBatchOpened
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.positions import parse_seq
from orchestrator.core.projections.file_rows import FileEntry
from orchestrator.core.projections.versions import VersionRow
from orchestrator.core.text.answer_space import estimate_tokens, json_size
from orchestrator.core.text.encoding import EMPTY, Document
from orchestrator.core.text.unified_diff import UnifiedDiff, fitting_diff
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.approver import approver_of
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.batch_import import BatchImporter
from orchestrator.engine.external.batches import members
from orchestrator.engine.external.observer import NO_VERSION, CurrentFile, Observer, required, warnings
from orchestrator.engine.limits import TOKEN_BYTES
from orchestrator.engine.paths import quoted, within_call
from orchestrator.engine.reads.tree_diffs import PAGE_TOKENS, TreeDiffs
from orchestrator.engine.services import Services

MOST_REVERTS = 8
"""Undone changes that a version names one by one."""


class Historian:
    """Answers from the journal; the present is brought up to date with the disk first."""

    def __init__(self, services: Services, observer: Observer, importer: BatchImporter) -> None:
        self._s, self._observer = services, observer
        self._trees = TreeDiffs(services, observer, importer)

    async def file_history(self, caller: Caller, call: Call, params: p.FileHistory) -> r.History:
        path = self._s.paths.file(params.path)
        access = await self._s.access.names(caller, call, path)
        before = int(parse_seq(params.cursor, parameter="cursor")) if params.cursor else None
        async with self._s.locks.shared(path):
            present = await self._observer.refresh_for_display(access)
        rows = await self._s.journal.versions(path, limit=params.limit + 1, before=before)
        if not rows and before is None:
            if present.stat is not None and present.stat.kind != "file":
                required(present)
            raise FileNotFound(path, "the journal knows no file of this name")
        shown = await self._s.past.which_readable(caller, rows)
        readable = self._s.permissions.readable(caller, path)
        versions = [
            await self._version(caller, row, readable=readable and names_readable)
            for row, names_readable in zip(rows[: params.limit], shown, strict=False)
        ]
        room = call.room.framed(path)
        versions = versions[: room.first((json_size(version), 1) for version in versions)]
        await self._s.notes.note_metadata(caller, call, path)
        return r.History(
            path=path,
            versions=tuple(versions),
            cursor=versions[-1].version_id if len(rows) > len(versions) else None,
            warnings=warnings(present),
        )

    async def _version(self, caller: Caller, row: VersionRow, *, readable: bool) -> r.FileVersion:
        intent = await self._s.notes.event(row.change, ChangeIntended)
        reverts, more_reverts = await self._named(intent.provenance.reverts if intent is not None else ())
        # contents are kept by their hash, whatever their paths: that must not show
        source, listable = row.moved_from, self._s.access.lists
        kept = row.digest is None or not readable or await self._s.journal.has_blob(row.digest)
        return r.FileVersion(
            version_id=show(row.seq),
            at=row.at,
            kind=row.kind,
            operation=row.operation or None,
            agent=row.author,
            lease_holder=await self._s.notes.lease_holder(row),
            session=row.session,
            task=show(row.task) if row.task else None,
            size=row.size if readable else None,
            hash=row.digest if readable else None,
            approver=await approver_of(self._s.state.pending, self._s.notes, row.approval)
            or (intent.provenance.accepted_by if intent is not None else None),
            reverts=tuple(map(show, reverts)),
            more_reverts=more_reverts,
            change=show(row.change) if row.change else None,
            reason=(intent.provenance.reason or None) if intent is not None else None,
            moved_from=source if source is not None and listable(caller, source) else None,
            not_kept=not kept or (row.present and row.digest is None),
            removed=not row.present,
        )

    async def _named(self, reverts: tuple[Seq, ...]) -> tuple[tuple[Seq, ...], int]:
        """What to call the changes that one undid: a few by themselves, many by their group; and how many more."""
        if len(reverts) <= MOST_REVERTS:
            return reverts, 0
        last = await self._s.journal.event(reverts[-1])
        cause = last.origin.cause if last is not None else None
        opened = await self._s.journal.event(cause) if cause is not None else None
        if cause is None or opened is None or not isinstance(opened.event, ExternalBatchOpened):
            return reverts[:MOST_REVERTS], len(reverts) - MOST_REVERTS
        within = {recorded.seq async for recorded in members(self._s.journal, cause)}
        return (cause,), len(set(reverts) - within)

    async def get_diff(self, caller: Caller, call: Call, params: p.GetDiff) -> r.Diff:
        if params.path is None:
            return await self._trees.diff(caller, call, params)
        if params.cursor is not None:
            raise ParameterInvalid("cursor", "it goes with the diff of all files, without path")
        path = self._s.paths.file(params.path)
        access = self._s.access.content(caller, call, path)
        async with self._s.locks.shared(path):
            present = await self._observer.refresh_for_display(access)
            now = await self._now(path, present)
            right = await self._side("to", params.to, now, now)
            left = await self._side("from", params.from_, now, right)
            old, new = await self._text(access, left), await self._text(access, right)
            before = await self._s.redaction.shown(caller, path, left.digest, old)
            after = await self._s.redaction.shown(caller, path, right.digest, new)
            old, new = before.document, after.document
        warned = warnings(present)
        room = call.room.framed(path, path, path, path, *warned)
        work = partial(
            fitting_diff,
            (path if left.digest else None, path if right.digest else None),
            old,
            new,
            context=params.context_lines,
            room=room.at_most(TOKEN_BYTES * (params.max_tokens or PAGE_TOKENS)),
            whole_lines=params.max_tokens is not None,
        )
        fitting = await self._s.contents.computed(work, old, new)
        ranges = tuple(part for shown in fitting.shown for part in after.hidden.without(shown))
        seen = SeenLines(path=path, version=right.seq, ranges=ranges, total_lines=new.line_count)
        event = DiffShown(
            path=path,
            from_version=left.seq,
            to_version=right.seq,
            seen=(seen,) if right.digest and ranges and right.seq else (),
            tokens=estimate_tokens(fitting.text),
        )
        await self._s.notes.note_shown(caller, call, event)
        return r.Diff(
            path=path,
            from_version=show(left.seq),
            to_version=show(right.seq),
            diff=fitting.text,
            added=fitting.added,
            removed=fitting.removed,
            next=_following(path, left, right, fitting),
            next_in_line=_in_line(path, right, fitting),
            warnings=warned,
        )

    async def _now(self, path: WorkspacePath, present: CurrentFile) -> VersionRow:
        """The present version, or the removal; without a version where the journal can't note what is there."""
        entry = present.entry
        if present.unnoted is not None and (entry is not None or self._s.state.registry.get(path) is not None):
            return _without_version(path, entry)
        row = await self._s.journal.version_at(path, self._s.journal.head)
        if row is None:
            required(present)
            raise FileNotFound(path, "the journal knows no file of this name")
        return row

    async def _side(
        self, name: Literal["from", "to"], raw: p.Version, now: VersionRow, right: VersionRow
    ) -> VersionRow:
        """The version that is meant; `@previous` is the one before `right`."""
        path = now.path
        if raw in ("current", "working"):
            return now
        if raw == "@previous" and name == "from":
            before = None if right is now and right.seq == NO_VERSION else right.seq
            rows = await self._s.journal.versions(path, limit=1, before=before)
            row = rows[0] if rows else None
        else:
            row = await self._s.journal.version_at(path, self._s.past.position(raw, parameter=name))
        return row if row is not None else _without_version(path, None)

    async def _text(self, access: ContentAccess, row: VersionRow) -> Document:
        return await self._s.past.text(access, row) if row.present else EMPTY


def _without_version(path: WorkspacePath, entry: FileEntry | None) -> VersionRow:
    """What the journal has no version for: nothing, or what it can't note now."""
    digest = entry.digest if entry is not None else None
    nowhere, present = NO_VERSION, entry is not None
    return VersionRow(path=path, seq=nowhere, effective=nowhere, at=0, kind="external", digest=digest, present=present)


def _following(path: WorkspacePath, left: VersionRow, right: VersionRow, fitting: UnifiedDiff) -> str | None:
    """The call that shows what a diff goes on with: the newer lines, or of a file that is gone the older ones."""
    if fitting.goes_on is None:
        return None
    line, row = (fitting.goes_on[1], right) if right.digest is not None else (fitting.goes_on[0], left)
    at = f', at="{show(row.seq)}"' if row.seq else ""
    return f"read_file(path={quoted(path)}, start={line}{at})"


def _in_line(path: WorkspacePath, right: VersionRow, fitting: UnifiedDiff) -> str | None:
    """The call that shows more of the first long line of which a part is shown."""
    return within_call(path, *fitting.within, at=right.seq or None) if fitting.within is not None else None
