"""What stands in a TOML table, value by value; all that is wrong with it is collected."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec

from orchestrator.core.errors import escaped
from orchestrator.core.policy.positions import Positions
from orchestrator.core.policy.rules import AGENT_CLASSES

T = TypeVar("T")

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.\-]{0,63}\Z")
"""Of a rule, a reviewer."""


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong with a policy file."""

    line: int  # from 1
    key: str  # "rule[2].paths[1]", counted from 1; "" for the file as a whole
    message: str


class Fields:
    """Reads values, and says of each that is wrong where it stands."""

    def __init__(self, text: str) -> None:
        self._positions = Positions(text)
        self._problems: list[Problem] = []

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


def agent_problem(agent: str) -> str | None:
    """What is wrong with an entry of `agents`."""
    if agent == "*":
        return None
    if agent.startswith("class:"):
        return known_one(agent[6:], AGENT_CLASSES)
    if not agent or "*" in agent or not agent.isprintable() or " " in agent:
        return "an agent's name (whole, no globs), class:NAME, or *"
    return None


def known_one(value: str, known: tuple[str, ...]) -> str | None:
    """What is wrong with a word that must be one of a few."""
    return None if value in known else f"unknown; {_suggestion(value, known)}"


def _suggestion(value: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(value, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


def _quoted(value: object) -> str:
    return f"'{escaped(value)}'" if isinstance(value, str) else repr(value)
