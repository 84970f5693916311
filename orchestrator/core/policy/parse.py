"""Policy files: TOML in, a policy or all that is wrong with it out."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from orchestrator.core.content import RUNGS
from orchestrator.core.errors import PolicyInvalid
from orchestrator.core.ids import Checksum
from orchestrator.core.merge_rules import AUTOMATIC_RULES
from orchestrator.core.policy.fields import NAME, Problem, agent_problem, known_one
from orchestrator.core.policy.glob_problems import glob_problem
from orchestrator.core.policy.parse_reviews import ReviewTables
from orchestrator.core.policy.rules import (
    ACTIONS,
    ANSWERS,
    BUILT_IN,
    DEFAULT_RULE,
    ON_LEASE_OVERLAP,
    ON_STALE,
    WORKS,
    EditRules,
    LeaseRules,
    Limits,
    Outside,
    Policy,
    Rule,
)

KEEP_MAX_BYTES = range(50 * 1024 * 1024 + 1)
APPROVAL_TTL_S = range(1, 30 * 86_400 + 1)
LEASE_TTL_S = range(1, 30 * 86_400 + 1)
LEASE_WAIT_S = range(51)  # MCP clients give up on a call after a minute
_TOML_LINE = re.compile(r" ?\(at (?:line (\d+), column \d+|end of document)\)")
_RULE_KEYS = ("name", "agents", "actions", "paths", "lists", "verdict", "reason", "work")
_KEYS = (
    "name",
    "default",
    "limits",
    "leases",
    "outside",
    "edits",
    "rule",
    "route",
    "conflicts",
    "checks",
    "reviewer",
    "plugins",
    "lists",
)


def parse_policy(text: str, *, source: str) -> Policy:
    """Read a policy. Raises PolicyInvalid with every problem: file, line and key."""
    policy, problems = _Reader(text, source).read()
    if policy is None:
        raise PolicyInvalid(
            "; ".join(f"{source}:{p.line}: {p.key + ': ' if p.key else ''}{p.message}" for p in problems),
            hint="Mend the file; `orchestrator policy check` lists what is wrong. policies/README.md has the format.",
            details={"source": source, "problems": [msgspec.to_builtins(p) for p in problems]},
        )
    return policy


def check_policy(text: str, source: str) -> list[Problem]:
    """All that is wrong with a policy file, by line; empty if it can be used."""
    return _Reader(text, source).read()[1]


class _Reader(ReviewTables):
    """Walks the parsed file once and collects problems as it goes."""

    def __init__(self, text: str, source: str) -> None:
        super().__init__(text)
        self._text, self._source = text, source
        self._lists: dict[str, tuple[str, ...]] = {}

    def read(self) -> tuple[Policy | None, list[Problem]]:
        try:
            table = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            return None, [self._syntax(error)]
        policy = self._policy(table)
        self._problems.sort(key=lambda p: p.line)
        return (None if self._problems else policy), self._problems

    def _syntax(self, error: tomllib.TOMLDecodeError) -> Problem:
        where = _TOML_LINE.search(str(error))
        line = int(where[1]) if where and where[1] else max(1, len(self._text.splitlines()))
        return Problem(line, "", f"not TOML: {_TOML_LINE.sub('', str(error))}")

    def _policy(self, table: Mapping[str, Any]) -> Policy:
        self._only(table, _KEYS)
        self._lists = self._named_lists(table.get("lists", {}))
        rules = table.get("rule", [])
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            self._wrong("rules are written as [[rule]] tables", "rule")
            rules = []
        read = tuple(self._rule(rule, at) for at, rule in enumerate(rules, 1))
        self._same_names(read)
        return Policy(
            name=self._text_of(table, "name", required=True),
            default=self._one_of(table, "default", ANSWERS, required=True) or "deny",
            rules=read,
            limits=self._limits(table.get("limits", {})),
            leases=self._leases(table.get("leases", {})),
            outside=self._outside(table.get("outside", {})),
            edits=self._edits(table.get("edits", {})),
            routes=self._routes(table.get("route", [])),
            conflicts=self._conflicts(table.get("conflicts", {})),
            checks=self._checks(table.get("checks", {})),
            reviewers=self._reviewers(table.get("reviewer", [])),
            plugins=self._plugins(table.get("plugins", {})),
            digest=Checksum("sha256:" + hashlib.sha256(self._text.encode("utf-8", "surrogatepass")).hexdigest()),
            source=self._source,
        )

    def _rule(self, table: Mapping[str, Any], at: int) -> Rule:
        place = ("rule", at)
        self._only(table, _RULE_KEYS, *place)
        name = self._text_of(table, "name", *place, required=True)
        if name and not NAME.match(name):
            self._wrong("letters, digits, spaces, '_', '-' and '.', at most 64", *place, "name")
        if name == DEFAULT_RULE or name.startswith(BUILT_IN):
            self._wrong(f"{name!r} is kept for the daemon's own verdicts", *place, "name")
        actions = self._list(table, "actions", *place, check=lambda text: known_one(text, ACTIONS))
        work = self._one_of(table, "work", WORKS, *place) or "any"
        if work != "any" and set(actions) != {"revert"}:
            self._wrong('goes with actions = ["revert"] alone', *place, "work")
        paths = self._paths(table, *place)
        return Rule(
            name=name,
            agents=self._list(table, "agents", *place, check=agent_problem),
            actions=tuple(action for action in ACTIONS if action in actions),
            paths=paths,
            verdict=self._one_of(table, "verdict", ANSWERS, *place, required=True) or "deny",
            reason=self._text_of(table, "reason", *place),
            work=work,
        )

    def _paths(self, table: Mapping[str, Any], *place: str | int) -> tuple[str, ...]:
        """A rule's own globs, behind those of the lists that it names."""
        named: tuple[str, ...] = ()
        if "lists" in table:
            known = tuple(self._lists)
            lists = self._list(table, "lists", *place, check=lambda text: known_one(text, known))
            named = tuple(glob for name in lists for glob in self._lists[name])
        own = self._globs(table, "paths", *place, behind=named) if "paths" in table or "lists" not in table else ()
        return (*named, *own)

    def _globs(
        self, table: Mapping[str, Any], key: str, *place: str | int, behind: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        globs = self._list(table, key, *place, check=glob_problem)
        if globs and globs[0].startswith("!") and not behind:
            self._wrong("an exception comes after the glob that it is an exception from", *place, key, 1)
        return globs

    def _named_lists(self, table: object) -> dict[str, tuple[str, ...]]:
        """Globs that several rules share."""
        if not isinstance(table, dict):
            self._wrong("is a table: [lists]", "lists")
            return {}
        for name in table:
            if not NAME.match(name):
                self._wrong("letters, digits, spaces, '_', '-' and '.', at most 64", "lists", name)
        return {name: self._globs(table, name, "lists") for name in table}

    def _limits(self, table: object) -> Limits:
        if not isinstance(table, dict):
            self._wrong("is a table: [limits]", "limits")
            return Limits()
        self._only(table, ("approval_ttl_s",), "limits")
        return Limits(approval_ttl_s=self._seconds(table, "approval_ttl_s", APPROVAL_TTL_S, Limits(), "limits"))

    def _leases(self, table: object) -> LeaseRules:
        usual = LeaseRules()
        if not isinstance(table, dict):
            self._wrong("is a table: [leases]", "leases")
            return usual
        self._only(table, usual.__struct_fields__, "leases")
        return LeaseRules(
            on_clash=self._one_of(table, "on_clash", ON_LEASE_OVERLAP, "leases") or usual.on_clash,
            max_ttl_s=self._seconds(table, "max_ttl_s", LEASE_TTL_S, usual, "leases"),
            max_wait_s=self._seconds(table, "max_wait_s", LEASE_WAIT_S, usual, "leases"),
        )

    def _outside(self, table: object) -> Outside:
        if not isinstance(table, dict):
            self._wrong("is a table: [outside]", "outside")
            return Outside()
        self._only(table, ("keep_max_bytes",), "outside")
        most = table.get("keep_max_bytes", Outside().keep_max_bytes)
        if type(most) is not int or most not in KEEP_MAX_BYTES:
            self._wrong(f"a whole number of bytes, 0 to {KEEP_MAX_BYTES[-1]}", "outside", "keep_max_bytes")
            return Outside()
        return Outside(keep_max_bytes=most)

    def _edits(self, table: object) -> EditRules:
        usual = EditRules()
        if not isinstance(table, dict):
            self._wrong("is a table: [edits]", "edits")
            return usual
        self._only(table, usual.__struct_fields__, "edits")
        settle = table.get("settle", usual.settle)
        if type(settle) is not bool:
            self._wrong("true or false", "edits", "settle")
            settle = usual.settle
        named: Collection[str] = AUTOMATIC_RULES
        if "settle_rules" in table:
            named = self._list(table, "settle_rules", "edits", check=lambda text: known_one(text, AUTOMATIC_RULES))
        fuzzy = self._one_of(table, "fuzzy", (True, False), "edits")
        return EditRules(
            fuzzy=usual.fuzzy if fuzzy is None else fuzzy,
            lowest_rung=self._one_of(table, "lowest_rung", RUNGS, "edits") or usual.lowest_rung,
            settle=settle,
            settle_rules=tuple(rule for rule in AUTOMATIC_RULES if rule in named),
            stale_reads=self._one_of(table, "stale_reads", ON_STALE, "edits") or usual.stale_reads,
        )

    def _same_names(self, rules: tuple[Rule, ...]) -> None:
        seen: dict[str, int] = {}
        for at, rule in enumerate(rules, 1):
            first = seen.setdefault(rule.name, at)
            if rule.name and first != at:
                line = self._positions.line("rule", first)
                self._wrong(f"{rule.name!r} is the name of the rule at line {line} too", "rule", at, "name")
