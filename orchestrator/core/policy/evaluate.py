"""May this agent do this here?

For a move, ask `move` on the source and `create` on the resulting path; for a directory, both of
every path in it too, since a name below it may be protected where it comes to lie. For
`create_directory` ask `create` on the directory. Whether anything is at a path plays no part.
"""

from __future__ import annotations

from functools import lru_cache
from typing import assert_never

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.match import Matcher
from orchestrator.core.policy.protected import GIT, STATE_REASON, built_in, own_state
from orchestrator.core.policy.rules import (
    BUILT_IN,
    CHANGES,
    DEFAULT_RULE,
    Allow,
    Answer,
    Deny,
    NeedApproval,
    Policy,
    Request,
    Rule,
    Verdict,
)

REMEMBERED = 50_000
"""Paths whose rules are known; of a larger tree they are found anew."""

_STATE = Deny(own_state(()).name, STATE_REASON)
_GIT = Deny(GIT.name, GIT.reason)


def evaluate(policy: Policy, request: Request) -> Verdict:
    """The verdict, with the rule that gave it.

    Deny beats ask beats allow; nothing matches: the policy's default. Of several rules with
    the winning answer a built-in one is named, else the first by name, so that the order of
    the file changes nothing. Cost: a few µs; siblings share the work for their directory, and
    what was asked of a path before costs one look into a table, which its policy owns.
    """
    return _evaluation_of(policy).verdict(request)


def hidden_from_all(policy: Policy, path: WorkspacePath) -> bool:
    """Whether nobody may read or search a path, not even with a person's yes."""
    return _evaluation_of(policy).hidden_from_all(path)


class _Evaluation:
    """A policy made ready."""

    def __init__(self, policy: Policy) -> None:
        strictness: dict[Answer, int] = {"deny": 0, "ask": 1, "allow": 2}
        self._rules = tuple(
            sorted(
                (*built_in(policy.own_state), *policy.rules),
                key=lambda rule: (strictness[rule.verdict], not rule.name.startswith(BUILT_IN), rule.name),
            )
        )
        self._matcher = Matcher(self._rules)
        self._default = _answer(policy.default, DEFAULT_RULE, f"no rule of {policy.name} matches")
        self._applying: dict[tuple[str, str, str, bool], int] = {}
        self._matching: dict[tuple[WorkspacePath, bool], int] = {}
        self._shown = {action: self._bits(action) for action in ("read", "search")}
        self._shown_by_default = policy.default != "deny"
        self._verdicts = [_answer(rule.verdict, rule.name, rule.reason) for rule in self._rules]

    def verdict(self, request: Request) -> Verdict:
        if request.is_own_state:
            return _STATE
        if request.is_git and request.action in CHANGES:
            return _GIT
        found = self._found(request)
        if not found:
            return self._default
        return self._verdicts[(found & -found).bit_length() - 1]  # the lowest bit: the strictest rules are first

    def hidden_from_all(self, path: WorkspacePath) -> bool:
        matched = self._matched(path, False)
        return not any(
            not matched & closed and (matched & opened or self._shown_by_default)
            for closed, opened in self._shown.values()
        )

    def _bits(self, action: str) -> tuple[int, int]:
        """The rules that deny an act to everybody, and those that let somebody do it."""
        closed = opened = 0
        for at, rule in enumerate(self._rules):
            if action in rule.actions and rule.verdict != "deny":
                opened |= 1 << at
            elif action in rule.actions and "*" in rule.agents:
                closed |= 1 << at
        return closed, opened

    def _found(self, request: Request) -> int:
        who = (request.agent, request.agent_class, request.action, request.others_work)
        applying = self._applying.get(who)
        if applying is None:
            if len(self._applying) > 10_000:
                self._applying.clear()
            applying = sum(1 << at for at, rule in enumerate(self._rules) if _applies(rule, request))
            self._applying[who] = applying
        return applying and applying & self._matched(request.path, request.directory)

    def _matched(self, path: WorkspacePath, directory: bool) -> int:
        """The rules that name a path, whoever asks; the same for as long as the policy lives."""
        matched = self._matching.get((path, directory))
        if matched is None:
            if len(self._matching) > REMEMBERED:
                self._matching.clear()
            matched = self._matching[path, directory] = self._matcher.matching(path, directory=directory)
        return matched


@lru_cache(maxsize=8)
def _evaluation_of(policy: Policy) -> _Evaluation:
    return _Evaluation(policy)


def _applies(rule: Rule, request: Request) -> bool:
    """Whether a rule speaks of this agent, action and work, wherever it is."""
    if request.action not in rule.actions:
        return False
    if request.action == "revert" and rule.work != "any" and (rule.work == "others") != request.others_work:
        return False
    return any(
        agent == f"class:{request.agent_class}" if agent.startswith("class:") else agent in ("*", request.agent)
        for agent in rule.agents
    )


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
