"""Policy files: TOML in, a policy or all that is wrong with it out."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Annotated, Any, Final, NamedTuple, get_args

import msgspec
from msgspec import Meta

from orchestrator.core.errors import PolicyInvalid
from orchestrator.core.ids import Checksum
from orchestrator.core.policy.rules import (
    ACTIONS,
    BUILT_IN,
    DEFAULT_RULE,
    PERSON,
    Answer,
    Globs,
    Line,
    Policy,
    ReviewerSettings,
    Route,
    Rule,
)
from orchestrator.core.policy.tables import Problem, TableReader, known_one, name_problem

_TOML_LINE = re.compile(r"\(at line (\d+)")
_SINGLE: Final[Mapping[str, type[msgspec.Struct]]] = {
    field.name: field.type
    for field in msgspec.structs.fields(Policy)
    if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)
}
"""The tables that a file has once."""

_REVIEWERS: Final[Mapping[str, type[ReviewerSettings]]] = {
    kind.__struct_config__.tag: kind for kind in get_args(ReviewerSettings)
}


NONE_SHIPPED: Final[Mapping[str, str]] = {}


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of a file as a whole; its tables are read one by one."""

    name: Line
    extends: str = ""
    default: Answer = "deny"  # must be there unless the file extends another


class _RuleTable(Rule, frozen=True, kw_only=True):
    """A rule as it is written: `lists` names globs that precede its own."""

    paths: Globs = ()
    lists: Annotated[tuple[str, ...], Meta(min_length=1)] = ()


def parse_policy(text: str, *, source: str, shipped: Mapping[str, str] = NONE_SHIPPED) -> Policy:
    """Read a policy; `shipped`: the texts of those that it may extend, by name.

    Raises PolicyInvalid with every problem: file, line and key.
    """
    policy, problems = _Reader(text, source, shipped).read()
    if policy is None:
        raise PolicyInvalid(
            f"{source}: " + "; ".join(f"line {p.line}: {p.key + ': ' if p.key else ''}{p.message}" for p in problems),
            hint="Mend the file; `orchestrator policy check FILE` lists all of it. policies/README.md has the format.",
            details={"source": source, "problems": [msgspec.to_builtins(p) for p in problems]},
        )
    return policy


class Checked(NamedTuple):
    """A policy, or all that is wrong with its file, by line; and the line of any place in it."""

    policy: Policy | None
    problems: list[Problem]
    line_of: Callable[..., int]


def check_policy(text: str, source: str, shipped: Mapping[str, str] = NONE_SHIPPED) -> Checked:
    """Read a policy file for who wants to know what is wrong with it."""
    reader = _Reader(text, source, shipped)
    policy, problems = reader.read()
    return Checked(policy, problems, reader.line)


class _Reader:
    """Walks the parsed file once and collects problems as it goes."""

    def __init__(self, text: str, source: str, shipped: Mapping[str, str]) -> None:
        self._text, self._source, self._shipped, self._tables = text, source, shipped, TableReader(text)
        self.lists: dict[str, tuple[str, ...]] = {}

    def line(self, *place: str | int) -> int:
        return self._tables.line(*place)

    def read(self) -> tuple[Policy | None, list[Problem]]:
        try:
            table = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            where = _TOML_LINE.search(str(error))
            line = int(where[1]) if where else max(1, len(self._text.splitlines()))
            return None, [Problem(line, f"not TOML: {error}")]
        policy = self._policy(table)
        problems = sorted(self._tables.problems, key=lambda problem: problem.line)
        return (None if problems else policy), problems

    def _policy(self, table: Mapping[str, Any]) -> Policy | None:
        several = ("lists", "rule", "route", "reviewer")
        whole = {key: value for key, value in table.items() if key not in (*_SINGLE, *several)}
        file = self._tables.table(_File, whole, known=(*_SINGLE, *several))
        single = {key: self._tables.table(kind, table.get(key, {}), key) for key, kind in _SINGLE.items()}
        extended = self._extended(file.extends) if file is not None else None
        self.lists |= self._lists(table.get("lists", {}))
        rules = [self._rule(rule, self.lists, at) for at, rule in self._tables.tables(_RuleTable, table, "rule")]
        self._names(rules, "rule")
        routes = tuple(
            msgspec.structs.replace(route, name=route.name or f"route {at}")
            for at, route in self._tables.tables(Route, table, "route")
        )
        reviewers = self._reviewers(table)
        if file is not None and "default" not in table and not file.extends:
            self._tables.wrong("is missing", "default")
        if file is None or self._tables.problems:
            return None
        text = self._text + (extended.digest if extended is not None else "")
        digest = Checksum("sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
        policy = Policy(name=file.name, default=file.default, rules=tuple(rules), digest=digest, source=self._source)
        policy = msgspec.structs.replace(policy, routes=routes, reviewers=reviewers, **single)
        return policy if extended is None else _on_top(policy, extended, set(table))

    def _extended(self, name: str) -> Policy | None:
        """The shipped policy that this one extends; its lists are known here too."""
        if not name:
            return None
        if problem := known_one(name, tuple(self._shipped)):
            self._tables.wrong(f"{problem}: the shipped policies", "extends")
            return None
        reader = _Reader(self._shipped[name], f"policies/{name}.toml", NONE_SHIPPED)
        extended, _ = reader.read()
        self.lists = reader.lists
        return msgspec.structs.replace(extended, extends=name) if extended is not None else None

    # --- rules --------------------------------------------------------------------------

    def _lists(self, table: object) -> dict[str, tuple[str, ...]]:
        """Globs that several rules share."""
        if not isinstance(table, dict):
            self._tables.wrong("is a table: [lists]", "lists")
            return {}
        good = {}
        for name, globs in table.items():
            if problem := name_problem(name):
                self._tables.wrong(problem, "lists", name)
            self._tables.value(Globs, globs, "lists", name)
            good[name] = tuple(globs) if isinstance(globs, list) else ()
            self._exception_first(good[name], "lists", name)
        return good

    def _rule(self, table: _RuleTable, lists: Mapping[str, tuple[str, ...]], at: int) -> Rule:
        place = ("rule", at)
        for number, name in enumerate(table.lists, 1):
            if problem := known_one(name, tuple(lists)):
                self._tables.wrong(problem, *place, "lists", number)
        if not table.lists:
            self._exception_first(table.paths, *place, "paths")
            if not table.paths:
                self._tables.wrong("is missing", *place, "paths")
        if table.name == DEFAULT_RULE or table.name.startswith(BUILT_IN):
            self._tables.wrong(f"{table.name!r} is kept for the daemon's own verdicts", *place, "name")
        if table.work != "any" and set(table.actions) != {"revert"}:
            self._tables.wrong('goes with actions = ["revert"] alone', *place, "work")
        return Rule(
            name=table.name,
            agents=table.agents,
            actions=tuple(action for action in ACTIONS if action in table.actions),
            paths=(*(glob for name in table.lists for glob in lists.get(name, ())), *table.paths),
            verdict=table.verdict,
            reason=table.reason,
            work=table.work,
        )

    def _exception_first(self, globs: tuple[str, ...], *place: str | int) -> None:
        if globs and isinstance(globs[0], str) and globs[0].startswith("!"):
            self._tables.wrong("an exception comes after the glob that it is an exception from", *place, 1)

    # --- conflicts and their reviewers --------------------------------------------------

    def _reviewers(self, table: Mapping[str, Any]) -> tuple[ReviewerSettings, ...]:
        read = list(self._tables.tables(_REVIEWERS, table, "reviewer"))
        for at, item in read:
            if item.name == PERSON:
                self._tables.wrong(f"{PERSON!r} is kept for people", "reviewer", at, "name")
            for most in ("max_tokens", "max_cost_usd"):
                if getattr(item, f"{most}_per_hour", 0) and not getattr(item, most):
                    message = f"needs {most}: what one review may take at most"
                    self._tables.wrong(message, "reviewer", at, f"{most}_per_hour")
        reviewers = [item for _, item in read]
        self._names(reviewers, "reviewer")
        return tuple(reviewers)

    def _names(self, items: Iterable[Rule | ReviewerSettings], kind: str) -> None:
        """No two of a kind have one name."""
        seen: set[str] = set()
        for at, item in enumerate(items, 1):
            if item.name in seen:
                self._tables.wrong(f"{item.name!r} is the name of another {kind} too", kind, at, "name")
            seen.add(item.name)


def _on_top(policy: Policy, extended: Policy, given: Set[str]) -> Policy:
    """A policy with what it extends; a rule, a reviewer or a table of the same name takes the other's place."""
    own = {rule.name for rule in policy.rules}
    inherited = tuple(rule for rule in extended.rules if rule.name not in own)
    reviewers = {reviewer.name for reviewer in policy.reviewers}
    return msgspec.structs.replace(
        policy,
        default=policy.default if "default" in given else extended.default,
        rules=(*policy.rules, *inherited),
        routes=(*policy.routes, *extended.routes),
        reviewers=(*policy.reviewers, *(one for one in extended.reviewers if one.name not in reviewers)),
        extends=extended.extends,
        inherited=frozenset(rule.name for rule in inherited),
        **{name: getattr(extended, name) for name in _SINGLE if name not in given},
    )
