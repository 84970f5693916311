"""A unified diff in colours; within a line that was changed, what changed of it.

Rows are told apart by the counts of their hunk, as the text of a file may look like a header. Characters that do not
show come out visible, also a carriage return at the end of a changed line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import click

from orchestrator.core.errors import escaped

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")

MOST_COMPARED = 2_000_000
"""Characters of one line times those of the other, of all pairs of one diff; it takes half a second at worst."""


def diff_lines(diff: str | None, more: str = "", *, inline: bool | None = None) -> Iterator[str]:
    """The rows of a diff; and `more` in the end, if there is more of it. `inline` by default: on a terminal."""
    rows = _Rows(inline=sys.stdout.isatty() if inline is None else inline)
    for row in diff.removesuffix("\n").split("\n") if diff else ():
        yield from rows.taken(row)
    yield from rows.pairs()
    if more:
        yield more


class _Rows:
    """Rows come in one by one; removed lines wait for the added ones that replace them."""

    def __init__(self, *, inline: bool) -> None:
        self._inline, self._room = inline, MOST_COMPARED
        self._old = self._new = 0  # rows of the hunk that are still to come
        self._removed: list[str] = []
        self._added: list[str] = []

    def taken(self, row: str) -> Iterator[str]:
        """What can be shown once this row is known."""
        inside, sign = self._old > 0 or self._new > 0, row[:1]
        if inside and sign == "-" and not self._added:
            self._removed.append(_visible(row))
            self._old -= 1
            return
        if inside and sign == "+":
            self._added.append(_visible(row))
            self._new -= 1
            return
        yield from self.pairs()
        if inside and sign == "-":
            self._removed.append(_visible(row))
            self._old -= 1
        elif inside:
            counted = sign != "\\"
            self._old, self._new = self._old - counted, self._new - counted
            yield _visible(row.removesuffix("\r"))
        else:
            yield self._head(row)

    def pairs(self) -> Iterator[str]:
        """The removed and added lines that were waiting."""
        removed, added = self._removed, self._added
        self._removed, self._added = [], []
        marks = [self._marks(old, new) for old, new in zip(removed, added, strict=False)]
        if len(removed) != len(added):
            marks = []
        for rows, side, colour in ((removed, 0, "red"), (added, 1, "green")):
            for number, row in enumerate(rows):
                spans = marks[number][side] if marks else ()
                yield _marked(row, spans, colour)

    def _marks(self, old: str, new: str) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
        self._room -= len(old) * len(new)
        if not self._inline or self._room < 0:
            return (), ()
        from orchestrator.core.text.inline_changes import inline_changes  # its library only where it is shown

        return inline_changes(old[1:], new[1:]) or ((), ())

    def _head(self, row: str) -> str:
        """A row outside of the hunks."""
        hunk = _HUNK.match(row)
        if hunk is not None:
            self._old, self._new = (int(count) if count is not None else 1 for count in hunk.groups())
            return click.style(_visible(row), fg="cyan")
        if row.startswith("# "):
            return click.style(_visible(row), fg="yellow")
        return click.style(_visible(row), bold=True) if row.startswith(("+++", "---", "diff --git ")) else _visible(row)


def _marked(row: str, spans: tuple[tuple[int, int], ...], colour: str) -> str:
    if not spans:
        return click.style(row, fg=colour)
    parts, at = [], 0
    for start, end in spans:  # without the sign
        parts.append(click.style(row[at : start + 1], fg=colour))
        parts.append(click.style(row[start + 1 : end + 1], fg=colour, reverse=True))
        at = end + 1
    return "".join([*parts, click.style(row[at:], fg=colour)] if at < len(row) else parts)


def _visible(row: str) -> str:
    return "\t".join(map(escaped, row.split("\t")))
