"""Open conflicts: their texts, and where they go when their file changes or moves."""

from __future__ import annotations

from functools import partial

import msgspec

from orchestrator.core.conflicts.sides import Rebased, Sides, changed_regions, spanned
from orchestrator.core.content import Region, Span, digest_of
from orchestrator.core.errors import PathError, TextTooCostly
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.conflicts import (
    ConflictExpired,
    ConflictRebased,
    ConflictSides,
    ReviewAnswered,
    ReviewFailed,
)
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.projections.pending import Conflict, Review
from orchestrator.core.text.encoding import EMPTY, Document, encode
from orchestrator.engine.changes.facts import Renamed, RenameTracker
from orchestrator.engine.contents import Contents
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.notes import Notes
from orchestrator.engine.services import Services
from orchestrator.ports.journal import AppendBatch, NewEvent


class Rebaser:
    """Keeps the sides of open conflicts as the files are."""

    def __init__(self, services: Services, observer: Observer, renames: RenameTracker) -> None:
        self._s, self._observer, self._renames = services, observer, renames

    async def follow(self, conflict: Conflict, *, renames_only: bool = False) -> Conflict | None:
        """Bring one conflict up to date with its file; what it is then, None if it is not open any more.

        With `renames_only` just to where its file was moved; what else became of the file can wait.
        """
        if self._moved(conflict) or conflict.found.sides.current is None:
            renamed = await self._renamed(conflict)
            if renamed is not None or not renames_only:
                await self._bring(conflict, renamed)
        return self._s.state.pending.open_conflict(conflict.seq)

    async def _bring(self, conflict: Conflict, renamed: Renamed | None) -> None:
        """Under the locks of its paths; if it is otherwise by then, what made it so wakes the duty again."""
        paths = (conflict.found.path,) if renamed is None else (conflict.found.path, renamed.path)
        async with self._s.locks.alone(paths):
            present = self._s.state.pending.open_conflict(conflict.seq)
            if present is None or present.found.path != conflict.found.path:
                return
            if await self._renamed(present) == renamed and (renamed is not None or self._moved(present)):
                await self._rebase(present, renamed)

    async def _renamed(self, conflict: Conflict) -> Renamed | None:
        """Where the conflict's file was moved since it was last looked at."""
        found = conflict.found
        return await self._renames.moved_to(found.path, after=found.sides.current_version or conflict.seq)

    def _moved(self, conflict: Conflict) -> bool:
        digest, version = self._present(conflict.found.path)
        if digest is None and version is not None:
            return False  # too large to hash: nothing can be said of it
        return (digest, version) != (conflict.found.sides.current, conflict.found.sides.current_version)

    def _present(self, path: WorkspacePath) -> tuple[Digest | None, Seq | None]:
        entry = self._s.state.registry.get(path)
        return (entry.digest, entry.version) if entry is not None else (None, None)

    async def _rebase(self, conflict: Conflict, renamed: Renamed | None) -> None:
        found = conflict.found
        path = renamed.path if renamed is not None else found.path
        try:
            await self._observer.refresh(path, content=True, changing=True)
        except PathError:
            return  # it is no file now; what the registry says of it has not changed
        current, version = self._present(path)
        moved = msgspec.structs.replace(found.sides, current=current, current_version=version, regions=())
        note = partial(self._note, conflict, renamed)
        if not self._s.permissions.readable_to(conflict.agent, path, *found.names):
            # whether the file holds what was proposed, or takes it, is not for its author to know
            await note(moved)
            return
        if current == moved.proposed:
            await self._expire(conflict, "the file holds what was proposed")
            return
        sides = await sides_of(self._s.contents, moved)
        if sides is None:
            await note(moved, fits=moved.proposed is None and current == moved.base)
            return
        now = await self._rebased(sides)
        regions, data = now.regions, None
        if not regions:
            if now.lines == sides.lines.current:
                await self._expire(conflict, "the file holds all that was proposed")
                return
            if found.fit is not None:  # it would apply, and is to be reviewed: against the newer content from now on
                document = sides.current_with(now.lines)
                data = encode(document)
                moved = msgspec.structs.replace(moved, base=current, base_version=version, proposed=digest_of(data))
                sides = Sides(sides.current, sides.current, document, ())
                regions = changed_regions(sides.lines.current, sides.lines.proposed)
            elif found.why:  # its lines never conflicted: that they go together says nothing
                regions = (spanned(*sides.lines),)
            else:
                await note(moved, fits=True)
                return
        before = await sides_of(self._s.contents, found.sides)
        same = before is not None and before.same_conflict(msgspec.structs.replace(sides, regions=regions))
        await note(msgspec.structs.replace(moved, regions=regions), same=same, data=data)

    async def _rebased(self, sides: Sides) -> Rebased:
        """Where comparing them would take too long, they conflict as a whole."""
        try:
            return await self._s.contents.computed(sides.rebased, *sides)
        except TextTooCostly:
            return Rebased((Region(*(Span(0, len(lines)) for lines in sides.lines)),))

    async def _note(
        self,
        conflict: Conflict,
        renamed: Renamed | None,
        sides: ConflictSides,
        *,
        fits: bool = False,
        same: bool = False,
        data: bytes | None = None,
    ) -> None:
        """Say what the sides are now; a review is of use only while the `same` lines conflict."""
        rebased_to = ConflictRebased(
            conflict=conflict.seq,
            sides=sides,
            fits=fits,
            path=renamed.path if renamed is not None else None,
            moved_at=renamed.at if renamed is not None else None,
        )
        events: list[Event] = [rebased_to]
        review = conflict.review
        if not same and review is not None and review.state in ("requested", "answered"):
            events.append(
                ReviewFailed(
                    review=review.seq,
                    conflict=conflict.seq,
                    code="conflict_moved",
                    message="the file changed where it conflicts while this was under review",
                )
            )
        stream = f"conflict:{rebased_to.path or conflict.found.path}"
        blobs = ((sides.proposed, data),) if sides.proposed is not None and data is not None else ()
        origin = Origin(cause=conflict.seq)
        await self._s.journal.append(AppendBatch(tuple(NewEvent(stream, one) for one in events), origin, blobs))

    async def _expire(self, conflict: Conflict, message: str) -> None:
        event = ConflictExpired(conflict=conflict.seq, cause="already_applied", message=message)
        await self._s.notes.append(Origin(cause=conflict.seq), (conflict.stream, event))


async def sides_of(contents: Contents, sides: ConflictSides) -> Sides | None:
    """The sides of a conflict; None where one of them is no text, or not kept, or nothing is to be there."""
    base, current = await side(contents, sides.base), await side(contents, sides.current)
    proposed = await contents.kept_text(sides.proposed)
    if base is None or current is None or proposed is None:
        return None
    return Sides(base, current, proposed, sides.regions)


async def side(contents: Contents, digest: Digest | None) -> Document | None:
    """A side as text, an empty one where there is no file; None if it is no text, or not kept."""
    return EMPTY if digest is None else await contents.kept_text(digest)


async def answer_of(notes: Notes, review: Review) -> ReviewAnswered | None:
    """The answer of a review that counts, as the journal has it; its conflict may have moved since."""
    return await notes.first(
        ReviewAnswered, lambda event: event.review == review.seq and not event.ignored, after=review.seq
    )
