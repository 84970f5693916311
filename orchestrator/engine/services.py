"""What every part of the engine works with; made once, by the composition root."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import anyio
import anyio.abc

from orchestrator.core.decisions.decision import Source
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.events.base import Recorded
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.policy.rules import Policy
from orchestrator.core.projections.recent_versions import RecentVersions
from orchestrator.core.projections.state import State
from orchestrator.core.text.symbols import Outline
from orchestrator.engine.contents import Contents
from orchestrator.engine.locks import PathLocks
from orchestrator.engine.notes import Notes
from orchestrator.engine.permissions import Permissions
from orchestrator.logs import logger
from orchestrator.ports.journal import Journal
from orchestrator.ports.machine import Clock, Entropy, Step
from orchestrator.ports.workers import Parser, PlainParser, ThreadWorkers, Workers
from orchestrator.ports.workspace import Ignore, Workspace

OFF_LOOP_BYTES = 64 * 1024
"""Decisions on larger texts run in a worker thread, so that other callers are answered meanwhile."""

CHECK_S = 60.0
"""How often, at least, it is checked whether something is due."""

MAX_FILE_BYTES = 50 * 1024 * 1024
"""Larger files are `too_large` in this version."""


class Services:
    """The ports, the present state, and the few acts that all parts share."""

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
        step: Step = lambda name: None,
        parser: Parser | None = None,
        effort: Workers | None = None,
    ) -> None:
        self.journal, self.workspace, self.ignore = journal, workspace, ignore
        self.parser: Parser = parser or PlainParser()
        self.workers: Workers = effort or ThreadWorkers()
        self.clock, self.entropy, self.state, self.step = clock, entropy, state, step
        self.permissions = Permissions(policy, state.identities, workspace)
        self.notes = Notes(journal)
        self.contents = Contents(journal, state.encodings, self.workers)
        self.recent = RecentVersions(state.registry)
        self.locks = PathLocks()
        self.must_reread: set[WorkspacePath] = set()
        """Paths where a swap met other content than their stat promised: the next look reads them."""
        self.tasks: anyio.abc.TaskGroup | None = None
        self._log = logger("engine")
        self._moved = anyio.Event()
        journal.subscribe(self._fold)
        # The acts of these parts that nearly every room needs, by their own names.
        self.append, self.note = self.notes.append, self.notes.note
        self.note_shown, self.note_metadata = self.notes.note_shown, self.notes.note_metadata
        self.verdict, self.permit = self.permissions.verdict, self.permissions.permit
        self.readable, self.listable = self.permissions.readable, self.permissions.listable
        self.readable_to, self.hidden_from_all = self.permissions.readable_to, self.permissions.hidden_from_all

    @property
    def policy(self) -> Policy:
        """The policy as it is now."""
        return self.permissions.policy

    def _fold(self, recorded: Recorded) -> None:
        self.recent.apply(recorded)  # against the registry as it was
        self.state.apply(recorded)
        if recorded.stream.startswith(("approval:", "conflict:", "file:", "lease:")):
            moved, self._moved = self._moved, anyio.Event()
            moved.set()

    def next_state_change(self) -> anyio.Event:
        """Set by the next event about a file, an approval, a conflict or a lease; take it before you look."""
        return self._moved

    async def until(self, moved: anyio.Event, due_ms: int | None) -> None:
        """Wait for a move or for a time that is due; CHECK_S at most, as the wall clock may jump."""
        wait_s = CHECK_S if due_ms is None else min(CHECK_S, max(0.0, (due_ms - self.clock.now_ms()) / 1000))
        with anyio.move_on_after(wait_s):
            await moved.wait()

    def in_background(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start work that the caller need not wait for; it ends before the daemon does.

        Its failures are logged, and left for the next start to repair.
        """
        if self.tasks is None:
            raise RuntimeError("the engine is not running")
        self.tasks.start_soon(self.log_failures, work)

    async def log_failures(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Work whose failure must not be reported as that of a change that is done."""
        try:
            await work()
        except (OrchestratorError, OSError) as error:
            self._log.error("work in the background failed", work=repr(work), error=str(error))

    async def outlines(self, sources: Iterable[Source]) -> dict[Digest, Outline | None]:
        """What a decision asks for."""
        return {source.digest: await self.parser.outline(source.path, source.digest, source.data) for source in sources}

    def token(self, count: int = 8) -> str:
        """Random hex."""
        return self.entropy.bytes(count).hex()
