"""One agent's flood of calls does not hold up the calls of others."""

from __future__ import annotations

import anyio
import pytest

from orchestrator.clients.python import RemoteError
from orchestrator.servers.dispatch import MAX_OPEN_CALLS
from orchestrator.servers.socket import MOST_OF_AGENT
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.raw_socket import Talk

pytestmark = pytest.mark.anyio

CONNECTIONS = 4
TURNS = 10
HEAVY_CALLS = 40


def test_light_calls_do_not_wait_for_the_heavy_ones_of_the_same_agent(daemon: RunningDaemon) -> None:
    """Searches of the tree have few places; what else the agent calls goes on beside them."""
    for n in range(500):
        (daemon.workspace / f"{n}.txt").write_text("text\n" * 50)
    talk = Talk(daemon, "searcher")
    with daemon.held():
        searches = {talk.call("search_content", pattern=f"not there {n}") for n in range(HEAVY_CALLS)}
        tasks = {talk.call("begin_task", title=f"{n}") for n in range(TURNS)}
    answered = [talk.answer()["id"] for _ in range(len(searches) + len(tasks))]
    talk.close()
    before = sum(number in searches for number in answered[: max(map(answered.index, tasks))])
    assert before <= HEAVY_CALLS // 2, f"{before} searches came before the last task"


async def test_a_flood_by_several_connections_does_not_hold_up_another_agent(daemon: RunningDaemon) -> None:
    """Ten calls are through before most of what was sent first."""
    flood, other = [Talk(daemon, "flood") for _ in range(CONNECTIONS)], Talk(daemon, "other")
    with daemon.held():
        for talk in flood:
            for n in range(MAX_OPEN_CALLS):
                talk.call("begin_task", title=f"{n} {'x' * 100}")
        for n in range(TURNS):
            other.call("begin_task", title=f"{n}")
    for talk, calls in ((other, TURNS), *((talk, MAX_OPEN_CALLS) for talk in flood)):
        for _ in range(calls):
            assert "result" in talk.answer()
        talk.close()
    async with daemon.client() as person:
        page = await person.journal_query(kind="task_begun", limit=500)
    agents = [entry.agent for entry in reversed(page.entries)]
    assert agents.count("flood") == CONNECTIONS * MAX_OPEN_CALLS
    before = agents[: len(agents) - agents[::-1].index("other")].count("flood")
    assert before <= CONNECTIONS * MAX_OPEN_CALLS // 2, f"{before} calls of the flood came before"


async def test_an_agent_has_so_many_connections_and_others_theirs(daemon: RunningDaemon) -> None:
    """Each may have calls waiting; what waits for one agent is bounded with them."""
    talks = [Talk(daemon, "many") for _ in range(MOST_OF_AGENT)]
    with pytest.raises(RemoteError) as refused:
        async with daemon.client("many"):
            pass
    assert refused.value.code == "rate_limited"
    async with daemon.client("other") as other:
        assert (await other.begin_task("beside them")).task
    talks.pop().close()
    with anyio.fail_after(60):
        while True:  # the daemon meets the end of that one
            try:
                async with daemon.client("many") as one_more:
                    assert (await one_more.begin_task("in its place")).task
                break
            except RemoteError as error:
                if error.code != "rate_limited":
                    raise
    for talk in talks:
        talk.close()
