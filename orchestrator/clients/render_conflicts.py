"""Conflicts, and how far their reviews are, as people read it."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.api import results as r
from orchestrator.clients.render import diff_lines, facts, table, when
from orchestrator.core.errors import escaped


def conflicts(found: r.Conflicts) -> Iterator[str]:
    """A line for each: what waits, how far it is, for whom and until when."""
    yield from table(
        (
            c.conflict,
            when(c.since),
            c.agent or "",
            c.state,
            c.reviewer or "a person",
            f"until {when(c.deadline)}" if c.deadline is not None else "",
            c.path + _since(c),
            c.reason,
        )
        for c in found.conflicts
    )


def conflict(info: r.ConflictInfo) -> Iterator[str]:
    """All of one, and what to do."""
    yield from facts(
        ("conflict", info.conflict),
        ("file", info.path),
        ("moved", f"from {info.moved_from} at {info.moved_at}" if info.moved_from else ""),
        ("deleted", f"at {info.deleted_at}: the proposed side brings it back whole" if info.deleted_at else ""),
        ("from", _party(info.proposer) or info.agent or ""),
        ("against", "; ".join(map(_party, info.holders))),
        ("since", when(info.since)),
        ("reason", info.reason),
        ("base", info.base_version or ""),
        ("current", info.current_version or ""),
        ("state", info.state + (", and nothing clashes any more" if info.fits else "")),
        ("route", info.route or "a person"),
        ("reviewer", info.reviewer or ""),
        ("deadline", when(info.deadline) if info.deadline is not None else ""),
        ("same symbol", ", ".join(info.same_symbol)),
    )
    for number, region in enumerate(info.regions, 1):
        yield (
            f"  region {number}: lines {region.current_start}-{region.current_end} of the current content against "
            f"{region.proposed_start}-{region.proposed_end} of the proposed"
        )
    if info.regions_left_out:
        yield f"  and {info.regions_left_out} more regions"
    for item in info.reviews:
        yield escaped(
            f"  {item.review} {item.reviewer}: {item.state} {item.verdict or ''} {item.code} "
            f"{item.reason or item.message}"
        ).rstrip()
        if item.hint:
            yield escaped(f"    {item.hint}")
    yield from diff_lines(info.diff or "")
    if info.diff_truncated:
        yield "  (the diff goes on)"
    if info.review_diff is not None:
        yield f"  {info.reviewer} proposes:"
        yield from diff_lines(info.review_diff)
        if info.review_diff_truncated:
            yield "  (the diff goes on)"
        yield f"  Accept that: orchestrator conflicts resolve {info.conflict} --accept {info.reviews[-1].review}"
    yield (
        f"  Settle it: orchestrator conflicts resolve {info.conflict} --choose current|proposed, --edit, "
        "--reject --reason WHY, or, made from what is shown here, "
        f"--region 1=current,… or --file FILE, with --on {info.current_version or '@0'}"
    )


def _since(info: r.ConflictInfo) -> str:
    """What became of the file while the conflict waits."""
    moved = f" (moved from {info.moved_from} at {info.moved_at})" if info.moved_from else ""
    return moved + (f" (deleted at {info.deleted_at})" if info.deleted_at else "")


def _party(party: r.ConflictParty | None) -> str:
    if party is None:
        return ""
    about = "; ".join(part for part in (party.task, party.reason) if part)
    return escaped(party.agent + (f" ({about})" if about else ""))
