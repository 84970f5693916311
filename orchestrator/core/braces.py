"""Globs with `{a,b}`, as shells and ripgrep take them: each stands for several without."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

MOST_CHARACTERS = 20_000
"""Of all globs for which a list stands."""


def alternatives(globs: Iterable[str]) -> list[str] | None:
    """The globs for which a list stands, in order; None where they are too many. A backslash makes a brace literal."""
    done, pending, taken = list[str](), list(reversed([*globs])), 0
    while pending:
        one = pending.pop()
        braces = _first(one)
        if braces is None:
            done.append(one)
            taken += len(one)
        else:
            before, choices, after = braces
            pending += [f"{before}{choice}{after}" for choice in reversed(choices)]
        if taken + sum(map(len, pending)) > MOST_CHARACTERS:
            return None
    return done


def _first(text: str) -> tuple[str, list[str], str] | None:
    """What stands before, in and behind the first braces with a comma in them."""
    begun = list[list[int]]()  # of braces that are open: where they begin, and their commas
    skipped = False
    for at, sign in enumerate(text):
        if skipped or sign == "\\":
            skipped = not skipped
        elif sign == "{":
            begun.append([at])
        elif sign == "," and begun:
            begun[-1].append(at)
        elif sign == "}" and begun:
            begin, *commas = begun.pop()
            if commas:
                signs = (begin, *commas, at)
                return text[:begin], [text[a + 1 : b] for a, b in pairwise(signs)], text[at + 1 :]
    return None


def has_brace(glob: str) -> bool:
    """Whether a glob of `alternatives` holds a brace that is not literal."""
    return re.search(r"[{}]", re.sub(r"\\.", "", glob, flags=re.DOTALL)) is not None
