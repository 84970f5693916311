"""After an agent's own tool acted: what it read and changed is its agent's."""

from __future__ import annotations

from orchestrator.api import native_edits as n
from orchestrator.core.content import LineRange, SeenLines
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.regions import written
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.batches import ExternalBatch
from orchestrator.engine.external.native_claims import GONE, NativeClaim
from orchestrator.engine.external.observer import CurrentFile, Observer
from orchestrator.engine.external.watch import Watching
from orchestrator.engine.native_calls import NativeCalls
from orchestrator.engine.services import Services

LISTED_CHANGES = 50

LONGEST_LINE = 2_000
"""Claude cuts longer lines: then nothing of what it showed counts as seen whole."""


class NativeRecords:
    """The operation that hooks call after a tool."""

    def __init__(self, services: Services, observer: Observer, watching: Watching, calls: NativeCalls) -> None:
        self._s, self._observer, self._watching, self._calls = services, observer, watching, calls

    async def native_after(self, caller: Caller, call: Call, params: n.NativeAfter) -> n.NativeNote:
        await self._calls.hold(caller)
        claims = self._claims(caller, call, params)
        try:
            if params.kind == "command":
                await self._watching.settle()
            elif params.kind == "read":
                await self._note_read(caller, call, params, claims[0])
            else:
                for claim in claims:
                    if claim.path is not None:
                        await self._note_change(caller, call, claim, claim.path)
        finally:
            for claim in claims:
                self._calls.end(caller, params, claim.path)
        group = claims[0].group
        await group.close()
        changes, more = self.listed(caller, group)
        number = show(group.seq) if group.seq is not None else None
        return n.NativeNote(group=number, changes=changes, more_changes=more)

    def listed(self, caller: Caller, group: ExternalBatch) -> tuple[tuple[n.NativeChange, ...], int]:
        """The first of a group's changes that the caller may know of, by path; and how many more of those there are."""
        listed = self._s.access.listed(caller, group.changed.items())
        first = tuple(n.NativeChange(path=path, change=show(seq)) for path, seq in listed[:LISTED_CHANGES])
        return first, len(listed) - len(first)

    def _claims(self, caller: Caller, call: Call, params: n.NativeAfter) -> tuple[NativeClaim, ...]:
        """What was claimed before the call; of a call that nobody announced, the same as far as it is known now."""
        paths: tuple[WorkspacePath | None, ...]
        if params.kind == "command":
            paths = (None,)
        elif params.kind == "patch":
            files = self._calls.patches(params)
            paths = tuple(dict.fromkeys(path for source, target, _ in files for path in (source, target)))
        else:
            paths = (self._s.paths.file(params.path, may_create=params.kind != "read"),)
        known = [self._calls.get(caller, params, path) for path in paths]
        group = next((claim.group for claim in known if claim is not None), None)
        group = group or self._calls.group(caller, call, params)
        claims = list[NativeClaim]()
        for path, claim in zip(paths, known, strict=True):
            claims.append(claim or NativeClaim(group, path))
            if claim is None and params.kind != "read":
                self._calls.begin(caller, params, claims[-1])
        return tuple(claims)

    async def _note_change(self, caller: Caller, call: Call, claim: NativeClaim, path: WorkspacePath) -> None:
        """What is there now is the tool's, if nobody noted it before; and the agent knows what it wrote."""
        claim.contents = frozenset((GONE,)) if GONE in claim.contents else frozenset()
        async with self._s.locks.alone((path,)):
            present = await self._observer.refresh(path, content=True)
        await self.note_written(caller, call, claim, present)

    async def note_written(self, caller: Caller, call: Call, claim: NativeClaim, present: CurrentFile) -> None:
        """The agent knows the lines that it wrote, where what is there now is its own."""
        entry, document = present.entry, await self._document(present)
        if entry is None or document is None or claim.group.changed.get(present.path) != entry.version:
            return
        total = len(document.lines)
        ranges: tuple[LineRange, ...] = (LineRange(1, total),) if total else ()
        if not claim.whole and claim.version is not None:
            row = await self._s.past.at(present.path, claim.version)
            before = await self._s.contents.kept_text(row.digest)
            if before is not None:
                ranges = written(await self._s.contents.line_hunks(before, document))
        await self._note(caller, call, present.path, entry.version, ranges, document)

    async def _note_read(self, caller: Caller, call: Call, params: n.NativeAfter, claim: NativeClaim) -> None:
        access = self._s.access.content(caller, call, self._s.paths.file(params.path))
        async with self._s.locks.shared(access.path):
            present = await self._observer.refresh_for_display(access)
        entry, document = present.entry, await self._document(present)
        if entry is None or document is None:
            return
        if claim.version not in (None, entry.version):
            return  # it changed while it was read: which of the two was shown is not known
        total = len(document.lines)
        first, last = params.start or 1, min(params.end or total, total)
        await self._note(caller, call, access.path, entry.version, (LineRange(first, last),), document)

    async def _note(
        self,
        caller: Caller,
        call: Call,
        path: WorkspacePath,
        version: Seq,
        ranges: tuple[LineRange, ...],
        document: Document,
    ) -> None:
        ranges = tuple(item for item in ranges if item.start <= item.end)
        shown = [line for item in ranges for line in document.lines[item.start - 1 : item.end]]
        seen = SeenLines(
            path=path,
            version=version,
            ranges=ranges,
            total_lines=len(document.lines),
            cut=any(len(line) > LONGEST_LINE for line in shown),
        )
        await self._s.notes.note_lines(caller, call, seen, "\n".join(shown), approval=None)

    async def _document(self, present: CurrentFile) -> Document | None:
        """The text of a file; None of one that is absent, binary, or read by pieces."""
        if present.entry is None or present.entry.digest is None or not isinstance(present.data, bytes):
            return None
        return await self._s.contents.text(present.entry.digest, present.data)
