"""A table of cases that a team keeps beside its policy: who does what where, and the verdict that is expected."""

from __future__ import annotations

import tomllib
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from orchestrator.core.errors import CallerError, PathError
from orchestrator.core.events.sessions import AgentClass
from orchestrator.core.paths import parse_path
from orchestrator.core.policy.evaluate import evaluate
from orchestrator.core.policy.rules import Action, Answer, Policy, Request
from orchestrator.core.policy.tables import Problem, TableReader, known_one


class CasesInvalid(CallerError, code="cases_invalid", hint="policies/README.md shows what a case holds."):
    """A table of cases can't be used."""


def _path_problem(text: str) -> str | None:
    try:
        parse_path(text)
    except PathError as error:
        return error.message
    return None


def _agent_problem(text: str) -> str | None:
    if text.startswith("class:"):
        return known_one(text, tuple(f"class:{name}" for name in get_args(AgentClass)))
    return None if text.isprintable() and text and text != "*" else "one agent's name, or class:NAME"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One act, and what policy is to say of it."""

    action: Action
    path: Annotated[str, Meta(extra={"check": _path_problem})]
    expect: Answer
    agent: Annotated[str, Meta(extra={"check": _agent_problem})] = "class:cloud"
    agent_class: AgentClass | None = msgspec.field(name="class", default=None)  # of an agent that has a name
    work: Literal["own", "others"] = "others"  # of a revert the changes, of a delete or move the file
    size: Annotated[int, Meta(ge=0)] | None = None  # in bytes; left out: not known
    task: str = ""  # the title of the one that the agent works on
    tags: tuple[str, ...] = ()  # that were set on the file
    rule: str = ""  # the one that is to decide

    @property
    def request(self) -> Request:
        """The act."""
        named, _, of = self.agent.partition("class:")
        kind = self.agent_class or msgspec.convert(of or "cloud", AgentClass)
        return Request(
            agent=named or "somebody",
            agent_class=kind,
            action=self.action,
            path=parse_path(self.path),
            others_work=self.action in ("revert", "delete", "move") and self.work == "others",
            size=self.size,
            task=self.task,
            tags=self.tags,
        )


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy says of a case."""

    line: int  # in the file of cases
    case: Case
    verdict: Answer
    rule: str

    @property
    def ok(self) -> bool:
        """Whether that is what was expected."""
        return self.verdict == self.case.expect and self.case.rule in ("", self.rule)


class _File(msgspec.Struct, frozen=True):
    policy: str = ""


class Cases(msgspec.Struct, frozen=True):
    """A whole table."""

    policy: str  # the policy file that they are about, relative to their own; "": that which holds
    cases: tuple[tuple[int, Case], ...]  # each with its line

    def tried(self, policy: Policy) -> tuple[CaseResult, ...]:
        """What a policy says of each."""
        results = []
        for line, case in self.cases:
            verdict = evaluate(policy, case.request)
            results.append(CaseResult(line=line, case=case, verdict=verdict.answer, rule=verdict.rule))
        return tuple(results)


def parse_cases(text: str, source: str) -> Cases:
    """Read a table of cases. Raises CasesInvalid with every problem: file, line and key."""
    reader = TableReader(text)
    try:
        whole = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CasesInvalid(f"{source} is not TOML: {error}") from error
    file = reader.table(_File, {key: value for key, value in whole.items() if key != "case"}, known=("case",))
    cases = tuple((reader.line("case", at), case) for at, case in reader.tables(Case, whole, "case"))
    if not cases and not reader.problems:
        reader.problems.append(Problem(1, "there is no [[case]]"))
    if file is None or reader.problems:
        problems = sorted(reader.problems, key=lambda problem: problem.line)
        said = "; ".join(f"line {p.line}: {p.key + ': ' if p.key else ''}{p.message}" for p in problems)
        raise CasesInvalid(f"{source}: {said}")
    return Cases(file.policy, cases)
