"""Attribution: which version brought each line of a file in; a fold over the file's versions.

A version owns the lines that its hunks insert. Lines outside of them keep their owner, wherever
they move to, so a merged or shifted change owns what it changed and no more. A change that undoes
others owns what it brings back, as in git.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from orchestrator.core.content import LineHunk
from orchestrator.core.ids import Seq


class Owned(NamedTuple):
    """Adjacent lines that came with one version; 1-based, both ends included.

    `certain` false: they came with that version, whose content was not kept, or with the next one that was.
    """

    start: int
    end: int
    version: Seq
    certain: bool


class Step(NamedTuple):
    """One version, as attribution takes it in: the hunks lead from the content before to this one, ascending.

    `since`: contents in between were not kept, from that version on.
    """

    version: Seq
    hunks: tuple[LineHunk, ...]
    since: Seq | None = None


class Attribution:
    """The owner of each line after the versions taken in so far.

    Cost of a step: O(lines / 1000) for moving the tail, and its own hunks. Memory: 8 bytes a line.
    """

    def __init__(self) -> None:
        self._owners = array("q")  # by line; negative: not certain

    @property
    def lines(self) -> int:
        """How many lines the file has."""
        return len(self._owners)

    def take(self, step: Step) -> None:
        """Take the next version in. Raises ValueError where its hunks do not fit the lines."""
        if any(hunk.old_end > self.lines for hunk in step.hunks):
            raise ValueError(f"@{step.version}: a hunk ends after the last of {self.lines} lines")
        owner = -step.since if step.since is not None else step.version
        for hunk in reversed(step.hunks):
            self._owners[hunk.old_start : hunk.old_end] = array("q", [owner]) * hunk.new_len

    def refill(self, step: Step, lines: int) -> None:
        """As `take`, where the content before is not known: of `lines` lines those in no hunk came with `since`.

        Raises ValueError on hunks that reach beyond the lines, or without `since`.
        """
        if step.since is None or any(hunk.new_end > lines for hunk in step.hunks):
            raise ValueError(f"@{step.version} does not fit into {lines} lines")
        self._owners = array("q", [-step.since]) * lines
        for hunk in step.hunks:
            self._owners[hunk.new_start : hunk.new_end] = array("q", [step.version]) * hunk.new_len

    def owned(self, start: int = 1, end: int | None = None) -> Iterator[Owned]:
        """The owners of lines `start` to `end`, 1-based and included, as few ranges as there can be, ascending."""
        at = start
        for owner, run in groupby(self._owners[start - 1 : end]):
            count = sum(1 for _ in run)
            yield Owned(at, at + count - 1, Seq(abs(owner)), owner > 0)
            at += count
