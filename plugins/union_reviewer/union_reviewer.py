"""Both sides only added lines: keep both."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.extensions.hookspecs import hook
from orchestrator.ports.reviewers import Lines, RegionText, Reviewer, ReviewRegion, ReviewReply, ReviewRequest


class UnionReviewer:
    """Settles pure additions, and vouches for nothing else."""

    async def review(self, request: ReviewRequest) -> ReviewReply:
        settled = [(region.number, union(region)) for region in request.regions]
        torn = [number for number, lines in settled if lines is None]
        if torn:
            return ReviewReply(verdict="reject", reason=f"region {torn[0]}: a side changed or removed lines")
        texts = tuple(RegionText(number, lines) for number, lines in settled if lines is not None)
        return ReviewReply(verdict="content", regions=texts, reason="both sides only added lines")


def union(region: ReviewRegion) -> Lines | None:
    """Base lines in place, both additions between them; None where a side did more than add."""
    current, proposed = added(region.base, region.current), added(region.base, region.proposed)
    if current is None or proposed is None:
        return None
    lines: list[str] = []
    for at, (ours, theirs) in enumerate(zip(current, proposed, strict=True)):
        lines += together(ours, theirs)
        lines += region.base[at : at + 1]
    return tuple(lines)


def added(base: Lines, side: Lines) -> list[Lines] | None:
    """What a side added before each base line, and after the last; None where a base line is gone."""
    found: list[Lines] = []
    start = 0
    for line in base:
        try:
            at = side.index(line, start)
        except ValueError:
            return None
        found.append(side[start:at])
        start = at + 1
    return [*found, side[start:]]


def together(ours: Lines, theirs: Lines) -> Lines:
    """Ours, then theirs; what both begin or both end with stands once."""
    least = min(len(ours), len(theirs))
    head = next((n for n in range(least) if ours[n] != theirs[n]), least)
    ours_rest, theirs_rest = ours[head:], theirs[head:]
    least = min(len(ours_rest), len(theirs_rest))
    tail = next((n for n in range(least) if ours_rest[-1 - n] != theirs_rest[-1 - n]), least)
    end = len(ours_rest) - tail
    return (*ours[:head], *ours_rest[:end], *theirs_rest[: len(theirs_rest) - tail], *ours_rest[end:])


@hook
def orchestrator_reviewer() -> Callable[[], Reviewer]:
    return UnionReviewer
