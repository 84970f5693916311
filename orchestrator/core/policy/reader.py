"""One policy file as it was read: its tables as rules and settings, or all that is wrong with them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Annotated, Any, Final, TypeAlias, get_args

import msgspec
from msgspec import Meta

from orchestrator.core.content import digest_of
from orchestrator.core.events.policies import Layer
from orchestrator.core.ids import Checksum, Digest
from orchestrator.core.policy.profiles import Profile
from orchestrator.core.policy.rules import (
    ACTIONS,
    BUILT_IN,
    BY_COMMAND,
    BY_SIZE,
    BY_WORK,
    DEFAULT_RULE,
    PERSON,
    WORKSPACE,
    Answer,
    Globs,
    Line,
    Policy,
    ReviewerSettings,
    Route,
    Rule,
)
from orchestrator.core.policy.tables import Problem, TableReader, did_you_mean, known_one, name_problem

_TOML_LINE = re.compile(r"\(at line (\d+)")
SINGLE_TABLES: Final[Mapping[str, type[msgspec.Struct]]] = {
    field.name: field.type
    for field in msgspec.structs.fields(Policy)
    if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)
}
"""The tables that a file has once."""

_REVIEWERS: Final[Mapping[str, type[ReviewerSettings]]] = {
    kind.__struct_config__.tag: kind for kind in get_args(ReviewerSettings)
}


VERSION: Final = 1
"""Of the format; a file of a newer one is refused as a whole, since a key may mean something else there."""

Lists: TypeAlias = Mapping[str, tuple[str, ...]]


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of a file as a whole; its tables are read one by one."""

    name: Line = ""  # else that of the policy it extends
    version: int = VERSION
    extends: str = ""
    default: Answer = "deny"  # must be there unless one of the files extends a shipped one, or has it


class _WorkspaceFile(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of the workspace's own file, which can only tighten."""

    name: Line = "workspace"
    version: int = VERSION


class _RuleTable(Rule, frozen=True, kw_only=True):
    """A rule as it is written: `lists` names globs that precede its own."""

    paths: Globs = ()
    lists: Annotated[tuple[str, ...], Meta(min_length=1)] = ()


class PolicyText(msgspec.Struct, frozen=True):
    """One policy file as it was read."""

    layer: Layer
    source: str  # the file, as messages name it
    text: str

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        return self.text.encode("utf-8", "surrogatepass")

    @property
    def digest(self) -> Digest:
        return digest_of(self.data)


class PolicyReader:
    """Walks one parsed file and collects problems as it goes."""

    def __init__(self, file: PolicyText, shipped: Mapping[str, str]) -> None:
        self.source, self.digest = file.source, file.digest
        self._shipped, self._tables = shipped, TableReader(file.text)
        self.line = self._tables.line
        self.lists: dict[str, tuple[str, ...]] = {}
        self._whole: Mapping[str, Any] = {}
        self._broken: Problem | None = None
        try:
            self._whole = tomllib.loads(file.text)
        except tomllib.TOMLDecodeError as error:
            where = _TOML_LINE.search(str(error))
            line = int(where[1]) if where else max(1, len(file.text.splitlines()))
            self._broken = Problem(line, f"not TOML: {error}")
        version = self._whole.get("version")
        if isinstance(version, int) and version > VERSION:
            self._broken = Problem(
                self.line("version"),
                f"the file is of version {version}, and this program reads version {VERSION}: use a newer one",
                "version",
            )

    @property
    def given(self) -> Set[str]:
        """The keys and tables that the file has."""
        return self._whole.keys()

    @property
    def extends(self) -> str:
        """The shipped policy that the file names, known or not."""
        name = self._whole.get("extends", "")
        return name if isinstance(name, str) else ""

    @property
    def founds(self) -> bool:
        """Whether the file says what holds where no rule matches, or names a policy that does."""
        return not self.given.isdisjoint(("default", "extends"))

    def read(self, lists: Lists, *, founded: bool = False) -> tuple[Policy | None, list[Problem]]:
        """What the file itself says; `lists`: those of the policy that it is laid over; `founded`: there is one."""
        if self._broken is not None:
            return None, [self._broken]
        policy = self._policy(self._whole, lists)
        if not founded and not self.founds:
            self._tables.wrong(
                'is missing: what holds where no rule matches; extends = "default" takes it from the shipped policy',
                "default",
            )
            policy = None
        problems = sorted(self._tables.problems, key=lambda problem: problem.line)
        return (None if problems else policy), problems

    def tightening(self, lists: Lists) -> tuple[tuple[Rule, ...], list[Problem]]:
        """The rules of a workspace's own file: it denies and asks, and nothing else may stand in it."""
        if self._broken is not None:
            return (), [self._broken]
        table, tables = self._whole, ("lists", "rule")
        known = ("name", "version", *tables)
        for key in table.keys() - {*known}:
            meant = did_you_mean(key, known)
            self._tables.wrong(f"a workspace's file can only tighten: {', '.join(known)}{meant}", key)
        whole = {key: value for key, value in table.items() if key in ("name", "version")}
        self._tables.table(_WorkspaceFile, whole)
        self.lists = {**lists, **self._lists(table.get("lists", {}))}
        for at, rule in self._raw(table, "rule"):
            if rule.get("verdict") == "allow":
                self._tables.wrong("a workspace's file can only tighten: ask | deny", "rule", at, "verdict")
        return self._rules(table), sorted(self._tables.problems, key=lambda problem: problem.line)

    def _policy(self, table: Mapping[str, Any], lists: Lists) -> Policy | None:
        several = ("lists", "rule", "route", "reviewer", "profile")
        whole = {key: value for key, value in table.items() if key not in (*SINGLE_TABLES, *several)}
        file = self._tables.table(_File, whole, known=(*SINGLE_TABLES, *several))
        single = {key: self._tables.table(kind, table.get(key, {}), key) for key, kind in SINGLE_TABLES.items()}
        if self.extends and (problem := known_one(self.extends, tuple(self._shipped))):
            self._tables.wrong(f"{problem}: the shipped policies", "extends")
        self.lists = {**lists, **self._lists(table.get("lists", {}))}
        rules = self._rules(table)
        routes = tuple(
            msgspec.structs.replace(route, name=route.name or f"route {at}")
            for at, route in self._tables.tables(Route, table, "route")
        )
        reviewers = self._reviewers(table)
        profiles = tuple(profile for _, profile in self._tables.tables(Profile, table, "profile"))
        self._names(table, "profile")
        if "name" not in table and "extends" not in table:
            self._tables.wrong("is missing", "name")
        if file is None or self._tables.problems:
            return None
        policy = Policy(
            name=file.name or file.extends,
            default=file.default,
            rules=rules,
            sources=tuple((rule.name, self.source) for rule in rules),
            digest=Checksum(self.digest),
            source=self.source,
        )
        return msgspec.structs.replace(policy, routes=routes, reviewers=reviewers, profiles=profiles, **single)

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

    def _rules(self, table: Mapping[str, Any]) -> tuple[Rule, ...]:
        for at, rule in self._raw(table, "rule"):
            self._combinations(rule, "rule", at)
        self._names(table, "rule")
        return tuple(self._rule(rule, self.lists) for _, rule in self._tables.tables(_RuleTable, table, "rule"))

    def _combinations(self, table: Mapping[str, Any], *place: str | int) -> None:
        """What is wrong with a rule beyond its single keys, each of which may be wrong besides."""
        name, paths, lists = table.get("name"), table.get("paths"), table.get("lists")
        actions = {action for action in _items(table.get("actions")) if action in ACTIONS}
        for number, each in enumerate(_items(lists), 1):
            if isinstance(each, str) and (problem := known_one(each, tuple(self.lists))):
                self._tables.wrong(problem, *place, "lists", number)
        if lists is None:
            self._exception_first(_items(paths), *place, "paths")
            if paths is None:
                self._tables.wrong("is missing", *place, "paths")
        if isinstance(name, str) and (name == DEFAULT_RULE or name.startswith((BUILT_IN, WORKSPACE))):
            self._tables.wrong(f"{name!r} is kept for the daemon's own verdicts", *place, "name")
        for key, known, unsaid in (
            ("work", BY_WORK, "any"),
            ("max_bytes", BY_SIZE, None),
            ("commands", BY_COMMAND, []),
            ("modes", BY_COMMAND, []),
        ):
            if table.get(key, unsaid) != unsaid and not actions.issubset(known):
                self._tables.wrong(f"goes with the actions {', '.join(known)} alone", *place, key)

    @staticmethod
    def _rule(table: _RuleTable, lists: Mapping[str, tuple[str, ...]]) -> Rule:
        given = {name: getattr(table, name) for name in Rule.__struct_fields__}
        given["actions"] = tuple(action for action in ACTIONS if action in table.actions)
        given["paths"] = (*(glob for name in table.lists for glob in lists.get(name, ())), *table.paths)
        return Rule(**given)

    def _exception_first(self, globs: Sequence[object], *place: str | int) -> None:
        if globs and isinstance(globs[0], str) and globs[0].startswith("!"):
            self._tables.wrong("an exception comes after the glob that it is an exception from", *place, 1)

    # --- conflicts and their reviewers --------------------------------------------------

    def _reviewers(self, table: Mapping[str, Any]) -> tuple[ReviewerSettings, ...]:
        for at, item in self._raw(table, "reviewer"):
            if item.get("name") == PERSON:
                self._tables.wrong(f"{PERSON!r} is kept for people", "reviewer", at, "name")
            for most in ("max_tokens", "max_cost_usd"):
                if item.get(f"{most}_per_hour") and not item.get(most):
                    message = f"needs {most}: what one review may take at most"
                    self._tables.wrong(message, "reviewer", at, f"{most}_per_hour")
        self._names(table, "reviewer")
        return tuple(item for _, item in self._tables.tables(_REVIEWERS, table, "reviewer"))

    def _names(self, table: Mapping[str, Any], kind: str) -> None:
        """No two of a kind have one name."""
        seen: set[str] = set()
        for at, item in self._raw(table, kind):
            name = item.get("name")
            if isinstance(name, str):
                if name in seen:
                    self._tables.wrong(f"{name!r} is the name of another {kind} too", kind, at, "name")
                seen.add(name)

    @staticmethod
    def _raw(table: Mapping[str, Any], kind: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The tables of a kind as they are written, each with its number from 1."""
        return ((at, item) for at, item in enumerate(_items(table.get(kind)), 1) if isinstance(item, dict))


def _items(value: object) -> Sequence[Any]:
    """Those of a list; none of what should be one and is not."""
    return value if isinstance(value, list) else ()
