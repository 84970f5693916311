"""A rollback in a journal of many changes, and how long another's small call waits meanwhile.

`python -m tests.benchmarks.long_rollbacks [CHANGES]`; with 500,000 the journal has a million events.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

import anyio

from orchestrator.clients.python import FileAccess
from orchestrator.core.change import PathChange, Provenance
from orchestrator.core.content import FoundFile, LineHunk, Signature, digest_of
from orchestrator.core.events.base import Event
from orchestrator.core.events.files import ChangeApplied, ChangeIntended, FilesFound
from orchestrator.core.events.sessions import SessionOpened
from orchestrator.core.ids import Seq, WorkspacePath
from orchestrator.core.projections.state import State
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.machine import SystemClock, SystemEntropy
from orchestrator.ports.journal import AppendBatch, NewEvent
from tests.benchmarks.journals import AGENT, ORIGIN, SESSION, UNIT
from tests.benchmarks.measuring import Row, Samples, Target, table
from tests.benchmarks.setting import Rows, Setting
from tests.daemon.daemon_process import RunningDaemon

CHANGES, FILES = 50_000, 200
TEXTS = ("one\ntwo\nthree\n", "one\nTWO\nthree\n")


async def rows(setting: Setting) -> Rows:
    """With fewer changes than `main`, whose journal takes minutes to write."""
    return await measured(setting.times(CHANGES))


async def measured(changes: int) -> Rows:
    """A preview, then the rollback itself, each beside another's calls one after the other."""
    changes += FILES - changes % (2 * FILES)  # an odd number for each file, so that there is something to undo
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/var/tmp")).resolve()
    try:
        daemon = RunningDaemon(base)
        for number in range(FILES):
            (daemon.workspace / _path(number)).write_text(TEXTS[changes // FILES % 2])
        (daemon.workspace / "other.txt").write_text("not rolled back\n")
        await _filled(daemon.state_dir, changes)
        daemon.start()
        try:
            async with daemon.client(AGENT) as files, daemon.client("other") as other:
                shown, beside_preview = await _beside(files, other, _path(0), preview=True)
                done, beside_rollback = await _beside(files, other, "other.txt", preview=False)
        finally:
            daemon.stop()
    finally:
        shutil.rmtree(base)
    title = f"rollback of {changes:,} changes"
    return [
        Row(work=f"{title}, preview", ours=shown),
        *_waits("file_info of one of its files meanwhile", beside_preview),
        Row(work=title, ours=done),
        *_waits("file_info of another file meanwhile", beside_rollback),
    ]


def _waits(work: str, waits: Samples) -> Rows:
    """The p99 and the slowest, each held to the target."""
    target = Target(at_most_ms=100)
    return [
        Row(work=f"{work}, p99", ours=Samples([waits.at(0.99)]), target=target),
        Row(work=f"{work}, slowest", ours=Samples([max(waits.values)]), target=target),
    ]


def _path(number: int) -> WorkspacePath:
    return WorkspacePath(f"f{number}.txt")


async def _filled(state_dir: Path, changes: int) -> None:
    """One agent changes a line of every file in turns, there and back."""
    journal = await SqliteJournal.open(state_dir, clock=SystemClock(), entropy=SystemEntropy())
    journal.subscribe(State().apply)
    contents = [(digest_of(text.encode()), text.encode()) for text in TEXTS]
    signature = Signature(len(TEXTS[0]), 1, 1, 1)
    found = FilesFound(
        entries=tuple(FoundFile(_path(n), signature, 0o644, contents[0][0], kept=True) for n in range(FILES))
    )
    opened = SessionOpened(session=SESSION, agent=AGENT, agent_class="cloud", transport="rpc")
    events: list[tuple[str, Event]] = [("workspace", found), (f"session:{SESSION}", opened)]
    await journal.append(AppendBatch(tuple(NewEvent(*event) for event in events), ORIGIN, tuple(contents)))
    previous = [Seq(1)] * FILES
    seq, made = 2, 0
    while made < changes:
        unit: list[NewEvent] = []
        while made < changes and len(unit) < UNIT:
            path, turn = _path(made % FILES), made // FILES % 2
            before, after = contents[turn][0], contents[1 - turn][0]
            intended = ChangeIntended(
                provenance=Provenance(operation="edit_file"), paths=(PathChange(path, before, after),)
            )
            change = PathChange(
                path=path,
                before=before,
                after=after,
                hunks=(LineHunk(1, 1, 1, 1),),
                mode=0o644,
                signature=signature,
                previous=previous[made % FILES],
            )
            applied = ChangeApplied(change=Seq(seq + 1), provenance=Provenance(operation="edit_file"), paths=(change,))
            unit += (NewEvent(f"file:{path}", intended), NewEvent(f"file:{path}", applied))
            seq, made = seq + 2, made + 1
            previous[(made - 1) % FILES] = Seq(seq)
        await journal.append(AppendBatch(tuple(unit), ORIGIN))
    await journal.close()


async def _beside(files: FileAccess, other: FileAccess, path: str, *, preview: bool) -> tuple[Samples, Samples]:
    """How long a rollback took, in ms, and each of another's calls in that time."""
    waits: list[float] = []
    taken = 0.0

    async def look() -> None:
        while True:
            start = time.perf_counter()
            await other.file_info(path)
            waits.append((time.perf_counter() - start) * 1e3)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        start = time.perf_counter()
        with anyio.fail_after(600):
            answer = await files.rollback(session=SESSION, preview=preview)
        taken = (time.perf_counter() - start) * 1e3
        assert answer.status == ("preview" if preview else "applied"), answer.message
        tasks.cancel_scope.cancel()
    return Samples([taken]), Samples(waits)


def main(changes: int) -> None:
    """Measure and print."""
    print(table(anyio.run(measured, changes)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else CHANGES)
