"""What people ask of policies: what is wrong with a file, what holds now, and why it allows, asks or denies."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.commands import MOST_ARGUMENTS, Words
from orchestrator.api.operation import OperatorOperation
from orchestrator.core import errors as e
from orchestrator.core.commands import Mode
from orchestrator.core.events.policies import Layer
from orchestrator.core.policy.rules import Action, Answer
from orchestrator.core.policy.tables import Problem


class PolicyCheck(p.Params, frozen=True):
    text: p.Content
    source: p.AnyPath = "policy.toml"


class PolicyExplain(p.Params, frozen=True):
    action: Action
    path: p.PathText
    agent: Annotated[p.Name, Meta(description="Who would do it, or class:NAME; without one, the caller.")] = ""
    argv: Annotated[
        Words, Meta(description="With run: program and arguments; `path` is its directory.", max_length=MOST_ARGUMENTS)
    ] = ()
    mode: Annotated[Mode | None, Meta(description="Of the command; without one, as run_command chooses.")] = None


class PolicySimulate(p.Params, frozen=True):
    text: p.Content
    source: p.AnyPath = "policy.toml"
    since: Annotated[p.Version | None, Meta(description=f"From here on: {p.MOMENT}.")] = None
    limit: Annotated[int, Meta(description="Most acts that are named.", ge=1, le=500)] = 50


class PolicyApprove(p.Approving, frozen=True):
    digest: Annotated[
        str,
        Meta(
            pattern=r"^sha256:[0-9a-f]{64}$",
            description="Of the file as it was looked at.",
            extra={**p.GIVEN, p.FORM: "sha256: and 64 hex digits, as `orchestrator policy show` says it"},
        ),
    ]


class PolicyReport(r.Result, frozen=True, kw_only=True):
    source: str
    ok: bool = False
    problems: tuple[Problem, ...] = ()
    advice: tuple[Problem, ...] = ()  # of a file that can be used: what it opens, what names nothing
    rules: int = 0  # those of a shipped policy that it extends included


class FailedCase(r.Result, frozen=True, kw_only=True):
    """A case whose verdict is not the expected one, or comes of another rule."""

    line: int  # in the file of cases
    agent: str
    action: Action
    path: str
    command: str = ""
    expect: Answer
    expected_rule: str = ""  # that was to decide; "": any
    verdict: Answer
    rule: str  # that decided; "default": none matched
    source: str = ""


class PolicyTested(r.Result, frozen=True, kw_only=True):
    """What a policy says of a table of cases."""

    source: str
    ok: bool = False
    cases: int = 0
    failed: tuple[FailedCase, ...] = ()


class VerdictCount(r.Result, frozen=True, kw_only=True):
    """How many acts the policy that holds answers with `old`, and the other with `new`."""

    old: Answer
    new: Answer
    acts: int


class SimulatedAct(r.Result, frozen=True, kw_only=True):
    """An act that the other policy answers otherwise."""

    old: Answer
    new: Answer
    agent: str
    action: Action
    path: str
    command: str = ""  # of a run
    first: str  # the event at which it was first tried
    times: int
    rule: str  # of the other policy: the one that decides
    source: str = ""


class SimulationAnswer(r.Result, frozen=True, kw_only=True):
    """What would have been answered otherwise."""

    source: str
    events: int = 0
    acts: int = 0
    counts: tuple[VerdictCount, ...] = ()  # those that stay included
    changed: tuple[SimulatedAct, ...] = ()  # the earliest first, each agent's act on a path once
    total: int = 0  # of `changed`, where not all are named
    note: str = ""  # where nothing was judged


class RuleLine(r.Result, frozen=True, kw_only=True):
    """One rule that holds, and where it is written."""

    name: str
    source: str
    verdict: Answer
    agents: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    reason: str = ""


class ProfileLine(r.Result, frozen=True, kw_only=True):
    """What agents of one kind may take; of several about one agent a single one holds, as `policy explain` says."""

    name: str
    agents: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()  # each as in a file: "max_read_lines = 400"


class FileLine(r.Result, frozen=True, kw_only=True):
    """One file that holds, in the content with this digest."""

    layer: Layer
    source: str
    digest: str


class PolicyShow(p.Params, frozen=True):
    at: Annotated[p.Version | None, Meta(description="'@N': the rules that held after this event; default: now.")] = (
        None
    )


class PolicyInfo(r.Result, frozen=True, kw_only=True):
    name: str
    source: str
    digest: str
    default: Answer  # where no rule matches
    extends: str = ""
    files: tuple[FileLine, ...] = ()  # each laid over those before it; the workspace's own only tightens
    notes: tuple[str, ...] = ()  # files that are not used, and what waits for a yes
    diff: str = ""  # from the workspace's file that a person said yes to, to the whole of the one that waits
    rules: tuple[RuleLine, ...] = ()
    profiles: tuple[ProfileLine, ...] = ()


class ConsideredRule(r.Result, frozen=True, kw_only=True):
    """A rule about this agent and this action, and whether it names the path."""

    name: str
    source: str
    verdict: Answer
    matches: bool = False
    decides: bool = False


class Explanation(r.Result, frozen=True, kw_only=True):
    agent: str
    agent_class: str
    action: str
    path: str
    command: str = ""  # of a run, as a shell would read it
    mode: Mode | None = None  # that it was judged in
    verdict: Answer
    rule: str  # "default": none matched
    source: str = ""  # the file that this rule is in, or "built in"
    reason: str = ""
    profile: str = ""  # the one whose limits hold for this agent
    notes: tuple[str, ...] = ()  # that the name is nobody's, that a broken file is not used
    considered: tuple[ConsideredRule, ...] = ()  # the strictest first; of these the first that matches decides


POLICY_CHECK = OperatorOperation("policy_check", PolicyCheck, PolicyReport, "Check the text of a policy file.")

POLICY_SHOW = OperatorOperation(
    "policy_show",
    PolicyShow,
    PolicyInfo,
    "The rules that hold now, or held at an earlier time, each with its file.",
    raises=(e.VersionUnknown,),
)

POLICY_EXPLAIN = OperatorOperation(
    "policy_explain",
    PolicyExplain,
    Explanation,
    "Why an agent may do this to a path, or run this, or not: every rule about it, and the one that decides.",
    raises=(e.PathError, e.FileNotFound, e.ParameterInvalid),
)

POLICY_SIMULATE = OperatorOperation(
    "policy_simulate",
    PolicySimulate,
    SimulationAnswer,
    "Judge past events by another policy: what it would have answered otherwise.",
    raises=(e.PolicyInvalid,),
)

POLICY_APPROVE = OperatorOperation(
    "policy_approve",
    PolicyApprove,
    r.Done,
    "Say yes to the workspace's own policy file, as `policy show` shows it.",
    raises=(e.PolicyChanged,),
    writes=True,
)

POLICY_RELOAD = OperatorOperation(
    "policy_reload", p.Approving, PolicyReport, "Read the policy file again.", writes=True
)
