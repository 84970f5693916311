"""Policy files: TOML in, a policy or all that is wrong with it out."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, get_args

import msgspec
from msgspec import Meta

from orchestrator.core.content import digest_of
from orchestrator.core.errors import PolicyInvalid
from orchestrator.core.events.policies import Layer
from orchestrator.core.ids import Checksum, Digest
from orchestrator.core.policy.profiles import Profile
from orchestrator.core.policy.rules import (
    ACTIONS,
    BUILT_IN,
    BY_SIZE,
    BY_WORK,
    DEFAULT_RULE,
    PERSON,
    WORKSPACE,
    WORKSPACE_FILE,
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
_SINGLE: Final[Mapping[str, type[msgspec.Struct]]] = {
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

_Lists: TypeAlias = Mapping[str, tuple[str, ...]]

NONE_SHIPPED: Final[Mapping[str, str]] = {}


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of a file as a whole; its tables are read one by one."""

    name: Line
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


def parse_policy(text: str, *, source: str, shipped: Mapping[str, str] = NONE_SHIPPED) -> Policy:
    """Read a policy; `shipped`: the texts of those that it may extend, by name.

    Raises PolicyInvalid with every problem: file, line and key.
    """
    return parse_layers((PolicyText("state", source, text),), shipped)


def parse_layers(texts: Sequence[PolicyText], shipped: Mapping[str, str] = NONE_SHIPPED) -> Policy:
    """One policy of several files: each is laid over those before it, and the workspace's own tightens the whole.

    The shipped policy beneath is the one that the last file with `extends` names. Raises PolicyInvalid as
    `parse_policy`, of the first file that something is wrong with.
    """
    files = [_Reader(text, shipped) for text in texts if text.layer != "workspace"]
    whole, lists = _base(next((file.extends for file in reversed(files) if file.extends), ""), shipped)
    founded = any(file.founds for file in files)
    for file in files:
        own, problems = file.read(_base(file.extends, shipped)[1] or lists, founded=founded)
        if own is None:
            raise _invalid(file.source, problems)
        whole = own if whole is None else _on_top(own, whole, file.given)
    if whole is None:
        raise PolicyInvalid("there is no policy", hint="Install the program anew: its default policy is missing.")
    for file in (_Reader(text, shipped) for text in texts if text.layer == "workspace"):
        rules, problems = file.tightening(lists)
        if problems:
            raise _invalid(file.source, problems)
        whole = _tightened(whole, file, rules)
    return whole


def _invalid(source: str, problems: list[Problem]) -> PolicyInvalid:
    return PolicyInvalid(
        f"{source}: " + "; ".join(f"line {p.line}: {p.key + ': ' if p.key else ''}{p.message}" for p in problems),
        hint="Mend the file; `orchestrator policy check FILE` lists all of it. policies/README.md has the format.",
        details={"source": source, "problems": [msgspec.to_builtins(p) for p in problems]},
    )


def founds(file: PolicyText) -> bool:
    """Whether a file can stand alone: it has a `default`, or extends a shipped policy."""
    return _Reader(file, NONE_SHIPPED).founds


def is_workspace_file(name: str) -> bool:
    """Whether a file is a workspace's own, by its name."""
    return f"/{name}".endswith(f"/{WORKSPACE_FILE}")


class Checked(NamedTuple):
    """A policy, or all that is wrong with its file, by line; and the line of any place in it."""

    policy: Policy | None
    problems: list[Problem]
    line_of: Callable[..., int]


def check_policy(
    text: str, source: str, shipped: Mapping[str, str] = NONE_SHIPPED, others: Sequence[PolicyText] = ()
) -> Checked:
    """Read a policy file for who wants to know what is wrong with it; that of a workspace is known by its name.

    `others`: the operator's files, over which one is laid that names neither a default nor what it extends.
    """
    if is_workspace_file(source):
        reader = _Reader(PolicyText("workspace", source, text), shipped)
        beneath, lists = _base("default", shipped)
        rules, problems = reader.tightening(lists)
        tightened = None if problems or beneath is None else _tightened(beneath, reader, rules)
        return Checked(tightened, problems, reader.line)
    reader = _Reader(PolicyText("state", source, text), shipped)
    beneath, lists = _base(reader.extends, shipped)
    others = [other for other in others if other.source != source]
    if not reader.founds and any(map(founds, others)):
        beneath = parse_layers(others, shipped)
        lists = _base(beneath.extends, shipped)[1]
    own, problems = reader.read(lists, founded=beneath is not None)
    if own is not None and beneath is not None:
        own = _on_top(own, beneath, reader.given)
    return Checked(own, problems, reader.line)


def _base(name: str, shipped: Mapping[str, str]) -> tuple[Policy | None, _Lists]:
    """A shipped policy for others to be laid over, and its lists; none for a name that is none of theirs."""
    if name not in shipped:
        return None, {}
    reader = _Reader(PolicyText("shipped", f"policies/{name}.toml", shipped[name]), shipped)
    beneath, lists = _base(reader.extends, {known: text for known, text in shipped.items() if known != name})
    policy, _ = reader.read(lists)
    if policy is not None and beneath is not None:
        policy = _on_top(policy, beneath, reader.given)
    return (msgspec.structs.replace(policy, extends=name) if policy is not None else None), reader.lists


class _Reader:
    """Walks one parsed file and collects problems as it goes."""

    def __init__(self, file: PolicyText, shipped: Mapping[str, str]) -> None:
        self.source, self.digest = file.source, file.digest
        self._shipped, self._tables = shipped, TableReader(file.text)
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

    def line(self, *place: str | int) -> int:
        return self._tables.line(*place)

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

    def read(self, lists: _Lists, *, founded: bool = False) -> tuple[Policy | None, list[Problem]]:
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

    def tightening(self, lists: _Lists) -> tuple[tuple[Rule, ...], list[Problem]]:
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

    def _policy(self, table: Mapping[str, Any], lists: _Lists) -> Policy | None:
        several = ("lists", "rule", "route", "reviewer", "profile")
        whole = {key: value for key, value in table.items() if key not in (*_SINGLE, *several)}
        file = self._tables.table(_File, whole, known=(*_SINGLE, *several))
        single = {key: self._tables.table(kind, table.get(key, {}), key) for key, kind in _SINGLE.items()}
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
        if file is None or self._tables.problems:
            return None
        policy = Policy(
            name=file.name,
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
        for key, known, unsaid in (("work", BY_WORK, "any"), ("max_bytes", BY_SIZE, None)):
            if table.get(key, unsaid) != unsaid and not actions.issubset(known):
                self._tables.wrong(f"goes with the actions {', '.join(known)} alone", *place, key)

    @staticmethod
    def _rule(table: _RuleTable, lists: Mapping[str, tuple[str, ...]]) -> Rule:
        return Rule(
            name=table.name,
            agents=table.agents,
            actions=tuple(action for action in ACTIONS if action in table.actions),
            paths=(*(glob for name in table.lists for glob in lists.get(name, ())), *table.paths),
            verdict=table.verdict,
            reason=table.reason,
            work=table.work,
            max_bytes=table.max_bytes,
            task=table.task,
        )

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


def _on_top(policy: Policy, beneath: Policy, given: Set[str]) -> Policy:
    """A policy laid over another; a rule, a reviewer or a table of the same name takes the other's place."""
    own = {rule.name for rule in policy.rules}
    inherited = tuple(rule for rule in beneath.rules if rule.name not in own)
    reviewers = {reviewer.name for reviewer in policy.reviewers}
    profiles = {profile.name for profile in policy.profiles}
    return msgspec.structs.replace(
        policy,
        default=policy.default if "default" in given else beneath.default,
        rules=(*policy.rules, *inherited),
        sources=(*policy.sources, *(item for item in beneath.sources if item[0] not in own)),
        routes=(*policy.routes, *beneath.routes),
        reviewers=(*policy.reviewers, *(one for one in beneath.reviewers if one.name not in reviewers)),
        profiles=(*policy.profiles, *(one for one in beneath.profiles if one.name not in profiles)),
        extends=beneath.extends,
        digest=_digest(policy, beneath.digest),
        **{name: getattr(beneath, name) for name in _SINGLE if name not in given},
    )


def _tightened(policy: Policy, file: _Reader, rules: tuple[Rule, ...]) -> Policy:
    """A policy with the rules of the workspace's own file beside its own; their names say where they are from."""
    named = tuple(msgspec.structs.replace(rule, name=f"{WORKSPACE}{rule.name}") for rule in rules)
    return msgspec.structs.replace(
        policy,
        rules=(*policy.rules, *named),
        sources=(*policy.sources, *((rule.name, file.source) for rule in named)),
        digest=_digest(policy, file.digest),
    )


def _digest(policy: Policy, more: str) -> Checksum:
    return Checksum("sha256:" + hashlib.sha256(f"{policy.digest} {more}".encode()).hexdigest())
