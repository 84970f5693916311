"""A thousand callers at once, each with calls open: every one is served, and nothing of them stays."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing

import anyio
import pytest

from orchestrator.servers.socket import SILENT_PART
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.loads import resident_mb
from tests.daemon.raw_socket import Talk

pytestmark = [pytest.mark.anyio, pytest.mark.soak]

CALLERS, OF_THEM_MCP = 1000, 100
EACH = 3
SPARE_FILES = 10
MOST_MB = 400
"""More than before; a session of MCP takes some 0.3 MB."""


@pytest.fixture(autouse=True)
def descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * CALLERS:
        pytest.skip(f"this system gives a process {hard} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * CALLERS)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def open_files(daemon: RunningDaemon) -> int:
    assert daemon.process is not None
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


async def test_a_thousand_callers_are_served(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.txt").write_text("one\ntwo\n")
    async with daemon.client("first") as first:
        await first.read_file("a.txt")
        files, memory = open_files(daemon), resident_mb(daemon)
        with ExitStack() as held:
            talks = [
                held.enter_context(closing(Talk(daemon, f"a{n}", "mcp" if n < OF_THEM_MCP else "rpc")))
                for n in range(CALLERS)
            ]
            assert open_files(daemon) >= CALLERS
            for talk in talks:
                for _ in range(EACH - 1):
                    talk.call("read_lines", path="a.txt", start=1, end=1)
            for n, talk in enumerate(talks):
                talk.call("write_file", path=f"made/{n % 20}/{n}.txt", content="new\n", mode="create")
            assert (await first.read_file("a.txt")).total_lines == 2
            for talk in talks:
                answers = [talk.answer() for _ in range(EACH)]
                assert all("result" in answer and not answer["result"].get("isError") for answer in answers), answers
            assert len([*daemon.workspace.glob("made/*/*.txt")]) == CALLERS
            assert resident_mb(daemon) <= memory + MOST_MB
        async with daemon.client() as person:
            with anyio.fail_after(60):  # the daemon meets their ends one after another
                while len((await person.status()).sessions) > 2 or open_files(daemon) > files + SPARE_FILES:
                    await person.file_info("a.txt")
            assert (await person.status()).health.state == "ok"


async def test_silent_callers_keep_nobody_out(daemon: RunningDaemon) -> None:
    """They never say who they are; of a quarter of the descriptors on, the oldest goes for each that comes."""
    assert daemon.process is not None
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (2 * CALLERS, 2 * CALLERS))
    with ExitStack() as held:
        silent = []
        for _ in range(CALLERS):
            one = held.enter_context(closing(socket.socket(socket.AF_UNIX)))
            one.connect(str(daemon.socket))
            silent.append(one)
        async with daemon.client("alice") as alice:
            assert (await alice.write_file("a.txt", "a\n", mode="create")).status == "applied"
        silent[0].settimeout(60)
        assert silent[0].recv(1) == b"", "the first of them was closed"
        assert open_files(daemon) <= 2 * CALLERS // SILENT_PART + 200
