"""A hundred lines of a 97 MB log: its end, and its middle with and without an index of its lines."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from orchestrator.clients.python import FileAccess
from tests.benchmarks.measuring import Row, Samples, Target, Work, in_turns, plain
from tests.benchmarks.peers import Peer, mcp_session
from tests.benchmarks.setting import Rows, Setting

LOG_BYTES = 97_000_000
MIDDLE = 700_000
LAST = MIDDLE + 99

AT_ONCE = (
    "what is read is a small part of it: a call, its event and its commit take 1.2 ms, which is 300 times faster than "
    "a peer of 360 ms and more; where the target was set it took 214 and 671 ms."
)
STARTED = "the target was set where starting a program took several times as long as the 1 ms that it takes here."


def write_log(path: Path) -> None:
    """Lines of some 70 bytes."""
    written = number = 0
    with path.open("wb") as file:
        while written < LOG_BYTES:
            lines = (
                b"2026-01-01T00:%02d:%02d INFO worker[%d] request %d finished in %d ms\n"
                % (at // 60 % 60, at % 60, at % 17, at, at % 977)
                for at in range(number, number + 10_000)
            )
            written += file.write(b"".join(lines))
            number += 10_000


async def rows(setting: Setting) -> Rows:
    """Beside `tail` and `sed`, spawned, and beside the peers' own way to read these lines."""
    log, theirs = setting.daemon.workspace / "app.log", setting.peers_work / "app.log"
    write_log(log)
    os.link(log, theirs)
    spawned = {
        "tail": plain(lambda: subprocess.run(("tail", "-n", "100", log), check=True, capture_output=True)),
        "sed": plain(
            lambda: subprocess.run(("sed", "-n", f"{MIDDLE},{LAST}p;{LAST}q", log), check=True, capture_output=True)
        ),
    }
    async with AsyncExitStack() as stack:
        files = await stack.enter_async_context(setting.daemon.client("reader"))
        known = {"end": _end(files), "warm": _middle(files), "tail": spawned["tail"]}
        unknown = {"cold": _cold(files, log), "sed": spawned["sed"]}
        peers = await _largefile(setting, stack, theirs)
        taken = await in_turns(known, setting.times(20)) | await in_turns(unknown, setting.times(20))
        taken |= await in_turns(peers, setting.times(3), warm_up=1) if peers else {}
    largefile = f"{setting.largefile.name} read_content"
    work = {
        "end": "read_file, the last 100 lines of 97 MB",
        "cold": "read_lines, 100 in the middle of 97 MB, no index",
        "warm": "read_lines, 100 in the middle of 97 MB",
    }
    return [
        _row(work["end"], taken["end"], "spawned tail", taken["tail"], 1.0),
        _row(work["end"], taken["end"], largefile, _of(taken, "largefile end", setting.largefile), 300.0),
        _row(work["cold"], taken["cold"], "spawned sed -n", taken["sed"], 1.0),
        _row(work["warm"], taken["warm"], largefile, _of(taken, "largefile middle", setting.largefile), 300.0),
    ]


def _row(work: str, ours: Samples, peer: str, theirs: Samples, times: float) -> Row:
    target = Target(at_least=times, why_missed=AT_ONCE if times > 1 else STARTED)
    return Row(work=f"{work}, socket", ours=ours, peer=peer, theirs=theirs, target=target)


def _of(taken: dict[str, Samples], name: str, peer: Peer) -> Samples:
    return taken.get(name) or Samples([], peer.trouble)


def _end(files: FileAccess) -> Work:
    async def read() -> None:
        answer = await files.read_file("app.log", start=-100)
        assert answer.end - answer.start == 99

    return read


def _middle(files: FileAccess) -> Work:
    async def read() -> None:
        answer = await files.read_lines("app.log", start=MIDDLE, end=LAST)
        assert answer.end == LAST

    return read


def _cold(files: FileAccess, log: Path) -> Work:
    """The file looks written to, so that what was known of its lines does not hold."""
    read = _middle(files)

    async def cold() -> None:
        os.utime(log)
        await files.file_info("app.log")
        await read()

    return cold


async def _largefile(setting: Setting, stack: AsyncExitStack, log: Path) -> dict[str, Work]:
    if not setting.largefile.command:
        return {}
    env = {**os.environ, "LARGEFILE_BACKUP_DIR": str(setting.peers_work / "backups")}
    session = await stack.enter_async_context(mcp_session(setting.largefile.command, env=env))

    def reading(**wanted: object) -> Callable[[], Awaitable[object]]:
        async def read() -> None:
            await session.call("read_content", {"absolute_file_path": str(log), "limit": 100, **wanted})

        return read

    return {"largefile end": reading(mode="tail"), "largefile middle": reading(offset=MIDDLE)}
