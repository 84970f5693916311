"""Who may resolve a conflict and what a choice still means; whom a conflict is put to, and which proposals count."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from orchestrator.core import errors as e
from orchestrator.core.change import UnseenChange
from orchestrator.core.conflicts.sides import Choices, Sides, changed_regions, within
from orchestrator.core.content import Region
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts
from orchestrator.core.errors import escaped
from orchestrator.core.events.conflicts import ConflictSides, Ignored, Verdict
from orchestrator.core.events.sessions import AgentClass
from orchestrator.core.globs import Globs
from orchestrator.core.ids import AgentName, Seq, WorkspacePath, show
from orchestrator.core.policy.rules import PERSON, Allow, NeedApproval, Policy, Route
from orchestrator.core.positions import parse_seq
from orchestrator.core.projections.identities import Identities
from orchestrator.core.projections.pending import Conflict, Review
from orchestrator.core.text.encoding import Document, decode

ABSENT = Seq(0)
"""As a version: the path was absent."""

LOOK = (
    "Look at it with `orchestrator conflicts show @N` or list_conflicts, then choose again; send `on` (--on @N) with "
    "the current version that they show."
)


def look_again(conflict: Conflict) -> str:
    """The hint for one conflict."""
    return LOOK.replace("show @N", f"show {show(conflict.seq)}")


def authorize_resolution(
    conflict: Conflict, choice: str, agent: AgentName, access: Mapping[WorkspacePath, tuple[Allow | NeedApproval, bool]]
) -> None:
    """An agent resolves where policy lets it review, sees all that it judges, and never chooses its own side.

    `access`: for each path of the conflict what policy says of a review there, and whether the agent may
    read it. Where policy asks about a review, the resolving change waits for a person; to keep the current
    content changes nothing that could wait, and is a person's. Raises Denied, NotPermitted.
    """
    number = show(conflict.seq)
    for path, (verdict, readable) in access.items():
        if not readable:
            raise e.Denied(
                f"review {escaped(path)}: its content is not shown to {agent}, so it can't resolve {number}",
                details={"path": escaped(path), "action": "read"},
            )
        if isinstance(verdict, NeedApproval) and (choice == "current" or path != conflict.found.path):
            raise e.NotPermitted(
                f"policy asks a person about reviews of {escaped(path)}: {verdict.reason}",
                hint=f"A person resolves it: `orchestrator conflicts resolve {number}`.",
            )
    if agent == conflict.agent and choice != "current":
        raise e.NotPermitted(
            f"{number} is {agent}'s own change; an agent cannot resolve its own conflict",
            hint="Withdraw it with choice 'current', or await_change.",
        )


def sides_at(states: Sequence[ConflictSides], version: Seq) -> ConflictSides | None:
    """The conflict as who looked at a version of its file saw it; None if it never met that version.

    Of several states that met it the newest, which knows its content if any does.
    """
    return next((state for state in reversed(states) if (state.current_version or ABSENT) == version), None)


def replaces_whole(found: ConflictSides, sides: Sides | None) -> bool:
    """Whether the proposed side is a whole file in the place of another, and not lines in the place of lines."""
    return sides is None or found.base is None or found.current is None


def check_still_applies(
    conflict: Conflict,
    choice: str,
    version: Seq | None,
    then: ConflictSides,
    texts: tuple[Sides | None, Sides | None],
    *,
    binary: bool,
) -> None:
    """Let a choice of sides through if it means now what it meant to whoever looked at it.

    `then` are the sides at the version that was looked at, or, if none is named, as they were found; `texts`
    are those and the present ones; `binary`: the file holds no text. `current` loses nothing that was
    applied, so it may come without a version. `proposed` may while the same lines conflict as when the
    conflict was found, or none do. Raises ConflictMoved.
    """
    if version is None and choice == "current":
        return
    now, (old, new) = conflict.found.sides, texts
    if [*then] == [*now]:
        same = then.regions == now.regions
    else:
        same = old is not None and new is not None and not replaces_whole(now, new) and old.same_conflict(new)
    if version is not None:
        if not same:
            raise ConflictMoved(conflict, f"other lines conflict than at {show(version)}")
    elif choice == "regions":
        raise ConflictMoved(conflict, "the numbers of regions change with the file")
    elif binary:
        raise ConflictMoved(conflict, f"{conflict.found.path} is no text, and all of it would be replaced")
    elif not same and not conflict.fits and (now.regions or replaces_whole(now, new)):
        raise ConflictMoved(conflict, "other lines conflict now than when it was found")


def accepted_review(conflict: Conflict, review: str | int | None) -> Review | None:
    """The review whose proposal is accepted; None if none proposes anything.

    Raises ParameterInvalid, VersionUnknown, ConflictMoved.
    """
    newest, look = conflict.review, look_again(conflict)
    if newest is None:
        return None
    if review is None:
        why = "is required with choice 'review': '@N' of the review whose proposal you looked at"
        raise e.ParameterInvalid("review", why, hint=look)
    number = parse_seq(review, parameter="review")
    if all(item.seq != number for item in conflict.reviews):
        raise e.VersionUnknown(f"{show(number)} is no review of {show(conflict.seq)}", hint=look)
    if newest.seq != number:
        raise ConflictMoved(conflict, f"{show(newest.seq)} has come after review {show(number)}")
    return newest if newest.state == "answered" else None


class ConflictClosed(e.CallerError, code="conflict_closed"):
    """The conflict was resolved or superseded before."""

    def __init__(self, conflict: Conflict) -> None:
        number = show(conflict.seq)
        super().__init__(f"{number} is {conflict.state} already", details={"conflict": number})


class ConflictMoved(e.CallerError, code="conflict_moved", hint=LOOK):
    """The choice is for another version of the file, or of the review, than the present one, or names none.

    It could mean something else now.
    """

    def __init__(self, conflict: Conflict, why: str) -> None:
        number = show(conflict.seq)
        super().__init__(
            f"{number}: {why}, so that the choice could mean something else",
            hint=look_again(conflict),
            details={"conflict": number},
        )


# --- what a reviewer proposes --------------------------------------------------------------

_MARKER = re.compile(r"(<{7}|\|{7}|>{7})( |\Z)")


class ProposalUnfit(e.OrchestratorError):
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
    if review.state == "requested":
        return ""
    return "late" if review.state == "failed" else "double"


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


# --- whom it is put to, and which changes wait for a review ----------------------------------

MOST_ATTEMPTS = 2
"""Of one reviewer, where its first failed through no fault of its own."""

UNSPENT = frozenset({"daemon_restarted", "conflict_moved"})
"""Failures that are not the reviewer's."""


def route_of(
    routes: Sequence[Route],
    path: WorkspacePath,
    regions: Sequence[Region],
    *,
    agent: AgentName | None,
    agent_class: AgentClass | None,
    same_symbol: bool,
) -> Route | None:
    """The first route that matches; None: a person resolves it. A conflict is as large as its longest sides."""
    return next(
        (
            route
            for route in routes
            if route.same_symbol in (None, same_symbol)
            and not {"*", agent, f"class:{agent_class}"}.isdisjoint(route.agents)
            and Globs(route.paths).match(path)
            and (route.max_lines is None or sum(map(_longest, regions)) <= route.max_lines)
        ),
        None,
    )


def _longest(region: Region) -> int:
    return max(region.base.length, region.current.length, region.proposed.length)


def route_for(conflict: Conflict, policy: Policy, identities: Identities) -> Route | None:
    """The route that a conflict takes by the present policy; None: a person resolves it."""
    found, agent = conflict.found, identities.get(conflict.agent) if conflict.agent is not None else None
    return route_of(
        policy.routes,
        found.path,
        found.sides.regions,
        agent=conflict.agent,
        agent_class=agent.agent_class if agent else None,
        same_symbol=bool(found.same_symbol),
    )


def held_for_review(
    outcome: Apply | ConflictOutcome,
    facts: Mapping[WorkspacePath, Facts],
    policy: Policy,
    unseen: Sequence[UnseenChange] = (),
    *,
    agent: AgentName,
    agent_class: AgentClass,
) -> Apply | ConflictOutcome:
    """The outcome; or a conflict in place of a change of one file's lines that policy wants reviewed first.

    That is one to a symbol that others changed too, where a route was written for those, and with
    `stale_reads = "review"` one whose author had not seen all that others did (`unseen`).
    """
    stale = bool(unseen) and policy.edits.stale_reads == "review"
    if not isinstance(outcome, Apply) or len(outcome.paths) != 1 or not (outcome.fit.same_symbol or stale):
        return outcome
    change = outcome.paths[0]
    held, content = facts[change.path].held, outcome.content(change)
    if content is None or held is None or change.moved_from is not None:
        return outcome
    before, after = held.text, content.document or decode(content.data)
    if before is None or after is None:
        return outcome
    regions = changed_regions(before.lines, after.lines)
    route = route_of(policy.routes, change.path, regions, agent=agent, agent_class=agent_class, same_symbol=True)
    if not stale and (route is None or not route.same_symbol):
        return outcome
    return ConflictOutcome(
        path=change.path,
        base=held.digest,
        base_version=facts[change.path].version,
        proposed=content.data,
        regions=regions,
        names=outcome.names.get(change.path, ()),
        fit=outcome.fit,
    )


def next_reviewer(route: Route, reviews: Sequence[Review]) -> str | None:
    """Who in a route's chain is to be asked, after those that were; None: nobody, or a person.

    A reviewer whose request failed by our doing is asked once more; after any other failure, or a
    rejection, the next is asked. Reviews under other routes count for nothing.
    """
    for name in route.reviewers:
        own = [review for review in reviews if review.route == route.name and review.reviewer == name]
        if name == PERSON or (own and own[-1].state in ("requested", "answered")):
            return None
        if not own or (own[-1].state == "failed" and own[-1].code in UNSPENT and len(own) < MOST_ATTEMPTS):
            return name
    return None
