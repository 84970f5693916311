"""Open conflicts whose file moves on, or moves away: they go along, dissolve, or turn out to be moot."""

from __future__ import annotations

from functools import partial

import msgspec

from orchestrator.core.conflicts.rebase import Rebased, changed_regions, rebased, same_conflict, spanned
from orchestrator.core.content import digest_of
from orchestrator.core.errors import PathError, TextTooCostly
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.conflicts import ConflictFound, ConflictRegion
from orchestrator.core.events.reviews import ConflictExpired, ConflictRebased, ReviewFailed
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.text.encoding import encode
from orchestrator.engine.changes.renames import Renamed, RenameTracker
from orchestrator.engine.conflicts.sides import Sides, sides_of
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.services import OFF_LOOP_BYTES, Services
from orchestrator.ports.journal import NewEvent, Unit


class Rebaser:
    """Keeps the sides of open conflicts as the files are."""

    def __init__(self, services: Services, observer: Observer) -> None:
        self._s, self._observer = services, observer
        self._departures = RenameTracker(services)

    async def follow(self, conflict: Conflict) -> None:
        """Bring one conflict up to date with its file, if that has changed or was moved."""
        if self._moved(conflict) or conflict.found.current is None:
            await self._bring(conflict, await self._went(conflict))

    async def go_along(self, conflict: Conflict) -> None:
        """Bring one conflict to where its file was moved; what else became of the file can wait."""
        if self._moved(conflict) or conflict.found.current is None:
            went = await self._went(conflict)
            if went is not None:
                await self._bring(conflict, went)

    async def _bring(self, conflict: Conflict, went: Renamed | None) -> None:
        """Under the locks of its paths; if it is otherwise by then, what made it so wakes the duty again."""
        paths = (conflict.found.path,) if went is None else (conflict.found.path, went.path)
        async with self._s.locks.alone(paths):
            present = self._s.state.pending.conflict(conflict.seq)
            if present is None or present.state != "open" or present.found.path != conflict.found.path:
                return
            if await self._went(present) == went and (went is not None or self._moved(present)):
                await self._follow(present, went)

    async def _went(self, conflict: Conflict) -> Renamed | None:
        """Where the conflict's file was moved since it was last looked at."""
        found = conflict.found
        return await self._departures.went(found.path, after=found.current_version or conflict.seq)

    def _moved(self, conflict: Conflict) -> bool:
        entry = self._s.state.registry.get(conflict.found.path)
        now = (entry.digest, entry.version) if entry is not None else (None, None)
        if now[0] is None and entry is not None:
            return False  # too large to hash: nothing can be said of it
        return now != (conflict.found.current, conflict.found.current_version)

    async def _follow(self, conflict: Conflict, went: Renamed | None) -> None:
        found = conflict.found
        if went is not None:
            found = msgspec.structs.replace(found, path=went.path)
        try:
            await self._observer.refresh(found.path, content=True, changing=True)
        except PathError:
            return  # it is no file now; what the registry says of it has not changed
        entry = self._s.state.registry.get(found.path)
        current, version = (entry.digest, entry.version) if entry is not None else (None, None)
        if not self._s.readable_to(conflict.agent, found.path, *found.names):
            # whether the file holds what was proposed, or takes it, is not for its author to know
            moved = msgspec.structs.replace(found, current=current, current_version=version)
            await self._note(conflict, _event(conflict, moved, (), went, fits=False), kept=False)
            return
        if current == found.proposed:
            await self._expire_due(conflict, "the file holds what was proposed")
            return
        moved = msgspec.structs.replace(found, current=current, current_version=version)
        sides = await sides_of(self._s.contents, moved)
        if sides is None:
            fits = found.proposed is None and current == found.base
            await self._note(conflict, _event(conflict, moved, (), went, fits=fits), kept=False)
            return
        work = partial(rebased, sides.base.lines, sides.current.lines, sides.proposed.lines)
        size = len(sides.current.lines) + len(sides.proposed.lines)
        now = await self._rebased(sides) if size > OFF_LOOP_BYTES // 32 else work()
        if now.regions:
            kept = await self._only_moved(conflict, sides, now.regions)
            await self._note(conflict, _event(conflict, moved, now.regions, went, fits=False), kept=kept)
        elif now.lines == sides.current.lines:
            await self._expire_due(conflict, "the file holds all that was proposed")
        elif found.ahead:
            await self._ahead(conflict, moved, sides, now.lines, went)
        elif found.why:  # its lines never clashed: that they go together says nothing
            regions = (spanned(sides.base.lines, sides.current.lines, sides.proposed.lines),)
            kept = await self._only_moved(conflict, sides, regions)
            await self._note(conflict, _event(conflict, moved, regions, went, fits=False), kept=kept)
        else:
            await self._note(conflict, _event(conflict, moved, (), went, fits=True), kept=False)

    async def _rebased(self, sides: Sides) -> Rebased:
        """Where comparing them would take too long, they conflict as a whole."""
        texts = (sides.base.lines, sides.current.lines, sides.proposed.lines)
        try:
            return await self._s.effort.run(partial(rebased, *texts))
        except TextTooCostly:
            return Rebased((ConflictRegion(*(number for lines in texts for number in (0, len(lines)))),))

    async def _only_moved(self, conflict: Conflict, now: Sides, regions: tuple[ConflictRegion, ...]) -> bool:
        """Whether what clashes is the same as before, so that an answer to it still is one."""
        before = await sides_of(self._s.contents, conflict.found)
        return before is not None and same_conflict(
            before.regions,
            (before.current.lines, before.proposed.lines),
            regions,
            (now.current.lines, now.proposed.lines),
        )

    async def _ahead(
        self, conflict: Conflict, moved: ConflictFound, sides: Sides, lines: tuple[str, ...], went: Renamed | None
    ) -> None:
        """A change that would apply and is to be looked at: it is against the newer content from now on."""
        document = sides.current_with(lines)
        data = encode(document)
        onto = msgspec.structs.replace(
            moved, base=moved.current, base_version=moved.current_version, proposed=digest_of(data)
        )
        regions = changed_regions(sides.current.lines, document.lines)
        before = await sides_of(self._s.contents, conflict.found)
        kept = before is not None and same_conflict(
            before.regions,
            (before.current.lines, before.proposed.lines),
            regions,
            (sides.current.lines, document.lines),
        )
        await self._note(conflict, _event(conflict, onto, regions, went, fits=False), kept=kept, data=data)

    async def _note(self, conflict: Conflict, event: ConflictRebased, *, kept: bool, data: bytes | None = None) -> None:
        """Say where it stands now; a review of what is not there any more comes to nothing."""
        events: list[Event] = [event]
        review = conflict.review
        if not kept and review is not None and review.state in ("requested", "answered"):
            events.append(
                ReviewFailed(
                    review=review.seq,
                    conflict=conflict.seq,
                    code="conflict_moved",
                    message="the file changed where it clashes while this was under review",
                )
            )
        stream = f"conflict:{event.path or conflict.found.path}"
        blobs = ((event.proposed, data),) if event.proposed is not None and data is not None else ()
        await self._s.journal.append(
            Unit(tuple(NewEvent(stream, one) for one in events), Origin(cause=conflict.seq), blobs)
        )

    async def _expire_due(self, conflict: Conflict, message: str) -> None:
        event = ConflictExpired(conflict=conflict.seq, cause="moot", message=message)
        await self._s.append(Origin(cause=conflict.seq), (f"conflict:{conflict.found.path}", event))


def _event(
    conflict: Conflict, found: ConflictFound, regions: tuple[ConflictRegion, ...], went: Renamed | None, *, fits: bool
) -> ConflictRebased:
    return ConflictRebased(
        conflict=conflict.seq,
        base=found.base,
        base_version=found.base_version,
        current=found.current,
        current_version=found.current_version,
        proposed=found.proposed,
        regions=regions,
        fits=fits,
        path=went.path if went is not None else None,
        moved_at=went.at if went is not None else None,
    )
