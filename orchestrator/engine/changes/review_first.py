"""Changes that would apply, and that policy wants looked at first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.core.conflicts.rebase import changed_regions
from orchestrator.core.conflicts.route import Matter, lines_of, route_of
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts
from orchestrator.core.events.notices import UnseenChange
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.rules import Policy
from orchestrator.core.text.encoding import decode
from orchestrator.engine.changes.change_request import ChangeRequest
from orchestrator.engine.services import Services


def routed(
    services: Services,
    wanted: ChangeRequest,
    facts: Mapping[WorkspacePath, Facts],
    outcome: Apply | ConflictOutcome,
    unseen: Sequence[UnseenChange] = (),
) -> Apply | ConflictOutcome:
    """The outcome; or a conflict in place of a change that policy wants reviewed first.

    That is one to a symbol that others changed too, if a route wants those, and with `stale_reads = "review"`
    one whose author had not seen all that others did (`unseen`). Only a change of one file's lines is held up
    so; what settles a conflict was looked at already.
    """
    stale = bool(unseen) and services.policy.edits.stale_reads == "review"
    if not isinstance(outcome, Apply) or len(outcome.parts) != 1 or wanted.resolves or wanted.pre_approved:
        return outcome
    if not (outcome.same_symbol or stale):
        return outcome
    part = outcome.parts[0]
    held = facts[part.path].held
    if part.data is None or held is None or part.moved_from is not None or part.renamed_from is not None:
        return outcome
    before, after = held.document or decode(held.data), part.document or decode(part.data)
    if before is None or after is None:
        return outcome
    regions = changed_regions(before.lines, after.lines)
    matter = Matter(
        path=part.path,
        agent=wanted.caller.agent,
        agent_class=wanted.caller.agent_class,
        lines=lines_of(regions),
        same_symbol=True,
    )
    if not (stale or wants(services.policy, matter)):
        return outcome
    return ConflictOutcome(
        path=part.path,
        base=held.digest,
        base_version=facts[part.path].version,
        proposed=part.data,
        regions=regions,
        names=part.names,
        ahead=True,
        same_symbol=outcome.same_symbol,
    )


def wants(policy: Policy, matter: Matter) -> bool:
    """Whether the route of a flagged change was written for flagged ones: others take conflicts only."""
    route = route_of(policy.routes, matter)
    return route is not None and route.same_symbol is True
