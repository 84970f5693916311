"""What becomes of a conflict while it waits: it moves with its file, is put to reviewers, and their answers come in.

A conflict is found, a review requested, answered, and then accepted or rejected; a reviewer that
fails, is late or rejects makes way for the next. Its answer is here, so a replay asks nobody.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from orchestrator.core.annotations import FromContent, NewContent, Redactable
from orchestrator.core.events.base import Event
from orchestrator.core.events.conflicts import ConflictSides
from orchestrator.core.ids import Digest, Seq, WorkspacePath

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


class ReviewAccepted(Event, frozen=True, kw_only=True, tag="review_accepted"):
    """The proposal of a reviewer was accepted: by policy, or by a person."""

    review: Seq
    conflict: Seq
    by: str  # "policy", or who said yes
    change: Seq | None = None  # None: nothing was to be changed


class ReviewRejected(Event, frozen=True, kw_only=True, tag="review_rejected"):
    """The reviewer proposes nothing, or a person does not want what it proposes."""

    review: Seq
    conflict: Seq
    by: str
    reason: Redactable[str] = ""
