"""Which calls run, by a clock that the test sets."""

from __future__ import annotations

import anyio
import pytest
from anyio.abc import TaskGroup

from orchestrator.servers.call_scheduler import COMPANY_US, LIGHT, CallScheduler, Turn

pytestmark = pytest.mark.anyio


class Calls:
    """Calls by agent and number, such as `a0`; each runs until it is ended."""

    def __init__(self, tasks: TaskGroup) -> None:
        self.now_us = 0
        self.scheduler = CallScheduler(lambda: self.now_us)
        self.begun: list[str] = []
        self._tasks, self._turns = tasks, dict[str, Turn]()
        self._scopes: dict[str, anyio.CancelScope] = {}

    async def come(self, *names: str) -> None:
        for name in names:
            self._tasks.start_soon(self._call, name)
            await anyio.wait_all_tasks_blocked()

    async def end(self, name: str) -> None:
        self.scheduler.end(self._turns.pop(name))
        await anyio.wait_all_tasks_blocked()

    async def cancel(self, name: str) -> None:
        self._scopes[name].cancel()
        await anyio.wait_all_tasks_blocked()

    async def _call(self, name: str) -> None:
        with anyio.CancelScope() as self._scopes[name]:
            self._turns[name] = await self.scheduler.begin(name[0])
            self.begun.append(name)


def many(agent: str, count: int) -> list[str]:
    return [f"{agent}{number}" for number in range(count)]


async def test_one_agent_alone_has_more_calls_running_than_in_company() -> None:
    async with anyio.create_task_group() as tasks:
        calls = Calls(tasks)
        await calls.come(*many("a", LIGHT.alone + 5))
        assert calls.begun == many("a", LIGHT.alone)
        await calls.come("b0")
        assert calls.begun[LIGHT.alone :] == ["b0"], "who comes now does not wait for what the other has waiting"
        for name in many("a", LIGHT.alone):
            await calls.end(name)
        assert calls.begun[LIGHT.alone + 1 :] == [f"a{LIGHT.alone}"]
        await calls.end("b0")
        calls.now_us += COMPANY_US
        await calls.end(f"a{LIGHT.alone}")
        assert calls.begun[LIGHT.alone + 2 :] == [f"a{LIGHT.alone + more}" for more in (1, 2, 3, 4)]
        tasks.cancel_scope.cancel()


async def test_who_has_little_waiting_is_not_held_up_by_who_has_much() -> None:
    async with anyio.create_task_group() as tasks:
        calls = Calls(tasks)
        await calls.come("b0", *many("a", 9), "b1", "c0")
        assert calls.begun == ["b0", "a0", "c0"]
        for ended, begun in (("a0", "a1"), ("b0", "b1"), ("a1", "a2"), ("a2", "a3")):
            await calls.end(ended)
            assert calls.begun[-1] == begun
        tasks.cancel_scope.cancel()


async def test_the_places_of_all_go_round() -> None:
    """With more agents than places, one with many calls has one place in each round, as the others have."""
    async with anyio.create_task_group() as tasks:
        calls = Calls(tasks)
        agents = [chr(ord("A") + n) for n in range(32)]
        await calls.come(*(f"{agent}0" for agent in agents))
        assert len(calls.begun) == 32
        await calls.come("a0", "a1", "a2", "b0", "a3", "c0")
        assert len(calls.begun) == 32
        for agent in agents[:6]:
            await calls.end(f"{agent}0")
        assert calls.begun[32:] == ["a0", "b0", "c0"], "and no more than one of each"
        tasks.cancel_scope.cancel()


async def test_a_call_that_runs_for_long_makes_room_up_to_a_bound() -> None:
    async with anyio.create_task_group() as tasks:
        calls = Calls(tasks)
        await calls.come("b0", *many("a", LIGHT.most_of_one + 4))
        assert len(calls.begun) == 2
        for _ in range(LIGHT.most_of_one):
            calls.now_us += LIGHT.long_us
            await calls.come("b1")
            await calls.end("b1")
        assert [name for name in calls.begun if name[0] == "a"] == many("a", LIGHT.most_of_one)
        await calls.come("b2", "c0")
        assert calls.begun[-2:] == ["b2", "c0"], "nobody else waits for them"
        tasks.cancel_scope.cancel()


async def test_a_call_that_is_cancelled_gives_back_its_place() -> None:
    async with anyio.create_task_group() as tasks:
        calls = Calls(tasks)
        await calls.come("b0", *many("a", 6))
        assert calls.begun == ["b0", "a0"]
        await calls.cancel("a1")
        await calls.end("a0")
        assert calls.begun[-1] == "a2"
        for number in range(2, 6):
            await calls.end(f"a{number}")
        await calls.come("a6", "a7")
        assert calls.begun[-2:] == ["a5", "a6"]
        await calls.cancel("a7")
        await calls.end("a6")
        await calls.come("a8")
        assert calls.begun[-1] == "a8"
        tasks.cancel_scope.cancel()
