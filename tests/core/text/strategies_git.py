"""Seeded texts and edits for comparing with git, from very repetitive to nearly unique lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

from orchestrator.core.content import LineHunk

Alphabet = Callable[[Random], str]

ALPHABETS: dict[str, Alphabet] = {
    "two lines": lambda r: r.choice("ab"),
    "six lines": lambda r: r.choice("abcdef"),
    "code": lambda r: r.choice(["", "}", "{", "    return x;"]) if r.random() < 0.4 else f"line {r.randint(0, 200)}",
    "prose": lambda r: f"line {r.randint(0, 10**6)}",
}
LENGTHS = [0, 1, 3, 10, 40, 150, 400]


def edited(r: Random, base: list[str], alphabet: Alphabet) -> list[str]:
    """The base after up to a dozen insertions, removals, replacements and copies of a few lines."""
    lines = list(base)
    for _ in range(r.randint(1, max(1, min(12, len(base) // 6 + 1)))):
        at, length = r.randint(0, len(lines)), r.randint(1, 4)
        match r.choice(["insert", "remove", "replace", "copy"]):
            case "insert":
                lines[at:at] = [alphabet(r) for _ in range(length)]
            case "remove":
                del lines[at : at + length]
            case "replace":
                lines[at : at + length] = [alphabet(r) for _ in range(length)]
            case _:
                to = r.randint(0, len(lines))
                lines[to:to] = lines[at : at + length]
    return lines


def three(r: Random, alphabet: Alphabet) -> tuple[list[str], list[str], list[str]]:
    """A base and two edited copies of it."""
    base = [alphabet(r) for _ in range(r.choice(LENGTHS))]
    return base, edited(r, base, alphabet), edited(r, base, alphabet)


def with_hunks(a: Sequence[str], b: Sequence[str], hunks: Iterable[LineHunk]) -> list[str]:
    """`a` with the hunks' lines of `b` in place: `b`, if the hunks are those of `diff(a, b)`."""
    lines: list[str] = []
    at = 0
    for hunk in hunks:
        lines += [*a[at : hunk.old_start], *b[hunk.new_start : hunk.new_end]]
        at = hunk.old_end
    return [*lines, *a[at:]]
