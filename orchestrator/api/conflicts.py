"""Conflicts as callers see them: listed, and resolved."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import CHANGES, Operation
from orchestrator.core import errors as e


class ListConflicts(p.Params, frozen=True):
    conflict: Annotated[p.Version | None, Meta(description="Only this one, '@N'.")] = None
    limit: Annotated[int, Meta(description="Most conflicts in one answer.", ge=1, le=100)] = 20
    cursor: p.Cursor = None
    max_tokens: Annotated[int, Meta(description="Token budget.", ge=500, le=10_000_000)] = 20_000
    contents: Annotated[bool, Meta(description="false: only what waits, without contents and diffs.")] = True


class Party(r.Result, frozen=True, kw_only=True):
    """Whose side it is, and what for."""

    agent: str
    task: str = ""
    reason: str = ""


class ReviewLine(r.Result, frozen=True, kw_only=True):
    """One reviewer that was asked."""

    review: str
    reviewer: str
    state: Literal["requested", "answered", "failed", "accepted", "rejected"]
    deadline: int  # ms since the epoch
    verdict: str | None = None
    reason: str = ""  # the reviewer's
    model: str = ""
    code: str = ""  # why it failed
    message: str = ""  # the same in words; they may quote the file
    hint: str = ""  # what to do about it


class ConflictInfo(r.Result, frozen=True, kw_only=True):
    conflict: str
    path: str
    agent: str | None = None
    session: str | None = None
    task: str | None = None
    since: int
    operation: str
    reason: str = ""
    base_version: str | None = None
    current_version: str | None = None
    regions: tuple[r.RegionLines, ...] = ()
    base: str | None = None  # whole texts, where they are text and kept
    current: str | None = None
    proposed: str | None = None
    diff: str | None = None  # current → proposed
    diff_truncated: bool = False
    state: Literal["found", "requested", "answered"] = "found"
    fits: bool = False  # newer changes removed what it conflicted with
    same_symbol: tuple[str, ...] = ()  # why a change that would apply waits
    proposer: Party | None = None
    holders: tuple[Party, ...] = ()  # who made the lines that it conflicts with
    reviewer: str | None = None  # who is asked, or has answered
    deadline: int | None = None  # of the reviewer who is asked; ms since the epoch
    route: str | None = None
    reviews: tuple[ReviewLine, ...] = ()
    review_diff: str | None = None  # current → what the reviewer proposes
    review_diff_truncated: bool = False
    marked: str | None = None  # the whole file with diff3 markers where it conflicts, to be edited
    texts_left_out: bool = False  # base, current, proposed and marked are over the budget: ask for it alone, with more
    regions_left_out: int = 0  # so many more regions
    moved_from: str | None = None  # where its file was until moved_at
    moved_at: str | None = None
    deleted_at: str | None = None  # its file was deleted then: the proposed side would bring it back


class Conflicts(r.Result, frozen=True, kw_only=True):
    conflicts: tuple[ConflictInfo, ...] = ()  # oldest first
    total: int  # that wait, on all pages
    unlisted: int = 0  # further ones, about files that the caller may not list
    cursor: str | None = None  # of one that was named: where its diff goes on


LIST_CONFLICTS = Operation(
    "list_conflicts",
    ListConflicts,
    Conflicts,
    "The changes that could not be applied and wait: base, current and proposed content of each.",
    opens_session=False,
    command="conflicts list",
)


class ResolveConflict(p.Params, frozen=True):
    conflict: Annotated[p.Version, Meta(description="'@N' of the conflict.")]
    choice: Annotated[
        Literal["current", "proposed", "content", "regions", "review"],
        Meta(description="One side; or `content`; or a side for each region; or the reviewer's proposal."),
    ]
    content: Annotated[
        p.Content | None, Meta(description="With choice 'content': the whole file, made from version `on`.")
    ] = None
    regions: Annotated[
        Annotated[tuple[Literal["current", "proposed"], ...], Meta(max_length=100_000)] | None,
        Meta(description="With choice 'regions': a side for each region, in order."),
    ] = None
    on: Annotated[
        p.Version | None,
        Meta(
            description="The version you looked at: `current_version` of list_conflicts, '@0' where there is none. "
            "Required with 'content' and 'regions', and with 'proposed' if other lines conflict now or the whole file "
            "would be replaced."
        ),
    ] = None
    review: Annotated[p.Version | None, Meta(description="With choice 'review': '@N' of the review.")] = None
    reason: p.Reason = ""
    request_id: p.RequestId = None
    approver: p.ApproverCode = None


RESOLVE_CONFLICT = Operation(
    "resolve_conflict",
    ResolveConflict,
    r.ChangeAnswer,
    "Resolve a conflict: the current content, the proposed one, or another. For reviewers and approvers.",
    writes=True,
    destructive=True,
    raises=(*CHANGES, e.VersionUnknown, e.NotPermitted, e.ApproverCodeNeeded),
    command="conflicts resolve",
)
