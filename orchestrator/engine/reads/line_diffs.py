"""Line differences between contents, remembered: a content never changes, so none of them goes stale."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from orchestrator.core.content import LineHunk
from orchestrator.core.decisions.stale_regions import Lines, hunks_between
from orchestrator.core.ids import Digest

MOST_HUNKS = 20_000
"""All remembered differences together; some 5 MB."""


class Comparisons:
    """Every session that read a file asks after each change for the same few differences."""

    def __init__(self, *, most_hunks: int = MOST_HUNKS) -> None:
        self._most, self._held = most_hunks, 0
        self._known: OrderedDict[tuple[Digest, Digest], Sequence[LineHunk]] = OrderedDict()

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._known)

    def known(self, old: Digest, new: Digest) -> Sequence[LineHunk] | None:
        """What `hunks` said of them, if that is at hand."""
        return self._known.get((old, new))

    def hunks(self, old: tuple[Digest, Lines], new: tuple[Digest, Lines]) -> Sequence[LineHunk]:
        """What makes one text the other, line by line as far as that goes; may be called from any thread."""
        known = self._known.get((old[0], new[0]))
        return known if known is not None else self.keep(old[0], new[0], hunks_between(old[1], new[1]))

    def keep(self, old: Digest, new: Digest, hunks: Sequence[LineHunk]) -> Sequence[LineHunk]:
        """Remember a difference that was found elsewhere."""
        self._known[old, new] = hunks
        self._held += len(hunks) + 1
        while self._held > self._most and len(self._known) > 1:
            self._held -= len(self._known.popitem(last=False)[1]) + 1
        return hunks
