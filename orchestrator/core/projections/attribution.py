"""Attribution: which version brought each line of a file in; a fold over the file's versions.

A version owns the lines that its hunks insert. Lines outside of them keep their owner, wherever
they move to, so a merged or shifted change owns what it changed and no more. A change that
reverts others gives lines back: of the lines that it inserts, those that a reverted change had
removed take the owner that they had before it. Which these are: if the revert leads from the
content that the change made straight back to the one that it found, all of them, in order; else
those that an alignment of the two sequences pairs (`align`, the pairing of git). Several reverted
changes are tried oldest first; a line whose former owner is itself reverted goes on to the next,
and in the end to the revert.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from orchestrator.core.content import LineHunk
from orchestrator.core.ids import Digest, Seq
from orchestrator.core.text.diff import diff


class Owned(NamedTuple):
    """Adjacent lines that came with one version; 1-based, both ends included.

    `certain` false: they came with that version, whose content was not kept, or with the next one that was.
    """

    start: int
    end: int
    version: Seq
    certain: bool


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One version, as attribution takes it in.

    `change` is the name by which a later change reverts it. `hunks` lead from the content before
    to this one, ascending. `since`: contents in between were not kept, from that version on.
    `removed`, once it is taken in: whose lines it removed, as (owner, count) in the order of the hunks.
    """

    version: Seq
    change: Seq
    before: Digest | None
    after: Digest | None
    hunks: tuple[LineHunk, ...]
    since: Seq | None = None
    reverts: tuple[Seq, ...] = ()
    texts: RevertTexts | None = None  # where the contents are kept
    removed: tuple[tuple[int, int], ...] = ()

    def undone_by(self, step: Step) -> bool:
        """Whether a step leads from what this version made straight back to what it found."""
        return step.since is None and (step.before, step.after) == (self.after, self.before)


class RevertTexts(msgspec.Struct, frozen=True):
    """The lines that a revert inserts, and those that each reverted change had removed; in the order of their hunks."""

    inserted: tuple[str, ...]
    removed: Mapping[Seq, tuple[str, ...]]


class Attribution:
    """The owner of each line after the versions taken in so far.

    Cost of a step: O(lines / 1000) for moving the tail, and its own hunks. Memory: 8 bytes a
    line, and a run for each stretch of lines that a version removed.
    """

    def __init__(self) -> None:
        self._owners = array("q")  # by line; negative: not certain
        self._taken: dict[Seq, Step] = {}

    @property
    def lines(self) -> int:
        """How many lines the file has."""
        return len(self._owners)

    def inexact(self, step: Step) -> tuple[tuple[Seq, Step], ...]:
        """The reverted changes for which a step needs texts: it does not lead straight back."""
        known = ((change, self._taken.get(change)) for change in step.reverts)
        return tuple((change, taken) for change, taken in known if taken is not None and not taken.undone_by(step))

    def take(self, step: Step) -> None:
        """Take the next version in. Raises ValueError where its hunks do not fit the lines."""
        step = self._exact(step)
        owner = -step.since if step.since is not None else step.version
        removed = array("q")
        for hunk in step.hunks:
            removed += self._owners[hunk.old_start : hunk.old_start + hunk.old_len]
        inserted = self._inserted(step, owner)
        if len(removed) != sum(h.old_len for h in step.hunks):
            raise ValueError(f"@{step.version}: a hunk ends after the last of {self.lines} lines")
        end = len(inserted)
        for hunk in reversed(step.hunks):
            self._owners[hunk.old_start : hunk.old_start + hunk.old_len] = inserted[end - hunk.new_len : end]
            end -= hunk.new_len
        self._taken[step.change] = msgspec.structs.replace(step, texts=None, removed=_packed(removed))

    def refill(self, step: Step, lines: int) -> None:
        """As `take`, where the content before is not known: of `lines` lines those in no hunk came with `since`.

        Raises ValueError on hunks that reach beyond the lines, or without `since`.
        """
        if step.since is None or any(h.new_start + h.new_len > lines for h in step.hunks):
            raise ValueError(f"@{step.version} does not fit into {lines} lines")
        self._owners = array("q", [-step.since]) * lines
        for hunk in step.hunks:
            self._owners[hunk.new_start : hunk.new_start + hunk.new_len] = array("q", [step.version]) * hunk.new_len

    def owned(self, start: int = 1, end: int | None = None) -> Iterator[Owned]:
        """The owners of lines `start` to `end`, 1-based and included, as few ranges as there can be, ascending."""
        at = start
        for owner, count in _packed(self._owners[start - 1 : end]):
            yield Owned(at, at + count - 1, Seq(abs(owner)), owner > 0)
            at += count

    def _exact(self, step: Step) -> Step:
        """The step; as the mirror image of the change that it reverts, if it leads straight back.

        A diff the other way round may pair equal lines otherwise.
        """
        for change in step.reverts:
            undone = self._taken.get(change)
            if undone is not None and undone.undone_by(step):
                hunks = tuple(LineHunk(h.new_start, h.new_len, h.old_start, h.old_len) for h in undone.hunks)
                return msgspec.structs.replace(step, hunks=hunks)
        return step

    def _inserted(self, step: Step, owner: int) -> array[int]:
        """The owners of the lines that a step inserts, in order."""
        owners = array("q", [owner]) * sum(h.new_len for h in step.hunks)
        undone = {change: self._taken[change] for change in sorted(step.reverts) if change in self._taken}
        reverted = {taken.version for taken in undone.values()}
        for change, taken in undone.items():
            former = array("q", [line for line, count in taken.removed for _ in range(count)])
            for here, there in _pairs(step, change, taken, len(owners)):
                if owners[here] == owner and former[there] not in reverted:
                    owners[here] = former[there]
        return owners


def _pairs(step: Step, change: Seq, undone: Step, inserted: int) -> Iterator[tuple[int, int]]:
    """Which inserted line is which removed one, by their places in the two sequences."""
    if undone.undone_by(step):
        yield from zip(range(inserted), range(inserted), strict=True)
    elif step.texts is not None and change in step.texts.removed:
        yield from _common(step.texts.removed[change], step.texts.inserted)


def _common(removed: Sequence[str], inserted: Sequence[str]) -> Iterator[tuple[int, int]]:
    old = new = 0
    for hunk in diff(removed, inserted):
        yield from zip(range(new, hunk.new_start), range(old, hunk.old_start), strict=True)
        old, new = hunk.old_end, hunk.new_end
    yield from zip(range(new, len(inserted)), range(old, len(removed)), strict=True)


def _packed(owners: array[int]) -> tuple[tuple[int, int], ...]:
    """(owner, count) for each run of one owner."""
    return tuple((owner, sum(1 for _ in run)) for owner, run in groupby(owners))
