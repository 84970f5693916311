"""What an agent may do that costs the daemon much, for who measures another client beside it."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.lowlevel

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.beside import Beside, Measured
from tests.daemon.running import RunningDaemon
from tests.daemon.talking import Talk

Work = Callable[[FileAccess, int], Awaitable[object]]
"""One turn of an agent; its number makes each turn's content another."""

Load = Callable[[RunningDaemon], AbstractAsyncContextManager[Work]]

EQUAL = "the same line\n"
ODD = bytes(random.Random(1).choices(range(1, 256), k=1 << 20)) * 40
"""40 MB in no encoding."""
LINES = "".join(f"value_{n} = compute({n}, 'text {n % 97}')\n" for n in range(900_000))
"""37 MB of code."""


@asynccontextmanager
async def merging(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Two rewrites of a file of equal lines, the second against what the first replaced."""
    path = daemon.workspace / "equal.txt"

    async def work(files: FileAccess, turn: int) -> object:
        path.write_text(EQUAL * 4700)
        await files.read_file("equal.txt", max_tokens=1_000_000)
        base = (await files.file_info("equal.txt")).version_id
        path.write_text("".join(f"{n}\n" + EQUAL * (n % 5) for n in range(1500)))
        return await files.write_file(
            "equal.txt", f"x{turn}\n" + (EQUAL * 3 + "y\n") * 1200, mode="truncate", base=base
        )

    yield work


@asynccontextmanager
async def comparing(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """The diff of 5 MB of repeated lines."""
    path = daemon.workspace / "repeated.txt"
    lines = [f"line {n % 7}\n" for n in range(700_000)]

    async def work(files: FileAccess, turn: int) -> object:
        random.Random(turn).shuffle(lines)
        path.write_text("".join(lines))
        before = (await files.file_info("repeated.txt")).version_id or ""
        random.Random(-turn).shuffle(lines)
        path.write_text("".join(lines))
        await files.read_lines("repeated.txt", start=1, end=1)
        return await files.get_diff("repeated.txt", from_=before)

    yield work


@asynccontextmanager
async def guessing(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Reads of a file in no encoding that is another one each time."""
    path = daemon.workspace / "odd.dat"

    async def work(files: FileAccess, turn: int) -> object:
        path.write_bytes(f"{turn}\n".encode() + ODD)
        return await files.read_lines("odd.dat", start=1, end=3)

    yield work


@asynccontextmanager
async def misquoting(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Edits of a large file that quote it wrongly."""
    (daemon.workspace / "large.py").write_text(LINES)

    async def work(files: FileAccess, turn: int) -> object:
        change = Replacement(search=f"value_{turn}  =  compute( {turn} , 'text')\nand  no such line\n", replace="x\n")
        return await files.edit_file("large.py", [change])

    yield work


@asynccontextmanager
async def searching(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Searches of a large file for what is not there, whatever its case."""
    (daemon.workspace / "large.py").write_text(LINES)

    async def work(files: FileAccess, turn: int) -> object:
        return await files.search_content(f"Value_{turn} = nothing", path="large.py", case_sensitive=False)

    yield work


@asynccontextmanager
async def following(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Rewrites of a file of equal lines that the session has read whole."""
    path = daemon.workspace / "followed.txt"
    texts = "x\n" * 32_000, "x\ny\n" * 16_000, "z\nx\n" * 16_000

    async def work(files: FileAccess, turn: int) -> object:
        path.write_text(texts[turn % 3])
        await files.read_file("followed.txt", max_tokens=1_000_000)
        path.write_text(texts[(turn + 1) % 3])
        return await files.file_info("followed.txt")

    yield work


def name_of(load: Load) -> str:
    return getattr(load, "__name__", "")


HEAVY: tuple[Load, ...] = (merging, comparing, guessing, misquoting, searching, following)


async def beside_work(daemon: RunningDaemon, load: Load, seconds: float) -> tuple[Measured, int]:
    """What a second client's calls took while one agent did heavy work again and again; and how often it did."""
    turns = 0
    async with load(daemon) as work, daemon.client("heavy") as files:
        beside = Beside(daemon, f"beside-{name_of(load)}")
        end = time.monotonic() + seconds
        with beside:
            while time.monotonic() < end:
                with suppress(RemoteError):
                    await work(files, turns)
                turns += 1
    return beside.measured, turns


def beside_nothing(daemon: RunningDaemon, seconds: float, name: str = "alone") -> Measured:
    """The same while nothing else goes on."""
    with Beside(daemon, name) as beside:
        time.sleep(seconds)
    return beside.measured


async def beside_flood(daemon: RunningDaemon, seconds: float, *, writes: bool) -> tuple[Measured, int]:
    """The same while an agent keeps 256 calls open, by four connections; and how many of them were answered."""
    kind = "writes" if writes else "reads"
    (daemon.workspace / "flooded.txt").write_text("x\n" * 50)
    talks = [Talk(daemon, f"flood-{kind}") for _ in range(4)]
    sent = done = 0
    beside = Beside(daemon, f"beside-{kind}")

    def put(talk: Talk) -> None:
        nonlocal sent
        sent += 1
        if writes:
            talk.call("write_file", path=f"{kind}/{sent % 100}/{sent}.txt", content="y\n", mode="create")
        else:
            talk.call("read_lines", path="flooded.txt", start=1, end=20)

    for talk in talks * 64:
        put(talk)
    end = time.monotonic() + seconds
    with beside:
        while time.monotonic() < end:
            for talk in talks:
                assert "result" in talk.answer()
                done += 1
                put(talk)
            await anyio.lowlevel.checkpoint()
    for talk in talks:
        talk.close()
    return beside.measured, done


def resident_mb(daemon: RunningDaemon) -> int:
    """The daemon's memory."""
    assert daemon.process is not None
    pages = int(Path(f"/proc/{daemon.process.pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 // 1_000_000
