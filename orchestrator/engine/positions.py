"""Positions as callers write them, held against the journal's end."""

from __future__ import annotations

from orchestrator.api.parameters import Version
from orchestrator.core.errors import VersionUnknown
from orchestrator.core.ids import Seq, WorkspacePath, parse_seq, show
from orchestrator.core.projections.history import VersionRow
from orchestrator.engine.services import Services

PAGE = 5000
"""Files that the journal reads at once."""


def position(services: Services, raw: Version, *, parameter: str, least: int = 0) -> Seq:
    """Read a position; `least` 0 lets `@0` through, which is before everything.

    Raises ParameterInvalid, VersionUnknown (it names the journal's end).
    """
    head = services.journal.head
    at = not_beyond(parse_seq(raw, parameter=parameter), head)
    if at < least:
        raise VersionUnknown(
            f"{show(at)} is before the journal's first event, @1; its end is {show(head)}", details={"head": show(head)}
        )
    return at


def not_beyond(at: Seq, head: Seq) -> Seq:
    """A position that the journal has reached. Raises VersionUnknown, naming the head."""
    if at > head:
        raise VersionUnknown(
            f"{show(at)} is ahead of the journal, which ends at {show(head)}",
            hint=f"Go on from {show(head)}.",
            details={"head": show(head)},
        )
    return at


async def settled(services: Services, at: Seq) -> None:
    """Wait until every change that began at or before `at` is over, so that its tree is final.

    Whoever carries a change out holds the locks of its paths until the outcome is known.
    """
    for intent in services.state.pending.open_intents():
        if intent.seq > at:
            continue
        for item in intent.paths:
            async with services.locks.shared(item.path):
                pass


async def tree(services: Services, at: Seq) -> dict[WorkspacePath, VersionRow]:
    """Every file that was there at a position."""
    rows: dict[WorkspacePath, VersionRow] = {}
    after = ""
    while page := await services.journal.tree_at(at, after=after, limit=PAGE):
        rows |= {row.path: row for row in page}
        after = page[-1].path
    return rows
