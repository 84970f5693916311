"""Names of a large tree: list and find with a limit, and what an idle daemon takes for it.

`make bench` has 50,000 files; `python -m tests.benchmarks.names --files 1000000` any number, and the daemon's start.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sysconfig
import tempfile
import time
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import anyio

from orchestrator.clients.python import FileAccess
from tests.benchmarks.measuring import Row, Samples, Target, in_turns, misses, plain, table
from tests.benchmarks.peers import mcp_session
from tests.benchmarks.setting import Rows, Setting
from tests.benchmarks.watching import private_kb
from tests.daemon.daemon_process import RunningDaemon

FILES, MANY = 50_000, 1_000_000
PER_FOLDER = 20
SUFFIXES = ("py", "md", "ts", "json", "txt", "c", "h", "go")
LIMIT = 200

RG = str(Path(sysconfig.get_path("scripts"), "rg"))
"""Of the wheel."""

WARM_MS, MANY_MS = 20.0, 50.0
PRIVATE_MB, MANY_PRIVATE_MB = 120.0, 600.0
MANY_START = Target(
    at_most_ms=10_000,
    why_missed="three walks over all folders (watches, leftovers of a crash, the scan) and the snapshot take some 14 s "
    "of processor time; os.scandir with a stat of each file alone takes 2 s.",
)


def made(work: Path, files: int) -> Path:
    """So many small files, twenty to a folder; one that a search by name looks for."""
    for number in range(files):
        folder = work / f"part_{number // (PER_FOLDER * 50):04d}" / f"module_{number // PER_FOLDER:05d}"
        if number % PER_FOLDER == 0:
            folder.mkdir(parents=True)
        (folder / f"file_{number:07d}.{SUFFIXES[number % len(SUFFIXES)]}").write_text(f"# file {number}\n")
    return work


def looked_at(folder: Path) -> int:
    """What no listing from the disk can do without: the names and facts of all."""
    found, pending = 0, [str(folder)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)
                found += 1
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    return found


async def rows(setting: Setting) -> Rows:
    """On a daemon of its own, beside the peers."""
    with tempfile.TemporaryDirectory(prefix="o-", dir="/var/tmp") as base:
        daemon = RunningDaemon(Path(base).resolve(), executed=True)
        await anyio.to_thread.run_sync(made, daemon.workspace, FILES)
        theirs = await in_turns_of_peers(setting, daemon.workspace)
        measured = await of_daemon(daemon, FILES, setting.times(50))
        work = measured[1].work
        beside = [Row(work=work, ours=measured[1].ours, peer=name, theirs=taken) for name, taken in theirs.items()]
        return [*measured, *beside]


async def in_turns_of_peers(setting: Setting, folder: Path) -> dict[str, Samples]:
    """What a listing of all costs without an index; each server answers its second call."""
    path = str(folder)
    peers = {"scandir and lstat": plain(lambda: looked_at(folder))}
    if shutil.which("rg"):
        peers["rg --files"] = plain(lambda: subprocess.run(["rg", "--files", path], check=True, capture_output=True))
    async with AsyncExitStack() as stack:
        if setting.filesystem.command:
            server = await stack.enter_async_context(mcp_session((*setting.filesystem.command, path)))
            peers[setting.filesystem.name] = partial(
                server.call, "search_files", {"path": path, "pattern": "**/file_0000042.*"}
            )
        if setting.largefile.command:
            other = await stack.enter_async_context(mcp_session(setting.largefile.command))
            peers[setting.largefile.name] = partial(
                other.call, "list_directory", {"absolute_dir_path": path, "max_depth": 3, "max_entries": FILES}
            )
        return await in_turns(peers, 3, warm_up=1)


async def of_daemon(daemon: RunningDaemon, files: int, times: int, *, many: bool = False) -> Rows:
    """Its start, its calls, and its memory once it idles; of many files before that searches without a hit."""
    more: Rows = []
    began = time.perf_counter()
    daemon.start()
    took = {"start": Samples([(time.perf_counter() - began) * 1e3])}
    try:
        async with daemon.client("reader") as reader, daemon.client() as person:
            await idle(person)
            if many:
                more.append(await _search(reader, daemon.workspace, files))
            middle = f"{files // 2:07d}"

            async def listed() -> None:
                assert len((await reader.list_files(recursive=True, limit=LIMIT)).entries) == LIMIT

            async def found() -> None:
                assert len((await reader.find_files("*.py", limit=LIMIT)).entries) == LIMIT

            async def found_one() -> None:
                assert (await reader.find_files(f"file_{middle}.*", limit=LIMIT)).total == 1

            calls = {"list, recursive": listed, "find *.py": found, "find one by name": found_one}
            took |= await in_turns(calls, times)
        assert daemon.process is not None
        memory = Samples([private_kb(daemon.process.pid) / 1024])
    finally:
        daemon.stop()
    began = time.perf_counter()
    daemon.start()
    took["start, warm"] = Samples([(time.perf_counter() - began) * 1e3])
    daemon.stop()
    at_most = Target(at_most_ms=MANY_MS if many else WARM_MS)
    targets = {"start": Target(), "start, warm": MANY_START if many else Target()}
    held = Target(at_most_ms=MANY_PRIVATE_MB if many else PRIVATE_MB)
    return [
        *more,
        *(
            Row(
                work=f"{name}: {files:,} files" + ("" if name in targets else f", limit {LIMIT}"),
                ours=samples,
                target=targets.get(name, at_most),
            )
            for name, samples in took.items()
        ),
        Row(work=f"idle daemon's private memory, {files:,} files", ours=memory, unit="MB", target=held),
    ]


async def _search(reader: FileAccess, folder: Path, files: int) -> Row:
    async def search() -> None:
        assert (await reader.search_content("nowhere in them")).files_searched == files

    command = (RG, "--no-config", "--fixed-strings", "nowhere in them", str(folder))
    spawned = plain(lambda: subprocess.run(command, check=False, capture_output=True))
    taken = await in_turns({"ours": search, "rg": spawned}, 3, warm_up=1)
    work = f"search without a hit: {files:,} files"
    return Row(work=work, ours=taken["ours"], peer="spawned rg", theirs=taken["rg"], target=Target(at_least=0.5))


async def idle(person: FileAccess) -> None:
    """Until the daemon has looked at all files."""
    while (await person.status()).health.baseline != "done":  # noqa: ASYNC110  # it is in another process
        await anyio.sleep(0.5)  # so that asking does not count


async def of_many(files: int) -> Rows:
    with tempfile.TemporaryDirectory(prefix="o-", dir="/var/tmp") as base:
        daemon = RunningDaemon(Path(base).resolve(), executed=True)
        await anyio.to_thread.run_sync(made, daemon.workspace, files)
        return await of_daemon(daemon, files, 20, many=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.names", description=__doc__)
    parser.add_argument("--files", type=int, default=MANY)
    found = anyio.run(of_many, parser.parse_args().files)
    print(f"{table(found)}\n\n{misses(found)}")
