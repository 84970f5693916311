"""What the journal keeps of a conflict: its sides as texts, and what reviewers said."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from orchestrator.core.conflicts.sides import Choices, Sides
from orchestrator.core.decisions.costs import large
from orchestrator.core.events.catalog import tag_of
from orchestrator.core.events.conflicts import ConflictSides
from orchestrator.core.events.reviews import ReviewAnswered, ReviewFailed
from orchestrator.core.ids import Digest
from orchestrator.core.projections.reviews import Review
from orchestrator.core.text.encoding import EMPTY, Document
from orchestrator.engine.contents import Contents
from orchestrator.ports.journal import EventFilter, Journal
from orchestrator.ports.workers import Effort

T = TypeVar("T")
Said = TypeVar("Said", ReviewAnswered, ReviewFailed)


async def computed(effort: Effort, work: Callable[[], T], *texts: Document) -> T:
    """What `work` gives, from a worker process where the texts are large. Raises TextTooCostly, and as `work`."""
    return await effort.run(work) if large(*texts) else work()


async def chosen(effort: Effort, sides: Sides, choices: Choices) -> bytes:
    """The bytes of `Sides.chosen`. Raises GapConflict, NotEncodable, TextTooCostly."""
    return await computed(effort, partial(sides.chosen, choices), *sides)


async def sides_of(contents: Contents, sides: ConflictSides) -> Sides | None:
    """The sides of a conflict; None where one of them is no text, or not kept, or nothing is to stand there."""
    base, current = await text(contents, sides.base), await text(contents, sides.current)
    proposed = await text(contents, sides.proposed) if sides.proposed is not None else None
    if base is None or current is None or proposed is None:
        return None
    return Sides(base, current, proposed, sides.regions)


async def text(contents: Contents, digest: Digest | None) -> Document | None:
    """A content as text, an empty one where nothing stands; None if it is no text, or not kept."""
    if digest is None:
        return EMPTY
    data = await contents.get(digest)
    return await contents.text(digest, data) if data is not None else None


async def event_of(journal: Journal, review: Review, kind: type[Said]) -> Said | None:
    """The answer that counts, or the failure, of a review, as the journal has it; its conflict may have moved since."""
    wanted = EventFilter(tags=(tag_of(kind),), after=review.seq)
    async for recorded in journal.events(wanted, batch=20):
        event = recorded.event
        ignored = isinstance(event, ReviewAnswered) and event.ignored
        if isinstance(event, kind) and event.review == review.seq and not ignored:
            return event
    return None
