"""Contents in memory: what was read lately, decoded, in front of the blob store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from anyio import to_thread

from orchestrator.core.bounded_cache import BoundedCache
from orchestrator.core.content import Content, LargeContent, LineHunk
from orchestrator.core.decisions.costs import large
from orchestrator.core.decisions.stale_regions import hunks_between
from orchestrator.core.errors import TextTooCostly, VersionNotKept, VersionTooLarge
from orchestrator.core.ids import Digest
from orchestrator.core.policy.rules import Limits
from orchestrator.core.projections.registry import Encodings
from orchestrator.core.text.encoding import Document, decode
from orchestrator.core.text.unified_diff import line_hunks
from orchestrator.ports.journal import Journal
from orchestrator.ports.machine import Workers

T = TypeVar("T")

CACHE_BYTES = 24 * 1024 * 1024
"""Of memory: the plain bytes, and the lines of what was decoded."""

MOST_OF_ONE = 16 * 1024 * 1024
"""Plain bytes; a larger content is not cached. The one used last is, whatever it takes."""

LINE_BYTES = 66
"""What a line of a decoded text takes besides its characters: a string's head, and its places in two tuples."""

LARGE_BYTES = 256 * 1024
"""Larger contents are decoded in a thread."""

MOST_HUNKS = 20_000
"""All remembered differences together; some 5 MB."""


def _hunks_between(old: Document, new: Document) -> list[LineHunk]:
    """For a worker, which is given documents: the lines of a large text, packed as such, take the interpreter 0.3 s."""
    return hunks_between(old.lines, new.lines)


class _Content:
    """The bytes, and what decoding them gave, if that was done."""

    __slots__ = ("cost", "data", "decoded", "document")

    def __init__(self, data: bytes) -> None:
        self.data, self.cost = data, 0
        self.document: Document | None = None
        self.decoded = False


class Contents:
    """A cache by digest in front of the journal's blobs. Contents never change, so nothing in it goes stale."""

    def __init__(
        self,
        journal: Journal,
        encodings: Encodings,
        effort: Workers,
        *,
        cache_bytes: int = CACHE_BYTES,
        most_of_one: Callable[[], int] = lambda: Limits().in_memory_bytes,
    ) -> None:
        self._journal, self._encodings, self._effort = journal, encodings, effort
        self._most_of_one = most_of_one
        self._most = cache_bytes
        self.held = 0
        """What all of it takes, in bytes of memory."""
        self._kept: OrderedDict[Digest, _Content] = OrderedDict()
        self._differences: BoundedCache[tuple[Digest, Digest], Sequence[LineHunk]] = BoundedCache(MOST_HUNKS)

    def put(self, digest: Digest, data: bytes, document: Document | None = None) -> None:
        """Keep what was just read or written; `document` is what decoding it is sure to give."""
        if digest in self._kept:
            self._kept.move_to_end(digest)
        elif len(data) <= MOST_OF_ONE:
            self._kept[digest] = _Content(data)
            self._charge(digest, len(data))
            if document is not None:
                self._decoded(digest, document)

    def _decoded(self, digest: Digest, document: Document | None) -> None:
        kept = self._kept.get(digest)
        if kept is not None and not kept.decoded:
            kept.document, kept.decoded = document, True
            if document is not None:  # nearly: a character takes one byte, two or four
                self._charge(digest, sum(map(len, document.lines)) + LINE_BYTES * len(document.lines))

    def _charge(self, digest: Digest, size: int) -> None:
        """So much more is held; what was used longest ago goes, but not the last."""
        self._kept[digest].cost += size
        self.held += size
        while self.held > self._most and len(self._kept) > 1:
            self.drop(next(iter(self._kept)))

    def cached(self, digest: Digest) -> bytes | None:
        """The bytes, without asking the journal."""
        kept = self._kept.get(digest)
        if kept is None:
            return None
        self._kept.move_to_end(digest)
        return kept.data

    def drop(self, digest: Digest) -> None:
        """Forget a content that is kept no more."""
        kept = self._kept.pop(digest, None)
        self.held -= kept.cost if kept is not None else 0

    async def text(self, digest: Digest, data: bytes) -> Document | None:
        """The text of a content, decoded once, large ones beside the event loop; None for a binary file."""
        kept = self._kept.get(digest)
        if kept is not None and kept.decoded:
            return kept.document
        known = self._encodings.of(digest)
        work = partial(decode, data, written=known.written, like=known.like)
        document = await to_thread.run_sync(work) if len(data) > LARGE_BYTES else work()
        self._decoded(digest, document)
        return document

    async def get(self, digest: Digest) -> bytes | None:
        """A content, from the cache or the journal; None if it is not kept, or stays out of memory."""
        found = await self.find(digest)
        return found if isinstance(found, bytes) else None

    async def find(self, digest: Digest) -> Content | None:
        """The same, also of a large one."""
        found: Content | None = self.cached(digest)
        if found is None:
            found = await self._journal.content(digest, most=self._most_of_one())
            if isinstance(found, bytes):
                self.put(digest, found)
        return found

    async def kept_text(self, digest: Digest | None) -> Document | None:
        """The text of a content; None if it is binary, or not kept, or there is none."""
        if digest is None:
            return None
        data = await self.get(digest)
        return await self.text(digest, data) if data is not None else None

    async def need(self, digest: Digest, what: str) -> Content:
        """As `find`. Raises VersionNotKept, naming `what`."""
        data = await self.find(digest)
        if data is None:
            raise VersionNotKept(
                f"the content of {what} is not in the journal",
                hint="It was not kept then, or was redacted or collected since. Read the file as it is now; "
                "a rollback leaves it out with globs ['**', '!PATH'].",
            )
        return data

    async def need_bytes(self, digest: Digest, what: str) -> bytes:
        """As `need`, of one that is to be shown. Raises VersionTooLarge besides."""
        data = await self.need(digest, what)
        if isinstance(data, LargeContent):
            raise VersionTooLarge(f"the content of {what} has {data.size} bytes, too many to show an old version of")
        return data

    # --- differences --------------------------------------------------------------------

    @property
    def compared(self) -> int:
        """How many differences are remembered."""
        return len(self._differences)

    async def computed(self, work: Callable[[], T], *texts: Document) -> T:
        """What `work` gives, from a worker process where the texts are large. Raises TextTooCostly, and as `work`."""
        return await self._effort.run(work) if large(*texts) else work()

    async def line_hunks(self, old: Document, new: Document) -> tuple[LineHunk, ...]:
        """What makes one text the other; large ones are compared in a worker. Raises TextTooCostly."""
        return await self.computed(partial(line_hunks, old, new), old, new)

    async def differences(self, old: Digest, new: Digest) -> Sequence[LineHunk] | None:
        """The same line by line as far as that goes, remembered: every reader of a file asks for the same few.

        Where comparing takes too long, all of it is one. None where one is binary, or not kept.
        """
        known = self._differences.get((old, new))
        if known is not None:
            return known
        was, is_now = await self.kept_text(old), await self.kept_text(new)
        if was is None or is_now is None:
            return None
        try:
            hunks = await self.computed(partial(_hunks_between, was, is_now), was, is_now)
        except TextTooCostly:
            hunks = [LineHunk(0, was.line_count, 0, is_now.line_count)]
        return self._differences.put((old, new), hunks, len(hunks) + 1)
