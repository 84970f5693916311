"""Sessions over HTTP by a clock that the test moves: when they begin, are shared, and end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.errors import RateLimited
from orchestrator.core.ids import AgentName, SessionId
from orchestrator.engine.caller import Caller
from orchestrator.servers.dispatch import MAX_OPEN_CALLS, Dispatcher
from orchestrator.servers.http_sessions import IDLE_US, MOST_OF_AGENT, HttpSessions
from orchestrator.servers.mcp import McpClient
from orchestrator.workspace.disk import Disk
from tests.crash.inside import Inside, living

pytestmark = pytest.mark.anyio


class MovedClock:
    """Stands still until it is moved."""

    us = 1_700_000_000_000_000

    def now_ms(self) -> int:
        return self.us // 1000

    def ticks_us(self) -> int:
        return self.us


class Desk:
    """The sessions of a daemon without its process."""

    def __init__(self, life: Inside) -> None:
        self.life, self.clock = life, MovedClock()
        life.services.clock = self.clock
        dispatcher = Dispatcher(life.engine)
        self.sessions = HttpSessions(life.engine, dispatcher, _nobody)

    async def call(self, session: str = "s-1", agent: str = "alice") -> None:
        async with self.sessions.request(caller(session, agent), "test"):
            pass

    async def pass_(self, us: int) -> None:
        """Let time pass, and look for sessions that are over."""
        self.clock.us += us
        await self.sessions.end_where(self.sessions.is_over)

    async def noted(self) -> list[str]:
        """Which sessions opened and closed."""
        kinds = {"session_opened": "+", "session_closed": "-"}
        return [kinds[entry.kind] + str(entry.session) for entry in await self.life.events() if entry.kind in kinds]


def _nobody(context: Any) -> McpClient:
    raise LookupError("no request comes")


def caller(session: str, agent: str) -> Caller:
    return Caller(agent=AgentName(agent), agent_class="cloud", session=SessionId(session), transport="mcp")


@asynccontextmanager
async def desk(base: Path) -> AsyncIterator[Desk]:
    (base / "work").mkdir()
    (base / "state").mkdir(mode=0o700)
    async with living(base / "state", base / "work", Disk()) as life:
        made = Desk(life)
        async with made.sessions.running():
            yield made


async def test_a_session_ends_after_its_idle_time_and_begins_again(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await at.call()
        await at.pass_(IDLE_US)
        await at.call()
        assert await at.noted() == ["+s-1"]
        await at.pass_(IDLE_US)
        assert await at.noted() == ["+s-1"]
        await at.pass_(1)
        assert await at.noted() == ["+s-1", "-s-1"]
        await at.call()
        assert await at.noted() == ["+s-1", "-s-1", "+s-1"]


async def test_a_session_with_a_request_under_way_does_not_end(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        async with at.sessions.request(caller("s-1", "alice"), "test"):
            await at.pass_(10 * IDLE_US)
            assert await at.noted() == ["+s-1"]
        await at.pass_(IDLE_US + 1)
        assert await at.noted() == ["+s-1", "-s-1"]


async def test_an_agent_has_so_many_sessions_and_others_keep_theirs(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await at.call("s-b", "bob")
        for number in range(MOST_OF_AGENT):
            await at.call(f"s-{number}")
        await at.call("s-0")  # used again
        await at.call("s-more")
        assert [line for line in await at.noted() if line.startswith("-")] == ["-s-1"]


async def test_an_agent_has_so_many_requests_under_way(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await at.call()
        at.sessions._sessions[SessionId("s-1")].requests = MAX_OPEN_CALLS
        with pytest.raises(RateLimited):
            await at.call("s-2")
        await at.call("s-b", "bob")
        at.sessions._sessions[SessionId("s-1")].requests = 0


async def test_all_end_with_the_server(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "state").mkdir(mode=0o700)
    async with living(tmp_path / "state", tmp_path / "work", Disk()) as life:
        at = Desk(life)
        async with at.sessions.running():
            await at.call()
        assert await at.noted() == ["+s-1", "-s-1"]
