"""What people ask of a daemon: its status, approvals, agents, the approver code."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import OperatorOperation
from orchestrator.api.session_operations import LeaseInfo
from orchestrator.core.projections.pending import ApprovalState


class SessionLine(r.Result, frozen=True, kw_only=True):
    session: str
    agent: str
    agent_class: str
    asserted: bool = False
    client: str = ""
    open: bool = False


class Health(r.Result, frozen=True, kw_only=True):
    state: Literal["ok", "writes_stopped", "workspace_moved", "starting"]
    baseline: Literal["running", "done"]
    watching: str = "off"  # "live", "off", or "degraded: …" with the reason
    commands: str = (
        ""  # what confines the commands that agents run: "namespaces and landlock", "landlock; …" or "nothing: …"
    )
    landlock: str = "on"  # whether the kernel too keeps changes below the root: "on", or "off: …" with the reason
    search: str = "on"  # of trees by ripgrep: "on", or "off: …" with the reason; each file is read then
    semantic: str = "off"  # search by meaning: "ready: …", "building: …", "off" or "failing: …" with the reason
    checked: str = ""  # since this start, chain and pages of the journal: "running", "@N" when they held, "failed: …"
    notes: tuple[str, ...] = ()
    amiss: tuple[str, ...] = ()  # of the notes, those that a person must act on; `up` says them too
    recovered: int = 0  # changes closed by recovery at this start
    diverged: tuple[str, ...] = ()  # changes whose bytes were not written


class CacheLine(r.Result, frozen=True, kw_only=True):
    """What is remembered of contents, and can be computed again."""

    name: str
    entries: int
    bytes: int  # about


class ClearedCaches(r.Result, frozen=True, kw_only=True):
    caches: tuple[CacheLine, ...] = ()  # what they held


class StatusInfo(r.Result, frozen=True, kw_only=True):
    pid: int
    version: str
    socket: str
    http: str | None = None  # the URL of MCP over HTTP, where that is on
    workspace: str
    workspace_id: str
    state_dir: str
    head: str
    sessions: tuple[SessionLine, ...] = ()
    approvals: int
    conflicts: int
    health: Health
    policy: str
    approver: Literal["set", "missing"]
    leases: tuple[LeaseInfo, ...] = ()
    caches: tuple[CacheLine, ...] = ()


STATUS = OperatorOperation("status", p.Params, StatusInfo, "What the daemon is doing.", inline=True)

CACHE_CLEAR = OperatorOperation(
    "cache_clear",
    p.Params,
    ClearedCaches,
    "Forget the outlines, overviews, summaries and line indexes that are remembered; says what they held.",
)

STOP = OperatorOperation("stop", p.Params, r.Done, "End the daemon.", writes=True)


ApprovalText = Annotated[p.Version, Meta(description="'@N' of the request.")]


class ApprovalsList(p.Params, frozen=True):
    limit: Annotated[int, Meta(description="Most approvals in one answer.", ge=1, le=200)] = 50
    cursor: p.Cursor = None


class ApprovalsShow(p.Params, frozen=True):
    approval: ApprovalText
    cursor: p.Cursor = None


_PERSONS = {p.OPERATOR_ONLY: True}


class Approve(p.Approving, frozen=True):
    """With one of the last three the yes is also a grant: such acts of the agent go without asking for a while."""

    approval: ApprovalText
    unseen: Annotated[bool, Meta(description="Approve also what was not shown to you.", extra_json_schema=_PERSONS)] = (
        False
    )
    for_session: Annotated[
        bool, Meta(description="The same acts, as long as its session lasts.", extra_json_schema=_PERSONS)
    ] = False
    pattern: Annotated[
        p.GlobText | None,
        Meta(description="The same acts on what this glob names; default: on its paths.", extra_json_schema=_PERSONS),
    ] = None
    ttl_s: Annotated[
        Annotated[int, Meta(ge=1, le=30 * 86_400)] | None,
        Meta(description="For so many seconds; default 28800 (8 hours).", extra_json_schema=_PERSONS),
    ] = None


class Deny(p.Approving, frozen=True):
    approval: ApprovalText
    reason: p.Reason = ""


class ApprovalInfo(r.Result, frozen=True, kw_only=True):
    """A change that a person was asked about. A list has its first paths and no diff, `approvals_show` the whole.

    `diff` shows every file: git's patch, and in rows beginning with `# ` sizes, hashes and modes. A long one comes in
    pages, to be joined: `cursor` goes on. Who was shown all of them may approve.
    """

    approval: str
    state: ApprovalState
    operation: str
    paths: tuple[str, ...] = ()
    path_count: int
    command: str = ""  # that would be run, as a shell would read it; `diff` shows its words one by one
    agent: str | None = None
    session: str | None = None
    since: int
    expires_at: int
    rule: str = ""
    reason: str = ""
    diff: str | None = None
    cursor: str | None = None
    digest: str | None = None  # of all that the yes would be for
    shown_whole: bool = False  # with this page, all of it was shown to the caller
    unkept: tuple[str, ...] = ()  # paths on this page whose contents can't be shown, as they are kept no more
    changed_since: tuple[str, ...] = ()  # of `paths`, those that others changed after the request
    beside: tuple[str, ...] = ()  # others that wait for one of its files; after a yes to one they are asked anew
    by: str | None = None  # who answered it
    via: str | None = None  # in the form of this agent's client


class Approvals(r.Result, frozen=True, kw_only=True):
    approvals: tuple[ApprovalInfo, ...] = ()  # oldest first
    total: int = 0
    cursor: str | None = None


APPROVALS_LIST = OperatorOperation(
    "approvals_list",
    ApprovalsList,
    Approvals,
    "Changes that wait for a yes, without diffs. A reviewer is shown those that it may answer.",
    reviewers=True,
)

APPROVALS_SHOW = OperatorOperation(
    "approvals_show", ApprovalsShow, ApprovalInfo, "One approval, whole, in pages.", reviewers=True
)

APPROVE = OperatorOperation(
    "approve",
    Approve,
    r.ChangeAnswer,
    "Say yes: the daemon applies the change. For people, and reviewers where policy lets them.",
    writes=True,
    reviewers=True,
    command="approvals approve",
)

DENY = OperatorOperation(
    "deny",
    Deny,
    r.Done,
    "Say no: the change is dropped. For people, and reviewers where policy lets them.",
    writes=True,
    reviewers=True,
    command="approvals deny",
)


TokenLife = Annotated[
    int, Meta(description="So many seconds the token is good; 0: until it is revoked.", ge=0, le=p.FAR)
]


class AgentAdd(p.Approving, frozen=True):
    name: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,63}$",
            extra={**p.GIVEN, p.FORM: "letters, digits and . _ : @ -, at most 64, the first a letter or digit"},
        ),
    ]
    agent_class: Literal["cloud", "local", "review"] = msgspec.field(default="cloud", name="class")
    read_only: Annotated[bool, Meta(description="Its token is for reading: it can change nothing.")] = False
    expires_s: TokenLife = 0


class AgentRotate(p.Approving, frozen=True):
    name: p.Name
    grace_s: Annotated[int, Meta(description="So long the token before it is good, too.", ge=0, le=7 * 86_400)] = 0
    expires_s: TokenLife = 0


class AgentRevoke(p.Approving, frozen=True):
    name: p.Name


class AgentLine(r.Result, frozen=True, kw_only=True):
    name: str
    agent_class: str
    token: Literal["yes", "asserted", "revoked", "expired"]
    read_only: bool = False
    expires_at: int | None = None


class Agents(r.Result, frozen=True, kw_only=True):
    agents: tuple[AgentLine, ...] = ()


class AgentToken(r.Result, frozen=True, kw_only=True):
    name: str
    agent_class: str
    token: str  # shown once
    read_only: bool = False
    expires_at: int | None = None


AGENT_ADD = OperatorOperation("agent_add", AgentAdd, AgentToken, "Make an agent and show its token once.", writes=True)

AGENT_ROTATE = OperatorOperation(
    "agent_rotate", AgentRotate, AgentToken, "Give an agent a new token, and show it once.", writes=True
)

AGENT_REVOKE = OperatorOperation("agent_revoke", AgentRevoke, r.Done, "Take an agent's token away.", writes=True)

AGENT_LIST = OperatorOperation("agent_list", p.Params, Agents, "The agents that may call.")


class ApproverCode(r.Result, frozen=True, kw_only=True):
    approver_code: str | None = None  # null: there is one already, and it is never shown again


APPROVER_CREATE = OperatorOperation(
    "approver_create",
    p.Params,
    ApproverCode,
    "Make the approver code, once.",
    writes=True,
    command="",
)


APPROVER_OPEN = OperatorOperation(
    "approver_open",
    p.Approving,
    r.Done,
    "Give the approver code once for this connection: its further calls need none.",
    writes=True,
    command="",
)


class ApproverReset(p.Approving, frozen=True):
    new_code: Annotated[
        Annotated[str, Meta(max_length=500)] | None, Meta(description="One of your own; default: a random one.")
    ] = None


APPROVER_RESET = OperatorOperation(
    "approver_reset", ApproverReset, ApproverCode, "Replace the approver code.", writes=True
)
