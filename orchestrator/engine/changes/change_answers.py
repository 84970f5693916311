"""Answers about changes: made when a change is decided, and made again from the journal for who asks later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from orchestrator.api import results as r
from orchestrator.core.change import Fit, PathChange
from orchestrator.core.decisions.decision import Apply
from orchestrator.core.errors import Aborted, VersionUnknown
from orchestrator.core.events.conflicts import ApprovalDenied, ApprovalExpired, ConflictResolved
from orchestrator.core.events.files import ChangeAborted, ChangeApplied, ChangeDiverged, DivergedPath
from orchestrator.core.ids import Seq, show, to_the_second
from orchestrator.core.projections.pending import Approval, Conflict
from orchestrator.core.text.answer_space import AnswerSpace, size
from orchestrator.engine.changes.diffs import (
    MOST_SHOWN,
    Diffs,
    ShownDiff,
    Shows,
    befores,
    line_counts,
    merge_texts,
    regions,
    rules,
)
from orchestrator.engine.changes.whole_changes import WholeChanges
from orchestrator.engine.reads.stale_read_notices import unseen_in_words, unseen_texts
from orchestrator.engine.services import Services

P = TypeVar("P", bound=PathChange | DivergedPath)

NAMED_PATHS = 6
"""In a message; `paths` lists more."""

LISTED_PATHS, LISTED_PIECES, LISTED_SYMBOLS = AnswerSpace(bytes=48_000), 50, 20
"""Of one answer; pieces of one path. `get_diff` shows all."""

PATH_BYTES, PIECE_BYTES = 60, 30
"""Of a path's versions, and of a piece, in JSON."""


class Answers:
    """Builds ChangeAnswers."""

    def __init__(self, services: Services) -> None:
        self._s, self.diffs, self._whole = services, Diffs(services.contents), WholeChanges(services)

    # --- from the journal -----------------------------------------------------------

    async def of(self, seq: Seq, shows: Shows) -> r.ChangeAnswer:
        """The present state of what `@seq` names: an approval, a conflict or a change.

        Follows an expired approval to its successor, a conflict to its resolution, a grant to
        its change. Raises VersionUnknown, and Aborted for a change that a crash cut off.
        """
        match self._led_to(seq):
            case Approval() as approval:
                return await self._of_approval(approval, shows)
            case Conflict() as conflict:
                return await self.of_conflict(conflict, shows)
            case change:
                return await self._of_change(change, shows)

    def waits(self, seq: Seq) -> bool:
        """Whether `@seq` is an approval or a conflict that is open, or leads to one; looks in memory only."""
        match led := self._led_to(seq):
            case Approval(state=state):
                return state == "waiting" or (state in ("granted", "used") and not led.for_call)
            case Conflict(state=state):
                return state == "open"
            case _:
                return False

    def _led_to(self, seq: Seq) -> Approval | Conflict | Seq:
        """The last approval or conflict, or else the change, to which `@seq` led."""
        while True:
            approval, conflict = self._s.state.pending.approval(seq), self._s.state.pending.conflict(seq)
            if approval is not None:
                follow = approval.successor or approval.change
            elif conflict is not None:
                follow = conflict.change if conflict.state not in ("open", "superseded") else None
            else:
                return seq
            if follow is None:
                return approval or conflict or seq
            seq = follow

    async def _of_approval(self, approval: Approval, shows: Shows) -> r.ChangeAnswer:
        number = show(approval.seq)
        paths = tuple(item.path for item in approval.request.paths)
        shown = all(map(shows, paths))
        diff, cut = ShownDiff(None)
        if shown and not approval.for_call:
            diff, cut = await self.diffs.of(approval.request.paths, shows)
        status: r.ChangeStatus
        match approval.state:
            case "granted" if approval.request.tool_call is not None:
                status, message = "granted", f"{number} is granted: its agent uses its own tool"
            case "granted" if approval.for_call:
                status = "granted"
                until = to_the_second(approval.until or 0)
                message = f"{number} is granted until {until}: send the call that asked again"
            case "used" if approval.for_call:
                status, message = "expired", f"{number} was granted, and used; send the call anew to ask again"
            case "waiting" | "granted" | "used":
                status = "waiting"
                message = f"{number} waits for a person's yes: {approval.request.rule}"
            case "denied":
                denied = await self._s.notes.end_of(approval, ApprovalDenied)
                status, message = "denied", f"{number} was denied"
                message += f" by {denied.by}{_because(denied.reason)}" if denied is not None else ""
            case "expired" if approval.until is not None:
                status, message = "expired", f"{number} was granted, and has run out; send the call that asked again"
            case "expired" if approval.cause == "timeout":
                status, message = "expired", f"{number} expired before anybody said yes; send the change again"
            case "expired":
                expired = await self._s.notes.end_of(approval, ApprovalExpired) if shown else None
                why = expired.message if expired is not None and expired.message else approval.cause
                status, message = "dropped", f"{number} expired: {why}; send the change again"
        answer = r.ChangeAnswer(
            status=status,
            success=status == "granted",
            message=message,
            approval=number,
            diff=diff,
            diff_truncated=bool(cut),
            diff_rest=_rest(cut, f"`orchestrator approvals show {number}`"),
            paths=tuple(map(self._waiting_path, _listed(approval.request.paths))),
            more_paths=len(approval.request.paths) - len(_listed(approval.request.paths)),
            unseen=unseen_texts(approval.request.provenance.unseen, shows),
        )
        return _fitted(answer, approval.request.fit, shown=shown)

    def _waiting_path(self, item: PathChange) -> r.ChangedPath:
        entry = self._s.state.registry.get(item.path)
        known = entry is not None and item.before is not None and entry.digest == item.before
        return r.ChangedPath(path=item.path, before=show(entry.version) if entry and known else None)

    async def of_conflict(self, conflict: Conflict, shows: Shows) -> r.ChangeAnswer:
        """An open conflict with the lines that the next try needs, or what became of it."""
        found, sides, number = conflict.found, conflict.found.sides, show(conflict.seq)
        shown = all(map(shows, (found.path, *found.names)))
        if conflict.state != "open":
            message = f"{number} {await self._closed(conflict, shown=shown)}"
            return r.ChangeAnswer(status="dropped", message=message, conflict=number)
        diff, cut = await self.diffs.of_conflict(conflict, shows) if shown else ShownDiff(None)
        if found.provenance.reverts:
            advice = f"Revert the later change first, or await_change('{number}')."
        elif shown:
            advice = "Read the current lines and send the change again "
            advice += f"(supersedes='{number}'), or await_change('{number}')."
        else:
            advice = f"Its content is not shown; await_change('{number}')."
        answer = r.ChangeAnswer(
            status="conflict",
            message=(_waits(conflict) if shown else f"{found.path} was changed since; it waits as {number}. ") + advice,
            conflict=number,
            diff=diff,
            diff_truncated=bool(cut),
            diff_rest=_rest(cut, f"list_conflicts(conflict='{number}')"),
            base=show(sides.base_version) if sides.base_version else None,
            paths=(
                r.ChangedPath(path=found.path, before=show(sides.current_version) if sides.current_version else None),
            ),
            regions=regions(sides.regions[:LISTED_PIECES]),
            regions_left_out=max(0, len(sides.regions) - LISTED_PIECES),
            same_symbol=found.same_symbol[:LISTED_SYMBOLS],
            unseen=unseen_texts(found.provenance.unseen, shows),
        )
        return _fitted(answer, None, shown=shown)

    async def _closed(self, conflict: Conflict, *, shown: bool) -> str:
        """What became of a conflict; if its content may be shown, also who said so, and why."""
        if conflict.state == "superseded":
            return f"was superseded by {show(conflict.change or 0)}"
        if conflict.state == "expired":
            applied = conflict.cause == "already_applied"
            why = "the file holds what it proposed" if applied else "nobody resolved it in time"
            return f"expired: {why}" if shown else "expired"
        message = f"was resolved: the {conflict.choice} content was kept"
        event = await self._s.notes.first(
            ConflictResolved, lambda event: event.conflict == conflict.seq, after=conflict.seq, stream=conflict.stream
        )
        return f"{message}, says {event.by}{_because(event.reason)}" if event is not None and shown else message

    async def _of_change(self, seq: Seq, shows: Shows) -> r.ChangeAnswer:
        recorded = await self._s.journal.event(seq)
        if recorded is None:
            raise VersionUnknown(f"the journal has no event {show(seq)}")
        outcome = await self._s.notes.outcome(recorded)
        if outcome is None:
            return r.ChangeAnswer(status="still_waiting", message=f"{show(seq)} is under way", change=show(seq))
        match outcome.event:
            case ChangeApplied() as event:
                return await self.of_applied(outcome.seq, event, shows)
            case ChangeAborted(change=change, cause=cause):
                raise Aborted(
                    f"{show(change)} was cut off ({cause}); nothing was changed", details={"change": show(change)}
                )
            case ChangeDiverged(change=change, paths=paths):
                names = _named(paths)
                return r.ChangeAnswer(
                    status="diverged",
                    message=f"another program's content is in {names}; it was left alone, and the bytes of "
                    f"{show(change)} are kept. Read the file and send the change again.",
                    change=show(change),
                    paths=tuple(r.ChangedPath(path=item.path) for item in _listed(paths)),
                    more_paths=len(paths) - len(_listed(paths)),
                )
            case _:
                raise VersionUnknown(f"{show(seq)} is no change, approval or conflict")

    async def of_applied(
        self, version: Seq, event: ChangeApplied, shows: Shows, *, warnings: tuple[str, ...] = ()
    ) -> r.ChangeAnswer:
        """The answer of a change that is on disk. `warnings`: what its author is shown even if it may not read it."""
        shown = all(shows(changed.path) for changed in event.paths)
        why, diff, cut = event.provenance, None, ""
        as_sent = event.fit.rung == "current" and not why.reverts and why.resolves is None
        if shown and not as_sent:
            diff, cut = await self.diffs.of(event.paths, shows)
        added, removed = line_counts(*befores(event.paths)) if shown else (None, None)
        answer = r.ChangeAnswer(
            status="applied",
            success=True,
            message=_applied_message(event, version) + (_how(event.fit) if shown else ""),
            diff=diff,
            diff_truncated=bool(cut),
            diff_rest=_rest(cut, f"get_diff(from='{show(event.change)}', to='{show(version)}')"),
            added=added,
            removed=removed,
            version_id=show(version),
            change=show(event.change),
            paths=tuple(
                r.ChangedPath(
                    path=changed.path,
                    before=show(changed.previous) if changed.previous else None,
                    after=show(version) if changed.after is not None else None,
                    **_written(changed),
                )
                for changed in _listed(event.paths)
            ),
            more_paths=len(event.paths) - len(_listed(event.paths)),
            approval=show(why.approval) if why.approval else None,
            grants=tuple(map(show, why.grants)),
            warnings=warnings or (event.fit.warnings if shown else ()),
            unseen=unseen_texts(why.unseen, shows),
        )
        return _fitted(answer, event.fit, shown=shown)

    # --- from a decision ------------------------------------------------------------

    async def of_plan(self, plan: Apply, shows: Shows, *, would_be: str, whole: bool) -> r.ChangeAnswer:
        """A preview. `whole`: for people, with every line of every file."""
        shown = all(shows(name) for item in plan.paths for name in (item.path, *plan.names.get(item.path, ())))
        diff, cut = await self._of_plan(plan, shows, whole=whole) if shown else ShownDiff(None)
        answer = r.ChangeAnswer(
            status="preview",
            success=True,
            would_be=would_be,
            message=f"nothing was changed; sent without preview, this would be: {would_be}",
            diff=diff,
            diff_truncated=bool(cut),
            diff_rest=_rest(cut, "a preview of fewer files"),
            paths=tuple(r.ChangedPath(path=item.path, **_written(item)) for item in _listed(plan.paths)),
            more_paths=len(plan.paths) - len(_listed(plan.paths)),
            warnings=plan.fit.warnings,
        )
        return _fitted(answer, plan.fit, shown=shown)

    async def _of_plan(self, plan: Apply, shows: Shows, *, whole: bool) -> ShownDiff:
        if not whole:
            return await self.diffs.of(plan.paths, shows, plan.contents)
        page = await self._whole.page(plan)
        return ShownDiff(page.text, f"shown: the first {len(page.text)} characters" if page.next else "")


def _fitted(answer: r.ChangeAnswer, fit: Fit | None, *, shown: bool) -> r.ChangeAnswer:
    """The answer, with how the change fits; for who may not read one of its paths nothing depends on a content."""
    base = show(fit.base) if fit is not None and fit.base else answer.base
    if not shown:
        paths = tuple(msgspec.structs.replace(item, written=(), more_written=0) for item in answer.paths)
        return msgspec.structs.replace(
            answer,
            diff=None,
            diff_truncated=False,
            diff_rest="",
            paths=paths,
            base=base,
            same_symbol=(),
            regions=(),
            regions_left_out=0,
            shown=None,
        )
    if fit is None:
        return answer
    return msgspec.structs.replace(
        answer,
        rung=fit.rung,
        score=fit.score if fit.score < 1.0 else None,  # 1.0: the passage is there as it was quoted
        base=base,
        same_symbol=fit.same_symbol[:LISTED_SYMBOLS],
        merge=merge_texts(fit.merge),
        merge_truncated=len(fit.merge) > MOST_SHOWN,
    )


def _rest(cut: str, call: str) -> str:
    """Of a diff that was cut: how much of it is shown, and what shows all."""
    return f"{cut}; {call} shows all of it" if cut else ""


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def _waits(conflict: Conflict) -> str:
    """Why a change waits, and for whom."""
    found, review = conflict.found, conflict.review
    why = f"was changed since, {found.why or 'where this change wants to go'}"
    if found.fit is not None and found.fit.same_symbol:
        why = f"was changed since in {', '.join(found.fit.same_symbol)}, which this change touches too"
    elif found.fit is not None and found.provenance.unseen:
        why = f"would take this change, but {unseen_in_words(found.provenance.unseen)}"
    asked = f" ({review.reviewer} reviews it)" if review is not None and review.state == "requested" else ""
    return f"{found.path} {why}; it waits as {show(conflict.seq)}{asked}. "


def _written(changed: PathChange) -> dict[str, Any]:
    """The lines that a change wrote, as callers count them."""
    lines = [
        r.Lines(start=hunk.new_start + 1, end=hunk.new_start + hunk.new_len) for hunk in changed.hunks[:LISTED_PIECES]
    ]
    return {"written": tuple(lines), "more_written": max(0, len(changed.hunks) - LISTED_PIECES)}


def _listed(paths: Sequence[P]) -> Sequence[P]:
    """The first of them, of which there is room for the names."""
    pieces = (min(LISTED_PIECES, len(getattr(item, "hunks", ()))) for item in paths)
    costs = ((size(item.path) + PATH_BYTES + PIECE_BYTES * count, 0) for item, count in zip(paths, pieces, strict=True))
    return paths[: LISTED_PATHS.first(costs)]


def _named(paths: Sequence[PathChange | DivergedPath]) -> str:
    """The first of them, and how many more there are."""
    names = ", ".join(changed.path for changed in paths[:NAMED_PATHS])
    more = len(paths) - NAMED_PATHS
    return f"{names} and {more} more paths" if more > 0 else names


def _applied_message(event: ChangeApplied, version: Seq) -> str:
    names = _named(event.paths)
    accepted = event.provenance.accepted_by
    yes = f", as a reviewer proposed and {accepted} accepted" if accepted is not None else ""
    verb = "is" if len(event.paths) == 1 else "are"
    return f"{event.provenance.operation}: {names} {verb} at {show(version)}{yes}"


def _how(fit: Fit) -> str:
    """How a change fits; empty where it fits as it was sent."""
    how = {
        "shifted": ", moved along with others' lines",
        "anchored": ", found again where others moved it",
        "fuzzy": ", quoted with other typography or indentation: look at the diff",
        "merged": ", merged with others' changes",
    }.get(fit.rung, "")
    if by := rules(fit.merge):
        how += f" (merged by rule: {by}; see merge)"
    return how
