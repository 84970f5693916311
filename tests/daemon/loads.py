"""What an agent may do that costs the daemon much, for who measures another client beside it."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.lowlevel

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.benchmarks.logs import MISSPELT, PRESENT, write_log
from tests.daemon.beside import Beside, Measured
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.raw_socket import Talk

Work = Callable[[FileAccess, int], Awaitable[object]]
"""One turn of an agent; its number makes each turn's content another."""

Load = Callable[[RunningDaemon], AbstractAsyncContextManager[Work]]

EQUAL = "the same line\n"
ODD = bytes(random.Random(1).choices(range(1, 256), k=1 << 20)) * 40
"""40 MB in no encoding."""
LINES = "".join(f"value_{n} = compute({n}, 'text {n % 97}')\n" for n in range(900_000))
"""37 MB of code."""
LONG_LINE = "".join(random.Random(2).choices("abcdefgh ,;()'", k=1 << 20)) * 38 + "\n"
"""40 MB in one line."""

REFUSED = frozenset(("search_not_found", "binary_file", "text_too_costly"))
"""What the daemon may answer to the work of a load; anything else is a defect of the load, or of the daemon."""


@asynccontextmanager
async def merging(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Two rewrites of a file of equal lines, the second against what the first replaced."""
    path = daemon.workspace / "equal.txt"

    async def work(files: FileAccess, turn: int) -> object:
        path.write_text(EQUAL * 4700)
        await files.read_file("equal.txt", max_tokens=200_000)
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
async def searching_a_log(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Searches of 582 MB: for what is there, with typos, and for what is in every other line."""
    path = daemon.workspace / "huge.log"
    write_log(path, 97_000_000)
    block = path.read_bytes()
    with path.open("ab") as file:
        for _ in range(5):
            file.write(block)

    async def work(files: FileAccess, turn: int) -> object:
        if turn % 3 == 0:
            return await files.search_content(MISSPELT, path="huge.log", mode="fuzzy", max_edits=3)
        return await files.search_content(PRESENT if turn % 3 == 1 else "INFO", path="huge.log")

    yield work


@asynccontextmanager
async def following(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Rewrites of a file of equal lines that the session has read whole."""
    path = daemon.workspace / "followed.txt"
    texts = "x\n" * 32_000, "x\ny\n" * 16_000, "z\nx\n" * 16_000

    async def work(files: FileAccess, turn: int) -> object:
        path.write_text(texts[turn % 3])
        await files.read_file("followed.txt", max_tokens=200_000)
        path.write_text(texts[(turn + 1) % 3])
        return await files.file_info("followed.txt")

    yield work


@asynccontextmanager
async def quoting_a_long_line(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Edits that quote 3,000 characters wrongly of a line that is the whole file."""
    (daemon.workspace / "line.txt").write_text(LONG_LINE)

    async def work(files: FileAccess, turn: int) -> object:
        search = LONG_LINE[turn : turn + 3000].replace("a", "b", 3)
        return await files.edit_file("line.txt", [Replacement(search=search, replace="x")])

    yield work


@asynccontextmanager
async def editing_a_minified_file(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Edits of a passage of 4 MB in one line, their diffs, and changes of it that conflict."""
    text = "".join(random.Random(3).choices("abcdefgh ,;()'", k=4 << 20))
    (daemon.workspace / "app.min.js").write_text(text)

    async def work(files: FileAccess, turn: int) -> object:
        base = (await files.file_info("app.min.js")).version_id
        old = text[1_000_000:1_000_040] if turn == 0 else f"turn{turn - 1};"
        applied = await files.edit_file("app.min.js", [Replacement(search=old, replace=f"turn{turn};")], base=base)
        assert applied.status == "applied"
        other = await files.edit_file("app.min.js", [Replacement(search=old, replace="other;")], base=base)
        assert other.status == "conflict"
        return await files.get_diff("app.min.js", from_=base or "")

    yield work


@asynccontextmanager
async def replacing_many(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Edits of a thousand passages of a large file."""
    (daemon.workspace / "large.py").write_text(LINES)

    async def work(files: FileAccess, turn: int) -> object:
        old, new = (" = ", "=") if turn % 2 == 0 else ("=", " = ")
        changes = [Replacement(search=f"value_{n}{old}c", replace=f"value_{n}{new}c") for n in range(800, 800_800, 800)]
        return await files.edit_file("large.py", changes)

    yield work


@asynccontextmanager
async def creating(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """New files of 12 MB."""

    async def work(files: FileAccess, turn: int) -> object:
        return await files.write_file(f"created{turn}.py", LINES[:12_000_000], mode="create")

    yield work


@asynccontextmanager
async def conflicting(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Conflicts in files of 60,000 lines, and what the agent is shown of them."""
    text = "".join(f"line {n} {n * 7 % 13}\n" for n in range(60_000))

    async def work(files: FileAccess, turn: int) -> object:
        path = daemon.workspace / f"clash{turn}.txt"
        path.write_text(text)
        base = (await files.file_info(path.name)).version_id
        path.write_text(text.replace("1", "one"))
        answer = await files.write_file(path.name, text.replace("1", "uno"), mode="truncate", base=base)
        assert answer.conflict
        return await files.list_conflicts(conflict=answer.conflict, max_tokens=5_000_000)

    yield work


def name_of(load: Load) -> str:
    return getattr(load, "__name__", "")


HEAVY: tuple[Load, ...] = (
    merging,
    comparing,
    guessing,
    misquoting,
    searching,
    searching_a_log,
    following,
    quoting_a_long_line,
    editing_a_minified_file,
    replacing_many,
    creating,
    conflicting,
)


async def beside_work(daemon: RunningDaemon, load: Load, seconds: float, *, edits: bool = True) -> tuple[Measured, int]:
    """What a second client's calls took while one agent did heavy work again and again; and how often it did."""
    turns = 0
    async with load(daemon) as work, daemon.client("heavy") as files:
        beside = Beside(daemon, f"beside-{name_of(load)}", edits=edits)
        end = time.monotonic() + seconds
        with beside:
            while time.monotonic() < end:
                try:
                    await work(files, turns)
                except RemoteError as error:
                    if error.code not in REFUSED:
                        raise
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


async def beside_heavy_flood(
    daemon: RunningDaemon, seconds: float, call: Callable[[Talk, int], object]
) -> tuple[Measured, int]:
    """The same while six agents keep 64 calls each open that take a large file; and how many were answered."""
    (daemon.workspace / "large.py").write_text(LINES)
    done = 0
    beside = Beside(daemon, "beside-flood")
    talks = [Talk(daemon, f"flood{n}") for n in range(6)]

    def read(talk: Talk) -> None:
        nonlocal done
        for n in range(64):
            call(talk, n)
        with suppress(OSError, AssertionError):  # it is shut down at the end
            while True:
                assert "result" in talk.answer()
                done += 1
                call(talk, done)

    with ThreadPoolExecutor(len(talks)) as threads:
        with beside:
            for talk in talks:
                threads.submit(read, talk)
            await anyio.sleep(seconds)
        for talk in talks:
            talk.socket.shutdown(socket.SHUT_RDWR)
    for talk in talks:
        talk.close()
    return beside.measured, done


def resident_mb(daemon: RunningDaemon) -> int:
    """The daemon's memory."""
    assert daemon.process is not None
    pages = int(Path(f"/proc/{daemon.process.pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 // 1_000_000
