"""Open conflicts whose file moves on: they move along, dissolve, or turn out to be moot."""

from __future__ import annotations

from functools import partial

import msgspec
from anyio import to_thread

from orchestrator.core.conflicts.rebase import Rebased, changed_regions, rebased, same_clash
from orchestrator.core.content import digest_of
from orchestrator.core.errors import PathError
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.conflicts import ClashRegion, ConflictFound
from orchestrator.core.events.reviews import ConflictLapsed, ConflictRebased, ReviewFailed
from orchestrator.core.ids import Seq
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.text.encoding import encode
from orchestrator.engine.observing import Observer
from orchestrator.engine.services import OFF_LOOP_BYTES, Services
from orchestrator.engine.sides import Sides, sides_of
from orchestrator.ports.journal import NewEvent, Unit


class Rebaser:
    """Keeps the sides of open conflicts as the files are."""

    def __init__(self, services: Services, observer: Observer) -> None:
        self._s, self._observer = services, observer

    async def follow(self, conflict: Conflict) -> None:
        """Bring one conflict up to date with its file, if that has changed."""
        if not self._moved(conflict):
            return
        async with self._s.locks.alone((conflict.found.path,)):
            present = self._s.state.pending.conflict(conflict.seq)
            if present is not None and present.state == "open" and self._moved(present):
                await self._follow(present)

    def _moved(self, conflict: Conflict) -> bool:
        entry = self._s.state.registry.get(conflict.found.path)
        now = (entry.digest, entry.version) if entry is not None else (None, None)
        if now[0] is None and entry is not None:
            return False  # too large to hash: nothing can be said of it
        return now != (conflict.found.current, conflict.found.current_version)

    async def _follow(self, conflict: Conflict) -> None:
        found = conflict.found
        try:
            await self._observer.look(found.path, content=True)
        except PathError:
            return  # it is no file now; what the registry says of it has not changed
        entry = self._s.state.registry.get(found.path)
        current, version = (entry.digest, entry.version) if entry is not None else (None, None)
        if current == found.proposed:
            await self._lapse(conflict, "the file holds what was proposed")
            return
        moved = msgspec.structs.replace(found, current=current, current_version=version)
        sides = await sides_of(self._s.contents, moved)
        if sides is None:
            fits = found.proposed is None and current == found.base
            await self._note(conflict, _event(conflict.seq, moved, (), fits=fits), kept=False)
            return
        work = partial(rebased, sides.base.lines, sides.current.lines, sides.proposed.lines)
        size = len(sides.current.lines) + len(sides.proposed.lines)
        now: Rebased = await to_thread.run_sync(work) if size > OFF_LOOP_BYTES // 32 else work()
        if now.regions:
            kept = await self._only_moved(conflict, sides, now.regions)
            await self._note(conflict, _event(conflict.seq, moved, now.regions, fits=False), kept=kept)
        elif now.lines == sides.current.lines:
            await self._lapse(conflict, "the file holds all that was proposed")
        elif found.ahead:
            await self._ahead(conflict, moved, sides, now.lines)
        else:
            await self._note(conflict, _event(conflict.seq, moved, (), fits=True), kept=False)

    async def _only_moved(self, conflict: Conflict, now: Sides, regions: tuple[ClashRegion, ...]) -> bool:
        """Whether what clashes is the same as before, so that an answer to it still is one."""
        before = await sides_of(self._s.contents, conflict.found)
        return before is not None and same_clash(
            before.regions,
            (before.current.lines, before.proposed.lines),
            regions,
            (now.current.lines, now.proposed.lines),
        )

    async def _ahead(self, conflict: Conflict, moved: ConflictFound, sides: Sides, lines: tuple[str, ...]) -> None:
        """A change that would apply and is to be looked at: it is against the newer content from now on."""
        document = sides.current_with(lines)
        data = encode(document)
        onto = msgspec.structs.replace(
            moved, base=moved.current, base_version=moved.current_version, proposed=digest_of(data)
        )
        regions = changed_regions(sides.current.lines, document.lines)
        before = await sides_of(self._s.contents, conflict.found)
        kept = before is not None and same_clash(
            before.regions,
            (before.current.lines, before.proposed.lines),
            regions,
            (sides.current.lines, document.lines),
        )
        await self._note(conflict, _event(conflict.seq, onto, regions, fits=False), kept=kept, data=data)

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
        stream = f"conflict:{conflict.found.path}"
        blobs = ((event.proposed, data),) if event.proposed is not None and data is not None else ()
        await self._s.journal.append(
            Unit(tuple(NewEvent(stream, one) for one in events), Origin(cause=conflict.seq), blobs)
        )

    async def _lapse(self, conflict: Conflict, message: str) -> None:
        event = ConflictLapsed(conflict=conflict.seq, cause="moot", message=message)
        await self._s.append(Origin(cause=conflict.seq), (f"conflict:{conflict.found.path}", event))


def _event(seq: Seq, found: ConflictFound, regions: tuple[ClashRegion, ...], *, fits: bool) -> ConflictRebased:
    return ConflictRebased(
        conflict=seq,
        base=found.base,
        base_version=found.base_version,
        current=found.current,
        current_version=found.current_version,
        proposed=found.proposed,
        regions=regions,
        fits=fits,
    )
