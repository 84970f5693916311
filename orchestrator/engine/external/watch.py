"""External changes as they happen: hints are gathered, and imported when they pause."""

from __future__ import annotations

import threading

import anyio
from anyio import to_thread

from orchestrator.core.errors import OrchestratorError
from orchestrator.core.events.files import ExternalTrigger
from orchestrator.core.ids import WorkspacePath
from orchestrator.engine.external.batch_import import BatchImporter
from orchestrator.engine.external.batches import ExternalBatch
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.names import Names
from orchestrator.logs import logger
from orchestrator.ports.workspace import Hints, Watcher

QUIET_S = 0.05
"""What comes without a pause this long is one burst."""

LULL_S = 0.5
"""A group of several is closed after this: git pauses in the midst of a branch switch. What was met is noted."""

PATIENCE_S = 0.25
"""A burst that does not pause is begun with after this."""

GROUP_MOST_S = 30.0
"""A program that never pauses gets a new group this often."""

RETRY_S = 5.0
"""After an append failed."""


class Watching:
    """Between the watcher, which only hints, and the importer, which looks."""

    def __init__(self, observer: Observer, importer: BatchImporter, names: Names, watcher: Watcher | None) -> None:
        self._observer, self._importer, self._names, self._watcher = observer, importer, names, watcher
        names.forward = self._add
        self._paths: set[WorkspacePath] = set()
        self._folders: set[WorkspacePath] = set()
        self._folders_came: set[WorkspacePath] = set()
        self._rescan: ExternalTrigger | None = None
        self._came = anyio.Event()
        self._importing = anyio.Lock()
        self._hearing, self._heard = threading.Lock(), list[Hints]()
        """What was reported in some thread, also where it did not come here yet."""
        if watcher is not None:
            watcher.subscribe(self._hear)
        self._trouble = ""
        self._log = logger("watching")

    @property
    def health(self) -> str:
        """For `status`: live, off, or degraded and why."""
        if self._watcher is None:
            return "off"
        return f"degraded: {self._trouble}" if self._trouble else self._watcher.health

    async def start(self) -> None:
        """Before the start scan, so that nothing falls between the two."""
        if self._watcher is not None:
            await to_thread.run_sync(self._watcher.start)

    async def kept(self, within_s: float) -> bool:
        """Wait until the contents of the files that the start met are kept; whether they are."""
        with anyio.move_on_after(within_s):
            await self._importer.kept.wait()
        return self._importer.kept.is_set()

    async def run(self) -> None:
        """After the start scan, until cancelled. A group that is open then stays so: the next start is another act."""
        watcher = self._watcher
        if watcher is None:
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._gather, watcher)
            while True:
                if not self._waiting:
                    await self._came.wait()
                await self._pause(PATIENCE_S)
                try:
                    await self._burst()
                except (OrchestratorError, OSError) as error:
                    self._trouble = f"external changes could not be noted: {error}; tried again"
                    self._log.error("external changes could not be noted", error=str(error))
                    await anyio.sleep(RETRY_S)
                    self._rescan = "scan"
                else:
                    self._trouble = ""

    # --- hints --------------------------------------------------------------------------

    async def _gather(self, watcher: Watcher) -> None:
        async for hints in watcher.hints():
            self._add(hints)

    def _take(self, hints: Hints) -> None:
        self._paths |= hints.paths
        self._folders |= hints.folders
        self._folders_came |= hints.added
        if hints.rescan is not None and self._rescan != "overflow":
            self._rescan = hints.rescan

    def _add(self, hints: Hints) -> None:
        self._take(hints)
        came, self._came = self._came, anyio.Event()
        came.set()

    @property
    def _waiting(self) -> bool:
        return bool(self._paths or self._folders) or self._rescan is not None

    def _hear(self, hints: Hints) -> None:
        """In a thread: before `drain` returns, whoever asked the kernel."""
        with self._hearing:
            self._heard.append(hints)

    def _taken(self) -> Hints:
        with self._hearing:
            heard, self._heard = self._heard, []
        for hints in heard:
            self._take(hints)
        hints = Hints(frozenset(self._paths), frozenset(self._folders), self._rescan, frozenset(self._folders_came))
        self._paths, self._folders, self._rescan, self._folders_came = set(), set(), None, set()
        return hints

    async def _pause(self, patience_s: float) -> None:
        """Until nothing came for QUIET_S, or patience is over."""
        with anyio.move_on_after(patience_s):
            while True:
                came = self._came
                with anyio.move_on_after(QUIET_S):
                    await came.wait()
                    continue
                return

    # --- bursts -------------------------------------------------------------------------

    async def settle(self, group: ExternalBatch | None = None) -> None:
        """Import all that programs have changed until now, as a part of `group`, or of whatever burst it is.

        Raises DiskFull, WritesStopped.
        """
        watcher = self._watcher
        if watcher is None or not watcher.exact:
            async with self._importing:
                await self._importer.rescan()
            return
        await to_thread.run_sync(watcher.drain)
        if group is not None:
            await self._import(group)
            return
        async with self._observer.burst("watch") as burst:
            await self._import(burst)

    async def _import(self, group: ExternalBatch) -> None:
        """What is hinted at; who comes while it is imported waits for that."""
        async with self._importing:
            hints = self._taken()
            if hints == Hints():
                return
            self._observer.take_hints(hints, group)
            try:
                await (self._importer.import_hints(hints) if hints.rescan is None else self._importer.rescan())
            except BaseException:
                self._take(hints)
                raise

    async def _burst(self) -> None:
        """All that waits, and what comes while that is imported, as one group."""
        async with self._observer.burst(self._rescan or "watch") as group:
            until = anyio.current_time() + GROUP_MOST_S
            while self._waiting:
                await self._import(group)
                await to_thread.run_sync(self._names.settle)
                if anyio.current_time() > until:
                    break
                await self._pause(PATIENCE_S)
                if group.several and not self._waiting:
                    with anyio.move_on_after(LULL_S):
                        await self._came.wait()
