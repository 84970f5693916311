"""May this agent do this here? What the strictest of the rules says that the path falls under (`matcher.py`).

For a move, ask `move` on the source and `create` on the resulting path; for a directory, both of
every path in it too, since a name below it may be protected where it comes to lie. For
`create_directory` ask `create` on the directory. Whether anything is at a path plays no part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import assert_never

import msgspec

from orchestrator.core.commands import code_words, names_command
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.matcher import REMEMBERED, Matcher
from orchestrator.core.policy.protected import GIT, built_in
from orchestrator.core.policy.rules import (
    APPROVERS,
    BUILT_IN,
    CHANGES,
    DEFAULT_RULE,
    STRICTNESS,
    WORKSPACE,
    Allow,
    Answer,
    Deny,
    NeedApproval,
    Policy,
    Request,
    Rule,
    Verdict,
)
from orchestrator.core.policy.tables import CLIENT, CLIENT_OF_ANY

_GIT = Deny(GIT.name, GIT.reason)


def evaluate(policy: Policy, request: Request) -> Verdict:
    """The verdict, with the rule that gave it.

    Deny beats ask beats allow; nothing matches: the policy's default. Of several rules with
    the winning answer a built-in one is named, else the first by name, so that the order of
    the file changes nothing. Cost: a few µs; siblings share the work for their directory, and
    what was asked of a path before costs one look into a table, which its policy owns.
    """
    return evaluation_of(policy).verdict(request)


class Evaluation:
    """A policy made ready; `evaluation_of` keeps it."""

    def __init__(self, policy: Policy) -> None:
        self._rules = tuple(
            sorted(
                (*built_in(policy.own_state), *policy.rules),
                key=lambda rule: (STRICTNESS[rule.verdict], not rule.name.startswith(BUILT_IN), rule.name),
            )
        )
        self._matcher = Matcher(self._rules)
        # A rule that can only tighten lifts no default: alone it counts where it is at least as strict.
        most = STRICTNESS[policy.default]
        self._tightening = sum(1 << at for at, rule in enumerate(self._rules) if rule.name.startswith(WORKSPACE))
        self._stricter = sum(1 << at for at, rule in enumerate(self._rules) if STRICTNESS[rule.verdict] <= most)
        self._deciding = ~self._tightening
        self._default = _answer(policy.default, DEFAULT_RULE, f"no rule of {policy.name} matches")
        self._sized = sum(1 << at for at, rule in enumerate(self._rules) if rule.max_bytes is not None)
        by_command = sum(1 << at for at, rule in enumerate(self._rules) if "run" in rule.actions)
        tagged = sum(1 << at for at, rule in enumerate(self._rules) if rule.tags)
        self._by_file = self._sized | by_command | tagged
        self._lifting = sum(1 << at for at, rule in enumerate(self._rules) if rule.commands and rule.verdict == "allow")
        self._lifted = sum(1 << at for at, rule in enumerate(self._rules) if _asks_about_any_command(rule))
        self.asks_for_size = self._sized != 0
        """Whether what it says may depend on how large a file is."""
        self.asks_for_task = any(rule.task for rule in self._rules)
        """Whether what it says may depend on what a session works on."""
        self._applying: dict[tuple[str, str, str, bool, str], int] = {}
        self._matching: dict[tuple[WorkspacePath, bool], int] = {}
        self._shown = {action: self._bits(action) for action in ("read", "search")}
        self._shown_by_default = policy.default != "deny"
        self._verdicts = [_answer(rule.verdict, rule.name, rule.reason) for rule in self._rules]

    def verdict(self, request: Request) -> Verdict:
        """As `evaluate`."""
        if request.is_git and request.action in CHANGES:
            return _GIT
        found = self._found(request)
        by_rule = bool(found & self._deciding or found & self._stricter)
        # the lowest bit: the strictest rules are first
        verdict = self._verdicts[(found & -found).bit_length() - 1] if by_rule else self._default
        if request.action == "run" and not by_rule and isinstance(verdict, Allow):
            return NeedApproval(DEFAULT_RULE, "no rule names this command")
        if request.action != "approve":
            return verdict
        if request.agent.startswith(CLIENT):  # a rule that can only tighten has nobody asked
            by_rule = bool(found & self._deciding)
        return _of_approver(request, verdict, by_rule=by_rule)

    def allowing(self, acts: Sequence[Request]) -> Callable[[WorkspacePath], bool | None]:
        """Whether policy allows all of these acts, which differ in their action, on a path; for asking of many paths.

        None: it takes `evaluate` to say, as a rule asks, or looks at the size or the tags.
        """
        known: dict[int, bool | None] = {}

        def allows(path: WorkspacePath) -> bool | None:
            matched = self._matched(path, False)
            if matched not in known:
                requests = [msgspec.structs.replace(act, path=path) for act in acts]
                verdicts = [self.verdict(request) for request in requests]
                by_file = any(self.applying_to(request) & matched & self._by_file for request in requests)
                asks = any(isinstance(verdict, NeedApproval) for verdict in verdicts)
                known[matched] = None if by_file or asks else all(isinstance(one, Allow) for one in verdicts)
            return known[matched]

        return allows

    def naming(self, path: WorkspacePath) -> int:
        """The rules that name a file, as bits: `allowing` says the same of all files that the same rules name."""
        return self._matched(path, False)

    def one_of_each(self, paths: Iterable[WorkspacePath]) -> tuple[WorkspacePath, ...]:
        """Of many files one of each kind: `allowing` says the same of all files of a kind, whoever asks for what."""
        return tuple({self._matcher.matching(path): path for path in paths}.values())

    def considered(self, request: Request) -> tuple[tuple[Rule, bool], ...]:
        """The rules that speak of this agent and this action, the strictest first, and whether each names the path."""
        matched = self._of_file(self.applying_to(request) & self._matched(request.path, request.directory), request)
        return tuple((rule, bool(matched >> at & 1)) for at, rule in enumerate(self._rules) if _applies(rule, request))

    def hidden_from_all(self, path: WorkspacePath) -> bool:
        """Whether nobody may read or search a path, not even with a person's yes."""
        matched = self._matched(path, False)
        return not any(
            not matched & closed and (matched & opened or self._shown_by_default)
            for closed, opened in self._shown.values()
        )

    def _bits(self, action: str) -> tuple[int, int]:
        """The rules that deny an act to everybody, and those that let somebody do it."""
        closed = opened = 0
        for at, rule in enumerate(self._rules):
            if action in rule.actions and rule.verdict != "deny" and not self._tightening >> at & 1:
                opened |= 1 << at
            elif action in rule.actions and "*" in rule.agents and not rule.is_narrowed:
                closed |= 1 << at
        return closed, opened

    def applying_to(self, request: Request) -> int:
        """The rules that speak of this agent, action and work: agents with the same may do it on the same paths."""
        task = request.task if self.asks_for_task else ""
        who = (request.agent, request.agent_class, request.action, request.others_work, task)
        applying = self._applying.get(who)
        if applying is None:
            if len(self._applying) > 10_000:
                self._applying.clear()
            applying = sum(1 << at for at, rule in enumerate(self._rules) if _applies(rule, request))
            self._applying[who] = applying
        return applying

    def _found(self, request: Request) -> int:
        applying = self.applying_to(request)
        found = applying and applying & self._matched(request.path, request.directory)
        return self._of_file(found, request) if found & self._by_file else found

    def _of_file(self, found: int, request: Request) -> int:
        """Without the rules that do not hold for its tags, its size (of one not known, only allow rules hold) or its
        command, and without those that ask about any command where one allows this by its name."""
        for at, rule in enumerate(self._rules):
            if (found & self._by_file) >> at & 1 and not _holds(rule, request):
                found &= ~(1 << at)
        return found & ~self._lifted if found & self._lifting else found

    def _matched(self, path: WorkspacePath, directory: bool) -> int:
        """The rules that name a path, whoever asks; the same for as long as the policy lives."""
        matched = self._matching.get((path, directory))
        if matched is None:
            if len(self._matching) > REMEMBERED:
                self._matching.clear()
            matched = self._matching[path, directory] = self._matcher.matching(path, directory=directory)
        return matched


@lru_cache(maxsize=8)
def evaluation_of(policy: Policy) -> Evaluation:
    """The evaluation that all who ask about a policy share."""
    return Evaluation(policy)


def _applies(rule: Rule, request: Request) -> bool:
    """Whether a rule speaks of this agent, action and work, wherever it is."""
    if request.action not in rule.actions:
        return False
    if rule.work != "any" and (rule.work == "others") != request.others_work:
        return False
    if rule.task and not (request.task and _pattern(rule.task).match(request.task.casefold())):
        return False
    if request.agent.startswith(CLIENT):  # what is for all lets nobody approve there
        named = (request.agent, CLIENT_OF_ANY, *(["*"] if rule.verdict == "deny" else []))
        return not set(named).isdisjoint(rule.agents)
    return any(
        agent == f"class:{request.agent_class}" if agent.startswith("class:") else agent in ("*", request.agent)
        for agent in rule.agents
    )


def _holds(rule: Rule, request: Request) -> bool:
    """Whether a rule that names this agent, act and path holds for this size, these tags and this command."""
    over = rule.max_bytes is not None and request.size is not None and request.size > rule.max_bytes
    of_size = rule.max_bytes is None or over != (rule.verdict == "allow")
    tagged = not rule.tags or not set(rule.tags).isdisjoint(request.tags)
    return of_size and tagged and (request.action != "run" or _is_about(rule, request))


def _is_about(rule: Rule, request: Request) -> bool:
    """Whether a rule about what is run is about this command; none that names no commands allows code in arguments."""
    allowing = rule.verdict == "allow"
    command = request.command
    if command is None:  # which one is not known
        return not rule.commands and not rule.modes
    if rule.modes and command.mode not in rule.modes:
        return False
    if not rule.commands:
        return not (allowing and code_words(command.argv))
    return names_command(rule.commands, command.argv, allowing=allowing)


def _asks_about_any_command(rule: Rule) -> bool:
    """Whether it asks about whatever is run, where no rule knows the command."""
    general = rule.verdict == "ask" and "run" in rule.actions and not rule.commands
    return general and not rule.name.startswith((BUILT_IN, WORKSPACE))


def _of_approver(request: Request, verdict: Verdict, *, by_rule: bool) -> Verdict:
    """May this one say yes here? A person, who has the approver code for it, unless a rule denies it.

    An agent of class review where a rule allows it, never by the policy's default; nobody else. `client:NAME` is the
    person whom that agent's client asks: where a rule lets that one approve, and with `ask` by the approver code.
    """
    if request.agent.startswith(CLIENT):
        return verdict if by_rule or isinstance(verdict, Deny) else Deny(verdict.rule, "no rule has its client asked")
    match request.agent_class:
        case "person":
            return verdict if isinstance(verdict, Deny) and by_rule else Allow(verdict.rule)
        case "review" if not by_rule:
            return Deny(verdict.rule, "no rule lets this agent approve here")
        case "review" if isinstance(verdict, NeedApproval):
            return Deny(verdict.rule, verdict.reason)
        case "review":
            return verdict
        case _:
            return verdict if isinstance(verdict, Deny) else Deny(APPROVERS, "people and agents of class review do")


@lru_cache(maxsize=256)
def _pattern(task: str) -> re.Pattern[str]:
    return re.compile(translate(task.casefold()))


def _answer(answer: Answer, rule: str, reason: str) -> Verdict:
    match answer:
        case "allow":
            return Allow(rule)
        case "ask":
            return NeedApproval(rule, reason or "a person decides this")
        case "deny":
            return Deny(rule, reason or "the policy does not allow this")
        case _:
            assert_never(answer)
