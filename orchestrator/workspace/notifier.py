"""Watches for changes with watchfiles, where inotify does not exist (macOS)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from orchestrator.core.events.files import ExternalTrigger
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import valid_name
from orchestrator.ports.workspace import Hints
from orchestrator.workspace.ignore import BUILT_IN, RULE_FILES, IgnoreRules, is_temp

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

DEBOUNCE_MS, STEP_MS, TURN_MS = 50, 20, 1000
ADDED, DELETED = 1, 3

RESCAN_S = 300.0
"""watchfiles does not report lost hints, so everything is looked at this often."""


class FilesWatcher:
    """See `ports.Watcher`. One watch on the root, with all below it; what is ignored is filtered after.

    watchfiles stops for good at a name that is no UTF-8; it is started anew then, with a rescan.
    """

    def __init__(self, root: str, ignore: IgnoreRules, *, rescan_s: float = RESCAN_S) -> None:
        self._root, self._ignore, self._rescan_s = root, ignore, rescan_s
        self._notify: RustNotify | None = None
        self._stop = threading.Event()
        self._trouble = ""

    @property
    def health(self) -> str:
        trouble = self._trouble
        return f"degraded: {trouble}; a full rescan runs every {self._rescan_s:g} s" if trouble else "live"

    def start(self) -> None:
        try:
            from watchfiles._rust_notify import RustNotify

            self._notify = RustNotify([self._root], False, False, 0, True, True)
        except (ImportError, OSError, RuntimeError) as error:
            self._trouble = f"watchfiles can't watch here: {error}"
        else:
            self._trouble = ""

    def follows(self, folder: WorkspacePath) -> bool:
        return True

    def follow(self, folder: WorkspacePath) -> None:
        """Everything is watched."""

    def close(self) -> None:
        self._stop.set()
        if self._notify is not None:
            self._notify.close()

    async def hints(self) -> AsyncIterator[Hints]:
        looked = time.monotonic()
        try:
            while True:
                notify = self._notify
                if notify is None:
                    await anyio.sleep(self._rescan_s)
                    yield Hints(rescan="scan")
                    await to_thread.run_sync(self.start)
                    continue
                turn = partial(notify.watch, DEBOUNCE_MS, STEP_MS, TURN_MS, self._stop)
                try:
                    found = await to_thread.run_sync(turn, abandon_on_cancel=True)
                except RuntimeError:
                    await anyio.sleep(TURN_MS / 1000)
                    await to_thread.run_sync(self.start)
                    yield Hints(rescan="overflow")
                    continue
                if isinstance(found, set):
                    hints = self._sorted(found)
                    if hints.paths or hints.folders or hints.rescan:
                        yield hints
                elif time.monotonic() - looked >= self._rescan_s:
                    looked = time.monotonic()
                    yield Hints(rescan="scan")
        finally:
            self._stop.set()

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
