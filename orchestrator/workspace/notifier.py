"""Watches for changes with watchfiles, where inotify does not exist (macOS)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from orchestrator.core.events.files import ExternalTrigger
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import valid_name
from orchestrator.ports.workspace import Hints
from orchestrator.workspace.ignore import BUILT_IN, RULE_FILES, is_temp

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

DEBOUNCE_MS, STEP_MS, TURN_MS = 50, 20, 1000
ADDED, DELETED = 1, 3

RESCAN_S = 300.0
"""watchfiles does not report lost hints, so everything is looked at this often."""


class FilesWatcher:
    """See `ports.Watcher`. One watch on the root, with all below it; what is ignored is filtered after.

    If watchfiles can't begin, or stops, only the rescans are left.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._notify: RustNotify | None = None
        self._stop = threading.Event()
        self.health = "live"

    def start(self) -> None:
        try:
            from watchfiles._rust_notify import RustNotify

            self._notify = RustNotify([self._root], False, False, 0, True, True)
        except (ImportError, OSError, RuntimeError) as error:
            self._degrade(error)

    def _degrade(self, error: Exception) -> None:
        self._notify = None
        self.health = f"degraded: watchfiles can't watch here: {error}; a full rescan runs every {RESCAN_S:g} s"

    def close(self) -> None:
        self._stop.set()
        if self._notify is not None:
            self._notify.close()

    exact = False

    def subscribe(self, heard: Callable[[Hints], None]) -> None:
        """Hints come late here, so nobody can rely on them."""

    def drain(self) -> Hints:
        return Hints()

    async def hints(self) -> AsyncIterator[Hints]:
        due = time.monotonic() + RESCAN_S
        try:
            while True:
                hints = await self._turn()
                if hints != Hints():
                    yield hints
                if time.monotonic() >= due or self._notify is None:
                    due = time.monotonic() + RESCAN_S
                    yield Hints(rescan="scan")
        finally:
            self._stop.set()

    async def _turn(self) -> Hints:
        """What is reported within a turn."""
        if self._notify is None:
            await anyio.sleep(RESCAN_S)
            return Hints()
        turn = partial(self._notify.watch, DEBOUNCE_MS, STEP_MS, TURN_MS, self._stop)
        try:
            found = await to_thread.run_sync(turn, abandon_on_cancel=True)
        except RuntimeError as error:
            self._degrade(error)
            return Hints()
        return self._sorted(found) if isinstance(found, set) else Hints()

    def _sorted(self, found: set[tuple[int, str]]) -> Hints:
        paths: set[WorkspacePath] = set()
        folders: set[WorkspacePath] = set()
        added: set[WorkspacePath] = set()
        rescan: ExternalTrigger | None = None
        for kind, absolute in found:
            path = os.path.relpath(absolute, self._root)
            names = path.split("/")
            if path == "." or names[0] == ".." or is_temp(names[-1]):
                continue
            if not BUILT_IN.isdisjoint(names) or not all(map(valid_name, names)):
                continue
            if names[-1] in RULE_FILES:
                rescan = "watch"
            if os.path.isdir(absolute) and not os.path.islink(absolute):
                folders.add(WorkspacePath(path))
                if kind == ADDED:
                    added.add(WorkspacePath(path))
            else:
                paths.add(WorkspacePath(path))
                if kind == DELETED:
                    folders.add(WorkspacePath(path))  # what it was can't be known any more
        return Hints(frozenset(paths), frozenset(folders), rescan, frozenset(added))
