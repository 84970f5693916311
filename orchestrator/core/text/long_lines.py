"""Of a long line what matters: a window around the characters that changed, or that match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rapidfuzz.distance import Prefix

from orchestrator.core.text.redact import secrets
from orchestrator.core.text.secrets import MOST_KEY_BYTES, begins_key

BEFORE = 4
"""One part in so many of a window is before what it is around."""

NEAR = 4_000
"""Characters beside a window that are looked through for secrets; before it MOST_KEY_BYTES, for a key in one line."""


def near(line: str, first: int, last: int) -> tuple[int, int]:
    """From where to where a line is looked through for secrets, of which the characters from `first` are to be shown.

    Of a private key its head alone tells, however far before; of other secrets what is near. Cost: O(MOST_KEY_BYTES).
    """
    begin = max(0, first - MOST_KEY_BYTES)
    return begin if begins_key(line[begin:last]) else max(0, first - NEAR), last + NEAR


def window(line: str, at: int, most: int) -> str:
    """About `most` characters of a line around the 0-based `at`, and how many it has besides on each side.

    A window ends where a secret begins: of one that is shown in part, or without what is before it, nobody could tell
    that it is one. Cost: a look at the characters shown and those near them.
    """
    if len(line) <= most:
        return line
    first = max(0, min(at - most // BEFORE, len(line) - most))
    last = first + most
    begin, beyond = near(line, first, last)
    for secret in secrets((line[begin:beyond],), level="all"):
        start, end = begin + secret.start, begin + secret.end
        if end <= at:
            first = max(first, end)
        elif start > at:
            last = min(last, start)
        else:
            first = last = at
            break
    before = f"[{first} characters left out] … " if first else ""
    after = len(line) - last
    return f"{before}{line[first:last]}{f' … [{after} characters left out]' if after else ''}"


def parts_that_differ(lines: Sequence[str], others: Sequence[str], most: int) -> Iterator[str]:
    """Lines as `window` shows them, each around where the line in its place among the others differs."""
    for at, line in enumerate(lines):
        other = others[at] if at < len(others) else None
        yield window(line, first_difference(line, other), most)


def first_difference(line: str, other: str | None) -> int:
    """The 0-based character with which two versions of a line begin to differ; 0 where there is no other.

    Cost: a look at what they share.
    """
    return int(Prefix.similarity(line, other)) if other is not None else 0
