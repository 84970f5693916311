"""A policy as data: rules, limits, leases; which reviewers a conflict is put to; enabled plugins.

A request for permission, and its verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta

from orchestrator.core.commands import CommandLine, Mode, command_problem
from orchestrator.core.content import AUTOMATIC_RULES, AutomaticRule, Rung
from orchestrator.core.events.sessions import AgentClass
from orchestrator.core.ids import Checksum, Seq, WorkspacePath
from orchestrator.core.paths import tag_problem
from orchestrator.core.policy.profiles import OnLeaseOverlap, Profile
from orchestrator.core.policy.tables import Agents, Name, argument_problem, glob_problem, line_problem, name_problem

PERSON: Final = "person"
"""In a chain of reviewers: nobody is asked any more; a person resolves it."""

Globs = Annotated[tuple[str, ...], Meta(min_length=1, extra={"each": glob_problem})]
Arguments = Annotated[tuple[str, ...], Meta(min_length=1, extra={"each": argument_problem})]
Line = Annotated[str, Meta(extra={"check": line_problem})]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_OWN = "ORCHESTRATOR_"


def variable_problem(name: str) -> str | None:
    """What is wrong with the name of a variable that is handed on."""
    if not _VARIABLE.match(name):
        return "is the name of a variable, not its value"
    return f"{_OWN}… variables are the orchestrator's own and are handed to nobody" if name.startswith(_OWN) else None


Variables = Annotated[tuple[str, ...], Meta(extra={"each": variable_problem})]
CommandPatterns = Annotated[tuple[str, ...], Meta(extra={"each": command_problem})]
Tokens = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Usd = Annotated[float, Meta(ge=0, le=1000)]
Timeout = Annotated[float, Meta(gt=0, le=3600)]

Action = Literal["list", "read", "search", "write", "create", "delete", "move", "run", "revert", "review", "approve"]
Answer = Literal["allow", "ask", "deny"]
Work = Literal["own", "others", "any"]
OnStale = Literal["allow", "review", "ask"]

ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
CHANGES: Final[tuple[Action, ...]] = ("write", "create", "delete", "move", "revert")
"""The actions that alter a file or a name."""

STRICTNESS: Final[Mapping[Answer, int]] = {"deny": 0, "ask": 1, "allow": 2}
"""The strictest first: what it says beats what those after it say."""

BY_WORK: Final[tuple[Action, ...]] = ("revert", "delete", "move")
"""The actions of which a rule may say whose work it is about."""

BY_SIZE: Final[tuple[Action, ...]] = ("read", "search", "write", "create", "delete", "move")
"""The actions on a file, or a content, that has a size."""

BY_COMMAND: Final[tuple[Action, ...]] = ("run",)
"""The actions of which a rule may say which commands, in which mode."""

DEFAULT_RULE: Final = "default"
"""The rule that a verdict names when no rule matched."""

BUILT_IN: Final = "builtin."
"""What the names of built-in rules begin with; no file may use it."""

APPROVERS: Final = f"{BUILT_IN}approvers"
"""The rule by which other agents approve nothing."""


WORKSPACE: Final = "workspace."
"""What the names of rules from the workspace's own file begin with; no file may use it itself."""

WORKSPACE_FILE: Final = ".orchestrator/policy.toml"
"""In the workspace; it can only tighten, and holds once a person said yes to it."""


class Allow(msgspec.Struct, frozen=True, tag="allow"):
    """Go ahead."""

    answer: ClassVar[Answer] = "allow"
    rule: str
    grant: Seq | None = None  # a person's, where the policy asks


class NeedApproval(msgspec.Struct, frozen=True, tag="ask"):
    """A person decides."""

    answer: ClassVar[Answer] = "ask"
    rule: str
    reason: str


class Deny(msgspec.Struct, frozen=True, tag="deny"):
    """No."""

    answer: ClassVar[Answer] = "deny"
    rule: str
    reason: str


Verdict: TypeAlias = Allow | NeedApproval | Deny


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule: who, doing what, where; and the answer.

    `agents`: names, `class:…` or `*`. `paths`: gitignore-style globs, `!` for exceptions.
    `work` narrows a rule to what the agent itself did, or to what others did: of a revert the changes that it
    undoes; of a delete or move the file, which is its own if it made it and nobody else changed it since.
    `max_bytes`: up to this size an allow rule holds, and above it one that asks or denies. `task`: it holds only
    while the caller's task has such a title. `tags`: it holds for files on which one of these was set.
    `commands`, `modes`: of the action run, the commands and modes that it is about. One that allows commands by
    their names beats one that asks about whatever is run.
    """

    name: Name
    agents: Agents
    actions: Annotated[tuple[Action, ...], Meta(min_length=1)]
    paths: Globs
    verdict: Answer
    reason: Line = ""
    work: Work = "any"
    max_bytes: Annotated[int, Meta(ge=0, le=1 << 40)] | None = None
    task: Line = ""
    tags: Annotated[tuple[str, ...], Meta(extra={"each": tag_problem})] = ()
    commands: CommandPatterns = ()
    modes: tuple[Mode, ...] = ()

    @property
    def is_narrowed(self) -> bool:
        """Whether it does not hold for all files that it names, or not at all times."""
        return self.max_bytes is not None or bool(self.task or self.tags)


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers that a policy sets."""

    approval_ttl_s: Annotated[int, Meta(ge=1, le=30 * 86_400)] = 86_400  # how long an approval waits before it expires
    granted_read_s: Annotated[int, Meta(ge=1, le=30 * 86_400)] = 3600  # how long a granted read may be done
    in_memory_bytes: Annotated[int, Meta(ge=1 << 18, le=1 << 29)] = 50 * 1024 * 1024  # larger files are read by pieces
    change_bytes: Annotated[int, Meta(ge=1 << 18, le=1 << 40)] = 1 << 30  # the largest file that is changed or hashed


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
    # Of all contents that the scan keeps though nobody asked for them; the smaller of the two holds.
    keep_total_bytes: Annotated[int, Meta(ge=0, le=2**50)] = 1024 * 1024 * 1024
    keep_percent: Annotated[int, Meta(ge=0, le=100)] = 50  # of the workspace's bytes, beyond the first 100 MiB


class EditRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an edit may come to fit, and how far it may be brought onto what others did meanwhile."""

    fuzzy: bool = True  # whether a passage may be quoted with other typography, where the call does not say
    lowest_rung: Rung = "merged"  # what fits by a lower one waits for a person's yes
    merge_rules: tuple[AutomaticRule, ...] = AUTOMATIC_RULES  # may merge what git calls a conflict; none: nothing may
    stale_reads: OnStale = "allow"  # a change whose author read lines that others changed since; ask: a person
    secrets: Literal["warn", "ask"] = "warn"  # a change that brings what has the form of a secret


def folder_problem(path: str) -> str | None:
    """What is wrong with the path of a folder of the operator's."""
    plain = path.startswith("/") and path.isprintable() and ".." not in path.split("/")
    return None if plain else "is an absolute path without '..'"


Folder = Annotated[str, Meta(extra={"check": folder_problem})]


class TokenRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the tokens of a file are counted where an answer states them. Budgets go by the estimate."""

    vocabulary: Folder = ""  # with a tiktoken vocabulary; nothing is downloaded


class SemanticRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What makes the vectors of a search by meaning: a model in a folder or, without one, a service. Neither: off."""

    model: Folder = ""  # with a model2vec model; nothing is downloaded
    base_url: Line = ""  # of an OpenAI-compatible service; it is sent what policy lets class:cloud search and read
    service_model: Line = ""  # as the service names it
    api_key_env: Annotated[str, Meta(extra={"check": variable_problem})] = ""  # the variable with the service's key
    timeout_s: Timeout = 30.0  # of one try of the service
    max_chunks: Annotated[int, Meta(ge=1, le=2_000_000)] = 200_000  # passages; files beyond are left out

    @property
    def on(self) -> bool:
        """Whether it names a model."""
        return bool(self.model or self.base_url)


# --- conflicts, their reviewers, and plugins ----------------------------------------------


class HumanSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="human"
):
    """A `[[reviewer]]` that nobody calls."""

    name: Name


class ProgramSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="program"
):
    """A `[[reviewer]]` that is a program, started for each review. A limit of 0 is none."""

    name: Name
    argv: Arguments
    env: Variables = ()  # names of variables that `up` passes on for the program; the daemon has none of them
    model: Line = ""  # that it asks, for the record of each request; its answer says which it was
    timeout_s: Timeout = 120.0  # for one review, its repair included
    max_concurrent: Annotated[int, Meta(ge=1, le=64)] = 2
    max_tokens: Tokens = 0  # of one review, as the reviewer says
    max_cost_usd: Usd = 0.0
    max_tokens_per_hour: Tokens = 0
    max_cost_usd_per_hour: Usd = 0.0


ReviewerSettings = ProgramSettings | HumanSettings


class Plugins(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The plugins that the operator named; no other is even imported."""

    enabled: Annotated[tuple[str, ...], Meta(extra={"each": name_problem})] = ()
    env: Variables = ()  # names of variables that `up` passes to the daemon for them
    timeout_s: Timeout = 5.0  # for one call of one hook, and for its import


class Route(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conflicts of this kind go to these reviewers, one after the other; the first route that matches decides.

    What is left out matches all. `same_symbol = true` also takes changes that would apply, but touch
    a symbol that somebody else changed since their base: they wait as conflicts then.
    """

    reviewers: Annotated[tuple[str, ...], Meta(min_length=1, extra={"each": name_problem})]
    name: Line = ""
    paths: Globs = ("**",)
    agents: Agents = ("*",)
    max_lines: Annotated[int, Meta(ge=1, le=999_999)] | None = None  # of the longest side of all regions together
    same_symbol: bool | None = None
    deadline_s: Annotated[int, Meta(ge=1, le=86_400)] = 300  # for each reviewer
    accept: Literal["auto", "person"] = "person"  # who says yes to a proposal that passed the checks


class Conflicts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What becomes of a conflict that nobody resolves."""

    expire_after_s: Annotated[int, Meta(ge=0, le=365 * 86_400)] = 0  # 0: never


class CommandRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How commands are run that agents start through us."""

    default_mode: Mode = "in_place"  # tried first, where a call names none
    env: Variables = ("CI", "COLUMNS", "FORCE_COLOR", "LANG", "LC_ALL", "NO_COLOR", "TZ")  # names that a call may set
    timeout_s: Annotated[int, Meta(ge=1, le=3600)] = 3600  # the longest that a call may ask for
    output_bytes: Annotated[int, Meta(ge=4096, le=256 * 1024 * 1024)] = 10 * 1024 * 1024  # kept; more: its two ends
    processes: Annotated[int, Meta(ge=1, le=65_536)] = 256  # at once, of one command
    network: Literal["on", "off"] = "on"


class JournalRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events an agent is shown besides those of its session: of its other ones, or of everybody."""

    shows: Literal["session", "agent", "everybody"] = "session"


class Checks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a reviewer's proposal must pass before it counts, besides parsing.

    The command runs in a scratch folder that holds the file, or the tree, as it would be; exit code 0 passes.
    """

    command: Annotated[
        tuple[str, ...], Meta(extra={"each": argument_problem})
    ] = ()  # program and arguments; {path} is the file's path in the folder
    timeout_s: Annotated[int, Meta(ge=1, le=3600)] = 60
    scope: Literal["file", "tree"] = "tree"


# --- the whole ----------------------------------------------------------------------------


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, cache_hash=True):
    """A whole policy. Rules have no order: deny beats ask beats allow."""

    name: str
    default: Answer
    rules: tuple[Rule, ...]
    limits: Limits = Limits()
    leases: LeaseRules = LeaseRules()
    external: External = External()
    edits: EditRules = EditRules()
    tokens: TokenRules = TokenRules()
    semantic: SemanticRules = SemanticRules()
    routes: tuple[Route, ...] = ()  # in the file's order; the first that matches decides
    conflicts: Conflicts = Conflicts()
    journal: JournalRules = JournalRules()
    commands: CommandRules = CommandRules()
    checks: Checks = Checks()
    reviewers: tuple[ReviewerSettings, ...] = ()
    plugins: Plugins = Plugins()
    profiles: tuple[Profile, ...] = ()
    digest: Checksum  # of the texts it was read from
    source: str  # the last of its files, as messages name it
    extends: str = ""  # the shipped policy whose rules hold too
    sources: tuple[tuple[str, str], ...] = ()  # of each rule its name and its file
    own_state: tuple[WorkspacePath, ...] = ()  # the daemon's own files, where the workspace holds them

    @property
    def tags(self) -> frozenset[str]:
        """Those that some rule goes by."""
        return frozenset(tag for rule in self.rules for tag in rule.tags)

    def source_of(self, rule: str) -> str:
        """The file that a rule is written in, by the rule's name."""
        return "built in" if rule.startswith(BUILT_IN) else dict(self.sources).get(rule, self.source)

    def guarding(self, paths: Iterable[WorkspacePath]) -> Policy:
        """The same policy, with the daemon's own files (and all under them) closed to everyone."""
        return msgspec.structs.replace(self, own_state=tuple(sorted({*self.own_state, *paths})))


class Request(msgspec.Struct, frozen=True):
    """May this agent do this here?

    `directory`: the path is known to be one; False is "a file, or not known". `others_work`:
    a revert that touches changes of other agents, or a delete or move of a file that others made or changed.
    `size`: of the file, or of the content that is to be there; None: not known. `task`: the title of the one that
    the agent's session works on. `tags`: those that were set on the path. `is_git`: the path, or a
    directory above it, is a repository's `.git` by (device, inode), whatever its name. `command`: of a run, which
    begins in `path`.
    """

    agent: str
    agent_class: AgentClass
    action: Action
    path: WorkspacePath
    others_work: bool = False
    directory: bool = False
    is_git: bool = False
    size: int | None = None
    task: str = ""
    tags: tuple[str, ...] = ()
    command: CommandLine | None = None
