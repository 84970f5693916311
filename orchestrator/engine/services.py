"""What every part of the engine works with; made once, by the composition root."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any

import anyio
import anyio.abc

from orchestrator.core.content import LineHunk
from orchestrator.core.decisions.decision import Source
from orchestrator.core.decisions.rebase import line_hunks
from orchestrator.core.errors import Denied, DiskFull, OrchestratorError, WritesStopped, escaped
from orchestrator.core.events.base import Event, Origin, Recorded
from orchestrator.core.events.files import MetadataRead
from orchestrator.core.ids import AgentName, Digest, EscapedPath, Seq, WorkspacePath
from orchestrator.core.policy.evaluate import evaluate, hidden_from_all
from orchestrator.core.policy.rules import Action, Allow, Deny, NeedApproval, Policy, Request, Verdict
from orchestrator.core.projections.recent_versions import RecentVersions
from orchestrator.core.projections.state import State
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.symbols import Outline
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.contents import Comparisons, Contents
from orchestrator.engine.locks import PathLocks
from orchestrator.logs import logger
from orchestrator.ports.journal import ANY_VERSION, Journal, NewEvent, Unit
from orchestrator.ports.machine import Clock, Entropy, Step
from orchestrator.ports.parser import Parser, PlainParser
from orchestrator.ports.workers import Effort, InThreads
from orchestrator.ports.workspace import Ignore, Workspace

OFF_LOOP_BYTES = 64 * 1024
"""Decisions on larger texts run in a worker thread, so that other callers are answered meanwhile."""

MAX_FILE_BYTES = 50 * 1024 * 1024
"""Larger files are `too_large` in this version."""


class Services:
    """The ports, the present state, and the few acts that all parts share."""

    def __init__(
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
        effort: Effort | None = None,
    ) -> None:
        self.journal, self.workspace, self.ignore = journal, workspace, ignore
        self.parser: Parser = parser or PlainParser()
        self.effort: Effort = effort or InThreads()
        self.clock, self.entropy, self.state, self.step = clock, entropy, state, step
        self.policy = policy
        self.contents = Contents(journal, state.encodings)
        self.comparisons = Comparisons()
        self.recent = RecentVersions(state.registry)
        self.locks = PathLocks()
        self.suspect: set[WorkspacePath] = set()
        """Paths where a swap met other content than their stat promised: the next look reads them."""
        self.tasks: anyio.abc.TaskGroup | None = None
        self.unnoted = 0
        """Reads and refusals that were answered while the journal could not take them."""
        self._log = logger("engine")
        self._moved = anyio.Event()
        journal.subscribe(self._fold)

    def _fold(self, recorded: Recorded) -> None:
        self.recent.apply(recorded)  # against the registry as it was
        self.state.apply(recorded)
        if recorded.stream.startswith(("approval:", "conflict:", "file:", "lease:")):
            moved, self._moved = self._moved, anyio.Event()
            moved.set()

    def next_move(self) -> anyio.Event:
        """Set by the next event about a file, an approval, a conflict or a lease; take it before you look."""
        return self._moved

    async def append(self, origin: Origin, *events: tuple[str, Event]) -> tuple[Recorded, ...]:
        """Append facts to streams whose version does not matter to them."""
        return await self.journal.append(
            Unit(tuple(NewEvent(stream, event, ANY_VERSION) for stream, event in events), origin)
        )

    async def note(self, origin: Origin, *events: tuple[str, Event]) -> None:
        """Append what an answer does not hang on: while the journal can take nothing, reads go on without."""
        try:
            await self.append(origin, *events)
        except (DiskFull, WritesStopped) as error:
            if not self.unnoted:
                self._log.error("reads are answered and not noted", error=error.message, hint=error.hint)
            self.unnoted += 1

    async def note_shown(self, caller: Caller, call: Call | None, *events: Event) -> None:
        """As `note`, in the stream of the caller's session: what an answer showed."""
        await self.note(caller.origin(call), *((f"session:{caller.session}", event) for event in events))

    async def note_metadata(self, caller: Caller, call: Call, path: WorkspacePath) -> None:
        """Note that facts about a path were shown, and none of its lines."""
        await self.note_shown(
            caller, call, MetadataRead(operation=call.operation.name, path=EscapedPath(escaped(path)))
        )

    def in_background(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start work that the caller need not wait for; it ends before the daemon does.

        What fails in it is logged, and left for the next start to put right.
        """
        if self.tasks is None:
            raise RuntimeError("the engine is not running")
        self.tasks.start_soon(self.fenced, work)

    async def fenced(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Work for which a change that is done must not be told as failed."""
        try:
            await work()
        except (OrchestratorError, OSError) as error:
            self._log.error("work in the background failed", work=repr(work), error=str(error))

    async def outlines(self, sources: Iterable[Source]) -> dict[Digest, Outline | None]:
        """What a decision asks for."""
        return {source.digest: await self.parser.outline(source.path, source.digest, source.data) for source in sources}

    async def line_hunks(self, old: Document, new: Document) -> tuple[LineHunk, ...]:
        """What makes one text the other; large ones are compared in a worker. Raises TextTooCostly."""
        if old.line_count + new.line_count > OFF_LOOP_BYTES // 32:
            return await self.effort.run(partial(line_hunks, old, new))
        return line_hunks(old, new)

    def token(self, count: int = 8) -> str:
        """Random hex."""
        return self.entropy.bytes(count).hex()

    # --- policy ---------------------------------------------------------------------

    def verdict(
        self,
        caller: Caller,
        action: Action,
        path: WorkspacePath,
        *,
        others_work: bool = False,
        directory: bool = False,
        on_disk: bool = False,
    ) -> Verdict:
        """What policy says of this act; with `on_disk` also by what the path leads to, whatever its spelling."""
        request = Request(
            agent=caller.agent,
            agent_class=caller.agent_class,
            action=action,
            path=path,
            others_work=others_work,
            directory=directory,
            is_git=on_disk and self._is_git(path),
        )
        return evaluate(self.policy, request)

    def _is_git(self, path: WorkspacePath) -> bool:
        """Whether a directory in the path is a repository's `.git` under another name: (device, inode) tell.

        Some file systems know one directory by several spellings. Raises the PathError family.
        """
        above = ""
        for name in path.split("/"):
            here = f"{above}/{name}" if above else name
            git = self.workspace.identity(WorkspacePath(f"{above}/.git" if above else ".git"))
            if git is not None and git == self.workspace.identity(WorkspacePath(here)):
                return True
            above = here
        return False

    def permit(
        self,
        caller: Caller,
        action: Action,
        path: WorkspacePath,
        *,
        directory: bool = False,
        on_disk: bool = False,
    ) -> Allow | NeedApproval:
        """As `verdict`. Raises Denied."""
        verdict = self.verdict(caller, action, path, directory=directory, on_disk=on_disk)
        if isinstance(verdict, Deny):
            raise denied(action, path, verdict)
        return verdict

    def readable(self, caller: Caller, path: WorkspacePath) -> bool:
        """Whether the caller may be shown content of a path without asking anybody."""
        return isinstance(self.verdict(caller, "read", path), Allow)

    def listable(self, caller: Caller, path: WorkspacePath) -> bool:
        """Whether the caller may know of a path."""
        return not isinstance(self.verdict(caller, "list", path), Deny)

    def hidden_from_all(self, path: WorkspacePath) -> bool:
        """Whether nobody may read a path: its content is kept when it is to be changed, and not before."""
        return hidden_from_all(self.policy, path)

    def readable_to(self, agent: AgentName | None, *paths: WorkspacePath) -> bool:
        """The same of an agent that is not calling now; of nobody's work everything."""
        if agent is None:
            return True
        known = self.state.identities.get(agent)
        agent_class = known.agent_class if known else "cloud"
        return all(
            isinstance(evaluate(self.policy, Request(agent, agent_class, "read", path)), Allow) for path in paths
        )

    def holder_of(self, path: WorkspacePath) -> tuple[AgentName, Seq] | None:
        """Who alone has reserved a path, and the lease; None unless that is certain."""
        return self.state.leases.holder_of(path, self.clock.now_ms())

    def agent_exists(self, name: AgentName) -> bool:
        return self.state.identities.get(name) is not None


def denied(action: Action, path: WorkspacePath, verdict: Deny) -> Denied:
    """The refusal of an act that policy forbids."""
    return Denied(
        f"{action} {escaped(path)}: {verdict.reason}",
        details={"path": escaped(path), "action": action, "rule": verdict.rule},
    )
