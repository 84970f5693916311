"""Conflicts, approvals and reviews, and the policy in force.

A conflict moves with its file and is put to reviewers: a review is requested, answered, and then accepted or rejected;
a reviewer that fails, is late or rejects makes way for the next. Its answer is here, so a replay asks nobody.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from orchestrator.core.annotations import FromContent, NewContent, Redactable
from orchestrator.core.change import Directories, Fit, PathChange, PermissionCheck, Provenance, checksum_of
from orchestrator.core.commands import CommandLine
from orchestrator.core.content import Region, ThreeWay
from orchestrator.core.events.base import Event, Outcome
from orchestrator.core.ids import AgentName, Checksum, Digest, Seq, SessionId, WorkspacePath
from orchestrator.core.policy.rules import Action


class ConflictSides(ThreeWay[Digest | None], frozen=True, kw_only=True):
    """The contents of a conflict, all three kept, as of one version of its file. None: absent."""

    base: Digest | None
    current: Digest | None
    proposed: NewContent[Digest | None]
    base_version: Seq | None
    current_version: Seq | None
    regions: FromContent[tuple[Region, ...]] = ()  # where they conflict


class ConflictFound(Event, frozen=True, kw_only=True, tag="conflict_found"):
    """A change that could not be applied."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("conflict",)
    proposes: ClassVar[bool] = True

    provenance: Provenance
    path: WorkspacePath
    sides: FromContent[ConflictSides]
    mode: int | None = None
    names: tuple[WorkspacePath, ...] = ()  # other names of its contents: who may not see them sees none
    why: FromContent[str] = ""  # if not because both sides changed the same lines
    fit: Fit | None = None  # it would apply like this, and policy wants it looked at first

    @property
    def same_symbol(self) -> tuple[str, ...]:
        """What others changed too since the base of a change that would apply."""
        return self.fit.same_symbol if self.fit is not None else ()


class ConflictResolved(Event, frozen=True, kw_only=True, tag="conflict_resolved"):
    """A person or reviewer chose."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("resolved",)

    conflict: Seq
    choice: Literal["current", "proposed", "content"]
    by: str
    change: Seq | None = None  # the ChangeIntended that carried the choice out
    reason: Redactable[str] = ""


class ConflictSuperseded(Event, frozen=True, kw_only=True, tag="conflict_superseded"):
    """A later change of the same agent replaced the change."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("superseded",)

    conflict: Seq
    change: Seq


class ApprovalRequested(Event, frozen=True, kw_only=True, tag="approval_requested"):
    """A person must say yes to exactly this: (paths, before, after), or (path, version) for a read."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("waiting",)
    proposes: ClassVar[bool] = True

    provenance: Provenance
    paths: tuple[PathChange, ...]
    rule: str  # the policy rule that asks, and why
    permissions: tuple[PermissionCheck, ...]  # what policy is asked again once it is granted
    expires_at: int  # ms since the epoch
    fit: Fit = Fit()
    directories: Directories = Directories()
    read_version: Seq | None = None  # set for a read; 0: for the names and facts of a path, whatever its version
    renews: Seq | None = None  # the expired request that this one follows
    tool_call: str | None = None  # the agent's id of a call of its own tool, which a yes lets it make

    @property
    def digest(self) -> Checksum:
        """Of all that a yes would be for."""
        return checksum_of(self.paths, self.directories, self.permissions, self.read_version)


class ApprovalShown(Event, frozen=True, kw_only=True, tag="approval_shown"):
    """A page of a request was shown to somebody who may decide on it: the envelope's agent."""

    approval: Seq
    digest: FromContent[Checksum]  # of all that the request would do
    start: str = ""  # where the page begins; "": at the beginning
    next: str = ""  # where the next one does; "": this was the last
    whole: bool = False  # with this page, all of the request was shown to that agent
    unkept: tuple[WorkspacePath, ...] = ()  # files of this page whose contents are kept no more
    via: AgentName | None = None  # this agent's client shows it; the event's number names the question


ElicitationAction = Literal["accept", "decline", "cancel", "timeout", "answered_elsewhere", "failed"]


class ElicitationAnswered(Event, frozen=True, kw_only=True, tag="elicitation_answered"):
    """What a person's client made of a question about a request; it can't be answered again. The yes or no follows."""

    approval: Seq
    question: Seq  # the ApprovalShown
    via: AgentName  # whose client it is
    action: ElicitationAction


class ApprovalGranted(Event, frozen=True, kw_only=True, tag="approval_granted"):
    """A person said yes, once."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("granted",)

    approval: Seq
    by: str
    expires_at: int | None = None  # ms since the epoch: until then what it lets its agent see is shown; None: a change
    digest: FromContent[Checksum | None] = None  # of what was granted, as `ApprovalShown` has it
    unseen: bool = False  # who granted it had not been shown all of it, and said so
    via: AgentName | None = None  # asked by this agent's client, by MCP elicitation


class ApprovalDenied(Event, frozen=True, kw_only=True, tag="approval_denied"):
    """A person said no."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("denied",)

    approval: Seq
    by: str
    reason: Redactable[str] = ""
    via: AgentName | None = None  # as above


class ApprovalUsed(Event, frozen=True, kw_only=True, tag="approval_used"):
    """An agent's own tool was let run the command that a person said yes to: once."""

    approval: Seq
    tool: str  # for example `claude Bash`


ExpiryCause = Literal["timeout", "base_changed", "policy_changed", "agent_revoked", "conflict", "error", "withdrawn"]


class ApprovalExpired(Event, frozen=True, kw_only=True, tag="approval_expired"):
    """The request is void: its time ran out, its base moved, policy changed its mind, or its agent was revoked."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("expired",)

    approval: Seq
    cause: ExpiryCause
    message: Redactable[str] = ""


class GrantAdded(Event, frozen=True, kw_only=True, tag="grant_added"):
    """A person turned a yes into a rule: until it ends, these acts of an agent go without asking, where policy asks."""

    agent: AgentName
    globs: tuple[str, ...]
    actions: tuple[Action, ...]
    expires_at: int  # ms since the epoch
    approval: Seq  # the request that the yes was for
    by: str
    session: SessionId | None = None  # in this one alone, and no longer than that
    others_work: bool = False  # reverts of others' work, too
    rules: tuple[str, ...] = ()  # that asked, which alone it answers; none: whichever asks
    command: CommandLine | None = None  # of a run: exactly this one


class GrantRevoked(Event, frozen=True, kw_only=True, tag="grant_revoked"):
    """A person took a grant back."""

    grant: Seq
    by: str
    reason: Redactable[str] = ""


GrantEnd = Literal["timeout", "session_ended", "agent_revoked"]


class GrantExpired(Event, frozen=True, kw_only=True, tag="grant_expired"):
    """A grant's time is over, its session ended, or its agent's token was revoked."""

    grant: Seq
    cause: GrantEnd


Verdict = Literal["current", "proposed", "content", "reject"]
"""What a reviewer chooses: one side, another content, or nothing."""

Count = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
"""Of tokens, millionths or milliseconds, as somebody else says it: so small that no sum of them overflows."""

Ignored = Literal["", "late", "double", "unknown", "closed"]


class ConflictRebased(Event, frozen=True, kw_only=True, tag="conflict_rebased"):
    """The file changed or was moved, or its newer content met the proposal elsewhere: these are the sides now."""

    proposes: ClassVar[bool] = True

    conflict: Seq
    sides: FromContent[ConflictSides]
    fits: FromContent[bool] = False  # nothing conflicts any more: the proposal can be applied as it is
    path: WorkspacePath | None = None  # where its file was moved to; None: it is where it was
    moved_at: Seq | None = None  # the version that moved it there


class ConflictExpired(Event, frozen=True, kw_only=True, tag="conflict_expired"):
    """The conflict is void; nothing was changed for it."""

    conflict: Seq
    cause: Literal["already_applied", "timeout"]  # the file holds what was proposed; or nobody resolved it in time
    message: Redactable[str] = ""


class ReviewUsage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an answer cost, and how it was made; empty where a reviewer does not say."""

    model: str = ""
    prompt_hash: FromContent[str] = ""
    input_tokens: Count = 0
    output_tokens: Count = 0
    cost_microusd: Count = 0
    took_ms: Count = 0


class ReviewRequested(Event, frozen=True, kw_only=True, tag="review_requested"):
    """A reviewer was asked; until the deadline nobody else is."""

    conflict: Seq
    reviewer: str
    route: str
    deadline: int  # ms since the epoch
    asked: ReviewUsage = ReviewUsage()  # the model, as policy names it, and the hash of the question


class ReviewAnswered(Event, frozen=True, kw_only=True, tag="review_answered"):
    """A reviewer's answer, as received; `ignored` where it counts for nothing."""

    proposes: ClassVar[bool] = True

    review: Seq  # the ReviewRequested
    conflict: Seq
    reviewer: str
    verdict: Verdict
    proposal: NewContent[Digest | None] = (
        None  # the whole file as the answer would have it; None: rejected, or the file shall be absent
    )
    current: Digest | None = None  # the content that the proposal is made for
    usage: ReviewUsage = ReviewUsage()
    reason: Redactable[str] = ""
    ignored: Ignored = ""


class ReviewFailed(Event, frozen=True, kw_only=True, tag="review_failed"):
    """A reviewer gave nothing that counts, or what it gave did not pass the checks."""

    review: Seq
    conflict: Seq
    code: str  # reviewer_timeout, daemon_restarted, conflict_moved, review_reply_invalid, check_failed …
    message: Redactable[str] = ""
    hint: str = ""  # what to do about it
    usage: ReviewUsage = ReviewUsage()  # what it took all the same, as far as it is known


class ReviewAccepted(Event, frozen=True, kw_only=True, tag="review_accepted"):
    """The proposal of a reviewer was accepted: by policy, or by a person."""

    review: Seq
    conflict: Seq
    by: str  # "policy", or who said yes
    change: Seq | None = None  # None: nothing was to be changed
    reason: Redactable[str] = ""  # of who said yes; the reviewer's is in ReviewAnswered


class ReviewRejected(Event, frozen=True, kw_only=True, tag="review_rejected"):
    """The reviewer proposes nothing, or a person does not want what it proposes."""

    review: Seq
    conflict: Seq
    by: str
    reason: Redactable[str] = ""
