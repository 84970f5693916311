"""What is closed to one command, and whether it still is: a mount on a file falls when the file is replaced."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

import anyio
from anyio import to_thread

from orchestrator.core.content import Signature
from orchestrator.core.errors import escaped
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import ancestors
from orchestrator.core.policy.rules import Allow
from orchestrator.engine.caller import Caller
from orchestrator.engine.commands.closed_paths import ClosedPathFinder, ClosedPaths
from orchestrator.engine.commands.kept_output import KeptOutput
from orchestrator.engine.services import Services

PAUSE_S = 0.05
"""Between two looks, at least: output that comes meanwhile waits for the second."""

SHARE = 20
"""The pause is so many times as long as the look took."""

IDLE_S = 0.05
"""Without output it is looked again after a pause and this."""

MOST_HELD = 8 << 20
"""Bytes that wait for a look; then the command waits."""

State = tuple[tuple[int, int], Signature | None] | None
"""Of a path: what is there; of what is no directory, also its times. None: nothing is there."""


class Cover:
    """Of one command. Output is accepted only after a look that found all as it was, begun after it was read."""

    def __init__(
        self, services: Services, finder: ClosedPathFinder, caller: Caller, output: KeptOutput, stop: Callable[[], None]
    ) -> None:
        self._s, self._finder, self._caller, self._output, self._stop = services, finder, caller, output, stop
        self._known: frozenset[WorkspacePath] = frozenset()
        self._hidden: frozenset[WorkspacePath] = frozenset()
        self._states: dict[WorkspacePath, State] = {}
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._came, self._accepted = anyio.Event(), anyio.Event()
        self._looking = anyio.Lock()
        self._begun, self._over = anyio.Event(), anyio.Event()
        self.fallen = ""
        """Why the command was ended, or is to be."""

    # --- its beginning and end ------------------------------------------------------------

    async def begin(self, *, in_place: bool) -> ClosedPaths:
        """What is to be covered. In a copy nothing is read-only."""
        await self._s.covers.begin(self)
        try:
            return await to_thread.run_sync(self._begin, in_place)
        finally:
            self._begun.set()

    def _begin(self, in_place: bool) -> ClosedPaths:
        closed = self._finder.closed_to(self._caller)
        self._hidden = frozenset(closed.hidden)
        self._known = self._hidden.union(closed.read_only if in_place else ())
        self._actions = ("read", "write") if in_place else ("read",)
        outer = [path for path in sorted(self._known) if self._known.isdisjoint(ancestors(path))]
        self._states = self._present(outer)
        return closed

    def end(self) -> None:
        """Nothing of the command runs."""
        self._begun.set()
        self._over.set()
        self._s.covers.end(self)

    async def fall(self, paths: Collection[WorkspacePath]) -> None:
        """See `Covered`."""
        await self._begun.wait()
        path = next(filter(self._closed, paths), None)
        if path is not None and not self._over.is_set():
            self._end_for(path)
            await self._over.wait()

    def _closed(self, path: WorkspacePath) -> bool:
        """Closed, or to be, other than by the directory that it is in."""
        if not self._known.isdisjoint(ancestors(path)):
            return False
        verdict = self._s.permissions.verdict
        return path in self._known or any(
            not isinstance(verdict(self._caller, "write" if action == "write" else "read", path), Allow)
            for action in self._actions
        )

    def _end_for(self, path: WorkspacePath) -> None:
        if not self.fallen:
            self.fallen = (
                f"{escaped(path)}, which is closed to it, was changed, replaced or made while the command ran, so "
                "nothing covered it any more: the command was ended, and what it wrote to its output since is left "
                "out. Run it again."
            )
            self._accepted.set()
            self._stop()

    # --- looks ------------------------------------------------------------------------------

    async def take(self, data: bytes) -> None:
        """Output that was read."""
        if self.fallen:
            return
        self._held.append(data)
        self._held_bytes += len(data)
        self._came.set()
        while self._held_bytes > MOST_HELD and not self.fallen:
            await self._accepted.wait()

    async def keep(self) -> None:
        """Look again and again, until something has changed."""
        took = 0.0
        while not self.fallen:
            await anyio.sleep(max(PAUSE_S, took * SHARE) if took else 0)
            with anyio.move_on_after(IDLE_S):
                await self._came.wait()
            started = time.monotonic()
            await self.look()
            took = time.monotonic() - started

    async def look(self) -> None:
        """Accept what was read until now, or drop it and have the command ended."""
        async with self._looking:
            held, self._held, self._held_bytes = self._held, [], 0
            self._came = anyio.Event()
            with anyio.CancelScope(shield=True):  # what was taken out is accepted, or dropped for a reason
                path = None if self.fallen else await to_thread.run_sync(self._changed)
            if path is not None:
                self._end_for(path)
            if not self.fallen:
                for data in held:
                    self._output.add(data)
            self._accepted.set()
            self._accepted = anyio.Event()

    def _changed(self) -> WorkspacePath | None:
        """A path that is not as it was, or that is to be hidden now. Blocking."""
        present = self._present(self._states)
        for path, state in self._states.items():
            if present[path] != state:
                return path
        came = set(self._finder.closed_to(self._caller).hidden) - self._hidden
        return min(
            (path for path in came if self._known.isdisjoint(ancestors(path)) or path in self._known), default=None
        )

    def _present(self, paths: Iterable[WorkspacePath]) -> dict[WorkspacePath, State]:
        asked = list(paths)
        found = zip(asked, self._s.workspace.stats(asked), strict=True)
        return {
            path: (stat.identity, None if stat.kind == "directory" else stat.signature) if stat is not None else None
            for path, stat in found
        }
