"""blame: who brought each line of a file in. Its versions are fetched at once and folded; folds stay in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import msgspec
from anyio import to_thread

from orchestrator.api import history as t
from orchestrator.core.bounded_cache import BoundedCache
from orchestrator.core.change import PathChange
from orchestrator.core.content import LineHunk
from orchestrator.core.errors import FileNotFound, FileTooLarge, ParameterInvalid, VersionNotKept, escaped
from orchestrator.core.events.files import ChangeApplied, ExternalFileRemoved
from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath, show
from orchestrator.core.projections.attribution import Attribution, Owned, RevertTexts, Step
from orchestrator.core.projections.versions import VersionRow
from orchestrator.core.text.answer_space import json_size
from orchestrator.core.text.encoding import EMPTY, Document
from orchestrator.engine.access import ContentAccess
from orchestrator.engine.approver import approver_of
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.contents import Contents
from orchestrator.engine.external.observer import Observer, required, warnings
from orchestrator.engine.paths import quoted
from orchestrator.engine.services import OFF_LOOP_BYTES, Services
from orchestrator.ports.journal import Journal, KnownVersion

SHOWN_BYTES = 60_000
"""Of one answer, which names the call that goes on."""

KEPT_FOLDS, KEPT_LINES = 20, 200_000
"""Folds in memory, and lines of one of them."""

KEPT_DIFFERENCES, KEPT_HUNKS = 10_000, 20
"""Differences of two contents in memory, and hunks of one of them."""


class Blamer:
    """Answers from the versions' events; the present is brought up to date with the disk first."""

    def __init__(self, services: Services, observer: Observer, attributions: Attributions) -> None:
        self._s, self._observer, self._attributions = services, observer, attributions

    async def blame(self, caller: Caller, call: Call, params: t.Blame) -> t.BlameAnswer:
        path = self._s.paths.file(params.path)
        if params.end is not None and params.end < params.start:
            raise ParameterInvalid("end", f"{params.end} comes before start, which is {params.start}")
        access = self._s.access.content(caller, call, path)
        warned: tuple[str, ...] = ()
        if params.at is None:
            async with self._s.locks.shared(path):
                row, warned = await self._present(access)
        else:
            row = await self._s.past.at(path, self._s.past.position(params.at, parameter="at"))
            await self._s.past.permit(access, row)
        if row.digest is not None and await self._s.contents.find(row.digest) is not None:
            await self._s.past.text(access, row)  # a binary file has no lines, and a large one too many
        lineage = await self._attributions.of(path, row.seq)
        if lineage.lost is not None:
            raise VersionNotKept(
                f"the content of {path} at {show(row.seq)} was not kept, so its lines are not known",
                hint="Name another version with `at`; file_history names those that are not kept.",
            )
        total = lineage.attribution.lines
        end = total if params.end is None else min(params.end, total)
        if params.start > max(end, 1):
            raise ParameterInvalid("start", f"{path} has {total} lines at {show(row.seq)}; asked for {params.start}")
        owned = await to_thread.run_sync(lambda: list(lineage.attribution.owned(params.start, end)))
        rows = {part.version: await self._approved(lineage.authors[part.version]) for part in owned}
        listable = partial(self._s.access.lists, caller)
        holders = {version: await self._s.notes.lease_holder(row) for version, (row, _) in rows.items()}
        ranges = [_range(path, part, *rows[part.version], holders[part.version], listable) for part in owned]
        room = call.room.at_most(SHOWN_BYTES).framed(escaped(path), escaped(path), *warned)
        kept = room.first((json_size(part), 1) for part in ranges)
        follow, last = None, end
        if kept < len(ranges):
            upto = f", end={end}" if end < total else ""
            follow = f'blame(path={quoted(path)}, start={ranges[kept].start}{upto}, at="{show(row.seq)}")'
            last = ranges[kept].start - 1
        await self._s.notes.note_metadata(caller, call, path)
        return t.BlameAnswer(
            path=path,
            version_id=show(row.seq),
            start=params.start,
            end=last,
            total_lines=total,
            ranges=tuple(ranges[:kept]),
            next=follow,
            warnings=warned,
        )

    async def _present(self, access: ContentAccess) -> tuple[VersionRow, tuple[str, ...]]:
        """The present version; with a warning the last one that is known, where the present can't be noted."""
        path, present = access.path, await self._observer.refresh_for_display(access)
        try:
            entry, _, _ = required(present)
        except FileTooLarge as error:
            error.hint = f"file_history(path={quoted(path)}) says who changed it and when; read_lines shows its lines."
            raise
        known = self._s.state.registry.get(path) if present.unnoted is not None else entry
        row = await self._s.journal.version_at(path, known.version) if known is not None else None
        if row is None:
            raise FileNotFound(path, "the journal knows no file of this name")
        return row, warnings(present)

    async def _approved(self, row: VersionRow) -> tuple[VersionRow, str | None]:
        """Who granted the change, or chose the proposal: that is its author's, whoever chose it."""
        approver = await approver_of(self._s.state.pending, self._s.notes, row.approval)
        conflict = self._s.state.pending.resolved_by(row.change) if row.change is not None else None
        if conflict is not None and conflict.choice == "proposed" and conflict.agent not in (None, row.agent):
            accepted = conflict.by if conflict.by not in (None, row.agent, "policy") else None
            both = f"{row.agent}, {accepted}" if accepted is not None else row.agent  # who chose it, and who said yes
            return msgspec.structs.replace(row, agent=conflict.agent, session=conflict.session), approver or both
        if approver is None and conflict is not None and conflict.by not in (row.agent, "policy"):
            approver = conflict.by  # a content of their own is theirs already
        return row, approver


def _range(
    path: WorkspacePath,
    part: Owned,
    row: VersionRow,
    approver: str | None,
    lease_holder: AgentName | None,
    listable: Callable[[WorkspacePath], bool],
) -> t.BlamedLines:
    kind: Literal["change", "external", "found", "unknown"] = row.kind if part.certain else "unknown"
    known = kind in ("change", "external")
    return t.BlamedLines(
        start=part.start,
        end=part.end,
        kind=kind,
        version=show(part.version),
        agent=row.author if known else None,
        lease_holder=lease_holder if known else None,
        session=row.session if known else None,
        task=show(row.task) if known and row.task else None,
        approver=approver if known else None,
        change=show(row.change) if known and row.change else None,
        operation=row.operation or None if known else None,
        at=row.at,
        path=row.path if row.path != path and listable(row.path) else None,
    )


class Lineage(msgspec.Struct):
    """A fold so far: the attribution, the versions in it, and the content that it is of."""

    attribution: Attribution = msgspec.field(default_factory=Attribution)
    authors: dict[Seq, VersionRow] = {}
    digest: Digest | None = None  # the last content that is known
    present: bool = False
    lost: Seq | None = None  # the first version since then whose content is not known
    last: Seq = Seq(0)  # the last version

    def add(self, row: VersionRow) -> None:
        """Note a version that the attribution has taken in, or is about to."""
        self.authors[row.seq] = row
        self.digest, self.present, self.lost, self.last = row.digest, row.present, None, row.seq


class Attributions:
    """Folds of files' versions."""

    def __init__(self, journal: Journal, contents: Contents) -> None:
        self._journal, self._contents = journal, contents
        self.kept: OrderedDict[WorkspacePath, Lineage] = OrderedDict()
        """Of each path the version that was asked for last, the latest at the end."""
        self._differences = BoundedCache[tuple[Digest | None, Digest | None, int], tuple[LineHunk, ...]](
            KEPT_DIFFERENCES
        )
        """By both contents and the lines of the first: else each fold would compare all that have no hunks again."""

    async def of(self, path: WorkspacePath, version: Seq) -> Lineage:
        """The attribution of one version of a path. Do not change it.

        `lost` is set on one whose content, and so the number of its lines, is not known.
        """
        lineage = self.kept.pop(path, None)
        if lineage is None or lineage.last != version:
            lineage = Lineage()
            await self._fold(lineage, await self._versions(path, version))
        if lineage.lost is None and lineage.attribution.lines <= KEPT_LINES:
            self.kept[path] = lineage
            while len(self.kept) > KEPT_FOLDS:
                self.kept.popitem(last=False)
        return lineage

    async def _versions(self, path: WorkspacePath, until: int) -> list[KnownVersion]:
        """Every version of a file, under each of its names, oldest first."""
        found: list[KnownVersion] = []
        source: WorkspacePath | None = path
        target: WorkspacePath | None = None
        while source is not None:
            versions = await self._journal.changes_of(source, until=until)
            last = versions[-1].recorded.event if versions else None
            if target is not None and isinstance(last, ExternalFileRemoved) and last.moved_to == target:
                versions.pop()  # its removal from here was the move
            first = next((n for n in reversed(range(len(versions))) if versions[n].row.moved_from), 0)
            found[:0] = versions[first:]
            target, source = source, versions[first].row.moved_from if versions else None
            until = versions[first].row.seq - 1 if versions else 0
        return found

    async def _fold(self, lineage: Lineage, versions: Sequence[KnownVersion]) -> None:
        """Versions whose hunks the journal has go together, off the loop; the others need contents, one by one."""
        steps: list[Step] = []
        for known in versions:
            hunks = _recorded_hunks(lineage, known)
            if hunks is None or known.row.undoes:
                await self._take(lineage, steps)
                steps, step = [], await self._compared(lineage, known, hunks)
            else:
                step = _step(lineage, known, hunks)
            if step is not None:
                steps.append(step)
                lineage.add(known.row)
        await self._take(lineage, steps)

    async def _take(self, lineage: Lineage, steps: Sequence[Step]) -> None:
        def take() -> None:
            for step in steps:
                lineage.attribution.take(step)

        if len(steps) * lineage.attribution.lines > OFF_LOOP_BYTES:
            await to_thread.run_sync(take)
        else:
            take()

    async def _compared(self, lineage: Lineage, known: KnownVersion, hunks: tuple[LineHunk, ...] | None) -> Step | None:
        """The step of a version that needs contents: for its hunks, or for the lines that it gives back.

        None where it is in the lineage by then: its content is not known, or the one before is not.
        """
        row, lines = known.row, lineage.attribution.lines
        if hunks is None and not row.present:
            hunks = (LineHunk(0, lines, 0, 0),) if lines else ()
        pair = (lineage.digest, row.digest, lines)
        if hunks is None and lineage.lost is None:
            hunks = self._differences.get(pair)
        if hunks is None:
            new = await self._document(row.digest)
            if new is None:
                lineage.lost, lineage.last = lineage.lost or row.seq, row.seq
                lineage.authors[row.seq] = row
                return None
            emptied = not lineage.present and lineage.lost is None
            old = EMPTY if emptied else await self._document(lineage.digest)
            if old is None or old.line_count != lines:
                changed = _changed(known)  # of the lines, only those that a change of ours inserted are known
                step = _step(lineage, known, changed.hunks if changed is not None else ())
                step = msgspec.structs.replace(step, since=lineage.lost or lineage.last)
                lineage.attribution.refill(step, new.line_count)
                lineage.add(known.row)
                return None
            hunks = await self._contents.line_hunks(old, new)
            if lineage.lost is None and len(hunks) <= KEPT_HUNKS:
                self._differences.put(pair, hunks)
        step = _step(lineage, known, hunks)
        return msgspec.structs.replace(step, texts=await self._texts(lineage, step))

    async def _texts(self, lineage: Lineage, step: Step) -> RevertTexts | None:
        """What a revert inserts, and what the changes that it reverts had removed, as far as that is kept."""
        wanted = lineage.attribution.inexact(step)
        new = await self._document(step.after) if wanted else None
        if new is None:
            return None
        removed: dict[Seq, tuple[str, ...]] = {}
        for change, taken in wanted:
            old = await self._document(taken.before)
            if old is not None:
                removed[change] = tuple(
                    line for h in taken.hunks for line in old.lines[h.old_start : h.old_start + h.old_len]
                )
        inserted = (line for h in step.hunks for line in new.lines[h.new_start : h.new_start + h.new_len])
        return RevertTexts(tuple(inserted), removed)

    async def _document(self, digest: Digest | None) -> Document | None:
        """The lines of a content, none for a binary one; None if it was not kept."""
        data = await self._contents.get(digest) if digest is not None else None
        if digest is None or data is None:
            return None
        return await self._contents.text(digest, data) or EMPTY


def _step(lineage: Lineage, known: KnownVersion, hunks: tuple[LineHunk, ...]) -> Step:
    row, event = known.row, known.recorded.event
    return Step(
        version=row.seq,
        change=row.change if row.change is not None else row.seq,
        before=lineage.digest,
        after=row.digest,
        hunks=hunks,
        since=lineage.lost,
        reverts=event.provenance.reverts if isinstance(event, ChangeApplied) else (),
    )


def _recorded_hunks(lineage: Lineage, known: KnownVersion) -> tuple[LineHunk, ...] | None:
    """The hunks that the journal has for a version; None where it has none, or where they do not go on from here."""
    row, changed = known.row, _changed(known)
    if lineage.lost is not None:
        return None
    if row.moved_from is not None:
        return () if lineage.present and row.digest is not None and row.digest == lineage.digest else None
    if changed is None or changed.binary or changed.before != lineage.digest:
        return None
    if not changed.hunks and changed.before != changed.after:
        return None  # ends of lines only, or a content that could not be compared then
    return changed.hunks


def _changed(known: KnownVersion) -> PathChange | None:
    """What a change of ours did to the path."""
    event = known.recorded.event
    if not isinstance(event, ChangeApplied):
        return None
    return next((c for c in event.paths if c.path == known.row.path), None)
