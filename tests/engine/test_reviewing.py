"""Answers that come twice, to no question, or for a conflict that is closed; and deadlines by a clock that is moved."""

from __future__ import annotations

import anyio
import pytest

from orchestrator.core.change import Provenance
from orchestrator.core.content import digest_of
from orchestrator.core.events.base import Origin
from orchestrator.core.events.codec import tag_of
from orchestrator.core.events.conflicts import (
    ConflictFound,
    ConflictResolved,
    ConflictSides,
    ReviewAnswered,
    ReviewFailed,
    ReviewUsage,
)
from orchestrator.core.ids import AgentName, Digest, Seq, SessionId, WorkspacePath
from orchestrator.engine.changes.facts import RenameTracker
from orchestrator.engine.conflicts.conflict_views import ConflictViews
from orchestrator.engine.conflicts.open_conflicts import Rebaser
from orchestrator.engine.conflicts.proposals import Proposals
from orchestrator.engine.conflicts.review_queue import Reviewing
from orchestrator.engine.reads.blame import Attributions
from orchestrator.machine import SystemEntropy
from orchestrator.ports.journal import AppendBatch, NewEvent
from orchestrator.ports.reviewers import RegionText, ReviewReply, ReviewRequest
from tests.engine.parts import pipeline_of, services_of
from tests.in_memory.absent import NoChecks
from tests.in_memory.journal import MemoryJournal
from tests.in_memory.workspace import MemoryWorkspace
from tests.regions import region

pytestmark = pytest.mark.anyio

POLICY = """
name = "p"
default = "allow"
[[route]]
reviewers = ["silent", "other"]
accept = "person"
deadline_s = 60
"""
FILE = WorkspacePath("gone.txt")
BASE, MINE, OTHER = b"a\n", b"b\n", b"c\n"
REPLY = ReviewReply(verdict="content", regions=(RegionText(1, ("both",)),))


class MovedClock:
    """Stands still until it is moved."""

    ms = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.ms

    def ticks_us(self) -> int:
        return self.ms * 1000


class Silent:
    """Never answers."""

    def asked(self, request: ReviewRequest) -> ReviewUsage:
        return ReviewUsage()

    async def review(self, request: ReviewRequest) -> ReviewReply:
        await anyio.sleep_forever()
        raise AssertionError


class Present(Rebaser):
    """The file stays as it was when the conflict was found."""

    def _moved(self, conflict: object) -> bool:
        return False


class Queue:
    """The duty over a journal in memory, with one conflict in it."""

    def __init__(self) -> None:
        self.clock = MovedClock()
        self.journal = MemoryJournal(clock=self.clock, entropy=SystemEntropy())
        workspace = MemoryWorkspace()
        self.services = services_of(workspace, journal=self.journal, clock=self.clock, policy=POLICY)
        services = self.services
        pipeline = pipeline_of(services)
        renames = RenameTracker(services)
        proposals = Proposals(services, pipeline, NoChecks())
        rebaser = Present(services, pipeline.observer, renames)
        attributions = Attributions(services.journal, services.contents)
        views = ConflictViews(services, pipeline.answers.diffs, rebaser, attributions)
        self.duty = Reviewing(self.services, rebaser, proposals, views, {"silent": Silent(), "other": Silent()})

    async def found(self) -> Seq:
        event = ConflictFound(
            provenance=Provenance(operation="edit_file"),
            path=FILE,
            sides=ConflictSides(
                base=digest_of(BASE),
                current=digest_of(MINE),
                proposed=digest_of(OTHER),
                base_version=None,
                current_version=None,
                regions=(region(0, 1, 0, 1, 0, 1),),
            ),
        )
        blobs: tuple[tuple[Digest, bytes], ...] = tuple((digest_of(data), data) for data in (BASE, MINE, OTHER))
        origin = Origin(agent=AgentName("bob"), session=SessionId("s"))
        recorded = await self.journal.append(AppendBatch((NewEvent(f"conflict:{FILE}", event),), origin, blobs))
        return recorded[0].seq

    async def asked(self, conflict: Seq) -> Seq:
        """The duty's first look asks the first reviewer."""
        await self.duty.look()
        found = self.services.state.pending.conflict(conflict)
        assert found is not None
        assert found.review is not None
        return found.review.seq

    async def ignored(self) -> list[str]:
        return [e.event.ignored async for e in self.journal.events() if isinstance(e.event, ReviewAnswered)]


@pytest.fixture
async def queue() -> Queue:
    return Queue()


async def in_group(queue: Queue, conflict: Seq) -> Seq:
    """The number of the first review, with its call under way no more."""
    async with anyio.create_task_group() as queue.duty._tasks:
        number = await queue.asked(conflict)
        queue.duty._tasks.cancel_scope.cancel()
    return number


async def test_the_second_answer_is_ignored(queue: Queue) -> None:
    conflict = await queue.found()
    number = await in_group(queue, conflict)
    await queue.duty.answered(conflict, number, REPLY)
    await queue.duty.answered(conflict, number, ReviewReply(verdict="proposed"))
    assert await queue.ignored() == ["", "double"]
    found = queue.services.state.pending.conflict(conflict)
    assert found is not None
    assert found.review is not None
    assert (found.review.state, found.review.verdict, found.review.proposal) == (
        "answered",
        "content",
        digest_of(b"both\n"),
    )


async def test_an_answer_to_no_question_is_ignored(queue: Queue) -> None:
    conflict = await queue.found()
    await in_group(queue, conflict)
    await queue.duty.answered(conflict, Seq(999), REPLY)
    assert await queue.ignored() == ["unknown"]


async def test_an_answer_for_a_closed_conflict_is_ignored(queue: Queue) -> None:
    conflict = await queue.found()
    number = await in_group(queue, conflict)
    resolved = ConflictResolved(conflict=conflict, choice="current", by="ada")
    await queue.services.notes.append(Origin(), (f"conflict:{FILE}", resolved))
    await queue.duty.answered(conflict, number, REPLY)
    assert await queue.ignored() == ["closed"]


async def test_at_the_deadline_the_next_is_asked(queue: Queue) -> None:
    conflict = await queue.found()
    async with anyio.create_task_group() as queue.duty._tasks:
        number = await queue.asked(conflict)
        due = await queue.duty.look()
        assert due == queue.clock.ms + 60_000
        queue.clock.ms += 59_999
        await queue.duty.look()
        assert [tag_of(e.event) async for e in queue.journal.events()][-1] == "review_requested"
        queue.clock.ms += 1
        await queue.duty.look()
        failed = [e.event async for e in queue.journal.events() if isinstance(e.event, ReviewFailed)]
        assert [(f.review, f.code) for f in failed] == [(number, "reviewer_timeout")]
        assert await queue.asked(conflict) != number
        await queue.duty.answered(conflict, number, REPLY)
        assert await queue.ignored() == ["late"]
        queue.duty._tasks.cancel_scope.cancel()
    found = queue.services.state.pending.conflict(conflict)
    assert found is not None
    assert [(item.reviewer, item.state) for item in found.reviews] == [("silent", "failed"), ("other", "requested")]
