"""Which reviewers a conflict is put to, how each is reached and what it may take; and which plugins are enabled."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from orchestrator.core.policy.glob_forms import glob_problem
from orchestrator.core.policy.tables import agent_problem, argument_problem, name_problem

PERSON: Final = "person"
"""In a chain of reviewers: nobody is asked any more; a person resolves it."""

Globs = Annotated[tuple[str, ...], Meta(min_length=1, extra={"each": glob_problem})]
Agents = Annotated[tuple[str, ...], Meta(min_length=1, extra={"each": agent_problem})]
Arguments = Annotated[tuple[str, ...], Meta(min_length=1, extra={"each": argument_problem})]
Name = Annotated[str, Meta(extra={"check": name_problem})]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_PLUGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}\Z")
_OWN = "ORCHESTRATOR_"


def variable_problem(name: str) -> str | None:
    """What is wrong with the name of a variable that is handed on."""
    if not _VARIABLE.match(name):
        return "is the name of a variable, not its value"
    return f"{_OWN}… variables are the orchestrator's own and are handed to nobody" if name.startswith(_OWN) else None


def plugin_problem(name: str) -> str | None:
    """What is wrong with a plugin's name."""
    return None if _PLUGIN.match(name) else "a plugin's name has letters, digits, '_', '-' and '.'"


Variables = Annotated[tuple[str, ...], Meta(extra={"each": variable_problem})]
Tokens = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Usd = Annotated[float, Meta(ge=0, le=1000)]
Timeout = Annotated[float, Meta(gt=0, le=3600)]


class HumanSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="human"
):
    """A `[[reviewer]]` that nobody calls."""

    name: Name


class AskedSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every `[[reviewer]]` has that is asked. A limit of 0 is none."""

    name: Name
    timeout_s: Timeout = 120.0  # for one review, its repair included
    max_concurrent: Annotated[int, Meta(ge=1, le=64)] = 2
    max_tokens: Tokens = 0  # of one review, as the reviewer says
    max_cost_usd: Usd = 0.0
    max_tokens_per_hour: Tokens = 0
    max_cost_usd_per_hour: Usd = 0.0


class ProgramSettings(AskedSettings, frozen=True, kw_only=True, tag_field="kind", tag="program"):
    """A program that is started for each review."""

    argv: Arguments
    env: Variables = ()  # names of variables that `up` passes on for the program; the daemon has none of them


class PluginSettings(AskedSettings, frozen=True, kw_only=True, tag_field="kind", tag="plugin"):
    """A plugin that makes a reviewer."""

    plugin: Annotated[str, Meta(extra={"check": plugin_problem})]


ReviewerSettings = ProgramSettings | PluginSettings | HumanSettings


class Plugins(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The plugins that the operator named; no other is even imported."""

    enabled: Annotated[tuple[str, ...], Meta(extra={"each": plugin_problem})] = ()
    env: Variables = ()  # names of variables that `up` passes to the daemon for them
    timeout_s: Timeout = 5.0  # for one call of one hook, and for its import


class Route(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conflicts of this kind go to these reviewers, one after the other; the first route that matches decides.

    What is left out matches all. `same_symbol = true` also takes changes that would apply, but touch
    a symbol that somebody else changed since their base: they wait as conflicts then.
    """

    reviewers: Annotated[tuple[str, ...], Meta(min_length=1, extra={"each": name_problem})]
    name: str = ""
    paths: Globs = ("**",)
    agents: Agents = ("*",)
    max_lines: Annotated[int, Meta(ge=1, le=999_999)] | None = None  # of the longest side of all regions together
    same_symbol: bool | None = None
    deadline_s: Annotated[int, Meta(ge=1, le=86_400)] = 300  # for each reviewer
    accept: Literal["auto", "person"] = "person"  # who says yes to a proposal that passed the checks


class Conflicts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What becomes of a conflict that nobody resolves."""

    expire_after_s: Annotated[int, Meta(ge=0, le=365 * 86_400)] = 0  # 0: never


class Checks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a reviewer's proposal must pass before it counts, besides parsing.

    The command runs in a scratch folder that holds the file, or the tree, as it would be; exit code 0 passes.
    """

    command: Annotated[
        tuple[str, ...], Meta(extra={"each": argument_problem})
    ] = ()  # program and arguments; {path} is the file's path in the folder
    timeout_s: Annotated[int, Meta(ge=1, le=3600)] = 60
    scope: Literal["file", "tree"] = "tree"
