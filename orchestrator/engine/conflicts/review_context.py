"""What a reviewer is shown of the conflict that it is asked about: its places, and who is at work there."""

from __future__ import annotations

from bisect import bisect_left

import msgspec

from orchestrator.api.conflicts import Party
from orchestrator.core.conflicts.sides import Sides
from orchestrator.core.content import Span
from orchestrator.core.events.conflicts import ConflictFound
from orchestrator.core.events.files import ChangeApplied, ChangeIntended
from orchestrator.core.events.sessions import TaskBegun
from orchestrator.core.ids import Seq, show
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.projections.versions import VersionRow
from orchestrator.core.text.secrets import Secret, key_lines
from orchestrator.core.text.symbols import language_of
from orchestrator.engine.conflicts.open_conflicts import sides_of
from orchestrator.engine.reads.blame import Attributions
from orchestrator.engine.reads.stale_read_notices import unseen_in_words
from orchestrator.engine.services import Services
from orchestrator.ports.reviewers import KeyLines, ReviewRegion, ReviewRequest

AROUND = 12
"""Lines that a reviewer is shown before and after each place."""

MOST_HOLDERS = 8


class ReviewContext:
    """Says what a conflict is about."""

    def __init__(self, services: Services, attributions: Attributions) -> None:
        self._s, self._attributions = services, attributions

    async def request(self, conflict: Conflict) -> ReviewRequest | None:
        """What a reviewer is sent; None where no lines conflict."""
        sides = await sides_of(self._s.contents, conflict.found.sides)
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
        found = await self._s.notes.event(conflict.seq, ConflictFound)
        reason = found.provenance.reason if found else ""
        return Party(agent=conflict.agent or "", task=await self._title(conflict.found.provenance.task), reason=reason)

    async def holders(self, conflict: Conflict) -> tuple[Party, ...]:
        """Who made the lines that it conflicts with, newest first."""
        found = conflict.found
        if found.sides.current_version is None or not found.sides.regions:
            return ()
        lineage = await self._attributions.of(found.path, found.sides.current_version)
        if lineage.lost is not None:
            return ()
        versions = set[Seq]()
        for region in found.sides.regions:
            start, end = region.current.start, region.current.start + max(region.current.length, 1)
            if start < (end := min(end, lineage.attribution.lines)):
                versions |= {part.version for part in lineage.attribution.owned(start + 1, end)}
        newest = sorted(versions, reverse=True)[:MOST_HOLDERS]
        parties = [await self._party(lineage.authors[version]) for version in newest]
        return tuple(dict.fromkeys(parties))

    async def _party(self, row: VersionRow) -> Party:
        applied = await self._s.notes.event(row.change, ChangeApplied)
        intended = await self._s.notes.event(applied.change if applied else row.change, ChangeIntended)
        reason = intended.provenance.reason if intended is not None else ""
        return Party(agent=row.author or "", task=await self._title(row.task), reason=reason)

    async def _title(self, task: Seq | None) -> str:
        begun = await self._s.notes.event(task, TaskBegun)
        return begun.title if begun is not None else ""


def _why(found: ConflictFound) -> str:
    """Why it is put to somebody, where that is not plain from its regions."""
    if found.fit is not None and found.fit.same_symbol:
        return f"it would apply, but both sides changed {', '.join(found.fit.same_symbol)} since the base"
    if found.fit is not None and found.provenance.unseen:
        return f"it would apply, but {unseen_in_words(found.provenance.unseen)}"
    return found.why


def _regions(sides: Sides) -> tuple[ReviewRegion, ...]:
    found = sides.lines.map(lambda lines: tuple(key_lines(lines)))
    current = sides.lines.current
    regions: list[ReviewRegion] = []
    for number, region in enumerate(sides.regions, 1):
        at = region.current
        before = Span(max(0, at.start - AROUND), min(AROUND, at.start))
        after = Span(at.end, min(AROUND, len(current) - at.end))
        regions.append(
            ReviewRegion(
                *(span.of(lines) for span, lines in zip(region, sides.lines, strict=True)),
                number=number,
                before=before.of(current),
                after=after.of(current),
                keys=KeyLines(
                    *(_secrets_in(keys, span) for keys, span in zip(found, region, strict=True)),
                    before=_secrets_in(found.current, before),
                    after=_secrets_in(found.current, after),
                ),
            )
        )
    return tuple(regions)


def _secrets_in(found: tuple[Secret, ...], span: Span) -> tuple[Secret, ...]:
    """Those in these lines, counted from their first."""
    first = bisect_left(found, span.start, key=lambda secret: secret.line)
    last = bisect_left(found, span.end, key=lambda secret: secret.line)
    return tuple(msgspec.structs.replace(secret, line=secret.line - span.start) for secret in found[first:last])
