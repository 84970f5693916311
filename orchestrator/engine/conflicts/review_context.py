"""What a reviewer, or a person, is told of a conflict: its places, and whose sides they are."""

from __future__ import annotations

from bisect import bisect_left

import msgspec

from orchestrator.core.events.base import Recorded
from orchestrator.core.events.conflicts import ConflictFound
from orchestrator.core.events.files import ChangeApplied, ChangeIntended
from orchestrator.core.events.sessions import TaskBegun
from orchestrator.core.ids import Seq, show
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.text.outline.languages import language_of
from orchestrator.core.text.private_keys import Secret, key_lines
from orchestrator.engine.conflicts.sides import Sides, sides_of
from orchestrator.engine.reads.attribution import Attributions, Author
from orchestrator.engine.reads.read_sets import unseen_in_words
from orchestrator.engine.services import Services
from orchestrator.ports.reviewers import KeyLines, Party, ReviewRegion, ReviewRequest

AROUND = 12
"""Lines before and after each place."""

MOST_HOLDERS = 8


class ReviewContext:
    """Tells of conflicts."""

    def __init__(self, services: Services) -> None:
        self._s, self._attributions = services, Attributions(services.journal, services.contents)

    async def brief(self, conflict: Conflict) -> ReviewRequest | None:
        """What a reviewer is sent; None where no lines clash."""
        sides = await sides_of(self._s.contents, conflict.found)
        if sides is None or not sides.regions:
            return None
        return ReviewRequest(
            conflict=show(conflict.seq),
            path=conflict.found.path,
            regions=_regions(sides),
            proposer=await self.proposer(conflict),
            why=_why(conflict.found),
            language=language_of(conflict.found.path) or "",
            holders=await self.holders(conflict),
        )

    async def proposer(self, conflict: Conflict) -> Party:
        """Whose change waits, and what for."""
        recorded = await self._s.journal.event(conflict.seq)
        reason = recorded.event.reason if recorded and isinstance(recorded.event, ConflictFound) else ""
        return Party(agent=conflict.agent or "", task=await self._title(conflict.found.task), reason=reason)

    async def holders(self, conflict: Conflict) -> tuple[Party, ...]:
        """Who made the lines that it clashes with, newest first."""
        found = conflict.found
        if found.current_version is None or not found.regions:
            return ()
        lineage = await self._attributions.of(found.path, found.current_version)
        if lineage.lost is not None:
            return ()
        versions = set[Seq]()
        for region in found.regions:
            end = min(region.current_start + max(region.current_len, 1), lineage.attribution.lines)
            if region.current_start < end:
                versions |= {part.version for part in lineage.attribution.owned(region.current_start + 1, end)}
        newest = sorted(versions, reverse=True)[:MOST_HOLDERS]
        parties = [await self._party(lineage.authors[version]) for version in newest]
        return tuple(dict.fromkeys(parties))

    async def _party(self, author: Author) -> Party:
        row = author.row
        agent = row.agent or author.by or ("outside" if row.kind == "outside" else "")
        reason = ""
        recorded = await self._s.journal.event(row.change) if row.change else None
        intended = await self._intent(recorded)
        if intended is not None:
            reason = intended.reason
        return Party(agent=agent, task=await self._title(row.task), reason=reason)

    async def _intent(self, recorded: Recorded | None) -> ChangeIntended | None:
        if recorded is not None and isinstance(recorded.event, ChangeApplied):
            recorded = await self._s.journal.event(recorded.event.change)
        return recorded.event if recorded is not None and isinstance(recorded.event, ChangeIntended) else None

    async def _title(self, task: Seq | None) -> str:
        recorded = await self._s.journal.event(task) if task is not None else None
        return recorded.event.title if recorded is not None and isinstance(recorded.event, TaskBegun) else ""


def _why(found: ConflictFound) -> str:
    """Why it is put to somebody, where that is not plain from its regions."""
    if found.ahead and found.same_symbol:
        return f"it would apply, but both sides changed {', '.join(found.same_symbol)} since the base"
    if found.ahead and found.unseen:
        return f"it would apply, but {unseen_in_words(found.unseen)}"
    return found.why


def _regions(sides: Sides) -> tuple[ReviewRegion, ...]:
    base, current, proposed = sides.base.lines, sides.current.lines, sides.proposed.lines
    in_base, in_current, in_proposed = (tuple(key_lines(lines)) for lines in (base, current, proposed))
    regions: list[ReviewRegion] = []
    for number, r in enumerate(sides.regions, 1):
        start, end = r.current_start, r.current_start + r.current_len
        before, after = slice(max(0, start - AROUND), start), slice(end, min(end + AROUND, len(current)))
        of_base = slice(r.base_start, r.base_start + r.base_len)
        of_proposed = slice(r.proposed_start, r.proposed_start + r.proposed_len)
        keys = KeyLines(
            before=_within(in_current, before),
            base=_within(in_base, of_base),
            current=_within(in_current, slice(start, end)),
            proposed=_within(in_proposed, of_proposed),
            after=_within(in_current, after),
        )
        regions.append(
            ReviewRegion(
                number=number,
                base=tuple(base[of_base]),
                current=tuple(current[start:end]),
                proposed=tuple(proposed[of_proposed]),
                before=tuple(current[before]),
                after=tuple(current[after]),
                keys=keys,
            )
        )
    return tuple(regions)


def _within(found: tuple[Secret, ...], span: slice) -> tuple[Secret, ...]:
    """Those that stand in these lines, counted from their first."""
    first = bisect_left(found, span.start, key=lambda secret: secret.line)
    last = bisect_left(found, span.stop, key=lambda secret: secret.line)
    return tuple(msgspec.structs.replace(secret, line=secret.line - span.start) for secret in found[first:last])
