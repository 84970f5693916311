"""Conflicts, and how far their reviews are, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.api import results as r
from orchestrator.clients.render.answers import rendered
from orchestrator.clients.render.text import diff_lines, facts, go_on, table, when
from orchestrator.core.errors import escaped, plural


@rendered.register
def _listed(found: r.Conflicts) -> Iterator[str]:
    """A line for each: what waits, how far it is, for whom and until when."""
    if not found.conflicts:
        yield "no conflict is open"
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
    yield from go_on(len(found.conflicts), None, found.cursor)


@rendered.register
def _whole(info: r.ConflictInfo) -> Iterator[str]:
    """All of one, and what to do."""
    yield from facts(
        ("conflict", info.conflict),
        ("file", info.path),
        ("moved", f"from {info.moved_from} at {info.moved_at}" if info.moved_from else ""),
        ("deleted", f"at {info.deleted_at}: the proposed side brings it back whole" if info.deleted_at else ""),
        ("from", _party(info.proposer) or info.agent),
        ("against", "; ".join(map(_party, info.holders))),
        ("since", when(info.since)),
        ("reason", info.reason),
        ("base", info.base_version),
        ("current", info.current_version),
        ("state", info.state + (", and the sides no longer overlap" if info.fits else "")),
        ("route", info.route or "a person"),
        ("reviewer", info.reviewer),
        ("deadline", when(info.deadline)),
        ("same symbol", ", ".join(info.same_symbol)),
    )
    for number, region in enumerate(info.regions, 1):
        yield (
            f"  region {number}: lines {region.current_start}-{region.current_end} of the current content against "
            f"{region.proposed_start}-{region.proposed_end} of the proposed"
        )
    if info.regions_left_out:
        yield f"  and {plural(info.regions_left_out, 'more region')}"
    for item in info.reviews:
        yield escaped(
            f"  {item.review} {item.reviewer}: {item.state} {item.verdict or ''} {item.code} "
            f"{item.reason or item.message}"
        ).rstrip()
        if item.hint:
            yield escaped(f"    {item.hint}")
    yield from _sides(info.diff, truncated=info.diff_truncated)
    if info.review_diff is not None:
        yield f"  {info.reviewer} proposes:"
        yield from _sides(info.review_diff, truncated=info.review_diff_truncated)
        yield f"  Accept that: orchestrator conflicts resolve {info.conflict} --accept {info.reviews[-1].review}"
    yield (
        f"  Resolve it: orchestrator conflicts resolve {info.conflict} --choose current|proposed, --edit, "
        "--reject --reason WHY, or, made from what is shown here, "
        f"--region 1=current,… or --file FILE, with --on {info.current_version or '@0'}"
    )


def _sides(diff: str | None, *, truncated: bool) -> Iterator[str]:
    yield from diff_lines(diff or "")
    if truncated:
        yield "  (the diff goes on)"


def _since(info: r.ConflictInfo) -> str:
    """What became of the file while the conflict waits."""
    moved = f" (moved from {info.moved_from} at {info.moved_at})" if info.moved_from else ""
    return moved + (f" (deleted at {info.deleted_at})" if info.deleted_at else "")


def _party(party: r.ConflictParty | None) -> str:
    if party is None:
        return ""
    about = "; ".join(part for part in (party.task, party.reason) if part)
    return escaped(party.agent + (f" ({about})" if about else ""))
