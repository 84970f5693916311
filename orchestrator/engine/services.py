"""What every part of the engine works with; made once, by the composition root."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import anyio.abc

from orchestrator.core.errors import OrchestratorError, WorkspaceMoved
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.sessions import AgentRevoked, SessionClosed
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.rules import Policy
from orchestrator.core.projections.state import State
from orchestrator.core.projections.versions import RecentVersions
from orchestrator.engine.access import AccessGate
from orchestrator.engine.caches import Caches
from orchestrator.engine.contents import Contents
from orchestrator.engine.covers import Covers
from orchestrator.engine.limits import Limits
from orchestrator.engine.locks import PathLocks
from orchestrator.engine.notes import Notes
from orchestrator.engine.past_versions import PastVersions
from orchestrator.engine.paths import Paths
from orchestrator.engine.permissions import Permissions
from orchestrator.engine.redaction import Redaction
from orchestrator.logs import logger
from orchestrator.ports.journal import Journal
from orchestrator.ports.machine import Cache, Clock, Entropy, Estimate, Parser, Step, TokenCounter, Workers
from orchestrator.ports.workspace import Ignore, TextSweep, Workspace

OFF_LOOP_BYTES = 64 * 1024
"""Decisions on larger texts run in a worker thread, so that other callers are answered meanwhile."""

CHECK_S = 60.0
"""How often, at least, it is checked whether something is due."""


class StateChanges:
    """Wakes those that wait for an event about a file, an approval, a conflict, a lease or a grant, or an end of who
    may have one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moved = anyio.Event()

    def apply(self, recorded: Recorded) -> None:
        """Wake them, if the event is about one."""
        about = recorded.stream.startswith(("approval:", "conflict:", "file:", "lease:", "grant:"))
        if about or isinstance(recorded.event, SessionClosed | AgentRevoked):
            moved, self._moved = self._moved, anyio.Event()
            moved.set()

    def next(self) -> anyio.Event:
        """Set by the next such event; take it before you look at the state."""
        return self._moved

    async def until(self, moved: anyio.Event, due_ms: int | None) -> None:
        """Wait for a change or for a time that is due; CHECK_S at most, as the wall clock may jump."""
        wait_s = CHECK_S if due_ms is None else min(CHECK_S, max(0.0, (due_ms - self._clock.now_ms()) / 1000))
        with anyio.move_on_after(wait_s):
            await moved.wait()


class Growth:
    """Wakes those that wait for the journal to reach a position."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._waiting: list[tuple[int, anyio.Event]] = []
        journal.subscribe(self._wake)

    def _wake(self, recorded: Recorded) -> None:
        for head, reached in self._waiting:
            if head <= recorded.seq:
                reached.set()

    async def reach(self, head: int) -> None:
        """Return when the journal's head is there, at once if it is."""
        if self._journal.head < head:
            waiting = (head, anyio.Event())
            self._waiting.append(waiting)
            try:
                await waiting[1].wait()
            finally:
                self._waiting.remove(waiting)


class Background:
    """Work that no caller waits for; it ends before the daemon does."""

    def __init__(self) -> None:
        self.tasks: anyio.abc.TaskGroup | None = None
        self._log = logger("engine")

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start work; its failures are logged, and left for the next start to repair."""
        if self.tasks is None:
            raise RuntimeError("the engine is not running")
        self.tasks.start_soon(self.log_failures, work)

    async def log_failures(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Work whose failure must not be reported as that of a change that is done."""
        try:
            await work()
        except (OrchestratorError, OSError) as error:
            self._log.error("work in the background failed", work=repr(work), error=str(error))


class Services:
    """The ports, the present state, and the parts that the rooms share; each room takes the few that it uses."""

    def __init__(  # noqa: PLR0913  # the ports, made once by the composition root
        self,
        *,
        journal: Journal,
        workspace: Workspace,
        ignore: Ignore,
        policy: Policy,
        clock: Clock,
        entropy: Entropy,
        state: State,
        parser: Parser,
        workers: Workers,
        cache: Cache,
        sweep: TextSweep | None = None,
        tokens: TokenCounter | None = None,
        step: Step = lambda name: None,
    ) -> None:
        self.journal, self.workspace, self.ignore = journal, workspace, ignore
        self.parser, self.workers, self.cache = parser, workers, cache
        self.covers = Covers()
        self.caches = Caches()
        self.caches.add("outlines", parser.outlines)
        self.caches.add("line indexes", self.cache)
        self.tokens = tokens or Estimate()
        self.sweep = sweep
        """None: every file is read."""
        self.clock, self.entropy, self.state, self.step = clock, entropy, state, step
        self.notes = Notes(journal)
        self.permissions = Permissions(policy, state, workspace, self.notes, clock)
        self.limits = Limits(self.permissions, state, self.notes, clock)
        self.access = AccessGate(self.permissions, state, self.notes, clock)
        self.redaction = Redaction(self.permissions, entropy.bytes(32), self.workers)
        self.contents = Contents(
            journal,
            state.encodings,
            self.workers,
            most_of_one=lambda: self.permissions.policy.limits.in_memory_bytes,
        )
        self.recent = RecentVersions(state.registry)
        self.locks, self.paths = PathLocks(), Paths(workspace.root)
        self.past = PastVersions(journal, self.contents, state, self.permissions, self.locks)
        self.must_reread: set[WorkspacePath] = set()
        """Paths where a swap met other content than their stat promised: the next look reads them."""
        self.background, self.state_changes = Background(), StateChanges(clock)
        journal.subscribe(self._fold)

    def check_in_place(self) -> None:
        """Raises WorkspaceMoved where the workspace's folder is not the one any more that the daemon was started on."""
        if not self.workspace.in_place():
            raise WorkspaceMoved(f"{self.workspace.root} was deleted, moved or replaced since the daemon started")

    def _fold(self, recorded: Recorded) -> None:
        self.recent.apply(recorded)  # against the registry as it was
        self.state.apply(recorded)
        self.state_changes.apply(recorded)
