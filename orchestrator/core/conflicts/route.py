"""Where a conflict goes, and which changes wait for a review: the first route of the policy that matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.core.change import UnseenChange
from orchestrator.core.conflicts.sides import changed_regions
from orchestrator.core.content import Region
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts
from orchestrator.core.events.sessions import AgentClass
from orchestrator.core.globs import Globs
from orchestrator.core.ids import AgentName, WorkspacePath
from orchestrator.core.policy.rules import PERSON, Policy, Route
from orchestrator.core.projections.identities import Identities
from orchestrator.core.projections.pending import Conflict, Review
from orchestrator.core.text.encoding import decode

MOST_ATTEMPTS = 2
"""Of one reviewer, where its first failed through no fault of its own."""

UNSPENT = frozenset({"daemon_restarted", "conflict_moved"})
"""Failures that are not the reviewer's."""


def lines_of(regions: Sequence[Region]) -> int:
    """How large a conflict is: of each region its longest side."""
    return sum(max(span.length for span in region) for region in regions)


def route_of(
    routes: Sequence[Route],
    path: WorkspacePath,
    regions: Sequence[Region],
    *,
    agent: AgentName | None,
    agent_class: AgentClass | None,
    same_symbol: bool,
) -> Route | None:
    """The first route that matches; None: a person resolves it."""
    lines = lines_of(regions)
    return next(
        (
            route
            for route in routes
            if (route.max_lines is None or lines <= route.max_lines)
            and route.same_symbol in (None, same_symbol)
            and not {"*", agent, f"class:{agent_class}"}.isdisjoint(route.agents)
            and Globs(route.paths).match(path)
        ),
        None,
    )


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
