"""Journals of any length, made fast: large units straight into SqliteJournal, no daemon."""

from __future__ import annotations

from pathlib import Path

from orchestrator.core.content import LineRange, SeenLines
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.files import ContentSearched, DirectoryListed, FileRead, MetadataRead
from orchestrator.core.events.sessions import SessionOpened
from orchestrator.core.ids import AgentName, EscapedPath, Seq, SessionId, WorkspacePath
from orchestrator.core.projections.state import FrozenState, State, freeze
from orchestrator.engine.record.folded_state import encoded
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.machine import SystemClock, SystemEntropy
from orchestrator.ports.journal import AppendBatch, NewEvent

UNIT = 1000
FILES = 50
SESSION, AGENT = SessionId("s-bench"), AgentName("bench")
ORIGIN = Origin(session=SESSION, agent=AGENT, owner="uid:0", client_call_id="toolu_0123456789")


def reads(count: int, start: int = 0) -> list[Event]:
    """What an agent's work looks like in a journal: of ten events seven reads, a listing, a search, a glance."""
    made: list[Event] = []
    for number in range(start, start + count):
        path = WorkspacePath(f"src/module_{number % FILES}.py")
        first = number * 37 % 400 + 1
        seen = SeenLines(path=path, version=Seq(2), ranges=(LineRange(first, first + 60),), total_lines=500)
        match number % 10:
            case 7:
                made.append(DirectoryListed(operation="list_files", path=WorkspacePath("src"), globs=(), entries=50))
            case 8:
                made.append(
                    ContentSearched(
                        pattern="def ",
                        path=WorkspacePath("src"),
                        globs=("*.py",),
                        seen=(seen,),
                        total=9,
                        files_searched=50,
                        left_out=0,
                        tokens=200,
                    )
                )
            case 9:
                made.append(MetadataRead(operation="file_info", path=EscapedPath(path)))
            case _:
                made.append(FileRead(operation="read_file", seen=seen, bytes=2400, tokens=600))
    return made


async def filled(state_dir: Path, count: int, *, snapshot_at: int | None = None) -> None:
    """A journal of `count` events, with a snapshot as the daemon would have made it there, closed cleanly."""
    journal = await SqliteJournal.open(state_dir, clock=SystemClock(), entropy=SystemEntropy())
    state = State()
    journal.subscribe(state.apply)
    opened = SessionOpened(session=SESSION, agent=AGENT, agent_class="cloud", transport="rpc")
    await journal.append(AppendBatch((NewEvent(f"session:{SESSION}", opened),), ORIGIN))
    frozen: FrozenState | None = None
    while journal.head < count:
        size = min(UNIT, count - journal.head)
        units = tuple(NewEvent(f"session:{SESSION}", event) for event in reads(size, journal.head))
        await journal.append(AppendBatch(units, ORIGIN))
        if snapshot_at is not None and journal.head >= snapshot_at and frozen is None:
            frozen = freeze(state)
    if frozen is not None:
        await journal.keep_snapshot(*encoded(frozen))
    await journal.close()
