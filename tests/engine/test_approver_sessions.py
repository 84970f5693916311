"""Approver sessions: who gave the code once, on which connection, and when they are over by a clock that is moved."""

from __future__ import annotations

import anyio
import msgspec
import pytest

from orchestrator.api.administration import APPROVER_OPEN
from orchestrator.api.parameters import Approving
from orchestrator.core.errors import ApproverCodeNeeded
from orchestrator.core.events.sessions import (
    ApproverCodeRefused,
    ApproverSessionClosed,
    ApproverSessionEnd,
    ApproverSessionOpened,
)
from orchestrator.core.ids import AgentName, SessionId
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller
from orchestrator.machine import SystemEntropy
from tests.engine.parts import services_of
from tests.engine.test_leases import MovedClock
from tests.in_memory.journal import MemoryJournal
from tests.in_memory.workspace import MemoryWorkspace

pytestmark = pytest.mark.anyio

MINUTE_MS = 60_000
ANN = Caller(
    agent=AgentName("person:ann"), agent_class="person", session=SessionId("s-1"), transport="rpc", connection=7, pid=42
)
ELSEWHERE = msgspec.structs.replace(ANN, connection=8)
CALL = Call(operation=APPROVER_OPEN, params=Approving())


class Desk:
    """A gate whose code is known, over a journal in memory."""

    def __init__(self) -> None:
        self.clock = MovedClock()
        self.journal = MemoryJournal(clock=self.clock, entropy=SystemEntropy())
        services = services_of(MemoryWorkspace(), journal=self.journal, clock=self.clock)
        self.gate = ApproverGate(self.clock, services.entropy, services.notes, services.state.identities)

    async def opened(self) -> str:
        code = await self.gate.create()
        assert code is not None
        await self.gate.open_session(ANN, CALL, code)
        return code

    async def ends(self) -> list[ApproverSessionEnd]:
        """Why each one ended, oldest first."""
        events = [recorded.event async for recorded in self.journal.events()]
        return [event.cause for event in events if isinstance(event, ApproverSessionClosed)]


async def test_the_code_is_given_once_for_a_connection() -> None:
    desk = Desk()
    with pytest.raises(ApproverCodeNeeded):
        await desk.gate.check(ANN, None)
    code = await desk.opened()
    await desk.gate.check(ANN, None)
    with pytest.raises(ApproverCodeNeeded):
        await desk.gate.check(ELSEWHERE, None)  # another process in the same terminal's session
    with pytest.raises(ApproverCodeNeeded):
        await desk.gate.replace(ANN, None, None)  # the code itself is replaced by who types it
    await desk.gate.check(ELSEWHERE, code)
    events = [recorded async for recorded in desk.journal.events()]
    assert [(one.agent, one.event) for one in events][1:] == [(ANN.agent, ApproverSessionOpened(pid=42))]


async def test_it_ends_when_nothing_was_decided_for_a_quarter_of_an_hour() -> None:
    desk = Desk()
    code = await desk.opened()
    for _ in range(3):
        desk.clock.ms += 14 * MINUTE_MS
        await desk.gate.check(ANN, None)
    desk.clock.ms += 15 * MINUTE_MS + 1
    with pytest.raises(ApproverCodeNeeded, match="ended: nothing was decided in it for 15 minutes"):
        await desk.gate.check(ANN, None)
    with pytest.raises(ApproverCodeNeeded, match="this needs the approver code"):
        await desk.gate.check(ANN, None)
    assert await desk.ends() == ["idle"]
    await desk.gate.open_session(ANN, CALL, code)
    await desk.gate.check(ANN, None)
    desk.clock.ms += 15 * MINUTE_MS + 1
    await desk.gate.expire()  # as the daemon does each minute, whether or not anybody asks
    assert await desk.ends() == ["idle", "idle"]
    with pytest.raises(ApproverCodeNeeded, match="ended: nothing was decided in it for 15 minutes"):
        await desk.gate.check(ANN, None)
    await desk.gate.end_session(ANN)
    assert await desk.ends() == ["idle", "idle"]


async def test_a_code_from_an_agents_client_is_checked_after_those_of_people_at_their_terminals() -> None:
    desk = Desk()
    code = await desk.gate.create()
    in_a_form = msgspec.structs.replace(ANN, connection=99, via=AgentName("mallory"))
    with pytest.raises(ApproverCodeNeeded):
        await desk.gate.check(in_a_form, "wrong")  # for a while now nobody's is checked
    desk.gate._right = None  # as after a restart
    with anyio.CancelScope() as until_it_is_ann_s_turn:
        async with anyio.create_task_group() as waiting:

            async def ann() -> None:
                await desk.gate.check(ANN, code)
                until_it_is_ann_s_turn.cancel()

            waiting.start_soon(ann)
            waiting.start_soon(desk.gate.check, in_a_form, "wrong too")
            await anyio.wait_all_tasks_blocked()
            desk.clock.ms += MINUTE_MS
    refused = [one async for one in desk.journal.events() if isinstance(one.event, ApproverCodeRefused)]
    assert len(refused) == 1


async def test_it_ends_with_the_connection_and_with_the_code() -> None:
    desk = Desk()
    code = await desk.opened()
    await desk.gate.end_session(ANN)
    await desk.gate.end_session(ELSEWHERE)
    with pytest.raises(ApproverCodeNeeded):
        await desk.gate.check(ANN, None)
    await desk.gate.open_session(ANN, CALL, code)
    await desk.gate.replace(ELSEWHERE, code, None)
    with pytest.raises(ApproverCodeNeeded):
        await desk.gate.check(ANN, None)
    assert await desk.ends() == ["disconnected", "code_replaced"]
