"""A journal of a million events: how many of them `journal verify` checks in a second.

`python -m tests.benchmarks.verify [EVENTS]` makes one and measures; it takes a minute, so `make bench` leaves it out.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio

from orchestrator.core.change import PathChange, Provenance
from orchestrator.core.content import FoundFile, LineRange, SeenLines, Signature, digest_of
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.files import ChangeApplied, ChangeIntended, ContentSearched, FileRead, FilesFound
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.machine import SystemClock, SystemEntropy
from orchestrator.ports.journal import AppendBatch, NewEvent

FILES = 2000
PER_UNIT = 1000
READS = 6
"""Reads for each search and each change of two events: what sessions of a day were like."""


def path_of(number: int) -> WorkspacePath:
    return WorkspacePath(f"src/package_{number % 40}/module_{number}.py")


def day(first: int, count: int) -> Iterator[NewEvent]:
    """`count` events that follow event `first - 1`: reads, searches and changes in turns."""
    why = Provenance(operation="edit_file", reason="rename the parameter in every caller")
    session, seq = SessionId(f"s-{first // 5000}"), first
    while seq < first + count:
        number = seq * 7919 % FILES
        path, turn = path_of(number), seq % (READS + 4)
        before, after = digest_of(str(number).encode()), digest_of(f"{seq}".encode())
        if turn == READS and seq + 1 < first + count:
            intent = PathChange(path=path, before=None, after=None, mode=0o644, temp=f".orchestrator-{seq:016x}")
            yield NewEvent(
                f"file:{path}",
                ChangeIntended(provenance=why, paths=(intent,)),
            )
            change = PathChange(
                path=path, before=before, after=after, mode=0o644, signature=Signature(9000, seq, seq, number)
            )
            yield NewEvent(
                f"file:{path}", ChangeApplied(change=Seq(seq), provenance=why.without_reason(), paths=(change,))
            )
            seq += 2
            continue
        event: Event
        if turn == READS + 2:
            event = ContentSearched(path=WorkspacePath("src"), pattern="def parse_", total=17, files_searched=9)
        else:
            lines = SeenLines(path=path, version=Seq(1), ranges=(LineRange(1, 240),), total_lines=900)
            event = FileRead(operation="read_file", seen=lines, bytes=9000, tokens=2400)
        yield NewEvent(f"session:{session}", event)
        seq += 1


async def fill(folder: Path, events: int) -> None:
    """As a daemon would have written it, but in units of a thousand."""
    journal = await SqliteJournal.open(folder, clock=SystemClock(), entropy=SystemEntropy())
    signature = Signature(9000, 1, 1, 1)
    found = FilesFound(entries=tuple(FoundFile(path=path_of(n), signature=signature, mode=0o644) for n in range(FILES)))
    await journal.append(AppendBatch((NewEvent("workspace", found),), Origin()))
    origin = Origin(
        session=SessionId("s-1f"), agent=AgentName("claude"), request_digest="00ff" * 16, trace_id="4bf92f35"
    )
    while journal.head < events:
        count = min(PER_UNIT, events - journal.head)
        await journal.append(AppendBatch(tuple(day(journal.head + 1, count)), origin))
    await journal.close()


async def measured(folder: Path) -> None:
    """Verify twice: the second time with the file in the page cache for sure."""
    journal = await SqliteJournal.open(folder, clock=SystemClock(), entropy=SystemEntropy(), readonly=True)
    for _ in range(2):
        begun, used = time.perf_counter(), sum(os.times()[:4])
        report = await journal.verify()
        taken = time.perf_counter() - begun
        assert report.problems == (), report.problems[:5]
        used = sum(os.times()[:4]) - used  # what another load on the machine does not lengthen
        print(
            f"{report.events:,} events in {taken:.1f} s: {report.events / taken:,.0f} events/s "
            f"({used:.1f} s of processor time)",
            flush=True,
        )
    await journal.close()


def main(argv: list[str]) -> None:
    events = int(argv[0]) if argv else 1_000_000
    folder = Path(tempfile.mkdtemp(prefix="o-", dir="/var/tmp"))
    try:
        begun = time.perf_counter()
        anyio.run(partial(fill, folder, events))
        size = (folder / "journal.db").stat().st_size / 2**20
        print(f"made {events:,} events, {size:,.0f} MiB, in {time.perf_counter() - begun:.0f} s", flush=True)
        anyio.run(partial(measured, folder))
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
