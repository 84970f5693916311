"""Which reviewers a conflict is put to, and what becomes of it while it waits."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from orchestrator.core.policy.globs import glob_problem
from orchestrator.core.policy.tables import agent_problem, argument_problem, name_problem

PERSON: Final = "person"
"""In a chain of reviewers: nobody is asked any more; a person settles it."""

Globs = Annotated[tuple[str, ...], Meta(min_length=1, extra={"each": glob_problem})]
Agents = Annotated[tuple[str, ...], Meta(min_length=1, extra={"each": agent_problem})]
Arguments = Annotated[tuple[str, ...], Meta(min_length=1, extra={"each": argument_problem})]
Name = Annotated[str, Meta(extra={"check": name_problem})]


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
    """What becomes of a conflict that nobody settles."""

    expire_after_s: Annotated[int, Meta(ge=0, le=365 * 86_400)] = 0  # 0: never


class Checks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a reviewer's proposal must pass before it counts, besides parsing.

    The command runs in a scratch folder that holds the file, or the tree, as it would be; exit code 0 passes.
    """

    command: Annotated[
        tuple[str, ...], Meta(extra={"each": argument_problem})
    ] = ()  # program and arguments; {path} stands for the file's path in the folder
    timeout_s: Annotated[int, Meta(ge=1, le=3600)] = 60
    scope: Literal["file", "tree"] = "tree"
