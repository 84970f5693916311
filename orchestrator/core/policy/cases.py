"""A table of cases that a team keeps beside its policy: who does what where, and the verdict that is expected."""

from __future__ import annotations

import shlex
import tomllib
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from orchestrator.core.commands import CommandLine, Mode, in_modes
from orchestrator.core.errors import CallerError, PathError
from orchestrator.core.events.sessions import AgentClass
from orchestrator.core.paths import parse_path
from orchestrator.core.policy.evaluate import evaluate
from orchestrator.core.policy.rules import STRICTNESS, Action, Answer, Policy, Request, Verdict
from orchestrator.core.policy.tables import Problem, TableReader, known_one


class CasesInvalid(CallerError, code="cases_invalid", hint="policies/README.md shows what a case holds."):
    """A table of cases can't be used."""


def _path_problem(text: str) -> str | None:
    try:
        parse_path(text, directory=True)
    except PathError as error:
        return error.message
    return None


def _command_problem(text: str) -> str | None:
    try:
        return None if shlex.split(text) else "has no words"
    except ValueError as error:
        return f"is no command: {str(error).lower()}"


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
    command: Annotated[str, Meta(extra={"check": _command_problem})] = ""  # of a run, in words as a shell splits them
    mode: Mode | None = None  # of a command; left out: the one that run_command chooses
    rule: str = ""  # the one that is to decide

    def verdict(self, policy: Policy) -> Verdict:
        """What a policy says."""
        if not self.command:
            return evaluate(policy, self._request(None))
        cwd, argv = parse_path(self.path, directory=True), tuple(shlex.split(self.command))
        line = CommandLine(argv, cwd, policy.commands.default_mode)
        verdicts = [evaluate(policy, self._request(each)) for each in in_modes(line, self.mode)]
        return max(verdicts, key=lambda verdict: STRICTNESS[verdict.answer])

    def _request(self, command: CommandLine | None) -> Request:
        named, _, of = self.agent.partition("class:")
        kind = self.agent_class or msgspec.convert(of or "cloud", AgentClass)
        return Request(
            agent=named or "somebody",
            agent_class=kind,
            action=self.action,
            path=parse_path(self.path, directory=True),
            directory=self.action == "run",
            others_work=self.action in ("revert", "delete", "move") and self.work == "others",
            size=self.size,
            task=self.task,
            tags=self.tags,
            command=command,
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
            verdict = case.verdict(policy)
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
    tables = tuple(reader.tables(Case, whole, "case"))
    for at, case in tables:
        if case.command and case.action != "run":
            reader.wrong('goes with action = "run"', "case", at, "command")
        if case.mode is not None and not case.command:
            reader.wrong("goes with a command", "case", at, "mode")
    cases = tuple((reader.line("case", at), case) for at, case in tables)
    if not cases and not reader.problems:
        reader.problems.append(Problem(1, "there is no [[case]]"))
    if file is None or reader.problems:
        problems = sorted(reader.problems, key=lambda problem: problem.line)
        said = "; ".join(f"line {p.line}: {p.key + ': ' if p.key else ''}{p.message}" for p in problems)
        raise CasesInvalid(f"{source}: {said}")
    return Cases(file.policy, cases)
