"""All acts of one change are judged by one policy."""

from __future__ import annotations

import anyio
import pytest

from orchestrator.core.change import PermissionCheck
from orchestrator.core.errors import Denied
from orchestrator.core.ids import AgentName, SessionId, WorkspacePath
from orchestrator.core.policy.parse import parse_policy
from orchestrator.engine.caller import Caller
from orchestrator.engine.permissions import SLICE
from tests.engine.parts import OPEN, services_of
from tests.in_memory.workspace import MemoryWorkspace

pytestmark = pytest.mark.anyio

BOB = Caller(agent=AgentName("bob"), agent_class="cloud", session=SessionId("s-1"), transport="rpc")
STRICTER = parse_policy(
    f'{OPEN}[[rule]]\nname = "first"\nagents = ["*"]\nactions = ["write"]\npaths = ["/f0"]\nverdict = "deny"\n',
    source="test",
)


async def test_a_policy_that_changes_meanwhile_judges_all_acts_anew() -> None:
    permissions = services_of(MemoryWorkspace()).permissions
    checks = [PermissionCheck("write", WorkspacePath(f"f{number}")) for number in range(3 * SLICE)]
    assert (await permissions.asks(BOB, checks)).asks == ()
    refused: list[str] = []

    async def ask() -> None:
        with pytest.raises(Denied) as denied:
            await permissions.asks(BOB, iter(checks))
        refused.append(denied.value.details["path"])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.lowlevel.checkpoint()  # the first acts are judged
        permissions.policy = STRICTER
    assert refused == ["f0"]
