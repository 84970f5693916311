"""What an agent may do to hold a daemon up on purpose, for who measures another client beside it."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress

import anyio

from orchestrator.api.parameters import MOST_GLOB_CHARACTERS
from orchestrator.clients.python import FileAccess, RemoteError
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.loads import Load, Work

GLOBS = ("*a*a*a*a/*a*a*a*a/b", "**/a/" * 190 + "b", "**/*a" * 100 + "/b", "[z-a]" * 100)
LARGE = "0123456789abcde\n" * 65_536
"""1 MB."""


@asynccontextmanager
async def globbing(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Globs that a matcher with backtracking is never done with, against long and deep paths."""
    work = daemon.workspace
    work.joinpath(*["a" * 255] * 10).mkdir(parents=True)
    work.joinpath(*["a"] * 200, "c").mkdir(parents=True)
    for n in range(1000):
        (work / ("a" * 255) / f"{'a' * 200}{n}").touch()

    async def turn(files: FileAccess, number: int) -> object:
        glob = GLOBS[number % len(GLOBS)]
        await files.find_files(glob)
        many = [glob] * min(100, MOST_GLOB_CHARACTERS // len(glob))
        await files.search_content("x", globs=many)
        await files.list_files(recursive=True, globs=many)
        await files.changes_since("@0", globs=many)
        if glob.startswith("["):  # it names nothing, and a lease of it is refused
            return None
        lease = await files.reserve_paths(many)
        return await files.release_paths(lease.lease or "")

    yield turn


@asynccontextmanager
async def ignoring(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """An ignore file that changes all the time, with as many hostile rules as the budget takes, over 100 levels."""
    deep = daemon.workspace.joinpath(*["d"] * 100)
    deep.mkdir(parents=True)
    (deep / "file.txt").touch()

    async def turn(files: FileAccess, number: int) -> object:
        rules = "".join(f"{'**/d/' * 10}{number}{n}\n" for n in range(600))
        (daemon.workspace / ".gitignore").write_text(rules)
        return await files.list_files("d", recursive=True)

    yield turn


@asynccontextmanager
async def requesting(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Writes of 1 MB each that ask for approval, and the list of those that wait."""
    async with daemon.client() as person:

        async def turn(files: FileAccess, number: int) -> object:
            if number < 100:
                waiting = await files.write_file(f"conf{number}/Makefile", f"{number}\n{LARGE}", mode="create")
                assert waiting.status == "waiting"
            return await person.approvals_list()

        yield turn


@asynccontextmanager
async def guessing_codes(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Wrong approver codes, each of which costs a slow hash."""
    await daemon.make_approver()
    async with daemon.client() as person:

        async def turn(files: FileAccess, number: int) -> object:
            with suppress(RemoteError):
                await person.approve("@1", approver=f"wrong-{number}")
            return None

        yield turn


@asynccontextmanager
async def crowding(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Connections until no file descriptor is left, again and again; a few are left for who is in already."""
    assert daemon.process is not None
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    used = max(map(int, os.listdir(f"/proc/{daemon.process.pid}/fd")))
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (used + 60, most))

    async def turn(files: FileAccess, number: int) -> object:
        with ExitStack() as crowd:
            for _ in range(40):
                sock = crowd.enter_context(socket.socket(socket.AF_UNIX))
                sock.connect(str(daemon.socket))
            return await files.file_info("crowded.txt")

    yield turn


@asynccontextmanager
async def starting_again(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """Commands that start a daemon, or find the one that is there, and are killed at some moment of it."""

    async def turn(files: FileAccess, number: int) -> object:
        if number % 2:
            daemon.socket.unlink(missing_ok=True)  # it is put back within seconds
        up = subprocess.Popen(  # noqa: ASYNC220  # it is not waited for, but killed
            [sys.executable, "-m", "orchestrator", "up", "--json", "--workspace", str(daemon.workspace)],
            env={"PYTHONPATH": os.getcwd(), **daemon.env},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        await anyio.sleep(0.05 * (number % 10))
        up.kill()
        up.wait()
        return await files.session_status()

    yield turn


@asynccontextmanager
async def losing_the_state(daemon: RunningDaemon) -> AsyncIterator[Work]:
    """The state directory is moved away and back: no write is acknowledged from then on, and reads go on."""
    elsewhere = daemon.state_dir.with_name("elsewhere")

    async def turn(files: FileAccess, number: int) -> object:
        daemon.state_dir.rename(elsewhere)
        try:
            with suppress(RemoteError):
                answer = await files.write_file(f"lost{number}.txt", "x\n", mode="create")
                raise AssertionError(answer)
            return await files.read_lines("beside-losing_the_state-read.txt")
        finally:
            elsewhere.rename(daemon.state_dir)

    yield turn


HOSTILE: tuple[Load, ...] = (globbing, ignoring, requesting, guessing_codes, crowding, starting_again)
