"""Indentation: of what a passage is written with, and how that reads at another depth or in another style."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise


def indent_of(line: str) -> str:
    """The spaces and tabs that a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def step_of(lines: Iterable[str]) -> str | None:
    """What one level of indentation is here: a tab, some spaces, or None where nothing is indented.

    The commonest growth from one line to the next; of equally common ones the smaller.
    """
    indents = [indent_of(line) for line in lines if line.strip()]
    if any(indent.startswith("\t") for indent in indents):
        return "\t"
    grown = Counter(len(b) - len(a) for a, b in pairwise(indents) if len(b) > len(a))
    if grown:
        return " " * max(grown, key=lambda width: (grown[width], -width))
    return min((indent for indent in indents if indent), key=len, default=None)


class Rebasing:
    """Carries indentation from the way a passage is quoted to the way the file has it.

    Built from lines of the passage with the lines of the file that they stand for. `quoted` and
    `present` are the texts from which a level is read, for lines deeper than any that is paired.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]], quoted: Iterable[str], present: Iterable[str]) -> None:
        self._pairs = [(indent_of(a), indent_of(b)) for a, b in pairs if a.strip() and b.strip()]
        known: dict[str, set[str]] = {}
        for here, there in self._pairs:
            known.setdefault(here, set()).add(there)
        self._known = {here: next(iter(there)) for here, there in known.items() if len(there) == 1}
        self.consistent = len(self._known) == len(known)
        self._changes = any(here != there for here, there in self._pairs)
        self._step, self._new_step = step_of(quoted), step_of(present)

    def line(self, text: str, *, after: str | None = None) -> str:
        """A line as the file would have it; `after` is the paired line of the passage that it follows, or heads."""
        if not self._changes:
            return text
        if not text.strip():
            return ""
        return self._of(indent_of(text), after) + text.lstrip(" \t")

    def lines(self, texts: Sequence[str], *, after: str | None = None) -> list[str]:
        return [self.line(text, after=after) for text in texts]

    def _of(self, indent: str, after: str | None) -> str:
        if indent in self._known:
            return self._known[indent]
        here = indent_of(after) if after is not None else None
        if here not in self._known:
            here = min(self._known, key=lambda known: abs(len(known) - len(indent)), default=None)
        if here is None:
            return indent
        there = self._known[here]
        if indent.startswith(here):
            return there + self._carried(indent[len(here) :])
        if here.startswith(indent):
            less = self._carried(here[len(indent) :])
            return there[: len(there) - len(less)] if there.endswith(less) else ""
        return self._carried(indent)

    def _carried(self, more: str) -> str:
        """Levels of one style in the other's; blanks short of a level stay blanks."""
        step, new = self._step, self._new_step
        if not step or not new or step == new:
            return more
        levels, rest = 0, more
        while rest.startswith(step):
            levels, rest = levels + 1, rest[len(step) :]
        return new * levels + rest
