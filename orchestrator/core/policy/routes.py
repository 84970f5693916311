"""Which reviewers a conflict is put to, and what becomes of it while it waits."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Accept = Literal["auto", "person"]
WhenItFits = Literal["apply", "tell"]
Scope = Literal["file", "tree"]

ACCEPTS: Final[tuple[Accept, ...]] = ("auto", "person")
WHEN_IT_FITS: Final[tuple[WhenItFits, ...]] = ("apply", "tell")
SCOPES: Final[tuple[Scope, ...]] = ("file", "tree")

PERSON: Final = "person"
"""In a chain of reviewers: nobody is asked any more; a person settles it."""


class Route(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conflicts of this kind go to these reviewers, one after the other; the first route that matches decides.

    What is left out matches all. `same_symbol = true` also takes changes that would apply, but touch
    a symbol that somebody else changed since their base: they wait as conflicts then.
    """

    name: str
    reviewers: tuple[str, ...]
    paths: tuple[str, ...] = ("**",)
    agents: tuple[str, ...] = ("*",)
    max_lines: int | None = None  # of the longest side of all regions together
    same_symbol: bool | None = None
    deadline_s: int = 300  # for each reviewer
    accept: Accept = "person"  # who says yes to a proposal that passed the checks


class Conflicts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What becomes of a conflict that nobody settles."""

    when_it_fits: WhenItFits = "tell"  # newer changes took away what it clashed with
    expire_after_s: int = 0  # 0: never


class Checks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a reviewer's proposal must pass before it counts, besides parsing.

    The command runs in a scratch folder that holds the file, or the tree, as it would be; exit code 0 passes.
    """

    command: tuple[str, ...] = ()  # program and arguments; {path} stands for the file's path in the folder
    timeout_s: int = 60
    scope: Scope = "tree"
