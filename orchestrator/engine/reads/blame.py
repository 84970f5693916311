"""blame: who brought each line of a file in."""

from __future__ import annotations

from typing import Literal

from anyio import to_thread

from orchestrator.api import blame as t
from orchestrator.core.errors import (
    FileNotFound,
    ParameterInvalid,
    VersionNotKept,
    escaped,
)
from orchestrator.core.ids import WorkspacePath, show
from orchestrator.core.projections.attribution import Owned
from orchestrator.core.projections.versions import VersionRow
from orchestrator.core.text.answer_space import json_size, size
from orchestrator.engine.approver import approver_of
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import Observer, required, warnings
from orchestrator.engine.path_resolution import quoted
from orchestrator.engine.reads.line_owners import Attributions
from orchestrator.engine.services import Services

FRAME_BYTES, FRAME_LINES = 500, 6
"""Around the ranges of an answer: its head, how to go on."""


class Blamer:
    """Answers from the versions' events; the present is brought up to date with the disk first."""

    def __init__(self, services: Services, observer: Observer) -> None:
        self._s, self._observer = services, observer
        self._attributions = Attributions(services.journal, services.contents)

    async def blame(self, caller: Caller, call: Call, params: t.Blame) -> t.BlameAnswer:
        path = self._s.paths.file(params.path)
        if params.end is not None and params.end < params.start:
            raise ParameterInvalid("end", f"{params.end} comes before start, which is {params.start}")
        self._s.permissions.permit_now(caller, "read", path)
        warned: tuple[str, ...] = ()
        if params.at is None:
            async with self._s.locks.shared(path):
                row, warned = await self._present(path)
        else:
            row = await self._s.past.at(path, self._s.past.position(params.at, parameter="at"))
        if row.digest is not None and await self._s.contents.get(row.digest) is not None:
            await self._s.past.text(row)  # a binary file has no lines
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
        rows = {part.version: lineage.authors[part.version] for part in owned}
        approvers = {version: await self._approver(row) for version, row in rows.items()}
        ranges = [_range(path, part, rows[part.version], approvers[part.version]) for part in owned]
        room = call.room.less(2 * size(escaped(path)) + FRAME_BYTES + sum(map(size, warned)), FRAME_LINES)
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

    async def _present(self, path: WorkspacePath) -> tuple[VersionRow, tuple[str, ...]]:
        """The present version; with a warning the last one that is known, where the present can't be noted."""
        present = await self._observer.refresh_for_display(path, content=True)
        entry, _, _ = required(present)
        known = self._s.state.registry.get(path) if present.unnoted is not None else entry
        row = await self._s.journal.version_at(path, known.version) if known is not None else None
        if row is None:
            raise FileNotFound(path, "the journal knows no file of this name")
        return row, warnings(present)

    async def _approver(self, row: VersionRow) -> str | None:
        """Who granted the change, or accepted a reviewer's proposal; a content of their own is theirs already."""
        granted = await approver_of(self._s.state.pending, self._s.notes, row.approval)
        conflict = self._s.state.pending.resolved_by(row.change) if row.change is not None else None
        if granted is not None or conflict is None:
            return granted
        return conflict.by if conflict.by not in (row.agent, "policy") else None


def _range(path: WorkspacePath, part: Owned, row: VersionRow, approver: str | None) -> t.BlamedLines:
    kind: Literal["change", "external", "found", "unknown"] = row.kind if part.certain else "unknown"
    known = kind in ("change", "external")
    return t.BlamedLines(
        start=part.start,
        end=part.end,
        kind=kind,
        version=show(part.version),
        agent=row.author if known else None,
        session=row.session if known else None,
        task=show(row.task) if known and row.task else None,
        approver=approver if known else None,
        change=show(row.change) if known and row.change else None,
        operation=row.operation or None if known else None,
        at=row.at,
        path=row.path if row.path != path else None,
    )
