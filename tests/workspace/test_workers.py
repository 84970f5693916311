"""The pool of worker processes: limits that hold, errors that come back whole, owners in turn."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from orchestrator.core.content import digest_of
from orchestrator.core.errors import SearchNotFound, TextTooCostly
from orchestrator.core.ids import WorkspacePath
from orchestrator.ports.machine import OWNER
from orchestrator.workspace.local_parser import LocalParser
from orchestrator.workspace.workers import WorkerPool
from tests.workspace import efforts

pytestmark = pytest.mark.anyio


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    made = WorkerPool()
    yield made
    await made.aclose()


async def test_work_is_done_by_another_process_which_is_kept(pool: WorkerPool) -> None:
    assert pool.free_pids == []
    first = await pool.run(efforts.pid)
    assert first != os.getpid()
    assert await pool.run(efforts.pid) == first
    assert pool.free_pids == [first]
    await pool.aclose()
    assert not Path(f"/proc/{first}").exists()


async def test_what_is_raised_comes_back_whole(pool: WorkerPool) -> None:
    with pytest.raises(SearchNotFound) as caught:
        await pool.run(partial(efforts.refuse, "a.txt"))
    error = caught.value
    assert (error.code, error.message, error.hint) == ("search_not_found", "nothing is in a.txt", "Look elsewhere.")
    assert (error.details, error.seen) == ({"path": "a.txt"}, efforts.SEEN)
    assert pool.free_pids, "an error is an answer"


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(efforts.for_ever, id="in Python"),
        pytest.param(efforts.in_c_for_ever, id="inside C code"),
        pytest.param(partial(efforts.fill, 4 << 30), id="more memory than there is"),
    ],
)
async def test_work_beyond_the_limits_is_an_error_and_costs_one_worker(
    pool: WorkerPool, work: Callable[[], object]
) -> None:
    first = await pool.run(efforts.pid)
    with pytest.raises(TextTooCostly) as caught:
        await pool.run(work, limit_s=0.5)
    assert caught.value.code == "text_too_costly"
    assert pool.free_pids == []
    assert await pool.run(efforts.pid) != first


async def test_time_that_others_have_the_processor_does_not_count(pool: WorkerPool) -> None:
    first = await pool.run(efforts.pid)
    assert await pool.run(partial(efforts.idle, 0.4), limit_s=0.2) == first


async def test_a_worker_that_has_grown_gives_its_memory_back(pool: WorkerPool) -> None:
    assert await pool.run(partial(efforts.grow, 300 << 20)) not in pool.free_pids
    small = await pool.run(partial(efforts.grow, 1 << 20))
    assert pool.free_pids == [small]


async def test_large_values_go_there_and_back(pool: WorkerPool) -> None:
    data = os.urandom(5 << 20)
    assert await pool.run(partial(bytes, data)) == data


async def test_who_goes_away_ends_the_work(pool: WorkerPool) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pool.run, efforts.for_ever)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert pool.free_pids == []
    assert await pool.run(efforts.pid)


async def test_one_owner_leaves_a_worker_to_the_others(pool: WorkerPool, base: Path) -> None:
    """And what it has waiting does not come before what others ask for later."""
    fifo = str(base / "fifo")
    os.mkfifo(fifo)
    done: list[str] = []

    async def ask(name: str, owner: str, work: Callable[[], object]) -> None:
        OWNER.set(owner)
        await pool.run(work)
        done.append(name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "a1", "a", partial(efforts.wait_for, fifo))
        await anyio.wait_all_tasks_blocked()
        for n in range(3):
            tasks.start_soon(ask, f"a{n + 2}", "a", efforts.pid)
        await anyio.wait_all_tasks_blocked()
        await ask("b1", "b", efforts.pid)
        await ask("b2", "b", efforts.pid)
        assert done == ["b1", "b2"]
        await anyio.to_thread.run_sync(partial(Path(fifo).write_text, "go"))
    assert sorted(done[2:]) == ["a1", "a2", "a3", "a4"]


async def test_an_outline_waits_for_no_long_work(pool: WorkerPool, base: Path) -> None:
    """Neither for that of two others, nor for what waits behind it, nor for its own owner's."""
    fifo = str(base / "fifo")
    os.mkfifo(fifo)
    text = b"def f(): ...\n"

    async def long_work(owner: str) -> None:
        OWNER.set(owner)
        await pool.run(partial(efforts.wait_for, fifo))

    async with anyio.create_task_group() as tasks:
        for owner in ("a", "b", "c"):
            tasks.start_soon(long_work, owner)
        await anyio.wait_all_tasks_blocked()
        for owner in ("a", "d"):
            OWNER.set(owner)
            with anyio.fail_after(60):
                found = await LocalParser(pool).outline(WorkspacePath("a.py"), digest_of(text), text)
            assert found is not None
            assert [name for name, _ in found.walk()] == ["f"]
        tasks.cancel_scope.cancel()


async def test_a_worker_imports_nothing_that_lies_in_the_current_folder(
    pool: WorkerPool, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (base / "lib").mkdir()
    (base / "lib" / "pickle.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(base)
    monkeypatch.setenv("PYTHONPATH", "lib")
    assert await pool.run(efforts.pid) != os.getpid()
