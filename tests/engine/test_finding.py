"""A walk in bounded steps finds what one look at everything finds, each once and in order."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.change import Provenance
from orchestrator.core.content import SeenLines
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.codec import outcome_of, tags_with
from orchestrator.core.events.files import ChangeApplied, ContentSearched, MetadataRead, ReadRefused
from orchestrator.core.ids import AgentName, EscapedPath, Seq, SessionId, WorkspacePath
from orchestrator.engine.record.audit import EventQuery, Task, about, newest, oldest, streams_of, within
from orchestrator.ports.journal import AppendBatch, EventFilter, Mention, NewEvent
from tests.golden.samples import SAMPLES
from tests.in_memory.journal import MemoryJournal
from tests.journal.fixtures import SeededEntropy, SteppingClock

A, B = WorkspacePath("a"), WorkspacePath("b")
LINES = SeenLines(path=A, version=Seq(1), ranges=(), total_lines=1)
EVENTS: tuple[tuple[str, Event], ...] = (
    ("session:s", MetadataRead(operation="file_info", path=EscapedPath(A))),
    ("session:s", MetadataRead(operation="file_info", path=EscapedPath(B))),
    ("session:s", ContentSearched(pattern='"a"', path=WorkspacePath("."), seen=(LINES,))),
    ("session:s", ContentSearched(pattern='"path":"a"', path=B)),
    ("session:s", ReadRefused(operation="read_file", path=EscapedPath(A), code="denied", message="")),
    ("session:s", ReadRefused(operation="read_file", path=EscapedPath(A), code="not_found", message='"task":3')),
    ("file:a", ChangeApplied(change=Seq(1), provenance=Provenance(operation="edit_file"), paths=())),
    ("file:b", ChangeApplied(change=Seq(1), provenance=Provenance(operation="edit_file", task=Seq(3)), paths=())),
    ("file:b", ChangeApplied(change=Seq(1), provenance=Provenance(operation="edit_file", task=Seq(33)), paths=())),
)
TASK = Task(Seq(3), "s1", 9)
PATH_A = Mention(streams=streams_of(A), texts=(b'"a"',))
TASK_3 = Mention(texts=(b'"task":3',), session="s1", first=3, last=9)
WANTED = {
    "all": EventQuery(EventFilter()),
    "an agent": EventQuery(EventFilter(agent="x")),
    "a path": EventQuery(EventFilter(mentions=(PATH_A,)), A),
    "a task": EventQuery(EventFilter(after=2, mentions=(TASK_3,)), None, TASK),
    "an outcome": EventQuery(EventFilter(tags=tags_with("denied")), None, None, "denied"),
    "a span": EventQuery(EventFilter(after=3, until=11, mentions=(PATH_A,)), A),
    "times": EventQuery(EventFilter(since_at=SteppingClock().ms + 4, until_at=SteppingClock().ms + 12)),
}


async def filled(kinds: list[int]) -> MemoryJournal:
    journal = MemoryJournal(clock=SteppingClock(), entropy=SeededEntropy())
    for number, kind in enumerate(kinds):
        origin = Origin(agent=AgentName("xy"[number % 2]), session=SessionId(f"s{number % 3}"))
        await journal.append(AppendBatch((NewEvent(*EVENTS[kind]),), origin))
    return journal


async def fitting(journal: MemoryJournal, wanted: EventQuery) -> list[int]:
    return [recorded.seq async for recorded in journal.events(wanted.filter) if wanted.fits(recorded)]


@settings(max_examples=150, deadline=None)
@given(
    kinds=st.lists(st.integers(0, len(EVENTS) - 1), max_size=20),
    name=st.sampled_from(sorted(WANTED)),
    limit=st.integers(1, 5),
    step=st.integers(1, 7),
    budget=st.integers(1, 9),
    between=st.integers(0, 2),
)
def test_pages_give_each_event_once_and_in_order(
    kinds: list[int], name: str, limit: int, step: int, budget: int, between: int
) -> None:
    async def check() -> None:
        journal, wanted = await filled(kinds), WANTED[name]
        expected = await fitting(journal, wanted)
        forward: list[int] = []
        after: int | None = 0
        while after is not None:
            found = await oldest(journal, wanted, after=after, limit=limit, step=step, budget=budget)
            forward += [recorded.seq for recorded in found.events]
            after = found.last
        assert forward == expected
        backward: list[int] = []
        before: int | None = None
        more = True
        while more:
            found = await newest(journal, wanted, before=before, limit=limit, step=step, budget=budget)
            backward += [recorded.seq for recorded in found.events]
            assert len(found.events) <= limit
            before, more = found.last, found.last is not None
            for _ in range(between):
                await journal.append(AppendBatch((NewEvent(*EVENTS[0]),), Origin(agent=AgentName("x"))))
        assert backward == expected[::-1]

    anyio.run(check)


def test_a_path_is_found_where_an_event_names_it_and_not_where_its_text_is() -> None:
    async def check() -> None:
        journal = await filled(list(range(len(EVENTS))))
        events = [recorded async for recorded in journal.events()]
        assert [recorded.seq for recorded in events if about(recorded, A)] == [1, 3, 5, 6, 7]
        assert [recorded.seq for recorded in events if within(recorded, TASK)] == [5, 8]

    anyio.run(check)


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: type(event).__name__)
def test_an_outcome_is_looked_for_in_the_events_that_have_it(event: Event) -> None:
    outcome = outcome_of(event)
    if outcome is not None:
        assert event.__struct_config__.tag in tags_with(outcome)
