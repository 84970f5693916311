"""Whether what a reviewer proposes for a conflict may count as an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping

from orchestrator.core.conflicts.sides import Choices, Sides, within
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.events.reviews import Ignored, Verdict
from orchestrator.core.projections.pending import Conflict, Review
from orchestrator.core.text.encoding import Document

_MARKER = re.compile(r"(<{7}|\|{7}|>{7})( |\Z)")


class ProposalUnfit(OrchestratorError):
    """A reviewer gave nothing that may be applied, or can not be asked; `code` says in which way."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]  # one class for all the ways


def ignored_as(conflict: Conflict | None, review: Review | None) -> Ignored:
    """Why an answer counts for nothing; empty where it counts."""
    if conflict is None or conflict.state != "open":
        return "closed"
    if review is None:
        return "unknown"
    match review.state:
        case "requested":
            return ""
        case "failed":
            return "late"
        case "answered" | "accepted" | "rejected":
            return "double"


def choices_of(verdict: Verdict, regions: Mapping[int, tuple[str, ...]], sides: Sides) -> Choices:
    """What an answer chooses for each region; `regions` are its own lines, by number from 1. Raises ProposalUnfit."""
    count = len(sides.regions)
    if verdict in ("current", "proposed"):
        return dict.fromkeys(range(count), verdict)
    unknown = sorted(number for number in regions if not 1 <= number <= count)
    if unknown or not regions:
        raise ProposalUnfit("review_reply_invalid", f"the conflict has no region {unknown}: 1 to {count}")
    if any("\n" in line or "\r" in line for lines in regions.values() for line in lines):
        raise ProposalUnfit("review_reply_invalid", "a line holds a line end")
    return {number - 1: lines for number, lines in regions.items()}


def check_lines(sides: Sides, between: tuple[tuple[str, ...], ...], document: Document) -> None:
    """A proposal changes the conflict's regions only, and leaves no markers; `between` are the gaps of the sides.

    Raises ProposalUnfit.
    """
    if sides.regions and not within(between, document.lines):
        raise ProposalUnfit("outside_regions", "it changes lines outside the regions of the conflict")
    marked = next((n for n, line in enumerate(document.lines, 1) if _MARKER.match(line)), None)
    if marked is not None and not any(_MARKER.match(line) for line in sides.current.lines):
        raise ProposalUnfit("markers_left", f"line {marked} is a conflict marker")
