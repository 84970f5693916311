"""What is shown of conflicts: the queue, in pages that fit a budget, and one that is named, in pages of its diff."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Any, TypeVar

import msgspec

from orchestrator.api.conflicts import ConflictInfo, Conflicts, ListConflicts, ReviewLine
from orchestrator.core.change import PathChange
from orchestrator.core.conflicts.resolution import route_for
from orchestrator.core.errors import ParameterInvalid, TextTooCostly, VersionUnknown
from orchestrator.core.events.conflicts import ReviewFailed
from orchestrator.core.ids import Seq, show
from orchestrator.core.positions import parse_seq
from orchestrator.core.projections.pending import Conflict, Review
from orchestrator.core.text.answer_space import (
    MAX_LINE,
    UNBOUNDED,
    AnswerSpace,
    estimate_tokens,
    fit,
    json_size,
    render,
    size,
)
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changes.diffs import SHOWN_DIFF, Diffs, ShownDiff, Shows, regions
from orchestrator.engine.changes.whole_changes import LEAST_CHARACTERS, WholeChanges, first_part
from orchestrator.engine.conflicts.open_conflicts import Rebaser, answer_of, side, sides_of
from orchestrator.engine.conflicts.review_context import ReviewContext
from orchestrator.engine.limits import TOKEN_BYTES
from orchestrator.engine.reads.blame import Attributions
from orchestrator.engine.services import Services

T = TypeVar("T")

DIFF_TOKENS = 4000
"""Of each diff of one conflict among others; who names it is shown all lines, in pages."""

REGION_TOKENS = 25
"""Of one region's six line numbers."""

NO_TEXTS: dict[str, Any] = {"base": None, "current": None, "proposed": None, "marked": None}

_CURSOR = re.compile(r"(@\d{1,18}):(\d{1,12})\Z")
"""Of the diff of one conflict: the version that it is made of, and the character."""


class ConflictViews:
    """Shows conflicts: what waits, a page at a time."""

    def __init__(self, services: Services, diffs: Diffs, rebaser: Rebaser, attributions: Attributions) -> None:
        self._s, self._diffs, self._rebaser = services, diffs, rebaser
        self._whole, self.context = WholeChanges(services), ReviewContext(services, attributions)

    async def list_conflicts(self, caller: Caller, call: Call, params: ListConflicts) -> Conflicts:
        """Open conflicts after the cursor, or one by its name. Raises VersionUnknown, ParameterInvalid.

        Whole texts are given whole or not at all: one that was cut might be sent back as the content.
        The page ends where the budget is spent; it has one conflict at least. The diff of one that is named goes on
        after the cursor.
        """
        only = parse_seq(params.conflict, parameter="conflict") if params.conflict is not None else None
        after = parse_seq(params.cursor, parameter="cursor") if params.cursor is not None and only is None else 0
        known = [c for c in self._s.state.pending.open_conflicts() if only in (None, c.seq)]
        named = [c for c in known if c.agent == caller.agent or self._s.access.lists(caller, c.found.path)]
        waiting = [c for c in named if c.seq > after]
        page = Conflicts(total=len(named), unlisted=len(known) - len(named))
        if only is not None:
            conflict = await self._rebaser.follow(waiting[0]) if waiting else None
            if conflict is None:
                raise VersionUnknown(
                    f"{show(only)} is no open conflict", hint="A plain list_conflicts names those that wait."
                )
            return await self._alone(caller, call, conflict, params, page)
        shown: list[ConflictInfo] = []
        spent = 0
        for listed in waiting:
            if (conflict := await self._rebaser.follow(listed)) is None:
                continue
            info = await self._info(caller, conflict, contents=params.contents)
            info, cost = _within(info, params.max_tokens)
            if len(shown) == params.limit or (shown and spent + cost > params.max_tokens):
                return msgspec.structs.replace(page, conflicts=tuple(shown), cursor=shown[-1].conflict)
            shown.append(info)
            spent += cost
        return msgspec.structs.replace(page, conflicts=tuple(shown))

    async def _alone(
        self, caller: Caller, call: Call, conflict: Conflict, params: ListConflicts, page: Conflicts
    ) -> Conflicts:
        """One conflict with the part of its diff that there is room for, and where that goes on."""
        widest = None if caller.is_person else MAX_LINE
        info = await self._info(caller, conflict, contents=params.contents, room=UNBOUNDED, widest=widest)
        version, start = info.current_version or "@0", _place(params.cursor)
        if start is not None and start[0] != version:
            raise ParameterInvalid("cursor", f"the conflict is about {version} by now", hint="Begin without a cursor.")
        at = start[1] if start is not None else 0
        budget = min(params.max_tokens, call.room.bytes // TOKEN_BYTES)
        room = call.room.framed(info.path).at_most(TOKEN_BYTES * params.max_tokens)
        diff, info = (info.diff or "")[at:], msgspec.structs.replace(info, diff=None, diff_truncated=False)
        if at:
            info = msgspec.structs.replace(info, review_diff=None, texts_left_out=True, **NO_TEXTS)
        info, _ = _within(info, budget - min(budget // 2, estimate_tokens(diff)), budget // 4)
        if sum(size(text) for text in _texts(info)) > room.bytes:
            info = msgspec.structs.replace(info, texts_left_out=True, **NO_TEXTS)
        part, whole = first_part(diff, room.less(json_size(info)), least=LEAST_CHARACTERS)
        part = part if whole else part[: part.rfind("\n") + 1] or part
        info = msgspec.structs.replace(info, diff=part or None, diff_truncated=not whole)
        return msgspec.structs.replace(
            page, conflicts=(info,), cursor=f"{version}:{at + len(part)}" if not whole else None
        )

    async def _info(
        self,
        caller: Caller,
        conflict: Conflict,
        *,
        contents: bool,
        room: AnswerSpace = SHOWN_DIFF,
        widest: int | None = MAX_LINE,
    ) -> ConflictInfo:
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
        return await self._with_content(caller, info, conflict, room, widest) if readable and contents else info

    async def _with_content(
        self, caller: Caller, info: ConflictInfo, conflict: Conflict, room: AnswerSpace, widest: int | None
    ) -> ConflictInfo:
        found = conflict.found
        base = await self._s.contents.kept_text(found.sides.base)
        proposed = await _unless_costly(self._diffs.proposed(conflict))
        shows = Shows.readable(self._s, caller)
        diff, cut = await self._diffs.of_conflict(conflict, shows, room=room, widest=widest)
        review_diff, review_cut = await self._review_diff(conflict, shows, room, widest)
        if diff is None and widest is None:  # binary, or too costly to compare
            change = PathChange(found.path, found.sides.current, found.sides.proposed, mode=found.mode)
            (diff, _), cut = await self._whole.file(change, found.sides.current), ""
        sides = await sides_of(self._s.contents, found.sides)
        marked = None
        if sides is not None and sides.regions:
            marked = await _unless_costly(self._s.contents.computed(sides.marked, *sides))
        proposer = await self.context.proposer(conflict)
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
            holders=await self.context.holders(conflict),
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

    async def _review_diff(self, conflict: Conflict, shows: Shows, room: AnswerSpace, widest: int | None) -> ShownDiff:
        """What accepting the reviewer's proposal would change."""
        review = conflict.review
        if review is None or review.state != "answered" or review.proposal is None:
            return ShownDiff(None)
        current, proposed = await side(self._s.contents, review.current), await side(self._s.contents, review.proposal)
        if current is None or proposed is None:
            return ShownDiff(None)
        path = conflict.found.path
        before = await shows.text(path, review.current, current)
        after = await shows.text(path, review.proposal, proposed)
        return await self._diffs.between(path, before, after, room=room, widest=widest)


async def _unless_costly(text: Awaitable[T]) -> T | None:
    """A text; None where making it takes too long."""
    try:
        return await text
    except TextTooCostly:
        return None


def _shown(seq: Seq | None) -> str | None:
    return show(seq) if seq else None


def _within(info: ConflictInfo, budget: int, most_of_diff: int = DIFF_TOKENS) -> tuple[ConflictInfo, int]:
    """A conflict cut down to a budget as far as that goes, and about how many tokens it still has."""
    diff, cut_diff = _cut(info.diff, min(budget, most_of_diff))
    review_diff, cut_review = _cut(info.review_diff, min(budget, most_of_diff))
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
    all_of_them = sum(map(estimate_tokens, _texts(info)))
    if cost + all_of_them <= budget:
        return info, cost + all_of_them
    return msgspec.structs.replace(info, texts_left_out=True, **NO_TEXTS), cost


def _texts(info: ConflictInfo) -> list[str]:
    return [text for text in (info.base, info.current, info.proposed, info.marked) if text is not None]


def _place(cursor: str | None) -> tuple[str, int] | None:
    """Of which version, and from which character of the diff on. Raises ParameterInvalid."""
    if cursor is None:
        return None
    match = _CURSOR.match(cursor)
    if match is None:
        raise ParameterInvalid("cursor", "it is not the cursor of an earlier answer about this conflict")
    return match[1], int(match[2])


def _cut(diff: str | None, budget: int) -> tuple[str | None, bool]:
    """A diff that fits, by lines; very long ones are cut too."""
    if diff is None or estimate_tokens(diff) <= budget:
        return diff, False
    lines = diff.split("\n")
    return render(lines[: fit(lines, 1, len(lines), budget, numbers=False)], 1, numbers=False)[0], True
