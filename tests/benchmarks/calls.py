"""Calls that are answered after their event is committed, beside an MCP SDK echo that keeps nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio

from tests.benchmarks.callers import Connection, request_of
from tests.benchmarks.limits import LOG_FULL_COMMITS
from tests.benchmarks.measuring import Row, Samples, Target, Work, in_turns, plain
from tests.benchmarks.peers import Era, McpSession, mcp_session
from tests.benchmarks.setting import Rows, Setting

PAYLOAD = "x" * 100
CALLERS = 32
CLIENT_PROCESSES = 2
ERAS: tuple[tuple[Era, str], ...] = (("legacy", "2025"), ("auto", "2026"))

READ = request_of("read_lines", {"path": "echo.txt", "start": 1, "end": 1})
BEGIN = request_of("begin_task", {"title": PAYLOAD})
"""Both append an event and are answered when it is committed (SQLite, synchronous FULL)."""


@asynccontextmanager
async def echoes() -> AsyncIterator[dict[str, McpSession]]:
    """The SDK's client and server, by protocol era."""
    command = (sys.executable, "-m", "tests.benchmarks.echo")
    async with mcp_session(command, era="legacy") as old, mcp_session(command, era="auto") as new:
        yield {"legacy": old, "auto": new}


async def rows(setting: Setting) -> Rows:
    """One caller, then 32."""
    (setting.daemon.workspace / "echo.txt").write_text(f"{PAYLOAD}\n", encoding="utf-8")
    async with echoes() as sessions:
        return [*await _one(setting, sessions), *await _many(setting, sessions)]


async def _one(setting: Setting, sessions: dict[str, McpSession]) -> Rows:
    async with setting.daemon.client("caller") as files:
        bare = Connection(str(setting.daemon.socket), "bare-caller", BEGIN)

        async def read() -> None:
            await files.read_lines("echo.txt", start=1, end=1)

        async def begin() -> None:
            await files.begin_task(PAYLOAD)

        def begin_bare() -> None:
            bare.send()
            bare.receive()

        ours = {
            "begin_task, Python client": begin,
            "begin_task, bare socket": plain(begin_bare),
            "read_lines (1 line), Python client": read,
        }
        echoed = {key: _echo(session) for key, session in sessions.items()}
        for _ in range(LOG_FULL_COMMITS):
            begin_bare()
        taken = await in_turns({**ours, **echoed}, setting.times(400), warm_up=20)
        bare.socket.close()
    return [
        Row(
            work=f"committed call, 1 client: {work}",
            ours=taken[work],
            peer=f"SDK echo, stdio, {name}",
            theirs=taken[era],
            target=Target(at_least=3.0),
        )
        for work in ours
        for era, name in ERAS
    ]


def _echo(session: McpSession) -> Work:
    async def work() -> None:
        assert await session.call("echo", {"text": PAYLOAD}) == PAYLOAD

    return work


async def _many(setting: Setting, sessions: dict[str, McpSession]) -> Rows:
    """Calls a second, in rounds; each contender's round is a second or so."""
    rounds, calls = setting.times(5), 100
    rates: dict[str, Samples] = {name: Samples([]) for name in ("begin_task", "read_lines", *sessions)}
    path = str(setting.daemon.socket)
    with _crowd(path, calls, BEGIN) as begins, _crowd(path, calls, READ) as reads:
        for turn in range(-1, rounds):
            for name, crowd in (("begin_task", begins), ("read_lines", reads)):
                rate = await anyio.to_thread.run_sync(crowd.round)
                if turn >= 0:
                    rates[name].values.append(rate)
            for name, session in sessions.items():
                rate = await _echo_rate(session, 20)
                if turn >= 0:
                    rates[name].values.append(rate)
    return [
        Row(
            work=f"committed calls, {CALLERS} clients: {work}",
            ours=rates[work],
            peer=f"SDK echo, stdio, {name}, {CALLERS} callers",
            theirs=rates[era],
            target=Target(at_least=8.0),
            unit="calls/s",
        )
        for work in ("begin_task", "read_lines")
        for era, name in ERAS
    ]


async def _echo_rate(session: McpSession, calls: int) -> float:
    async def caller() -> None:
        for _ in range(calls):
            await session.call("echo", {"text": PAYLOAD})

    start = time.perf_counter()
    async with anyio.create_task_group() as group:
        for _ in range(CALLERS):
            group.start_soon(caller)
    return CALLERS * calls / (time.perf_counter() - start)


class Crowd:
    """Client processes whose connections are open and that wait to be told to go."""

    def __init__(self, processes: list[subprocess.Popen[str]], calls: int) -> None:
        self._processes, self._calls = processes, calls

    def round(self) -> float:
        """All connections make their calls; calls a second."""
        for process in self._processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        start = time.perf_counter()
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        done = 0
        for process in self._processes:
            assert process.stdout is not None
            done += len(json.loads(process.stdout.readline()))
        assert done == CALLERS * self._calls
        return done / (time.perf_counter() - start)


@contextmanager
def _crowd(path: str, calls: int, request: str) -> Iterator[Crowd]:
    each = CALLERS // CLIENT_PROCESSES
    command = (sys.executable, "-m", "tests.benchmarks.callers", path, str(each), str(calls), request)
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(CLIENT_PROCESSES)
    ]
    try:
        yield Crowd(processes, calls)
    finally:
        for process in processes:
            process.communicate(timeout=30)  # the end of its input ends it
