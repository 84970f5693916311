"""Resolving a conflict: a person or a reviewer chooses, for exactly what was looked at."""

from __future__ import annotations

from functools import partial

import msgspec

from orchestrator.api import results as r
from orchestrator.api.conflicts import ResolveConflict
from orchestrator.core.change import PermissionCheck
from orchestrator.core.conflicts.resolution import (
    ConflictClosed,
    ConflictMoved,
    ProposalUnfit,
    accepted_review,
    authorize_resolution,
    check_still_applies,
    look_again,
    replaces_whole,
    sides_at,
)
from orchestrator.core.conflicts.sides import GapConflict
from orchestrator.core.content import Content, LargeContent
from orchestrator.core.decisions.commands import Resolve
from orchestrator.core.decisions.rebase import not_encodable
from orchestrator.core.errors import CallerError, NotPermitted, ParameterInvalid, StaleBase, VersionUnknown
from orchestrator.core.events.codec import tag_of
from orchestrator.core.events.conflicts import ConflictFound, ConflictRebased, ConflictSides
from orchestrator.core.ids import Digest, Seq, show
from orchestrator.core.positions import parse_seq
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.text.edits import replace_text
from orchestrator.core.text.encoding import NotEncodable, encode, new_document
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller, ChangeRequest
from orchestrator.engine.changes.diffs import Diffs
from orchestrator.engine.conflicts.open_conflicts import Rebaser, side, sides_of
from orchestrator.engine.conflicts.proposals import Proposals
from orchestrator.engine.services import Services
from orchestrator.ports.journal import EventFilter


class ConflictResolver:
    """Carries out what people and review agents choose."""

    def __init__(
        self, services: Services, diffs: Diffs, gate: ApproverGate, proposals: Proposals, rebaser: Rebaser
    ) -> None:
        self._s, self._diffs, self._gate = services, diffs, gate
        self._proposals, self._rebaser = proposals, rebaser

    async def resolve_conflict(self, caller: Caller, call: Call, params: ResolveConflict) -> r.ChangeAnswer:
        agent = not caller.is_person
        if agent and caller.agent_class != "review":
            raise NotPermitted(
                "conflicts are resolved by reviewers and people", hint="Send your change again, or await_change."
            )
        if not agent:
            await self._gate.check(caller, params.approver)
        conflict = await self._open(parse_seq(params.conflict, parameter="conflict"))
        self._authorize(caller, conflict, params.choice)
        if params.choice == "content" and params.content is None:
            raise ParameterInvalid("content", "is required with choice 'content'")
        if params.choice == "review":
            return await self._accept(caller, conflict, params)
        command = None
        if params.choice != "content":
            await self._check_still_applies(conflict, params)
        if params.choice != "current":
            try:
                command = msgspec.structs.replace(await self._command(conflict, params), reviews=agent)
            except NotEncodable as error:
                raise not_encodable(error, conflict.found.path) from error
            if agent and isinstance(command.chosen, LargeContent):
                raise ProposalRefused("a content of this size is for a person to choose", details={"why": "not_text"})
            if agent and isinstance(command.chosen, bytes):
                try:
                    await self._proposals.check(conflict, command.chosen)
                except ProposalUnfit as error:
                    raise ProposalRefused(error.message, details={"why": error.code}) from error
        wanted = ChangeRequest(
            caller=caller, call=call, reason=params.reason, resolves=conflict.seq, pre_approved=not agent
        )
        choice = params.choice if params.choice in ("current", "proposed") else "content"
        try:
            return await self._proposals.resolve(
                conflict, command, wanted, choice=choice, by=caller.agent, origin=caller.origin(call)
            )
        except StaleBase as error:
            raise ConflictMoved(conflict, f"{conflict.found.path} has changed meanwhile") from error

    async def _open(self, number: Seq) -> Conflict:
        """The conflict, moved along with its file. Raises VersionUnknown, ConflictClosed."""
        conflict = self._s.state.pending.conflict(number)
        if conflict is None:
            raise VersionUnknown(f"{show(number)} is no conflict", hint="list_conflicts names those that wait.")
        present = await self._rebaser.follow(conflict, renames_only=True) if conflict.state == "open" else None
        if present is None:
            raise ConflictClosed(self._s.state.pending.conflict(number) or conflict)
        return present

    def _authorize(self, caller: Caller, conflict: Conflict, choice: str) -> None:
        """As `authorize_resolution`, by the present policy; a person says yes to what it would ask about.

        Raises Denied, NotPermitted.
        """
        paths = (conflict.found.path, *conflict.found.names)
        if caller.is_person:
            for path in paths if choice != "current" else ():
                self._s.permissions.permit(caller, PermissionCheck("approve", path))
            return
        access = {
            path: (
                self._s.permissions.permit(caller, PermissionCheck("review", path)),
                self._s.permissions.readable(caller, path),
            )
            for path in paths
        }
        authorize_resolution(conflict, choice, caller.agent, access)

    async def _accept(self, caller: Caller, conflict: Conflict, params: ResolveConflict) -> r.ChangeAnswer:
        """A person says yes to what a reviewer proposes."""
        if caller.agent_class == "review":
            raise NotPermitted("a person accepts what a reviewer proposes")
        review = accepted_review(conflict, params.review)
        if review is None:
            raise NoProposal(f"no reviewer proposes anything for {show(conflict.seq)}")
        try:
            return await self._proposals.accept(
                conflict, review, by=caller.agent, pre_approved=True, because=params.reason or ""
            )
        except ProposalUnfit as error:
            raise NoProposal(f"what {review.reviewer} proposes can't be applied: {error.message}") from error

    # --- what was looked at -----------------------------------------------------------

    async def _check_still_applies(self, conflict: Conflict, params: ResolveConflict) -> None:
        """As `check_still_applies`. Raises ConflictMoved, ParameterInvalid."""
        version, sides = _on(params), conflict.found.sides
        states = await self._states(conflict)
        then = states[0] if version is None else sides_at(states, version)
        if then is None:
            why = f"{show(conflict.seq)} never met version {show(version or 0)} of {conflict.found.path}"
            raise ParameterInvalid("on", why, hint=look_again(conflict))
        contents = self._s.contents
        texts = await sides_of(contents, then), await sides_of(contents, sides)
        binary = sides.current is not None and await side(contents, sides.current) is None
        check_still_applies(conflict, params.choice, version, then, texts, binary=binary)

    async def _seen(self, conflict: Conflict, params: ResolveConflict) -> Digest | None:
        """The content that a whole new one was made from. Raises ConflictMoved, ParameterInvalid."""
        version, path = _on(params), conflict.found.path
        if version is None:
            raise ConflictMoved(conflict, "a whole content could undo what was changed since you looked")
        state = sides_at(await self._states(conflict), version)
        if state is not None:
            return state.current
        row = await self._s.journal.version_at(path, version)
        if row is None or row.seq != version or not row.present:
            raise ParameterInvalid("on", f"{path} has no version {show(version)}", hint=look_again(conflict))
        return row.digest

    async def _states(self, conflict: Conflict) -> tuple[ConflictSides, ...]:
        """The sides as they were found, and after each time that the file moved on."""
        found = await self._s.notes.event(conflict.seq, ConflictFound) or conflict.found
        wanted = EventFilter(tags=(tag_of(ConflictRebased),), after=conflict.seq)
        rebases = [
            item.event.sides
            async for item in self._s.journal.events(wanted, batch=100)
            if isinstance(item.event, ConflictRebased) and item.event.conflict == conflict.seq
        ]
        return (found.sides, *rebases)

    # --- what was chosen --------------------------------------------------------------

    async def _command(self, conflict: Conflict, params: ResolveConflict) -> Resolve:
        """What was chosen, in place of what it was chosen for."""
        path, sides = conflict.found.path, conflict.found.sides
        if params.choice == "content":
            content, seen = params.content or "", await self._seen(conflict, params)
            document = await self._s.contents.kept_text(seen)
            data = encode(replace_text(document, content) if document else new_document(content))
            return Resolve(path=path, current=seen, chosen=data)
        if params.choice == "regions":
            return Resolve(path=path, current=sides.current, chosen=await self._by_region(conflict, params))
        strict = replaces_whole(sides, await sides_of(self._s.contents, sides))
        return Resolve(path=path, current=sides.current, chosen=await self._proposed(conflict), strict=strict)

    async def _proposed(self, conflict: Conflict) -> Content | None:
        proposed = conflict.found.sides.proposed
        if proposed is None:
            return None
        merged = await self._diffs.proposed(conflict)
        if merged is not None:
            return encode(merged)
        return await self._s.contents.need(proposed, f"what {show(conflict.seq)} proposes")

    async def _by_region(self, conflict: Conflict, params: ResolveConflict) -> bytes:
        """A side for each region. Raises ParameterInvalid."""
        sides = await sides_of(self._s.contents, conflict.found.sides)
        named, count = params.regions or (), len(conflict.found.sides.regions)
        if sides is None or not count:
            raise ParameterInvalid("choice", f"{show(conflict.seq)} has no regions: choose one side, or content")
        if len(named) != count:
            raise ParameterInvalid("regions", f"name a side for each of its {count} regions, in their order")
        try:
            return await self._s.contents.computed(partial(sides.chosen, dict(enumerate(named))), *sides)
        except GapConflict as error:
            raise ParameterInvalid("choice", "the sides conflict elsewhere too; choose one side, or content") from error


def _on(params: ResolveConflict) -> Seq | None:
    return parse_seq(params.on, parameter="on") if params.on is not None else None


class NoProposal(
    CallerError,
    code="no_proposal",
    hint="list_conflicts says how far the review is; choose a side, or give the content.",
):
    """There is no reviewer's proposal to accept."""


class ProposalRefused(
    CallerError,
    code="proposal_refused",
    hint="Change only the lines of the conflict's regions, keep the syntax whole, and send it again.",
):
    """A reviewer's content does not pass the checks that every proposal must."""
