"""The three sides of a conflict as texts, and what choices for its regions make of the file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec

from orchestrator.core.conflicts.rebase import GapConflict, Side, assembled, gaps
from orchestrator.core.decisions.costs import large
from orchestrator.core.decisions.rebase import EMPTY
from orchestrator.core.events.conflicts import ConflictFound, ConflictRegion
from orchestrator.core.ids import Digest
from orchestrator.core.text.encoding import Document, edits_between, encode, splice, with_runs_of
from orchestrator.engine.contents import Contents
from orchestrator.ports.workers import Effort

OURS, BASE, SEPARATOR, THEIRS = "<<<<<<<", "|||||||", "=======", ">>>>>>>"


class Sides(msgspec.Struct, frozen=True):
    """What a conflict is about, where all of it is text."""

    base: Document
    current: Document
    proposed: Document
    regions: tuple[ConflictRegion, ...]

    def chosen(self, choices: Mapping[int, Side | tuple[str, ...]]) -> Document:
        """The file with a choice for each region (from 0), both sides' changes elsewhere. Raises GapConflict."""
        lines = assembled(self.base.lines, self.current.lines, self.proposed.lines, self.regions, choices)
        return self.current_with(lines)

    def current_with(self, lines: tuple[str, ...]) -> Document:
        """What the file holds, with these lines in place of its own; its encoding and line ends stay.

        Where it holds nothing (it may have been deleted) they are as proposed.
        """
        like = self.current if self.current.lines else self.proposed
        onto = with_runs_of(like, self.base, self.current, self.proposed)
        return splice(onto, edits_between(like, lines, self._ended()))

    @property
    def large(self) -> bool:
        """Whether comparing them may take long."""
        return large(self.base, self.current, self.proposed)

    def gaps(self) -> tuple[tuple[str, ...], ...]:
        """What no choice may touch. Raises GapConflict."""
        return gaps(self.base.lines, self.current.lines, self.proposed.lines, self.regions)

    def all_of(self, side: Side) -> dict[int, Side | tuple[str, ...]]:
        """The choice of one side everywhere."""
        return dict.fromkeys(range(len(self.regions)), side)

    def marked(self) -> str | None:
        """The file as text with diff3 markers at each region; None where the regions are not these texts'."""
        try:
            between = self.gaps()
        except GapConflict:
            return None
        lines = list(between[0])
        for number, (r, after) in enumerate(zip(self.regions, between[1:], strict=True), 1):
            lines += [f"{OURS} current (region {number})", *self.current.lines[r.current_start :][: r.current_len]]
            lines += [f"{BASE} base", *self.base.lines[r.base_start :][: r.base_len]]
            lines += [SEPARATOR, *self.proposed.lines[r.proposed_start :][: r.proposed_len], f"{THEIRS} proposed"]
            lines += after
        return "\n".join(lines) + ("\n" if self._ended() else "")

    def _ended(self) -> bool:
        """Whether the last line is: as the side says that changed it, the proposed one if both did."""
        changed = self.proposed.final_newline != self.base.final_newline or not self.current.lines
        return self.proposed.final_newline if changed else self.current.final_newline


async def chosen(effort: Effort, sides: Sides, choices: Mapping[int, Side | tuple[str, ...]]) -> bytes:
    """The bytes of `Sides.chosen`. Raises GapConflict, NotEncodable, TextTooCostly."""
    work = partial(_written, sides, choices)
    return await effort.run(work) if sides.large else work()


def _written(sides: Sides, choices: Mapping[int, Side | tuple[str, ...]]) -> bytes:
    return encode(sides.chosen(choices))


async def sides_of(contents: Contents, found: ConflictFound) -> Sides | None:
    """The sides of a conflict; None where one of them is no text, or not kept, or nothing is to stand there."""
    base, current = await text(contents, found.base), await text(contents, found.current)
    proposed = await text(contents, found.proposed) if found.proposed is not None else None
    if base is None or current is None or proposed is None:
        return None
    return Sides(base, current, proposed, found.regions)


async def text(contents: Contents, digest: Digest | None) -> Document | None:
    """A content as text, an empty one where nothing stands; None if it is no text, or not kept."""
    if digest is None:
        return EMPTY
    data = await contents.get(digest)
    return await contents.text(digest, data) if data is not None else None
