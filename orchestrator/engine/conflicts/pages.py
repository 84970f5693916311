"""The queue of conflicts in pages that fit a budget, and what is said of each beside its sides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.errors import VersionUnknown
from orchestrator.core.ids import parse_seq, show
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.text import tokens
from orchestrator.core.text.excerpt import fit, render
from orchestrator.engine.caller import Caller
from orchestrator.engine.conflicts.rebase import Rebaser
from orchestrator.engine.services import Services

Describe = Callable[[Caller, Conflict], Awaitable[r.ConflictInfo]]

DIFF_TOKENS = 4000
"""Of each diff of one conflict."""

MOST_REGIONS = 500
"""Of one conflict in an answer; choosing sides for more of them one by one is nobody's check."""

REGION_TOKENS = 25
"""Of one region's six line numbers."""


class ConflictPages:
    """Shows what waits, a page at a time."""

    def __init__(self, services: Services, rebaser: Rebaser, describe: Describe) -> None:
        self._s, self._rebaser, self._describe = services, rebaser, describe

    async def page(self, caller: Caller, params: p.ListConflicts) -> r.Conflicts:
        """Open conflicts after the cursor, or one by its name. Raises VersionUnknown.

        Whole texts are given whole or not at all: one that was cut might be sent back as the content.
        The page ends where the budget is spent; it has one conflict at least.
        """
        after = parse_seq(params.cursor, parameter="cursor") if params.cursor is not None else 0
        only = parse_seq(params.conflict, parameter="conflict") if params.conflict is not None else None
        waiting = [c.seq for c in self._s.state.pending.open_conflicts() if c.seq > after and only in (None, c.seq)]
        if only is not None and not waiting:
            raise VersionUnknown(
                f"{show(only)} is no open conflict", hint="list_conflicts without `conflict` names those that wait."
            )
        shown: list[r.ConflictInfo] = []
        spent = 0
        for seq in waiting:
            if len(shown) == params.limit:
                return r.Conflicts(conflicts=tuple(shown), cursor=shown[-1].conflict)
            conflict = self._s.state.pending.conflict(seq)
            if conflict is not None and conflict.state == "open":
                await self._rebaser.follow(conflict)
                conflict = self._s.state.pending.conflict(seq)
            if conflict is None or conflict.state != "open":
                continue
            info, cost = _within(await self._describe(caller, conflict), params.max_tokens)
            if shown and spent + cost > params.max_tokens:
                return r.Conflicts(conflicts=tuple(shown), cursor=shown[-1].conflict)
            shown.append(info)
            spent += cost
        return r.Conflicts(conflicts=tuple(shown))

    async def deleted_at(self, conflict: Conflict) -> str | None:
        """The version with which a conflict's file was deleted; None while it is there."""
        if not conflict.gone:
            return None
        row = await self._s.journal.version_at(conflict.found.path, self._s.journal.head)
        return show(row.seq) if row is not None and not row.present else None

    @staticmethod
    def revived(conflict: Conflict, answer: r.ChangeAnswer) -> r.ChangeAnswer:
        """The answer to who settled a conflict, with a warning where that brings a deleted file back."""
        if not conflict.gone or answer.status not in ("applied", "waiting"):
            return answer
        done = "this brought it back" if answer.status == "applied" else "this would bring it back"
        warning = f"{conflict.found.path} had been deleted; {done}"
        return msgspec.structs.replace(answer, warnings=(warning, *answer.warnings))


def _within(info: r.ConflictInfo, budget: int) -> tuple[r.ConflictInfo, int]:
    """A conflict cut down to a budget as far as that goes, and about how many tokens it still has."""
    diff, cut_diff = _cut(info.diff, budget)
    review_diff, cut_review = _cut(info.review_diff, budget)
    most = max(1, min(MOST_REGIONS, budget // REGION_TOKENS))
    told = sum(tokens.estimate(line.reason) + tokens.estimate(line.message) for line in info.reviews)
    cost = told + sum(tokens.estimate(text) for text in (diff or "", review_diff or "", info.reason))
    cost += REGION_TOKENS * min(most, len(info.regions))
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
    whole = sum(tokens.estimate(text) for text in texts)
    if cost + whole <= budget:
        return info, cost + whole
    left_out = msgspec.structs.replace(info, base=None, current=None, proposed=None, marked=None, texts_left_out=True)
    return left_out, cost


def _cut(diff: str | None, budget: int) -> tuple[str | None, bool]:
    """A diff that fits, by lines; very long ones are cut too."""
    if diff is None:
        return None, False
    budget = min(budget, DIFF_TOKENS)
    if tokens.estimate(diff) <= budget:
        return diff, False
    lines = diff.split("\n")
    return render(lines[: fit(lines, 1, len(lines), budget, numbers=False)], 1, numbers=False)[0], True
