"""Requests for an approval: the queue, each one shown whole, and who may answer it. Who was shown it is journalled."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api.administration import ApprovalInfo, Approvals, ApprovalsList, ApprovalsShow
from orchestrator.core.change import PermissionCheck
from orchestrator.core.decisions.approvals import authorize_agent
from orchestrator.core.errors import ApproverError, CallerError, VersionUnknown, plural
from orchestrator.core.events.conflicts import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalRequested,
    ApprovalShown,
)
from orchestrator.core.ids import AgentName, Seq, WorkspacePath, show
from orchestrator.core.policy.rules import Allow
from orchestrator.core.policy.tables import CLIENT
from orchestrator.core.positions import parse_seq
from orchestrator.core.projections.pending import Approval
from orchestrator.core.text.answer_space import PROGRAM, json_size
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changes.whole_changes import WholeChanges, place, sections_of
from orchestrator.engine.services import Services

LISTED_PATHS, SHOWN_PATHS = 10, 1_000
"""Of one approval in a list, and of one that a program shows; its diff has all."""

MOST_COMMAND = 300
"""Characters of a command in the list."""

NAMED_UNSEEN = 5
"""Files that a warning names."""


class ApprovalInbox:
    """The requests that wait, shown to those who may answer them."""

    def __init__(self, services: Services) -> None:
        self._s, self._whole = services, WholeChanges(services)

    async def approvals_list(self, caller: Caller, call: Call, params: ApprovalsList) -> Approvals:
        after = parse_seq(params.cursor, parameter="cursor") if params.cursor is not None else 0
        waiting = [
            item for item in self._s.state.pending.waiting() if caller.is_person or self._may_answer(caller, item)
        ]
        left = [item for item in waiting if item.seq > after]
        page = [await self._info(item, most=LISTED_PATHS) for item in left[: params.limit]]
        page = page[: call.room.framed().first((json_size(info), 1) for info in page)]
        return Approvals(
            approvals=tuple(page),
            total=len(waiting),
            cursor=page[-1].approval if len(left) > len(page) else None,
        )

    async def approvals_show(self, caller: Caller, call: Call, params: ApprovalsShow) -> ApprovalInfo:
        """One page of a request; who is shown the last after all others has been shown it whole."""
        approval, start = await self.find(params.approval), params.cursor or ""
        if not caller.is_person:
            self.authorize(caller, approval)
        info = await self._info(approval, most=SHOWN_PATHS if call.room.bytes >= PROGRAM.bytes else LISTED_PATHS)
        page = await self._whole.page(approval.request, start, call.room.less(json_size(msgspec.to_builtins(info))))
        before = approval.shown_to(caller.agent, caller.via)
        goes_on = start in ("", before.next)
        event = ApprovalShown(
            approval=approval.seq,
            digest=approval.request.digest,
            start=start,
            next=page.next,
            whole=goes_on and not page.next and not page.unkept,
            unkept=page.unkept,
            via=caller.via,
        )
        await self._s.notes.note(caller.origin(call), (approval.stream, event))
        return msgspec.structs.replace(
            info,
            diff=page.text,
            cursor=page.next or None,
            digest=event.digest,
            shown_whole=event.whole or before.whole,
            unkept=page.unkept,
        )

    async def find(self, raw: p.Version, *, waiting: bool = False) -> Approval:
        """A request by its name. Raises VersionUnknown, and ApprovalClosed for one that must wait and does not."""
        number = parse_seq(raw, parameter="approval")
        approval = self._s.state.pending.approval(number)
        if approval is None:
            raise VersionUnknown(f"{show(number)} is no approval", hint="`orchestrator approvals list` shows them.")
        if waiting and approval.state != "waiting":
            raise ApprovalClosed(approval, await self._ended(approval))
        return approval

    def authorize(self, caller: Caller, approval: Approval) -> None:
        """By the present policy, for every path of the request. Raises Denied, NotPermitted."""
        paths = self.paths(approval)
        if not caller.is_person:
            self._s.access.refuse_unlisted(caller, paths, f"{show(approval.seq)} is about")
        for path in paths:
            self._s.permissions.permit(caller, PermissionCheck("approve", path))
            if caller.via is not None:
                self._s.permissions.permit(self._client(caller.via), PermissionCheck("approve", path))
        if not caller.is_person:
            authorize_agent(approval, caller.agent, [path for path in paths if not self.shows(caller, path)])

    def trusts_client(self, agent: AgentName, approval: Approval) -> bool:
        """Whether the person whom an agent's client asks need not show the approver code for this.

        Whoever may start programs can take a name that has no token, and answer its questions.
        """
        identity = self._s.state.identities.get(agent)
        if identity is None or identity.token_hash is None:
            return False
        client, verdict = self._client(agent), self._s.permissions.verdict
        return all(isinstance(verdict(client, "approve", it, on_disk=True), Allow) for it in self.paths(approval))

    def _client(self, agent: AgentName) -> Caller:
        """Whom policy is asked about: the person before an agent's client."""
        return self._s.permissions.author(AgentName(f"{CLIENT}{agent}"), None)

    def paths(self, approval: Approval) -> list[WorkspacePath]:
        """All names that it is about."""
        conflict = self._s.state.pending.conflict(approval.request.provenance.resolves or 0)
        names = conflict.found.names if conflict is not None else ()
        changed = {name for item in approval.request.paths for name in (item.path, item.moved_from) if name}
        return sorted(changed.union(names))

    def shows(self, caller: Caller, path: WorkspacePath) -> bool:
        """People see what they decide on."""
        return caller.is_person or self._s.permissions.readable(caller, path)

    def _may_answer(self, caller: Caller, approval: Approval) -> bool:
        try:
            self.authorize(caller, approval)
        except CallerError:
            return False
        return True

    async def reason(self, seq: Seq) -> str:
        """Why its author wants it."""
        request = await self._s.notes.event(seq, ApprovalRequested)
        return request.provenance.reason if request is not None else ""

    async def _ended(self, approval: Approval) -> str:
        """By whom, or why, a request was closed."""
        if (denied := await self._s.notes.end_of(approval, ApprovalDenied)) is not None:
            return f"{denied.by} denied it"
        if (expired := await self._s.notes.end_of(approval, ApprovalExpired)) is not None:
            return f"it expired: {expired.message or expired.cause}"
        granted = await self._s.notes.end_of(approval, ApprovalGranted)
        return f"{granted.by} granted it" if granted is not None else approval.state

    async def _info(self, approval: Approval, *, most: int) -> ApprovalInfo:
        paths = approval.request.paths
        known = self._s.state.registry.get
        entries = {item: known(item.path) for item in paths if not approval.for_call}
        changed = [item.path for item, entry in entries.items() if (entry and entry.digest) != item.before]
        answer = None
        if approval.state != "waiting":
            granted = await self._s.notes.end_of(approval, ApprovalGranted)
            answer = granted or await self._s.notes.end_of(approval, ApprovalDenied)
        return ApprovalInfo(
            approval=show(approval.seq),
            state=approval.state,
            operation=approval.request.provenance.operation,
            paths=tuple(item.path for item in paths[:most]),
            path_count=len(paths),
            command=next((_brief(it.command.argv) for it in approval.request.permissions if it.command), ""),
            agent=approval.agent,
            session=approval.session,
            since=approval.at,
            expires_at=approval.request.expires_at,
            rule=approval.request.rule,
            reason=await self.reason(approval.seq),
            changed_since=tuple(changed[:most]),
            beside=tuple(show(item.seq) for item in self.beside(approval)),
            by=answer.by if answer is not None else None,
            via=answer.via if answer is not None else None,
        )

    def beside(self, approval: Approval) -> tuple[Approval, ...]:
        """The other changes that wait for one of its files, oldest first."""
        if approval.for_call:
            return ()
        paths = {item.path for item in approval.request.paths}
        return tuple(
            other
            for other in self._s.state.pending.waiting()
            if other.seq != approval.seq
            and not other.for_call
            and not paths.isdisjoint(item.path for item in other.request.paths)
        )


def _brief(argv: Sequence[str]) -> str:
    """A command in one line; of a long one the first words, each whole, so that no secret in one is cut in half."""
    text = ""
    for word in map(shlex.quote, argv):
        if len(text) + len(word) > MOST_COMMAND:
            return f"{text}…"
        text += f"{word} "
    return text.rstrip()


def check_seen(approval: Approval, caller: Caller, *, unseen: bool) -> str:
    """A warning of what of it was not shown to who grants it; "" if all was. Raises ApprovalUnseen unless `unseen`."""
    by, showing = caller.agent, approval.shown_to(caller.agent, caller.via)
    if showing.whole:
        return ""
    first, _ = place(showing.next)
    names = [section.path or "its directories" for section in sections_of(approval.request)[first:]]
    what = ", ".join(names[:NAMED_UNSEEN])
    if len(names) > NAMED_UNSEEN:
        what += f" and {plural(len(names) - NAMED_UNSEEN, 'more file')}"
    if not unseen:
        raise ApprovalUnseen(approval, what, by)
    return f"approved without being shown to {by}: {what}"


class ApprovalUnseen(ApproverError, code="approval_unseen"):
    """Who says yes was not shown all that it would be for."""

    def __init__(self, approval: Approval, what: str, by: AgentName) -> None:
        number = show(approval.seq)
        super().__init__(
            f"{number} was not shown whole to {by}: {what}",
            hint=f"`orchestrator approvals show {number}` shows all of it. To approve it all the same, send "
            "unseen=true (`--unseen`).",
            details={"approval": number},
        )


class ApprovalClosed(CallerError, code="approval_closed"):
    """The request was answered, used or expired before."""

    def __init__(self, approval: Approval, why: str) -> None:
        number, successor = show(approval.seq), approval.successor
        hint = "A request is answered once, and the answer is for one change; a new change asks anew."
        if successor is not None:
            hint = f"{show(successor)} took its place; `orchestrator approvals list` shows what waits."
        super().__init__(
            f"{number} does not wait any more: {why}",
            hint=hint,
            details={"approval": number, "state": approval.state},
        )
