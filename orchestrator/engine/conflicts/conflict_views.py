"""What is shown of conflicts: the queue, in pages that fit a budget, and to a reviewer the one to choose for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable
from typing import TypeVar

import msgspec

from orchestrator.api.conflicts import ConflictInfo, Conflicts, ListConflicts, Party, ReviewLine
from orchestrator.core.change import PathChange
from orchestrator.core.conflicts.resolution import route_for
from orchestrator.core.conflicts.sides import Sides
from orchestrator.core.content import Span
from orchestrator.core.errors import TextTooCostly, VersionUnknown
from orchestrator.core.events.conflicts import ConflictFound, ReviewFailed
from orchestrator.core.events.files import ChangeApplied, ChangeIntended
from orchestrator.core.events.sessions import TaskBegun
from orchestrator.core.ids import Seq, parse_seq, show
from orchestrator.core.projections.pending import Conflict, Review
from orchestrator.core.projections.versions import VersionRow
from orchestrator.core.text.answer_space import estimate_tokens, fit, render
from orchestrator.core.text.secrets import Secret, key_lines
from orchestrator.core.text.symbols import language_of
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changes.diffs import SHOWN_DIFF_LINES, Diffs, ShownDiff, regions
from orchestrator.engine.changes.whole_changes import WholeChanges
from orchestrator.engine.conflicts.open_conflicts import Rebaser, answer_of, side, sides_of
from orchestrator.engine.reads.blame import Attributions
from orchestrator.engine.reads.stale_read_notices import unseen_in_words
from orchestrator.engine.services import Services
from orchestrator.ports.reviewers import KeyLines, ReviewRegion, ReviewRequest

T = TypeVar("T")

DIFF_TOKENS = 4000
"""Of each diff of one conflict among others; a person who names it is shown all lines."""

ALL_LINES = 1 << 40

REGION_TOKENS = 25
"""Of one region's six line numbers."""

AROUND = 12
"""Lines that a reviewer is shown before and after each place."""

MOST_HOLDERS = 8


class ConflictViews:
    """Shows conflicts: what waits, a page at a time; and to a reviewer the one that it is asked about."""

    def __init__(self, services: Services, diffs: Diffs, rebaser: Rebaser, attributions: Attributions) -> None:
        self._s, self._diffs, self._rebaser, self._attributions = services, diffs, rebaser, attributions
        self._whole = WholeChanges(services)

    async def list_conflicts(self, caller: Caller, call: Call, params: ListConflicts) -> Conflicts:
        """Open conflicts after the cursor, or one by its name. Raises VersionUnknown.

        Whole texts are given whole or not at all: one that was cut might be sent back as the content.
        The page ends where the budget is spent; it has one conflict at least.
        """
        after = parse_seq(params.cursor, parameter="cursor") if params.cursor is not None else 0
        only = parse_seq(params.conflict, parameter="conflict") if params.conflict is not None else None
        known = [c for c in self._s.state.pending.open_conflicts() if only in (None, c.seq)]
        named = [c for c in known if c.agent == caller.agent or self._s.access.lists(caller, c.found.path)]
        waiting = [c for c in named if c.seq > after]
        unlisted = len(known) - len(named)
        if only is not None and not waiting:
            raise VersionUnknown(
                f"{show(only)} is no open conflict", hint="A plain list_conflicts names those that wait."
            )
        shown: list[ConflictInfo] = []
        spent = 0
        for listed in waiting:
            conflict = await self._rebaser.follow(listed)
            if conflict is None:
                continue
            whole = only is not None and caller.is_person
            info = await self._info(caller, conflict, whole=whole, contents=params.contents)
            info, cost = _within(info, params.max_tokens, whole=whole)
            if len(shown) == params.limit or (shown and spent + cost > params.max_tokens):
                more = shown[-1].conflict
                return Conflicts(conflicts=tuple(shown), total=len(named), unlisted=unlisted, cursor=more)
            shown.append(info)
            spent += cost
        return Conflicts(conflicts=tuple(shown), total=len(named), unlisted=unlisted)

    async def _info(self, caller: Caller, conflict: Conflict, *, whole: bool, contents: bool) -> ConflictInfo:
        """One conflict; who may not read the file, or an earlier name of it, sees no content."""
        found, review = conflict.found, conflict.review
        route = route_for(conflict, self._s.permissions.policy, self._s.state.identities)
        info = ConflictInfo(
            conflict=show(conflict.seq),
            path=found.path,
            agent=conflict.agent,
            session=conflict.session,
            task=_shown(found.provenance.task),
            since=conflict.at,
            operation=found.provenance.operation,
            reason="",
            base_version=_shown(found.sides.base_version),
            current_version=_shown(found.sides.current_version),
            state=review.state if review and review.state in ("requested", "answered") else "found",
            fits=conflict.fits,
            reviewer=review.reviewer if review and review.state in ("requested", "answered") else None,
            deadline=review.deadline if review and review.state == "requested" else None,
            route=route.name if route else None,
            moved_from=conflict.moved_from,
            moved_at=_shown(conflict.moved_at),
            deleted_at=await self._deleted_at(conflict),
        )
        here = self._s.permissions.readable(caller, found.path)
        readable = here and all(self._s.permissions.readable(caller, name) for name in found.names)
        current = await self._s.contents.kept_text(found.sides.current) if here and contents else None
        reviews = tuple([await self._review(review, shown=readable) for review in conflict.reviews])
        info = msgspec.structs.replace(info, current=current.text if current else None, reviews=reviews)
        return await self._with_content(info, conflict, whole=whole) if readable and contents else info

    async def _with_content(self, info: ConflictInfo, conflict: Conflict, *, whole: bool) -> ConflictInfo:
        found = conflict.found
        base = await self._s.contents.kept_text(found.sides.base)
        proposed = await _unless_costly(self._diffs.proposed(conflict))
        most = ALL_LINES if whole else SHOWN_DIFF_LINES
        diff, cut = await self._diffs.of_conflict(conflict, max_lines=most)
        review_diff, review_cut = await self._review_diff(conflict, max_lines=most)
        if diff is None and whole:  # binary, or too costly to compare
            change = PathChange(found.path, found.sides.current, found.sides.proposed, mode=found.mode)
            (diff, _), cut = await self._whole.file(change, found.sides.current), ""
        sides = await sides_of(self._s.contents, found.sides)
        marked = None
        if sides is not None and sides.regions:
            marked = await _unless_costly(self._s.contents.computed(sides.marked, *sides))
        proposer = await self.proposer(conflict)
        return msgspec.structs.replace(
            info,
            reason=proposer.reason,
            regions=regions(found.sides.regions),
            base=base.text if base else None,
            proposed=proposed.text if proposed else None,
            diff=diff,
            diff_truncated=bool(cut),
            same_symbol=found.same_symbol,
            proposer=proposer,
            holders=await self.holders(conflict),
            review_diff=review_diff,
            review_diff_truncated=bool(review_cut),
            marked=marked,
        )

    async def _deleted_at(self, conflict: Conflict) -> str | None:
        """The version with which the file was deleted; None while it is there."""
        if not conflict.gone:
            return None
        row = await self._s.journal.version_at(conflict.found.path, self._s.journal.head)
        return show(row.seq) if row is not None and not row.present else None

    async def _review(self, review: Review, *, shown: bool) -> ReviewLine:
        """One that was asked; what it says may quote the file."""
        answer = await answer_of(self._s.notes, review) if review.verdict is not None else None
        failure = None
        if review.state == "failed":
            failure = await self._s.notes.first(
                ReviewFailed, lambda event: event.review == review.seq, after=review.seq
            )
        return ReviewLine(
            review=show(review.seq),
            reviewer=review.reviewer,
            state=review.state,
            deadline=review.deadline,
            verdict=review.verdict,
            reason=answer.reason if answer is not None and shown else "",
            model=answer.usage.model if answer is not None else "",
            code=review.code,
            message=failure.message if failure is not None and shown else "",
            hint=failure.hint if failure is not None else "",
        )

    async def _review_diff(self, conflict: Conflict, *, max_lines: int) -> ShownDiff:
        """What accepting the reviewer's proposal would change."""
        review = conflict.review
        if review is None or review.state != "answered" or review.proposal is None:
            return ShownDiff(None)
        current, proposed = await side(self._s.contents, review.current), await side(self._s.contents, review.proposal)
        if current is None or proposed is None:
            return ShownDiff(None)
        return await self._diffs.between(conflict.found.path, current, proposed, max_lines=max_lines)

    # --- for reviewers ----------------------------------------------------------------

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


async def _unless_costly(text: Awaitable[T]) -> T | None:
    """A text; None where making it takes too long."""
    try:
        return await text
    except TextTooCostly:
        return None


def _shown(seq: Seq | None) -> str | None:
    return show(seq) if seq else None


def _within(info: ConflictInfo, budget: int, *, whole: bool) -> tuple[ConflictInfo, int]:
    """A conflict cut down to a budget as far as that goes, and about how many tokens it still has."""
    most_of_diff = budget if whole else min(budget, DIFF_TOKENS)
    diff, cut_diff = _cut(info.diff, most_of_diff)
    review_diff, cut_review = _cut(info.review_diff, most_of_diff)
    most = max(1, budget // REGION_TOKENS)
    words = [diff or "", review_diff or "", info.reason]
    words += [text for line in info.reviews for text in (line.reason, line.message)]
    cost = sum(map(estimate_tokens, words)) + REGION_TOKENS * min(most, len(info.regions))
    info = msgspec.structs.replace(
        info,
        diff=diff,
        diff_truncated=info.diff_truncated or cut_diff,
        review_diff=review_diff,
        review_diff_truncated=info.review_diff_truncated or cut_review,
        regions=info.regions[:most],
        regions_left_out=max(0, len(info.regions) - most),
    )
    texts = [text for text in (info.base, info.current, info.proposed, info.marked) if text is not None]
    all_of_them = sum(map(estimate_tokens, texts))
    if cost + all_of_them <= budget:
        return info, cost + all_of_them
    left_out = msgspec.structs.replace(info, base=None, current=None, proposed=None, marked=None, texts_left_out=True)
    return left_out, cost


def _cut(diff: str | None, budget: int) -> tuple[str | None, bool]:
    """A diff that fits, by lines; very long ones are cut too."""
    if diff is None or estimate_tokens(diff) <= budget:
        return diff, False
    lines = diff.split("\n")
    return render(lines[: fit(lines, 1, len(lines), budget, numbers=False)], 1, numbers=False)[0], True


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
