"""A command of an agent's own shell, right after the daemon's start."""

from __future__ import annotations

import anyio
import pytest

from orchestrator.api.native_edits import NATIVE_BEFORE, NativeBefore, NativePermit
from orchestrator.core.ids import AgentName, SessionId, WorkspacePath
from orchestrator.engine import native_commands
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.commands.execution import NOT_KEPT
from orchestrator.engine.external.batch_import import BatchImporter
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.external.watch import Watching
from orchestrator.engine.names import Names
from orchestrator.engine.native_calls import NativeCalls
from orchestrator.engine.native_commands import NativeCommands
from orchestrator.engine.reads.stale_read_notices import StaleReadNotifier
from orchestrator.engine.sessions import SessionLifecycle
from tests.engine.parts import read_sets_of, services_of
from tests.in_memory.workspace import MemoryWorkspace

pytestmark = pytest.mark.anyio

POLICY = """
name = "builds"
default = "deny"

[[rule]]
name = "builds"
agents = ["*"]
actions = ["run"]
paths = ["**"]
commands = ["make **"]
verdict = "allow"
"""

CALLER = Caller(agent=AgentName("claude"), agent_class="cloud", session=SessionId("s"), transport="rpc")


class Started:
    """A daemon that has just begun: the contents of the files there are, are not kept yet."""

    def __init__(self) -> None:
        workspace = MemoryWorkspace()
        workspace.put("before.txt", b"of somebody else\n")
        services = services_of(workspace, policy=POLICY)
        self.files = services.state.registry
        observer, names = Observer(services), Names(workspace, workspace.ignore, services.state.registry, None)
        self.importer = BatchImporter(services, observer, names)
        watching = Watching(observer, self.importer, names, None)
        notifier = StaleReadNotifier(services, observer, read_sets_of(services))
        gate = ApproverGate(services.clock, services.entropy, services.notes, services.state.identities)
        lifecycle = SessionLifecycle(services.notes, services.state.sessions, notifier, gate)
        self._commands = NativeCommands(services, watching, NativeCalls(services, observer.claims, lifecycle))

    async def permit(self) -> NativePermit:
        params = NativeBefore(client="claude", tool="Bash", kind="command", call="1", command="make")
        return await self._commands.permit(CALLER, Call(operation=NATIVE_BEFORE, params=params), params)


async def test_it_waits_until_the_files_there_are_can_be_restored() -> None:
    daemon, permits = Started(), list[NativePermit]()

    async def run() -> None:
        permits.append(await daemon.permit())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        assert permits == []
        daemon.importer.kept.set()
    assert [permit.warnings for permit in permits] == [()]


async def test_it_is_told_what_was_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_commands, "KEPT_S", 0)
    assert (await Started().permit()).warnings == (NOT_KEPT,)


async def test_what_changed_before_it_is_on_record_as_somebody_elses() -> None:
    daemon = Started()
    daemon.importer.kept.set()
    await daemon.permit()
    assert daemon.files.get(WorkspacePath("before.txt")) is not None
