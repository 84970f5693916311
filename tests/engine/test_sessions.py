"""Which sessions end, and when."""

from __future__ import annotations

from typing import cast

import pytest

from orchestrator.core.events.base import Origin
from orchestrator.core.events.sessions import SessionOpened
from orchestrator.core.ids import AgentName, SessionId
from orchestrator.engine.caller import Caller
from orchestrator.engine.reads.stale_read_notices import StaleReadNotifier
from orchestrator.engine.services import Services
from orchestrator.engine.sessions import SessionLifecycle
from tests.engine.parts import services_of
from tests.in_memory.workspace import MemoryWorkspace

pytestmark = pytest.mark.anyio


@pytest.fixture
def services() -> Services:
    return services_of(MemoryWorkspace())


async def test_a_session_that_was_resumed_before_the_start_is_finished_stays_open(services: Services) -> None:
    """As on a full disk, where callers are let in first and the rest of the start is done later."""
    agent, both = AgentName("alice"), (SessionId("s-gone"), SessionId("s-here"))
    for session in both:
        opened = SessionOpened(session=session, agent=agent, agent_class="cloud", transport="rpc", asserted=True)
        await services.notes.append(Origin(session=session, agent=agent), (f"session:{session}", opened))
    sessions = services.state.sessions
    lifecycle = SessionLifecycle(services.notes, sessions, cast(StaleReadNotifier, None))
    await lifecycle.opened(Caller(agent=agent, agent_class="cloud", session=both[1], transport="rpc"), "client")
    await lifecycle.close_left()
    assert [session.id for session in sessions if session.open] == [both[1]]
