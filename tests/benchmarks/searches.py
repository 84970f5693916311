"""Searches of contents: a 97 MB log, trees of 20,000 and 50,000 files, and the memory that 582 MB take."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread

import anyio

from orchestrator.clients.python import FileAccess
from tests.benchmarks.logs import (
    ABSENT,
    EVERYWHERE,
    MISSPELT,
    MISSPELT_LINE,
    NEEDLE,
    PRESENT,
    WORDS,
    lines_like,
    write_log,
)
from tests.benchmarks.measuring import Row, Samples, Target, Work, in_turns, plain
from tests.benchmarks.names import RG, idle
from tests.benchmarks.peers import Peer, mcp_session
from tests.benchmarks.setting import Rows, Setting
from tests.daemon.daemon_process import RunningDaemon

LOG_BYTES, HUGE_BYTES = 97_000_000, 582_000_000
TREES = 20_000, 50_000
PER_FOLDER, FUNCTIONS = 50, 22
WITH_NEEDLE = 500
"""One file of so many holds the needle."""

IN_EACH = "return value"
EDITS = 3
MOST_PRIVATE_MB = 120.0
AROUND = (
    "ripgrep, told to give offsets, takes as long for us as by itself; the rest is its start from the daemon, the look "
    "at the line through the confined open, its number, and the event with its commit."
)


async def rows(setting: Setting) -> Rows:
    """Each on a daemon of its own, beside ripgrep, spawned, and largefile."""
    found = await _of_log(setting)
    for files in TREES:
        found += await _of_tree(setting, files)
    return [*found, *await _memory()]


@asynccontextmanager
async def _daemon(lay_out: Callable[[Path], object]) -> AsyncIterator[tuple[RunningDaemon, FileAccess]]:
    """One on a folder that is laid out before it starts, and a client, once it idles."""
    with tempfile.TemporaryDirectory(prefix="o-", dir="/var/tmp") as base:
        daemon = RunningDaemon(Path(base).resolve(), executed=True)
        await anyio.to_thread.run_sync(lay_out, daemon.workspace)
        daemon.start()
        try:
            async with daemon.client("searcher") as files, daemon.client() as person:
                await idle(person)
                yield daemon, files
        finally:
            daemon.stop()


def _lay_out_log(size: int, folder: Path) -> None:
    write_log(folder / "app.log", size)
    os.sync()  # a page that is not on the disk yet counts as changed by whoever maps it


async def _of_log(setting: Setting) -> Rows:
    async with _daemon(partial(_lay_out_log, LOG_BYTES)) as (daemon, files):
        log = daemon.workspace / "app.log"
        like = await anyio.to_thread.run_sync(lambda: lines_like(log.read_bytes(), MISSPELT.encode(), EDITS))

        async def exact() -> None:
            answer = await files.search_content(PRESENT, path="app.log")
            assert [hit.line for hit in answer.hits] == like

        async def misspelt() -> None:
            answer = await files.search_content(MISSPELT, path="app.log", mode="fuzzy", max_edits=EDITS)
            assert ([hit.line for hit in answer.hits], answer.partial) == (like, False)

        async def everywhere() -> None:
            answer = await files.search_content(EVERYWHERE, path="app.log", mode="fuzzy", max_edits=EDITS)
            assert answer.partial

        async def counted() -> None:
            answer = await files.search_content("INFO", path="app.log", count_only=True)
            assert answer.total > LOG_BYTES // 1000

        ours = {"exact": exact, "misspelt": misspelt, "everywhere": everywhere, "count": counted}
        spawned = {"rg": _rg("--line-number", PRESENT, log), "rg count": _rg("--count", "INFO", log)}
        taken = await in_turns({**ours, **spawned}, setting.times(10))
        path = {"absolute_file_path": str(log)}
        theirs: dict[str, dict[str, object]] = {
            "exact": {**path, "pattern": PRESENT, "fuzzy": False, "case_sensitive": True},
            "misspelt": {**path, "pattern": MISSPELT_LINE},
        }
        peers = await _largefile(setting.largefile, "search_content", theirs)
    work, largefile = f"search of {LOG_BYTES // 1_000_000} MB", setting.largefile.name
    return [
        _row(f"{work}, exact", taken["exact"], "spawned rg", taken["rg"], Target(round(1 / 1.3, 2), why_missed=AROUND)),
        _row(f"{work}, exact", taken["exact"], largefile, peers["exact"], Target(25, why_missed=AROUND)),
        _row(f"{work}, {EDITS} typos", taken["misspelt"], "rg, exact", taken["rg"], Target(at_least=round(1 / 7, 2))),
        _row(
            f"{work}, {EDITS} typos", taken["misspelt"], f"{largefile}, a line", peers["misspelt"], Target(at_least=10)
        ),
        _row(f"{work}, typos, a piece everywhere", taken["everywhere"], target=Target(at_most_ms=1000)),
        _row(f"{work}, count in every other line", taken["count"], "spawned rg --count", taken["rg count"]),
    ]


def _lay_out_tree(files: int, folder: Path) -> None:
    """Files of two kilobytes, fifty to a folder."""
    dice = random.Random(files)
    for number in range(files):
        at = folder / f"pkg{number // (20 * PER_FOLDER):03d}" / f"mod{number // PER_FOLDER:04d}"
        if number % PER_FOLDER == 0:
            at.mkdir(parents=True)
        body = [
            f"def function_{number}_{part}(value):\n    {IN_EACH} + {dice.randrange(10**6)}  # {words}\n"
            for part, words in enumerate(" ".join(dice.choices(WORDS, k=4)) for _ in range(FUNCTIONS))
        ]
        if number % WITH_NEEDLE == WITH_NEEDLE // 2:
            body.append(f"# {NEEDLE}\n")
        (at / f"file_{number}.py").write_text("".join(body), encoding="utf-8")


async def _of_tree(setting: Setting, number: int) -> Rows:
    async with _daemon(partial(_lay_out_tree, number)) as (daemon, files):
        folder = daemon.workspace

        def ours(pattern: str, total: int, *, count_only: bool = False) -> Work:
            async def search() -> None:
                answer = await files.search_content(pattern, count_only=count_only)
                assert (answer.total, answer.files_searched) == (total, number)

            return search

        total = number * FUNCTIONS
        contenders = {
            "some": ours(PRESENT, number // WITH_NEEDLE),
            "none": ours(ABSENT, 0),
            "rg some": _rg("--line-number", PRESENT, folder),
            "rg none": _rg("--line-number", ABSENT, folder),
        }
        taken = await in_turns(contenders, setting.times(10))
        each = {"each": ours(IN_EACH, total, count_only=True), "rg each": _rg("--count", IN_EACH, folder)}
        taken |= await in_turns(each, setting.times(3), warm_up=1)
        asked = {"absolute_dir_path": str(folder), "pattern": PRESENT, "max_results": 100}
        peers = await _largefile(setting.largefile, "search_directory", {"some": asked})
    work = f"search of {number:,} files"
    least = Target(
        at_least=round(1 / 1.5, 2),
        why_missed="ripgrep itself takes as long for us; the rest is the call, and policy's look at the names.",
    )
    return [
        _row(f"{work}, {number // WITH_NEEDLE} hits", taken["some"], "spawned rg", taken["rg some"], least),
        _row(
            f"{work}, {number // WITH_NEEDLE} hits",
            taken["some"],
            setting.largefile.name,
            peers["some"],
            Target(
                at_least=20,
                why_missed="the peer looks at a part of the tree: it takes as long for 20,000 files, where it is met.",
            ),
        ),
        _row(f"{work}, no hit", taken["none"], "spawned rg", taken["rg none"], least),
        _row(f"{work}, count, hits in each", taken["each"], "spawned rg --count", taken["rg each"]),
    ]


async def _memory() -> Rows:
    """What the daemon and the processes that work for it hold at most, of their own, while one file is searched."""
    async with _daemon(partial(_lay_out_log, HUGE_BYTES)) as (daemon, files):
        assert daemon.process is not None
        with Memory(daemon.process.pid) as memory:
            for _ in range(3):
                assert (await files.search_content(PRESENT, path="app.log")).total > 0
                await files.search_content(MISSPELT, path="app.log", mode="fuzzy", max_edits=EDITS)
    work = f"private memory, daemon and workers, search of {HUGE_BYTES // 1_000_000} MB"
    return [Row(work=work, ours=Samples([memory.most_mb]), target=Target(at_most_ms=MOST_PRIVATE_MB), unit="MB")]


class Memory:
    """What a process and all below it hold of their own at most, looked at again and again."""

    def __init__(self, pid: int) -> None:
        self.most_mb = 0.0
        self._over = Event()
        self._thread = Thread(target=self._look, args=(pid,))

    def _look(self, pid: int) -> None:
        while not self._over.wait(0.02):
            self.most_mb = max(self.most_mb, _private_mb(pid))

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def _private_mb(pid: int) -> float:
    """Of a process and all below it; without pages of a mapped file, which are the system's cache."""
    with suppress(OSError):  # it ended
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        own = sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))
        tasks = Path(f"/proc/{pid}/task").glob("*/children")
        children = [int(child) for task in tasks for child in task.read_text().split()]
        return own / 1024 + sum(map(_private_mb, children))
    return 0.0


def _rg(option: str, pattern: str, path: Path) -> Work:
    command = (RG, "--no-config", option, "--fixed-strings", pattern, str(path))
    return plain(lambda: subprocess.run(command, check=False, capture_output=True))


async def _largefile(peer: Peer, tool: str, asked: dict[str, dict[str, object]]) -> dict[str, Samples]:
    if not peer.command:
        return {name: Samples([], peer.trouble) for name in asked}
    with tempfile.TemporaryDirectory() as backups:
        async with mcp_session(peer.command, env={**os.environ, "LARGEFILE_BACKUP_DIR": backups}) as session:
            calls: dict[str, Callable[[], Awaitable[object]]] = {
                name: partial(session.call, tool, params) for name, params in asked.items()
            }
            return await in_turns(calls, 3, warm_up=1)


def _row(work: str, ours: Samples, peer: str = "", theirs: Samples | None = None, target: Target | None = None) -> Row:
    return Row(work=work, ours=ours, peer=peer, theirs=theirs, target=target or Target())
