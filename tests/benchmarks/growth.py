"""What the journal grows by with each read and each edit of a 2 KB file. Reported, beside no peer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from orchestrator.clients.python import FileAccess, Replacement
from tests.benchmarks.measuring import Row, Samples
from tests.benchmarks.setting import Rows, Setting
from tests.daemon.daemon_process import RunningDaemon

LINES, PATH = 64, "grown.txt"
READS, EDITS = 2_000, 500


async def rows(setting: Setting) -> Rows:
    """By the size of the state directory while nothing runs: the log is folded into the database then."""
    lines = [line_of(number) for number in range(LINES)]
    (setting.daemon.workspace / PATH).write_text("".join(lines))

    async def read(files: FileAccess, number: int) -> None:
        await files.read_lines(PATH, start=1, end=LINES)

    async def edit(files: FileAccess, number: int) -> None:
        at, new = number % LINES, line_of(LINES + number)
        answer = await files.edit_file(PATH, [Replacement(search=lines[at], replace=new)])
        assert answer.status == "applied", answer.message
        lines[at] = new

    reads = await grown(setting.daemon, read, setting.times(READS))
    edits = await grown(setting.daemon, edit, setting.times(EDITS))
    return [
        Row(work=f"journal grows: read_lines of {LINES} lines", ours=reads, unit="bytes"),
        Row(work="journal grows: edit of a 2 KB file", ours=edits, unit="bytes"),
    ]


def line_of(number: int) -> str:
    """32 bytes, so that the file has 2 KB."""
    return f"{number:06} {number * 7919:024}\n"


async def grown(daemon: RunningDaemon, act: Callable[[FileAccess, int], Awaitable[None]], times: int) -> Samples:
    """Bytes for each act, with what a session costs shared out among them."""
    daemon.stop()
    before = size_of(daemon.state_dir)
    daemon.start()
    async with daemon.client("grower") as files:
        for number in range(times):
            await act(files, number)
    daemon.stop()
    taken = (size_of(daemon.state_dir) - before) / times
    daemon.start()
    return Samples([taken])


def size_of(folder: Path) -> int:
    """All files in it, as they are long."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
