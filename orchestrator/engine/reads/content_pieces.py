"""Parts of large contents; whoever reads on where the last part ended does not unpack anew what is before it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

from orchestrator.core.content import LargeContent, Signature
from orchestrator.core.ids import Digest
from orchestrator.ports.workspace import FileStat

MOST_BEGUN = 4
"""Contents of which a part was read, and the next one is expected; each holds a file open."""


BACK_BYTES = 256 * 1024
"""Of what was read last, that are at hand; whoever goes further back begins anew."""


class KeptPieces:
    """A content of the journal, as a file that is read from its beginning on; see `ports.FilePieces`."""

    handle = -1

    def __init__(self, blocks: Callable[[], Iterator[bytes]], size: int) -> None:
        self.stat = FileStat("file", Signature(size, 0, 0, 0), 0o644, 0)
        self._size, self._begun = size, blocks
        self._blocks, self._at, self._data = blocks(), 0, b""

    def stat_now(self) -> FileStat:
        return self.stat

    def read(self, at: int, count: int) -> bytes:
        if at < self._at:
            self._blocks, self._at, self._data = self._begun(), 0, b""
        end = min(at + count, self._size)
        while self._at + len(self._data) < end and (block := next(self._blocks, b"")):
            dropped = max(0, min(len(self._data), at - BACK_BYTES - self._at))
            self._at, self._data = self._at + dropped, self._data[dropped:] + block
        if end == self._size:
            next(self._blocks, None)  # which verifies them
        return self._data[at - self._at : end - self._at]

    def data_from(self, at: int) -> int:
        return at

    def close(self) -> None:
        return


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
