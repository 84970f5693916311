"""The engine and a real journal in the test's own process, over whatever disk the test hands in.

Where a fault is wanted at each call in turn, a process for every one of them would take hours.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
from structlog.testing import capture_logs

from orchestrator.api.framing import Preamble, Request
from orchestrator.api.journal_operations import JournalEntry
from orchestrator.api.operation import AnyOperation
from orchestrator.api.parameters import Params
from orchestrator.api.policy_files import shipped_policies
from orchestrator.api.results import Result
from orchestrator.api.sockets import PROTOCOL
from orchestrator.clients.connection import asked
from orchestrator.clients.python import FileAccess
from orchestrator.core.ids import AgentName, SessionId
from orchestrator.core.policy.parse import parse_policy
from orchestrator.embedding.index_program import IndexProgram
from orchestrator.engine.administration import DaemonFacts
from orchestrator.engine.caller import Caller
from orchestrator.engine.engine import Engine
from orchestrator.engine.policy_files import LoadedPolicy, PolicyFiles
from orchestrator.engine.record.folded_state import restored
from orchestrator.engine.services import Background, Services
from orchestrator.journal.maintenance import SqliteMaintenance
from orchestrator.journal.signatures import KeyFile
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.machine import SystemClock, SystemEntropy
from orchestrator.ports.machine import Step
from orchestrator.servers.auth import Authenticator
from orchestrator.servers.dispatch import Dispatcher
from orchestrator.workspace.command_confinement import Confinement
from orchestrator.workspace.confined_command import ConfinedCommands
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from orchestrator.workspace.scratch_tree import LocalScratchTrees
from tests.crash.scenarios import POLICY
from tests.in_memory.absent import NoCache, NoChecks, NoSummaries
from tests.in_memory.workers import PlainParser, ThreadWorkers


class Within(FileAccess):
    """The Python client without the socket: each call goes to the dispatcher as its line would.

    A refusal is raised as the engine raised it, with the same code.
    """

    def __init__(self, dispatcher: Dispatcher, caller: Caller) -> None:
        self._dispatcher, self._caller_within = dispatcher, caller

    async def _call(self, operation: AnyOperation, params: Params) -> Result:
        call = asked(0, operation, params)
        values = msgspec.json.decode(call.line)["params"]
        request = Request(method=operation.name, params=msgspec.Raw(msgspec.json.encode(values)))
        result = await self._dispatcher.run(self._caller_within, request)
        decoded: Result = msgspec.json.decode(msgspec.json.encode(result), type=operation.result)
        return decoded


class CountedBackground(Background):
    """Knows what goes on in the background."""

    _going = 0
    _quiet: anyio.Event

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def counted() -> None:
            try:
                await work()
            finally:
                self._going -= 1
                if not self._going:
                    self._quiet.set()

        if not self._going:
            self._quiet = anyio.Event()
        self._going += 1
        super().start(counted)

    async def quiet(self) -> None:
        """Return when no work is left."""
        while self._going:
            await self._quiet.wait()


class Inside:
    """One life of a daemon without its process."""

    def __init__(self, engine: Engine, services: Services, background: CountedBackground) -> None:
        self.engine, self.services, self._background = engine, services, background
        self._dispatcher = Dispatcher(engine)

    async def client(self, agent: str) -> Within:
        """Come in by the transport, as an agent."""
        preamble = Preamble(orchestrator=PROTOCOL, transport="rpc", agent=agent)
        services = self.services
        lifecycle = self.engine.lifecycle
        authenticator = Authenticator(
            services.notes, services.state, services.entropy, services.clock, lifecycle, uid=os.getuid()
        )
        caller = await authenticator.authenticate(preamble, os.getuid())
        await lifecycle.opened(caller, "test")
        return Within(self._dispatcher, caller)

    @property
    def person(self) -> Within:
        """The one at the keyboard."""
        name, session = AgentName("person:test"), SessionId("s-person")
        return Within(self._dispatcher, Caller(agent=name, agent_class="person", session=session, transport="rpc"))

    async def writes_stopped(self) -> bool:
        return (await self.person.status()).health.state == "writes_stopped"

    async def idle(self) -> None:
        """Return when nothing goes on behind the answers."""
        await self._background.quiet()

    async def events(self) -> list[JournalEntry]:
        """All of the journal, oldest first."""
        entries: list[JournalEntry] = []
        page = await self.person.journal_query(limit=200)
        entries += page.entries
        while page.cursor is not None:
            page = await self.person.journal_query(limit=200, cursor=page.cursor)
            entries += page.entries
        return entries[::-1]

    async def agrees(self) -> None:
        """Disk, journal and projections say the same."""
        await self.idle()
        report = await self.person.workspace_check()
        assert report.ok, report.differences
        replayed = await self.person.replay_check()
        assert replayed.ok, replayed.differences
        verified = await self.person.journal_verify()
        assert verified.ok, verified.problems
        rebuilt = await self.person.journal_rebuild()
        assert rebuilt.ok, rebuilt.first_difference
        assert self.services.workspace.temps() == []


@asynccontextmanager
async def living(
    state_dir: Path,
    root: Path,
    disk: Disk,
    *,
    step: Step = lambda name: None,
    leave: Callable[[], object] = lambda: None,
) -> AsyncIterator[Inside]:
    """From start and recovery to a clean stop; `leave` is called just before the journal is closed.

    What the daemon would log is dropped. Raises what the start raises.
    """
    with capture_logs():
        async with _living(state_dir, root, disk, step, leave) as life:
            yield life


@asynccontextmanager
async def _living(
    state_dir: Path, root: Path, disk: Disk, step: Step, leave: Callable[[], object]
) -> AsyncIterator[Inside]:
    clock, entropy = SystemClock(), SystemEntropy()
    journal = await SqliteJournal.open(state_dir, clock=clock, entropy=entropy, step=step)
    workspace = LocalWorkspace(str(root), disk=disk, step=step)
    try:
        services = Services(
            journal=journal,
            workspace=workspace,
            ignore=workspace.ignore,
            policy=parse_policy(POLICY, source="test"),
            clock=clock,
            entropy=entropy,
            state=await restored(journal),
            parser=PlainParser(),
            workers=ThreadWorkers(),
            cache=NoCache(),
            step=step,
        )
        services.background = background = CountedBackground()
        facts = DaemonFacts(
            landlock=workspace.landlock,
            commands="",
            pid=0,
            version="0",
            socket="",
            workspace_id="0",
            state_dir=str(state_dir),
            policies=PolicyFiles(lambda: (), lambda: None, shipped_policies()),
            loaded=LoadedPolicy(policy=services.permissions.policy, texts=()),
            stop=lambda: None,
        )
        engine = Engine(
            services,
            facts=facts,
            signer=KeyFile(state_dir),
            keeper=SqliteMaintenance(journal),
            reviewers={},
            runner=ConfinedCommands(Confinement("nothing"), workspace=str(workspace.root), own=(), name="crash"),
            scratch=LocalScratchTrees(workspace, services.ignore, state_dir / "scratch", Disk()),
            environment={},
            semantic=IndexProgram(state_dir, {}, None),
            checker=NoChecks(),
            summaries=NoSummaries(),
        )
        async with engine.running():
            yield Inside(engine, services, background)
    finally:
        leave()
        workspace.close()
        await journal.close()
