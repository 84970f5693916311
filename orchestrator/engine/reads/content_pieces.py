"""Parts of large contents; whoever reads on where the last part ended does not unpack anew what is before it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

from orchestrator.core.content import LargeContent
from orchestrator.core.ids import Digest

MOST_BEGUN = 4
"""Contents of which a part was read, and the next one is expected; each holds a file open."""


class ContentPieces:
    """`blocks` gives a content from its beginning on, piece by piece."""

    def __init__(self, blocks: Callable[[LargeContent], Iterator[bytes]]) -> None:
        self._blocks = blocks
        self._begun: OrderedDict[tuple[Digest, int], tuple[Iterator[bytes], bytes]] = OrderedDict()

    def read(self, content: LargeContent, start: int, end: int) -> bytes:
        """The bytes from `start` to before `end`. Blocking; raises JournalCorrupt, at its end if they are others."""
        begun = self._begun.pop((content.digest, start), None)
        blocks, block = begun or (self._blocks(content), b"")
        at = start if begun else 0
        parts: list[bytes] = []
        while at < end and (block := block or next(blocks, b"")):
            taken = min(len(block), end - at)
            parts.append(block[max(0, start - at) : taken])
            at, block = at + taken, block[taken:]
        if at < content.size:
            self._begun[content.digest, at] = blocks, block
            if len(self._begun) > MOST_BEGUN:
                self._begun.popitem(last=False)
        else:
            next(blocks, None)  # which verifies them
        return b"".join(parts)
