"""Which reviewers there are, how each is reached, and what it may cost; and which plugins are let in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, get_args

import msgspec

Kind = Literal["program", "human", "plugin"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_PLUGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}\Z")
_OWN = "ORCHESTRATOR_"
_MOST_USD = 1000.0


class ReviewerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[reviewer]]` table. Keys that its kind has no use for are refused."""

    name: str
    kind: Kind
    # program
    argv: tuple[str, ...] = ()
    env: tuple[str, ...] = ()  # names of variables that `up` hands over for the program; the daemon has none of them
    # plugin
    plugin: str = ""
    # all that are called
    timeout_s: float = 120.0  # for one review, its repair included
    max_concurrent: int = 2
    max_tokens: int = 0  # of one review, as the reviewer says; 0: no limit
    max_cost_usd: float = 0.0
    max_tokens_per_hour: int = 0
    max_cost_usd_per_hour: float = 0.0


class Plugins(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The plugins that the operator named; no other is even imported."""

    enabled: tuple[str, ...] = ()
    env: tuple[str, ...] = ()  # names of variables that `up` hands to the daemon for them
    timeout_s: float = 5.0  # for one call of one hook, and for its import


_WHOLE: Final = {
    "max_tokens": range(1_000_000_001),
    "max_tokens_per_hour": range(1_000_000_001),
    "max_concurrent": range(1, 65),
}
_USD: Final = ("max_cost_usd", "max_cost_usd_per_hour")
_TEXTS: Final = ("name", "plugin")
_CALLED: Final = frozenset({"name", "kind", "timeout_s", *_WHOLE, *_USD})
_USES: Final[Mapping[Kind, frozenset[str]]] = {
    "program": _CALLED | {"argv", "env"},
    "human": frozenset({"name", "kind"}),
    "plugin": _CALLED | {"plugin"},
}

Trouble = tuple[str, str]
"""The key that is wrong, and why."""


def read_reviewer(table: Mapping[str, Any]) -> tuple[ReviewerSettings | None, list[Trouble]]:
    """One `[[reviewer]]` table; None with all that is wrong with it."""
    kind = table.get("kind")
    if kind not in KINDS:
        return None, [("kind", f"is one of {' | '.join(KINDS)}")]
    troubles = [
        (key, f"is nothing that a {kind} has; it has {', '.join(sorted(_USES[kind]))}")
        for key in table
        if key not in _USES[kind]
    ]
    troubles += [*_forms(table), *_values(table), *_missing(kind, table)]
    if troubles:
        return None, troubles
    return msgspec.convert(dict(table), ReviewerSettings, strict=False), []


def read_plugins(table: Mapping[str, Any]) -> tuple[Plugins, list[Trouble]]:
    """The `[plugins]` table, and all that is wrong with it."""
    troubles = [
        (key, "unknown key; known: enabled, env, timeout_s") for key in table if key not in Plugins.__struct_fields__
    ]
    enabled = table.get("enabled", [])
    if not isinstance(enabled, list) or not all(isinstance(name, str) and _PLUGIN.match(name) for name in enabled):
        troubles.append(("enabled", "is a list of plugins' names: letters, digits, '_', '-' and '.'"))
    elif len(set(enabled)) < len(enabled):
        troubles.append(("enabled", "names a plugin twice"))
    if not isinstance(env := table.get("env", []), list) or not all(isinstance(name, str) for name in env):
        troubles.append(("env", "is a list of variables' names"))
    troubles += _variables(table)
    troubles += _timeout(table)
    return (Plugins() if troubles else msgspec.convert(dict(table), Plugins, strict=False)), troubles


def _variables(table: Mapping[str, Any]) -> Iterator[Trouble]:
    """Of those that are handed on by name."""
    for name in env if isinstance(env := table.get("env"), list) else ():
        if isinstance(name, str) and not _VARIABLE.match(name):
            yield "env", "is the name of a variable, not its value"
        elif isinstance(name, str) and name.startswith(_OWN):
            yield "env", f"{_OWN}… variables are the orchestrator's own and are handed to nobody"


def _forms(table: Mapping[str, Any]) -> Iterator[Trouble]:
    for key in _TEXTS:
        value = table.get(key)
        if value is not None and (not isinstance(value, str) or not value.strip() or not value.isprintable()):
            yield key, "is one line of text in quotes"
    for key, least in (("argv", 1), ("env", 0)):
        value = table.get(key, ["-"])
        if not isinstance(value, list) or len(value) < least or not all(_argument(item) for item in value):
            yield key, "is a list of texts, none empty" + (", at least one" if least else "")
    for key, known in _WHOLE.items():
        value = table.get(key, known[-1])
        if type(value) is not int or value not in known:
            yield key, f"a whole number, {known[0]} to {known[-1]}"
    for key in _USD:
        value = table.get(key, 0)
        if type(value) not in (int, float) or not 0 <= value <= _MOST_USD:
            yield key, f"an amount in USD, 0 to {_MOST_USD:g}"
    yield from _timeout(table)


def _timeout(table: Mapping[str, Any]) -> list[Trouble]:
    value = table.get("timeout_s", 1)
    good = type(value) in (int, float) and 0 < value <= 3600
    return [] if good else [("timeout_s", "seconds, more than 0 and at most 3600")]


def _argument(item: object) -> bool:
    return isinstance(item, str) and bool(item) and "\0" not in item


def _values(table: Mapping[str, Any]) -> Iterator[Trouble]:
    yield from _variables(table)
    for most in ("max_tokens", "max_cost_usd"):
        if table.get(f"{most}_per_hour") and not table.get(most):
            yield f"{most}_per_hour", f"needs {most}: what one review may take at most"


def _missing(kind: Kind, table: Mapping[str, Any]) -> Iterator[Trouble]:
    needed = {"program": ("argv",), "human": (), "plugin": ("plugin",)}
    for key in ("name", *needed[kind]):
        if key not in table:
            yield key, "is missing"
