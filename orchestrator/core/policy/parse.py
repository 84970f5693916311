"""Policy files: TOML in, a policy or all that is wrong with it out."""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec

from orchestrator.core.content import RUNGS
from orchestrator.core.errors import PolicyInvalid, escaped
from orchestrator.core.ids import Digest
from orchestrator.core.policy.match import Pattern, fold_pattern
from orchestrator.core.policy.positions import Positions
from orchestrator.core.policy.reviewers import Plugins, ReviewerSettings, read_plugins, read_reviewer
from orchestrator.core.policy.routes import ACCEPTS, PERSON, SCOPES, WHEN_IT_FITS, Checks, Conflicts, Route
from orchestrator.core.policy.rules import (
    ACTIONS,
    AGENT_CLASSES,
    ANSWERS,
    BUILT_IN,
    DEFAULT_RULE,
    ON_CLASH,
    ON_STALE,
    WORKS,
    EditRules,
    LeaseRules,
    Limits,
    Outside,
    Policy,
    Rule,
)
from orchestrator.core.settling import SETTLE_RULES

T = TypeVar("T")

KEEP_MAX_BYTES = range(50 * 1024 * 1024 + 1)
APPROVAL_TTL_S = range(1, 30 * 86_400 + 1)
LEASE_TTL_S = range(1, 30 * 86_400 + 1)
MIN_SCORE = (0.8, 1.0)
MIN_MARGIN = (0.02, 0.1)  # with a score of 0.8 still small enough for the search to find all that comes near
LEASE_WAIT_S = range(51)  # MCP clients give up on a call after a minute
REVIEW_S = range(1, 86_400 + 1)
LAPSE_S = range(365 * 86_400 + 1)
CHECK_S = range(1, 3600 + 1)
MOST_LINES = range(1, 1_000_000)
_MOST_STARS = 4  # in one glob: each more multiplies the cost of matching a long name
_TOML_LINE = re.compile(r" ?\(at (?:line (\d+), column \d+|end of document)\)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.\-]{0,63}\Z")
_CLASS = re.compile(r"(?<!\\)\[[!^]?\]?[^\]]*?(?:\[|--|&&|\|\||~~)")
_RULE_KEYS = ("name", "agents", "actions", "paths", "verdict", "reason", "work")
_ROUTE_KEYS = Route.__struct_fields__
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
)


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong with a policy file."""

    line: int  # from 1
    key: str  # "rule[2].paths[1]", counted from 1; "" for the file as a whole
    message: str


def parse_policy(text: str, *, source: str) -> Policy:
    """Read a policy. Raises PolicyInvalid with every problem: file, line and key."""
    policy, problems = _Reader(text, source).read()
    if policy is None:
        raise PolicyInvalid(
            "\n".join(f"{source}:{p.line}: {p.key + ': ' if p.key else ''}{p.message}" for p in problems),
            hint="Mend the file; `orchestrator policy check` lists what is wrong. policies/README.md has the format.",
            details={"source": source, "problems": [msgspec.to_builtins(p) for p in problems]},
        )
    return policy


def check_policy(text: str, source: str) -> list[Problem]:
    """All that is wrong with a policy file, by line; empty if it can be used."""
    return _Reader(text, source).read()[1]


class _Reader:
    """Walks the parsed file once and collects problems as it goes."""

    def __init__(self, text: str, source: str) -> None:
        self._text, self._source = text, source
        self._positions = Positions(text)
        self._problems: list[Problem] = []

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
            digest=Digest("sha256:" + hashlib.sha256(self._text.encode("utf-8", "surrogatepass")).hexdigest()),
            source=self._source,
        )

    def _rule(self, table: Mapping[str, Any], at: int) -> Rule:
        place = ("rule", at)
        self._only(table, _RULE_KEYS, *place)
        name = self._text_of(table, "name", *place, required=True)
        if name and not _NAME.match(name):
            self._wrong("letters, digits, spaces, '_', '-' and '.', at most 64", *place, "name")
        if name == DEFAULT_RULE or name.startswith(BUILT_IN):
            self._wrong(f"{name!r} is kept for the daemon's own verdicts", *place, "name")
        actions = self._list(table, "actions", *place, check=lambda text: _known(text, ACTIONS))
        work = self._one_of(table, "work", WORKS, *place) or "any"
        if work != "any" and set(actions) != {"revert"}:
            self._wrong('goes with actions = ["revert"] alone', *place, "work")
        paths = self._list(table, "paths", *place, check=glob_problem)
        if paths and paths[0].startswith("!"):
            self._wrong("an exception comes after the glob that it is an exception from", *place, "paths", 1)
        return Rule(
            name=name,
            agents=self._list(table, "agents", *place, check=_agent_problem),
            actions=tuple(action for action in ACTIONS if action in actions),
            paths=paths,
            verdict=self._one_of(table, "verdict", ANSWERS, *place, required=True) or "deny",
            reason=self._text_of(table, "reason", *place),
            work=work,
        )

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
            on_clash=self._one_of(table, "on_clash", ON_CLASH, "leases") or usual.on_clash,
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
        named: Collection[str] = SETTLE_RULES
        if "settle_rules" in table:
            named = self._list(table, "settle_rules", "edits", check=lambda text: _known(text, SETTLE_RULES))
        fuzzy = self._one_of(table, "fuzzy", (True, False), "edits")
        return EditRules(
            fuzzy=usual.fuzzy if fuzzy is None else fuzzy,
            lowest_rung=self._one_of(table, "lowest_rung", RUNGS, "edits") or usual.lowest_rung,
            min_score=self._share(table, "min_score", MIN_SCORE, usual.min_score),
            min_margin=self._share(table, "min_margin", MIN_MARGIN, usual.min_margin),
            settle=settle,
            settle_rules=tuple(rule for rule in SETTLE_RULES if rule in named),
            stale_reads=self._one_of(table, "stale_reads", ON_STALE, "edits") or usual.stale_reads,
        )

    def _share(self, table: Mapping[str, Any], key: str, known: tuple[float, float], usual: float) -> float:
        value = table.get(key, usual)
        if type(value) in (int, float) and known[0] <= value <= known[1]:
            return float(value)
        self._wrong(f"a number from {known[0]} to {known[1]}", "edits", key)
        return usual

    def _routes(self, tables: object) -> tuple[Route, ...]:
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self._wrong("routes are written as [[route]] tables", "route")
            return ()
        return tuple(self._route(table, at) for at, table in enumerate(tables, 1))

    def _route(self, table: Mapping[str, Any], at: int) -> Route:
        place, usual = ("route", at), Route(name="", reviewers=())
        self._only(table, _ROUTE_KEYS, *place)
        paths, agents = usual.paths, usual.agents
        if "paths" in table:
            paths = self._list(table, "paths", *place, check=glob_problem)
        if "agents" in table:
            agents = self._list(table, "agents", *place, check=_agent_problem)
        max_lines, same_symbol = table.get("max_lines"), table.get("same_symbol")
        if max_lines is not None and (type(max_lines) is not int or max_lines not in MOST_LINES):
            self._wrong(f"a whole number of lines, 1 to {MOST_LINES[-1]}", *place, "max_lines")
        if same_symbol is not None and type(same_symbol) is not bool:
            self._wrong("is true or false", *place, "same_symbol")
        reviewers = self._list(table, "reviewers", *place, check=_reviewer_problem)
        if len(set(reviewers)) < len(reviewers):
            self._wrong("names a reviewer twice", *place, "reviewers")
        return Route(
            name=self._text_of(table, "name", *place) or f"route {at}",
            reviewers=reviewers,
            paths=paths,
            agents=agents,
            max_lines=max_lines,
            same_symbol=same_symbol,
            deadline_s=self._seconds(table, "deadline_s", REVIEW_S, usual, *place),
            accept=self._one_of(table, "accept", ACCEPTS, *place) or usual.accept,
        )

    def _conflicts(self, table: object) -> Conflicts:
        usual = Conflicts()
        if not isinstance(table, dict):
            self._wrong("is a table: [conflicts]", "conflicts")
            return usual
        self._only(table, usual.__struct_fields__, "conflicts")
        return Conflicts(
            when_it_fits=self._one_of(table, "when_it_fits", WHEN_IT_FITS, "conflicts") or usual.when_it_fits,
            lapse_after_s=self._seconds(table, "lapse_after_s", LAPSE_S, usual, "conflicts"),
        )

    def _checks(self, table: object) -> Checks:
        usual = Checks()
        if not isinstance(table, dict):
            self._wrong("is a table: [checks]", "checks")
            return usual
        self._only(table, usual.__struct_fields__, "checks")
        return Checks(
            command=self._list(table, "command", "checks", check=_argument_problem) if "command" in table else (),
            timeout_s=self._seconds(table, "timeout_s", CHECK_S, usual, "checks"),
            scope=self._one_of(table, "scope", SCOPES, "checks") or usual.scope,
        )

    def _reviewers(self, tables: object) -> tuple[ReviewerSettings, ...]:
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self._wrong("reviewers are written as [[reviewer]] tables", "reviewer")
            return ()
        known: dict[str, ReviewerSettings] = {}
        for at, table in enumerate(tables, 1):
            settings, troubles = read_reviewer(table)
            for key, message in troubles:
                self._wrong(message, "reviewer", at, key)
            if settings is None:
                continue
            problem = _reviewer_problem(settings.name)
            if problem or settings.name == PERSON:
                self._wrong(problem or f"{PERSON!r} is kept for people", "reviewer", at, "name")
            elif settings.name in known:
                self._wrong(f"{settings.name!r} is the name of an earlier reviewer too", "reviewer", at, "name")
            known[settings.name] = settings
        return tuple(known.values())

    def _plugins(self, table: object) -> Plugins:
        if not isinstance(table, dict):
            self._wrong("is a table: [plugins]", "plugins")
            return Plugins()
        plugins, troubles = read_plugins(table)
        for key, message in troubles:
            self._wrong(message, "plugins", key)
        return plugins

    def _same_names(self, rules: tuple[Rule, ...]) -> None:
        seen: dict[str, int] = {}
        for at, rule in enumerate(rules, 1):
            first = seen.setdefault(rule.name, at)
            if rule.name and first != at:
                line = self._positions.line("rule", first)
                self._wrong(f"{rule.name!r} is the name of the rule at line {line} too", "rule", at, "name")

    # --- values ---

    def _only(self, table: Mapping[str, Any], known: tuple[str, ...], *place: str | int) -> None:
        for key in table:
            if key not in known:
                self._wrong(f"unknown key; {_suggestion(key, known)}", *place, key)

    def _text_of(self, table: Mapping[str, Any], key: str, *place: str | int, required: bool = False) -> str:
        value = table.get(key)
        if value is None:
            if required:
                self._wrong("is missing", *place, key)
            return ""
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            self._wrong("is one line of text in quotes", *place, key)
            return ""
        return value

    def _one_of(
        self, table: Mapping[str, Any], key: str, known: tuple[T, ...], *place: str | int, required: bool = False
    ) -> T | None:
        value = table.get(key)
        for one in known:
            if value == one:
                return one
        if value is not None or required:
            choice = " | ".join(str(one) for one in known)
            message = f"is missing: {choice}" if value is None else f"{_quoted(value)} is none of {choice}"
            self._wrong(message, *place, key)
        return None

    def _seconds(
        self, table: Mapping[str, Any], key: str, known: range, usual: msgspec.Struct, *place: str | int
    ) -> int:
        default: int = getattr(usual, key)
        value = table.get(key, default)
        if type(value) is int and value in known:
            return value
        self._wrong(f"a whole number of seconds, {known[0]} to {known[-1]}", *place, key)
        return default

    def _list(
        self, table: Mapping[str, Any], key: str, *place: str | int, check: Callable[[str], str | None]
    ) -> tuple[str, ...]:
        values = table.get(key)
        if not isinstance(values, list) or not values:
            self._wrong("is missing" if values is None else "is a list of texts, at least one", *place, key)
            return ()
        good = []
        for at, value in enumerate(values, 1):
            problem = check(value) if isinstance(value, str) else "is a text in quotes"
            if problem:
                self._wrong(f"{_quoted(value)}: {problem}", *place, key, at)
            elif isinstance(value, str):
                good.append(value)
        return tuple(good)

    def _wrong(self, message: str, *place: str | int) -> None:
        key = "".join(f"[{part}]" if isinstance(part, int) else f".{escaped(part)}" for part in place).lstrip(".")
        self._problems.append(Problem(self._positions.line(*place), key, message))


def _reviewer_problem(name: str) -> str | None:
    return None if _NAME.match(name) else "is a reviewer's name: letters, digits, spaces, '_', '-' and '.'"


def _argument_problem(argument: str) -> str | None:
    return "an argument holds no NUL, and is not empty" if not argument or "\0" in argument else None


def _agent_problem(agent: str) -> str | None:
    if agent == "*":
        return None
    if agent.startswith("class:"):
        return _known(agent[6:], AGENT_CLASSES)
    if not agent or "*" in agent or not agent.isprintable() or " " in agent:
        return "an agent's name (whole, no globs), class:NAME, or *"
    return None


def glob_problem(glob: str) -> str | None:
    """Why a glob cannot be used; also where gitignore would pass over it in silence."""
    body = glob.removeprefix("!")
    segments = body.strip("/").split("/")
    if not body.strip("/") or "" in segments or body.startswith("//") or body.endswith("//"):
        return "an empty glob, or an empty part of one"
    if body.startswith("#"):
        return r"begins a comment; write \# (in single quotes)"
    if not body.isprintable() or body.rstrip("/") != body.rstrip("/").rstrip():
        return "ends with a space, or holds characters that names may not have"
    if "." in segments or ".." in segments:
        return "names are relative to the workspace and never hold '.' or '..' components"
    if not unicodedata.is_normalized("NFC", body):
        return "is not in Unicode form NFC and would match nothing"
    if any(segment.count("*") > _MOST_STARS for segment in segments) or segments.count("**") > _MOST_STARS:
        return f"more than {_MOST_STARS} stars in one part, or {_MOST_STARS} '**'"
    if any(_open_bracket(segment) for segment in segments):
        return r"'[' is never closed; write \[ for the character (in single quotes)"
    if _CLASS.search(body):
        return "a bracket holds '[', '--', '&&', '||' or '~~', which mean different things to different readers"
    try:
        Pattern(glob)
        Pattern(fold_pattern(glob))  # "[Z-a]" is a range only as long as case counts
    except (ValueError, re.error) as error:
        return f"is no glob, with or without regard to case: {error}"
    return None


def _open_bracket(segment: str) -> bool:
    """Whether a `[` in a glob has no `]`; gitignore then drops the whole glob."""
    rest = re.sub(r"\\.", "", segment)
    return "[" in re.sub(r"\[[!^]?\]?[^\]]*\]", "", rest)


def _known(value: str, known: tuple[str, ...]) -> str | None:
    return None if value in known else f"unknown; {_suggestion(value, known)}"


def _suggestion(value: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(value, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


def _quoted(value: object) -> str:
    return f"'{escaped(value)}'" if isinstance(value, str) else repr(value)
