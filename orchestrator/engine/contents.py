"""Contents at hand: what was read lately, decoded, and what the blob store keeps."""

from __future__ import annotations

from collections import OrderedDict

from orchestrator.core.errors import VersionNotKept
from orchestrator.core.events.catalog import tag_of
from orchestrator.core.events.keeping import ContentRedacted
from orchestrator.core.ids import Digest, show
from orchestrator.core.projections.encodings import Encodings
from orchestrator.core.text.encoding import Document, decode
from orchestrator.ports.journal import EventFilter, Journal

CACHE_BYTES = 64 * 1024 * 1024
"""Of plain bytes; decoded lines cost about as much again."""

_UNSEEN = object()


class Contents:
    """A cache by digest in front of the journal's blobs. Contents never change, so nothing in it goes stale."""

    def __init__(self, journal: Journal, encodings: Encodings, *, cache_bytes: int = CACHE_BYTES) -> None:
        self._journal, self._encodings = journal, encodings
        self._most = cache_bytes
        self._held = 0
        self._bytes: OrderedDict[Digest, bytes] = OrderedDict()
        self._documents: dict[Digest, Document | None] = {}

    def put(self, digest: Digest, data: bytes, document: Document | None = None) -> None:
        """Keep at hand what was just read or written; `document` is what decoding it is sure to give."""
        if digest in self._bytes:
            self._bytes.move_to_end(digest)
            return
        if len(data) > self._most // 4:
            return
        self._bytes[digest] = data
        self._held += len(data)
        if document is not None:
            self._documents[digest] = document
        while self._held > self._most:
            old, dropped = self._bytes.popitem(last=False)
            self._documents.pop(old, None)
            self._held -= len(dropped)

    def cached(self, digest: Digest) -> bytes | None:
        """What is at hand, without asking the journal."""
        data = self._bytes.get(digest)
        if data is not None:
            self._bytes.move_to_end(digest)
        return data

    def drop(self, digest: Digest) -> None:
        """Forget a content that is kept no more."""
        data = self._bytes.pop(digest, None)
        self._documents.pop(digest, None)
        if data is not None:
            self._held -= len(data)

    def document(self, digest: Digest, data: bytes) -> Document | None:
        """The text of a content, decoded once; None for a binary file."""
        known = self._documents.get(digest, _UNSEEN)
        if known is not _UNSEEN:
            return known  # type: ignore[return-value]  # the sentinel is ruled out above
        known = self._encodings.of(digest)
        document = decode(data, written=known.written, like=known.like)
        if digest in self._bytes:
            self._documents[digest] = document
        return document

    async def get(self, digest: Digest) -> bytes | None:
        """A content, from the cache or the journal; None if it is not kept."""
        data = self.cached(digest)
        if data is None:
            data = await self._journal.blob(digest)
            if data is not None:
                self.put(digest, data)
        return data

    async def need(self, digest: Digest, what: str) -> bytes:
        """As `get`. Raises VersionNotKept, naming `what`."""
        data = await self.get(digest)
        if data is None:
            await self._refuse_redacted(digest, what)
            raise VersionNotKept(
                f"the content of {what} is not in the journal",
                hint="Contents are kept from the first read or change on; read the file as it is now.",
            )
        return data

    async def _refuse_redacted(self, digest: Digest, what: str) -> None:
        """Say which redaction took a content out, if one did. Raises VersionNotKept."""
        async for recorded in self._journal.events(EventFilter(tags=(tag_of(ContentRedacted),))):
            if isinstance(recorded.event, ContentRedacted) and recorded.event.digest == digest:
                raise VersionNotKept(
                    f"the content of {what} was redacted by {recorded.event.by} ({show(recorded.seq)})",
                    hint="It is gone for good. Read the file as it is now.",
                )
