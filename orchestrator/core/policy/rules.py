"""A policy as data: rules, limits, leases; a request for permission, and its verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta

from orchestrator.core.content import Rung
from orchestrator.core.events.sessions import AgentClass
from orchestrator.core.ids import Checksum, WorkspacePath
from orchestrator.core.policy.conflict_routes import (
    Agents,
    Checks,
    Conflicts,
    Globs,
    Name,
    Plugins,
    ReviewerSettings,
    Route,
)
from orchestrator.core.three_way import AUTOMATIC_RULES, AutomaticRule

Action = Literal["list", "read", "search", "write", "create", "delete", "move", "run", "revert", "review", "approve"]
Answer = Literal["allow", "ask", "deny"]
Work = Literal["own", "others", "any"]
OnLeaseOverlap = Literal["warn", "deny", "queue", "merge"]
OnStale = Literal["allow", "review", "ask"]

ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
CHANGES: Final[tuple[Action, ...]] = ("write", "create", "delete", "move", "revert")
"""The actions that alter a file or a name."""

DEFAULT_RULE: Final = "default"
"""The rule that a verdict names when no rule matched."""

BUILT_IN: Final = "builtin."
"""What the names of built-in rules begin with; no file may use it."""


class Allow(msgspec.Struct, frozen=True, tag="allow"):
    """Go ahead."""

    rule: str


class NeedApproval(msgspec.Struct, frozen=True, tag="ask"):
    """A person decides."""

    rule: str
    reason: str


class Deny(msgspec.Struct, frozen=True, tag="deny"):
    """No."""

    rule: str
    reason: str


Verdict: TypeAlias = Allow | NeedApproval | Deny


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule: who, doing what, where; and the answer.

    `agents`: names, `class:…` or `*`. `paths`: gitignore-style globs, `!` for exceptions.
    `work` narrows a rule on reverts to changes of the agent itself or of others.
    """

    name: Name
    agents: Agents
    actions: Annotated[tuple[Action, ...], Meta(min_length=1)]
    paths: Globs
    verdict: Answer
    reason: str = ""
    work: Work = "any"


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers that a policy sets."""

    approval_ttl_s: Annotated[int, Meta(ge=1, le=30 * 86_400)] = 86_400  # how long an approval waits before it lapses


class LeaseRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What becomes of a change to a path that another agent holds alone, and how long anybody may hold one.

    warn: it is applied, and says so. deny: it is refused. queue: it waits for the lease's end, then is
    refused. merge: it is applied as if nobody held the path; the journal notes the lease.
    """

    on_overlap: OnLeaseOverlap = "warn"
    max_ttl_s: Annotated[int, Meta(ge=1, le=30 * 86_400)] = 86_400  # a longer lease is cut to this
    max_wait_s: Annotated[int, Meta(ge=0, le=50)] = 25  # with queue; MCP clients give up on a call after a minute


class External(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of external changes."""

    # Contents up to this size become blobs; a read or a change keeps any.
    keep_max_bytes: Annotated[int, Meta(ge=0, le=50 * 1024 * 1024)] = 1024 * 1024


class EditRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an edit may come to fit, and how far it may be brought onto what others did meanwhile."""

    fuzzy: bool = True  # whether a passage may be quoted with other typography, where the call does not say
    lowest_rung: Rung = "merged"  # what fits by a lower one waits for a person's yes
    merge_rules: tuple[AutomaticRule, ...] = AUTOMATIC_RULES  # may merge what git calls a conflict; none: nothing may
    stale_reads: OnStale = "allow"  # a change whose author read lines that others changed since; ask: a person


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, cache_hash=True):
    """A whole policy. Rules have no order: deny beats ask beats allow."""

    name: str
    default: Answer
    rules: tuple[Rule, ...]
    limits: Limits = Limits()
    leases: LeaseRules = LeaseRules()
    external: External = External()
    edits: EditRules = EditRules()
    routes: tuple[Route, ...] = ()  # in the file's order; the first that matches decides
    conflicts: Conflicts = Conflicts()
    checks: Checks = Checks()
    reviewers: tuple[ReviewerSettings, ...] = ()
    plugins: Plugins = Plugins()
    digest: Checksum  # of the text it was read from
    source: str  # the file, as messages name it
    own_state: tuple[WorkspacePath, ...] = ()  # the daemon's own files, where the workspace holds them

    def guarding(self, paths: Iterable[WorkspacePath]) -> Policy:
        """The same policy, with the daemon's own files (and all under them) closed to everyone."""
        return msgspec.structs.replace(self, own_state=tuple(sorted({*self.own_state, *paths})))


class Request(msgspec.Struct, frozen=True):
    """May this agent do this here?

    `directory`: the path is known to be one; False is "a file, or not known". `others_work`:
    a revert that touches changes of other agents. The last two are what the disk says of the
    path and each directory above it, compared by (device, inode): whatever its name, it is
    the daemon's own file, or a repository's `.git`.
    """

    agent: str
    agent_class: AgentClass
    action: Action
    path: WorkspacePath
    others_work: bool = False
    directory: bool = False
    is_own_state: bool = False
    is_git: bool = False
