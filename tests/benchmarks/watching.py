"""What watching costs: private memory of the daemon with 100,000 files, and the time to take 10,000 changes in.

`make bench` reports the first, on a folder of its own; `python -m tests.benchmarks.watching` both.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import anyio

from orchestrator.clients.python import FileAccess
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from tests.benchmarks.measuring import Row, Samples, Target, table
from tests.benchmarks.setting import Rows, Setting
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.external_changes import resolved

PER_FOLDER = 10


FILES = 100_000


async def rows(setting: Setting) -> Rows:
    """What the watcher takes; a process of its own, so that no earlier group has left it memory to use again."""
    folder = setting.peers_work / "watched"
    folder.mkdir()
    files = setting.times(FILES)
    await anyio.to_thread.run_sync(made, folder, files)
    command = [sys.executable, "-m", "tests.benchmarks.watching", "--watcher", str(folder)]
    said = await anyio.run_process(command)
    shutil.rmtree(folder)
    work = f"watcher's private memory, {files:,} files"
    return [Row(work=work, ours=Samples([int(said.stdout) / 1024]), unit="MB")]


def private_kb(pid: int) -> int:
    """Memory that is the process's alone."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def made(work: Path, files: int) -> list[Path]:
    """So many small files, ten to a folder: folders are what is watched."""
    paths = []
    for n in range(files):
        folder = work / f"d{n // (PER_FOLDER * 100)}" / f"e{n // PER_FOLDER}"
        if n % PER_FOLDER == 0:
            folder.mkdir(parents=True)
        path = folder / f"f{n}.txt"
        path.write_text(f"before {n}\n")
        paths.append(path)
    return paths


def watcher_kb(work: Path) -> int:
    """What the watcher itself takes, alone in this process."""
    workspace = LocalWorkspace(str(work), disk=Disk())
    watcher = workspace.watcher()
    before = private_kb(os.getpid())
    watcher.start()
    taken = private_kb(os.getpid()) - before
    watcher.close()
    workspace.close()
    return taken


async def baseline_done(person: FileAccess) -> None:
    with anyio.fail_after(600):
        while (await person.status()).health.baseline != "done":
            pass  # each turn is an answered call


async def absorbed(daemon: RunningDaemon, paths: list[Path]) -> tuple[float, Samples]:
    """From the first write until the group is closed, in ms; and how long reads took meanwhile."""
    reads = Samples([])
    async with daemon.client("reader") as reader, daemon.client() as person:
        await baseline_done(person)
        (daemon.workspace / "read.txt").write_text("hello\n")

        async def read() -> None:
            while True:
                start = time.perf_counter()
                await reader.read_file("read.txt")
                reads.values.append((time.perf_counter() - start) * 1e3)

        start = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.to_thread.run_sync(lambda: [path.write_text("after, and longer\n") for path in paths])
            await resolved(person, len(paths) // 2)
            taken = (time.perf_counter() - start) * 1e3
            tasks.cancel_scope.cancel()
    return taken, reads


async def main(files: int, changes: int) -> None:
    """Measure and print."""
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/var/tmp")).resolve()
    try:
        (base / "work").mkdir(mode=0o700)
        paths = made(base / "work", files)
        extra = watcher_kb(base / "work")
        with running(base) as daemon:
            assert daemon.process is not None
            async with daemon.client() as person:
                await baseline_done(person)
                health = (await person.status()).health.watching
            held = private_kb(daemon.process.pid)
            taken, reads = await absorbed(daemon, paths[:changes])
        print(f"watching {files} files in {files // PER_FOLDER} folders: {health}")
        print(f"private memory: the watcher {extra / 1024:.1f} MB (ignore rules by folder in it);")
        print(f"the whole daemon {held / 1024:.0f} MB (the registry of all files in it)")
        rows = [
            Row(work=f"{changes} outside changes, written and taken in", ours=Samples([taken])),
            Row(work="read_file meanwhile", ours=reads, target=Target(at_most_ms=100)),
        ]
        print(table(rows))
        print(f"slowest read: {max(reads.values):.0f} ms")
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.watching", description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--watcher", type=Path, help="only print what watching this folder takes, in KB")
    given = parser.parse_args()
    if given.watcher is not None:
        print(watcher_kb(given.watcher))
    else:
        anyio.run(main, given.files, given.changes)
