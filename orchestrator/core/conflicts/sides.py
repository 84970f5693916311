"""The three texts of a conflict, the text that choices for its regions give, and what still conflicts later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Literal

import msgspec

from orchestrator.core.content import Region, Span, ThreeWay
from orchestrator.core.text.diff import diff
from orchestrator.core.text.encoding import Document, encode
from orchestrator.core.text.merge import LineMerge, Lines, MergeConflict, Merged
from orchestrator.core.text.merging.ambiguous_hunks import ambiguous_hunks
from orchestrator.core.text.merging.doubts import doubts, removed_already
from orchestrator.core.text.merging.merged_document import merged_document

Side = Literal["current", "proposed"]
Choices = Mapping[int, Side | tuple[str, ...]]
"""A side or lines for each region, by its number from 0; a region without a choice keeps the current side."""

OURS, BASE, SEPARATOR, THEIRS = "<<<<<<<", "|||||||", "=======", ">>>>>>>"


class GapConflict(ValueError):
    """The sides also conflict between two regions: these are not the regions of these texts."""


class Sides(ThreeWay[Document], frozen=True, dict=True):
    """What a conflict is about, where all of it is text."""

    regions: tuple[Region, ...]

    @cached_property
    def lines(self) -> ThreeWay[Lines]:
        return self.map(attrgetter("lines"))

    def gaps(self) -> tuple[tuple[str, ...], ...]:
        """The lines before, between and after the regions, with both sides' changes, which no choice may touch.

        One more than regions. Raises GapConflict.
        """
        found = []
        ends = [[*(span.start for span in place)] for place in self.regions] + [[len(text) for text in self.lines]]
        starts = [[0, 0, 0]] + [[*(span.end for span in place)] for place in self.regions]
        for start, end in zip(starts, ends, strict=True):
            merged = LineMerge(*(text[a:b] for text, a, b in zip(self.lines, start, end, strict=True))).merged()
            if not isinstance(merged, Merged):
                raise GapConflict
            found.append(merged.lines)
        return tuple(found)

    def assembled(self, choices: Choices) -> tuple[str, ...]:
        """The text with a choice for each region, and both sides' changes everywhere else. Raises GapConflict."""
        between = self.gaps()
        lines = list(between[0])
        for number, place in enumerate(self.regions):
            match choices.get(number, "current"):
                case "current":
                    lines += place.current.of(self.lines.current)
                case "proposed":
                    lines += place.proposed.of(self.lines.proposed)
                case chosen:
                    lines += chosen
            lines += between[number + 1]
        return tuple(lines)

    def chosen(self, choices: Choices) -> bytes:
        """The file with a choice for each region, both sides' changes elsewhere. Raises GapConflict, NotEncodable."""
        return encode(self.current_with(self.assembled(choices)))

    def with_proposed(self) -> Document:
        """The file with the proposed side of each region, and the current side of everything else."""
        try:
            lines = self.assembled(dict.fromkeys(range(len(self.regions)), "proposed"))
        except GapConflict:  # nobody knows which lines it is about
            lines = LineMerge(*self.lines).favouring_proposed()
        return self.current_with(lines)

    def current_with(self, lines: Lines) -> Document:
        """The file with these lines in place of its own; its encoding stays, and each line end of a line that does.

        Where it holds nothing (it may have been deleted) they are as proposed.
        """
        like = self.current if self.current.lines else self.proposed
        return merged_document(self, like, lines, ended=self._ended())

    def rebased(self) -> Rebased:
        """See `rebased`."""
        return rebased(*self.lines)

    def same_conflict(self, newer: Sides) -> bool:
        """Whether the regions only moved, so that a choice for the one is the same choice for the other.

        Each holds the current and proposed lines that it held. While the proposed text is the same one, each
        region is also at the same of its lines: regions may hold equal lines, and one may have replaced another.
        """
        if len(self.regions) != len(newer.regions):
            return False
        pairs = list(zip(self.regions, newer.regions, strict=True))
        if any([*self._parts(one)][1:] != [*newer._parts(other)][1:] for one, other in pairs):
            return False
        return tuple(self.lines.proposed) != tuple(newer.lines.proposed) or all(
            (one.base, one.proposed.start) == (other.base, other.proposed.start) for one, other in pairs
        )

    def marked(self) -> str | None:
        """The file as text with diff3 markers at each region; None where the regions are not these texts'."""
        try:
            between = self.gaps()
        except GapConflict:
            return None
        lines = list(between[0])
        for number, (place, after) in enumerate(zip(self.regions, between[1:], strict=True), 1):
            base, current, proposed = self._parts(place)
            lines += [f"{OURS} current (region {number})", *current, f"{BASE} base", *base]
            lines += [SEPARATOR, *proposed, f"{THEIRS} proposed", *after]
        return "\n".join(lines) + ("\n" if self._ended() else "")

    def _parts(self, place: Region) -> Iterator[tuple[str, ...]]:
        """The lines of a region, in each of the three texts."""
        return (span.of(text) for span, text in zip(place, self.lines, strict=True))

    def _ended(self) -> bool:
        """Whether the last line is: as the side says that changed it, the proposed one if both did."""
        changed = self.proposed.final_newline != self.base.final_newline or not self.current.lines
        return self.proposed.final_newline if changed else self.current.final_newline


def within(between: Sequence[tuple[str, ...]], text: Lines) -> bool:
    """Whether a whole text could have come by choosing for the regions alone: it has all `gaps`, in order.

    The first begins it and the last ends it. Cost: O(lines) for each gap at worst.
    """
    first, last = between[0], between[-1]
    end = len(text) - len(last)
    if end < len(first) or tuple(text[: len(first)]) != first or tuple(text[end:]) != last:
        return False
    at = len(first)
    for piece in between[1:-1]:
        while at + len(piece) <= end and tuple(text[at : at + len(piece)]) != piece:
            at += 1
        at += len(piece)
        if at > end:
            return False
    return True


# --- when the file has changed -----------------------------------------------------------


class Rebased(msgspec.Struct, frozen=True):
    """What still conflicts; with no region, `lines` is the text in which all goes together."""

    regions: tuple[Region, ...]
    lines: tuple[str, ...] = ()


def rebased(base: Lines, current: Lines, proposed: Lines) -> Rebased:
    """What of a change base → proposed conflicts with a newer content of the file, or has no sure place in it."""
    texts = LineMerge(base, current, proposed)
    merged = texts.merged()
    if isinstance(merged, Merged):
        merged = doubts(texts, merged.lines) or merged
    if isinstance(merged, MergeConflict):
        return Rebased(merged.regions)
    if merged.lines != tuple(current):
        regions = ambiguous_hunks(texts)
    else:
        regions = () if removed_already(texts) else (spanned(base, current, proposed),)
    return Rebased(regions, () if regions else merged.lines)


def spanned(base: Lines, current: Lines, proposed: Lines) -> Region:
    """One region from the first line that either side changed to the last: of a conflict that no line shows."""
    made, met = diff(base, proposed), diff(base, current)
    start = min((hunk.old_start for hunk in (*made, *met)), default=0)
    length = max((hunk.old_end for hunk in (*made, *met)), default=0) - start
    current_more, proposed_more = (sum(hunk.new_len - hunk.old_len for hunk in hunks) for hunks in (met, made))
    return Region(Span(start, length), Span(start, length + current_more), Span(start, length + proposed_more))


def changed_regions(current: Lines, proposed: Lines) -> tuple[Region, ...]:
    """The regions of a change that would apply and is to be reviewed first: each of its hunks, against no other."""
    return tuple(
        Region(Span(h.old_start, h.old_len), Span(h.old_start, h.old_len), Span(h.new_start, h.new_len))
        for h in diff(current, proposed)
    )
