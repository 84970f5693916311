"""The folded state: kept in snapshots, restored at a start, and compared with the events, the tables and the disk."""

from __future__ import annotations

import hashlib
from collections import deque
from contextlib import aclosing
from functools import partial

import anyio
from anyio import to_thread

from orchestrator.api import journal_checks as c
from orchestrator.api import parameters as p
from orchestrator.core.content import LargeContent
from orchestrator.core.errors import JournalCorrupt, OrchestratorError, PathError
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.projections.file_rows import FileEntry
from orchestrator.core.projections.state import FrozenState, State, decode, encode, first_difference, freeze
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.batch_import import BatchImporter
from orchestrator.engine.locks import PathLocks
from orchestrator.engine.services import Growth
from orchestrator.logs import logger
from orchestrator.ports.journal import Journal, Snapshot
from orchestrator.ports.machine import Step
from orchestrator.ports.workspace import Workspace

VERIFIED_BYTES = 1024 * 1024
"""A larger content is verified piece by piece."""

ANY_BYTES = 1 << 62

EVERY = 10_000
"""Events between two snapshots; folding as many takes a start about 0.1 s."""


class Snapshotter:
    """One snapshot every so many events, and one at the end.

    On the loop only references are copied; encoding and packing run in a worker thread, part by
    part, and the row is written between the callers' transactions.
    """

    def __init__(self, journal: Journal, state: State, step: Step) -> None:
        self._journal, self._state, self._step = journal, state, step
        self._last = Seq(0)
        self._one_at_a_time, self._growth = anyio.Lock(), Growth(journal)
        self._log = logger("engine")

    async def begin(self) -> None:
        """Learn where the last one is, and count from there."""
        try:
            known = await self._journal.snapshots()
        except OrchestratorError:
            known = []  # the start logged why
        state = self._state
        usable = (item.seq for item in known if item.version == state.version and item.seq <= state.head)
        self._last = next(usable, Seq(0))

    async def run(self) -> None:
        """For as long as the daemon serves."""
        while True:
            await self._growth.reach(self._last + EVERY)
            await self.keep()

    async def keep(self) -> None:
        """Keep the state as it is now, unless that is kept. A failure is logged: the next start takes longer."""
        async with self._one_at_a_time:
            frozen = freeze(self._state)
            if frozen.head.seq <= self._last:
                return
            self._last = frozen.head.seq
            self._step("snapshot_frozen")
            try:
                snapshot, data = await to_thread.run_sync(encoded, frozen)
                await self._journal.keep_snapshot(snapshot, data)
            except OrchestratorError as error:
                self._log.warning("a snapshot could not be kept", seq=frozen.head.seq, error=error.message)


def encoded(frozen: FrozenState) -> tuple[Snapshot, bytes]:
    data, head = encode(frozen), frozen.head
    digest = hashlib.sha256(data).digest()
    return Snapshot(head.seq, bytes.fromhex(head.hash), digest, head.version), data


async def restored(journal: Journal, doubts: list[str] | None = None) -> State:
    """The state at the journal's head. Raises JournalCorrupt, JournalTooNew for an event that can't be folded.

    A snapshot that is damaged, altered, of another history or of other projections is passed over: an
    older one does, or the first event. `doubts` gets a line for each that a person should know of.
    """
    state = await _snapshot(journal, doubts if doubts is not None else [])
    await fold(journal, state)
    return state


async def fold(journal: Journal, state: State, *, until: int | None = None) -> None:
    """Fold the events that come after the state's head. Raises JournalCorrupt, JournalTooNew."""
    async with aclosing(journal.replay(after=state.head, until=until)) as pieces:
        async for piece in pieces:
            try:
                await to_thread.run_sync(state.apply_all, piece)
            except ValueError as error:
                raise JournalCorrupt(
                    f"the journal has a gap: {error}", hint="`orchestrator journal verify` says more; restore a backup."
                ) from error


async def _snapshot(journal: Journal, doubts: list[str]) -> State:
    version, log = State().version, logger("engine")
    try:
        kept = [item for item in await journal.snapshots() if item.seq <= journal.head]
    except JournalCorrupt as error:
        log.warning("the snapshots can't be read; folding from the first event", error=error.message)
        kept = []
    for snapshot in kept:
        if snapshot.version != version:
            log.info("a snapshot of other projections is passed over", seq=snapshot.seq, version=snapshot.version)
            continue
        try:
            state = await to_thread.run_sync(decode, await journal.snapshot(snapshot.seq))
            if (state.head, state.tip) != (snapshot.seq, snapshot.hash):
                raise ValueError(f"it says that it is of {show(state.head)}")
            last = await journal.event(snapshot.seq)
            if last is None or last.hash != snapshot.hash:
                raise ValueError("it is of another history than the journal's")
        except (JournalCorrupt, ValueError) as error:
            log.warning("a snapshot is passed over", seq=snapshot.seq, error=str(error))
            doubts.append(f"a snapshot was passed over at the start, older events were read instead: {error}")
        else:
            return state
    return State()


class StateCheck:
    """Compares the events with memory and tables, and memory with contents and disk."""

    def __init__(
        self, journal: Journal, state: State, workspace: Workspace, locks: PathLocks, importer: BatchImporter
    ) -> None:
        self._journal, self._state, self._workspace, self._locks = journal, state, workspace, locks
        self._importer, self._registry = importer, state.registry

    # --- the state and the events -------------------------------------------------------

    async def journal_rebuild(self, caller: Caller, call: Call, params: c.JournalRebuild) -> c.RebuildAnswer:
        await self._importer.kept.wait()
        live = freeze(self._state)
        try:
            difference = await self._difference(live) or await self._journal.table_difference()
        except JournalCorrupt as error:
            difference = error.message
        return c.RebuildAnswer(
            ok=difference is None,
            events=live.head.seq,
            projections=(*self._state.projections, "file_versions"),
            first_difference=difference,
        )

    async def _difference(self, live: FrozenState) -> str | None:
        """The first place where memory and a replay from the first event differ; memory's value, then the other's."""
        state = State()
        await fold(self._journal, state, until=live.head.seq)
        mine, theirs = await to_thread.run_sync(encode, live), await to_thread.run_sync(encode, freeze(state))
        if mine == theirs:
            return None
        held = await to_thread.run_sync(decode, mine)
        found = await to_thread.run_sync(lambda: first_difference(held.plain(), state.plain(), ""))
        return found or "/: equal entries, in another order or of another event"

    # --- the state and the disk ---------------------------------------------------------

    async def replay_check(self, caller: Caller, call: Call, params: p.Params) -> c.ReplayReport:
        rebuilt = await self.journal_rebuild(caller, call, c.JournalRebuild())
        found: list[c.DiskDifference] = []
        if rebuilt.first_difference is not None:
            found.append(c.DiskDifference(path=".", kind="history", journal=rebuilt.first_difference))
        head, paths, unchecked = self._journal.head, sorted(self._registry.paths()), []
        for path in paths:
            async with self._locks.shared(path):
                entry = self._registry.get(path)
                if entry is None:
                    continue  # removed since; whether it is there again is looked for later
                if entry.digest is None:
                    unchecked.append(path)
                found += [*await self._lost(entry), *await self._on_disk(entry)]
        found += await self._extra()
        return c.ReplayReport(
            ok=not found,
            at=show(head),
            events=head,
            files=len(paths),
            differences=tuple(sorted(found, key=lambda item: (item.path, item.kind))),
            unchecked=tuple(unchecked),
        )

    async def workspace_check(self, caller: Caller, call: Call, params: p.Params) -> c.WorkspaceReport:
        await self._importer.kept.wait()
        differences: list[c.DiskDifference] = []
        paths = self._registry.paths()
        for path in paths:
            async with self._locks.shared(path):
                entry = self._registry.get(path)
                if entry is not None and entry.digest is not None:
                    differences += (item for item in await self._on_disk(entry) if item.kind != "mode")
        return c.WorkspaceReport(ok=not differences, files=len(paths), differences=tuple(differences))

    async def _lost(self, entry: FileEntry) -> list[c.DiskDifference]:
        """A content that should be kept, and is not."""
        if entry.digest is None:
            return []
        try:
            content = await self._journal.content(entry.digest, most=VERIFIED_BYTES)
            if isinstance(content, LargeContent):
                await to_thread.run_sync(deque, self._journal.blocks(content), 0)
            kept = content is not None or not entry.kept
        except JournalCorrupt as error:
            return [_differs(entry.path, "lost", entry.digest, error.code)]
        return [] if kept else [_differs(entry.path, "lost", entry.digest, None)]

    async def _on_disk(self, entry: FileEntry) -> list[c.DiskDifference]:
        """What is not on the disk as the registry has it. Callers hold the path's lock."""
        path, found = entry.path, list[c.DiskDifference]()
        try:
            stat = self._workspace.stat(path)
            if stat is None:
                return [_differs(path, "missing", show(entry.version), None)]
            if stat.kind != "file":
                return [_differs(path, "kind", "file", stat.kind)]
            if entry.mode is not None and entry.mode != stat.mode:
                found.append(_differs(path, "mode", f"{entry.mode:04o}", f"{stat.mode:04o}"))
            if entry.digest is not None:
                digest, _ = await to_thread.run_sync(partial(self._workspace.hash, path, most=ANY_BYTES))
                if digest != entry.digest:
                    found.append(_differs(path, "content", entry.digest, digest))
        except PathError as error:
            found.append(_differs(path, "unreadable", entry.digest, error.code))
        return found

    async def _extra(self) -> list[c.DiskDifference]:
        """Files on the disk that no event explains."""
        found: list[c.DiskDifference] = []
        scanned = await to_thread.run_sync(self._workspace.scan, self._registry.knows)
        for path in sorted({item.path for item in scanned.files} | set(self._registry.removed())):
            if self._registry.get(path) is not None:
                continue
            async with self._locks.shared(path):
                try:
                    stat = self._workspace.stat(path)
                except PathError:
                    continue  # a link in its way: no file of ours is there
                if stat is not None and stat.kind == "file" and self._registry.get(path) is None:
                    found.append(_differs(path, "extra", None, f"{stat.signature.size} bytes"))
        return found


def _differs(path: WorkspacePath, kind: c.DifferenceKind, journal: str | None, disk: str | None) -> c.DiskDifference:
    return c.DiskDifference(path=path, kind=kind, journal=journal, disk=disk)
