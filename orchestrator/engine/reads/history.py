"""file_history and get_diff: looks at the past."""

from __future__ import annotations

from functools import partial

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.decisions.costs import large
from orchestrator.core.errors import (
    FileNotFound,
    ParameterInvalid,
)
from orchestrator.core.events.external import ExternalBatchOpened
from orchestrator.core.events.files import ChangeApplied, ChangeIntended, DiffShown, SeenLines
from orchestrator.core.ids import Digest, Seq, WorkspacePath, parse_seq, show
from orchestrator.core.projections.history import VersionRow
from orchestrator.core.text.document_diff import shown_diff
from orchestrator.core.text.encoding import EMPTY, Document
from orchestrator.core.text.room import size
from orchestrator.core.text.shown_diff import ShownDiff
from orchestrator.engine.approver import approver_of
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.batches import members
from orchestrator.engine.external.observer import UNNOTED, CurrentFile, Observer, required, warnings
from orchestrator.engine.merges import told
from orchestrator.engine.paths import Paths, quoted
from orchestrator.engine.positions import position
from orchestrator.engine.reads.past_versions import PastVersions
from orchestrator.engine.reads.tree_diffs import TreeDiffs
from orchestrator.engine.services import Services

MOST_REVERTS = 8
"""Undone changes that a version names one by one."""

FRAME_BYTES, FRAME_LINES = 600, 8
"""Around what an answer shows: its head, the markers, how to go on."""

_ENCODER = msgspec.json.Encoder()


class Side(msgspec.Struct, frozen=True):
    """One side of a diff."""

    version: Seq
    digest: Digest | None  # None: never hashed, or absent
    present: bool


class Historian:
    """Answers from the journal; the present is brought up to date with the disk first."""

    def __init__(self, services: Services, observer: Observer, paths: Paths) -> None:
        self._s, self._observer, self._paths = services, observer, paths
        self._past = PastVersions(services)
        self._trees = TreeDiffs(services, observer)

    async def file_history(self, caller: Caller, call: Call, params: p.FileHistory) -> r.History:
        path = self._paths.file(params.path)
        self._s.permit(caller, "list", path)
        before = int(parse_seq(params.cursor, parameter="cursor")) if params.cursor else None
        async with self._s.locks.shared(path):
            present = await self._observer.refresh_for_display(path, content=False)
        rows = await self._s.journal.versions(path, limit=params.limit + 1, before=before)
        if not rows and before is None:
            if present.stat is not None and present.stat.kind != "file":
                required(present)
            raise FileNotFound(path, "the journal knows no file of this name")
        readable = self._s.readable(caller, path)
        versions = [await self._version(row, readable=readable) for row in rows[: params.limit]]
        room = call.room.less(size(path) + FRAME_BYTES, 2)
        versions = versions[: room.first((len(_ENCODER.encode(version)), 1) for version in versions)]
        await self._s.note_metadata(caller, call, path)
        return r.History(
            path=path,
            versions=tuple(versions),
            cursor=versions[-1].version_id if len(rows) > len(versions) else None,
            warnings=warnings(present),
        )

    async def _version(self, row: VersionRow, *, readable: bool) -> r.FileVersion:
        reason = ""
        reverts: tuple[tuple[Seq, ...], int] = ((), 0)
        if row.undoes:
            outcome = await self._s.journal.event(row.seq)
            if outcome is not None and isinstance(outcome.event, ChangeApplied):
                reverts = await self._named(outcome.event.provenance.reverts)
        if row.change is not None:
            intent = await self._s.journal.event(row.change)
            if intent is not None and isinstance(intent.event, ChangeIntended):
                reason = intent.event.provenance.reason
        # contents are kept by their hash, under whatever name they came: that must not show
        kept = row.digest is None or not readable or await self._s.journal.has_blob(row.digest)
        return r.FileVersion(
            version_id=show(row.seq),
            at=row.at,
            kind=row.kind,
            operation=row.operation or None,
            agent=row.author,
            session=row.session,
            task=show(row.task) if row.task else None,
            size=row.size if readable else None,
            hash=row.digest if readable else None,
            approver=await approver_of(self._s, row.approval),
            reverts=tuple(map(show, reverts[0])),
            more_reverts=reverts[1],
            change=show(row.change) if row.change else None,
            reason=reason or None,
            moved_from=row.moved_from,
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
        for name in ("cursor", "max_tokens"):
            if getattr(params, name) is not None:
                raise ParameterInvalid(name, "it goes with the diff of all files, without path")
        path = self._paths.file(params.path)
        self._s.permit(caller, "read", path)
        async with self._s.locks.shared(path):
            present = await self._observer.refresh_for_display(path, content=True)
            version = present.entry.version if present.entry else self._gone(path, present)
            now = Side(version or Seq(0), present.entry.digest if present.entry else None, present.entry is not None)
            if version is None:
                required(present)
                raise FileNotFound(path, "the journal knows no file of this name")
            right = await self._side(caller, path, params.to, now, parameter="to")
            left = await self._left(caller, path, params.from_, right, now)
            old, new = await self._text(path, left), await self._text(path, right)
        warned = warnings(present)
        frame = 3 * size(path) + FRAME_BYTES + sum(map(size, warned))
        work = partial(
            shown_diff,
            path if left.digest else None,
            path if right.digest else None,
            old,
            new,
            context=params.context_lines,
            room=call.room.less(frame, FRAME_LINES),
        )
        fitting, added, removed = await self._s.effort.run(work) if large(old, new) else work()
        seen = SeenLines(path=path, version=right.version, ranges=fitting.shown, total_lines=new.line_count)
        event = DiffShown(
            path=path,
            from_version=left.version,
            to_version=right.version,
            seen=seen if right.digest and fitting.shown and right.version else None,
        )
        await self._s.note_shown(caller, call, event)
        return r.Diff(
            path=path,
            from_version=show(left.version),
            to_version=show(right.version),
            diff=fitting.text,
            added=added,
            removed=removed,
            merge=await self._merged(path, right.version),
            next=_following(path, left, right, fitting),
            warnings=warned,
        )

    async def _merged(self, path: WorkspacePath, version: Seq) -> tuple[r.MergeText, ...]:
        """How a version came together, if a merge brought it."""
        recorded = await self._s.journal.event(version) if version else None
        if recorded is None or not isinstance(recorded.event, ChangeApplied):
            return ()
        return told([region for region in recorded.event.fit.merge if region.path == path])

    def _gone(self, path: WorkspacePath, present: CurrentFile) -> Seq | None:
        """The version of a file that does not stand there; None if the journal knows none."""
        if present.unnoted is not None and self._s.state.registry.get(path) is not None:
            return UNNOTED
        return self._s.state.registry.removed_at(path)

    async def _side(self, caller: Caller, path: WorkspacePath, raw: p.Version, now: Side, *, parameter: str) -> Side:
        if raw in ("current", "working"):
            return now
        return await self._kept(
            caller, await self._s.journal.version_at(path, position(self._s, raw, parameter=parameter))
        )

    async def _left(self, caller: Caller, path: WorkspacePath, raw: p.Version, right: Side, now: Side) -> Side:
        if raw != "@previous":
            return await self._side(caller, path, raw, now, parameter="from")
        before = None if right is now and right.version == UNNOTED else int(right.version)
        rows = await self._s.journal.versions(path, limit=1, before=before)
        return await self._kept(caller, rows[0] if rows else None)

    async def _kept(self, caller: Caller, row: VersionRow | None) -> Side:
        """One version, which the caller may be shown."""
        if row is None:
            return Side(Seq(0), None, present=False)
        await self._past.permit(caller, row)
        return Side(row.seq, row.digest, row.present)

    async def _text(self, path: WorkspacePath, side: Side) -> Document:
        return await self._past.text(path, side.version, side.digest) if side.present else EMPTY


def _following(path: WorkspacePath, left: Side, right: Side, fitting: ShownDiff) -> str | None:
    """The call that shows what a diff goes on with: the newer lines, or of a file that is gone the older ones."""
    if fitting.goes_on is None:
        return None
    old, new = fitting.goes_on
    line, version = (new, right.version) if right.digest is not None else (old, left.version)
    at = f', at="{show(version)}"' if version else ""
    return f"read_file(path={quoted(path)}, start={line}{at})"
