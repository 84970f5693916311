"""Files that are too large for memory, read by lines: an index of each that was read, shared by all sessions.

An index is known by the file's stat signature; any change drops it. Of a file that grew nothing but a look at all of
it tells that the rest is as before, and that takes as long as counting anew. The end is read without an index. A file
is looked through in slices, so whoever waits long for it is told how far it is.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial

import anyio
import msgspec
from anyio import to_thread

from orchestrator.core.content import LargeContent, Signature
from orchestrator.core.errors import BinaryFile, ChangedWhileRead, LinesNotCounted, ParameterInvalid
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.text.encoding import Document, Eol, decode
from orchestrator.core.text.line_index import LineIndex, after_ends
from orchestrator.engine.reads.content_pieces import KeptPieces
from orchestrator.engine.reads.line_scan import SHOWN_BYTES, LineScan, Rows, Shrunk, grew
from orchestrator.engine.services import Services
from orchestrator.ports.workspace import FilePieces

MOST_INDEXES = 32
"""In memory; about 10 MB."""

SNIFFED_BYTES = 64 * 1024
"""From them the encoding is told, as `decode` does of a whole file."""

SLICE_BYTES = 64 * 1024 * 1024
"""Looked through in one go of a thread, for a caller: some 30 ms."""

COUNTED_BYTES = 4 * 1024 * 1024
"""The same while nobody waits for it: some 2 ms, so that who comes next hardly waits."""

PATIENCE_S = 8.0
"""How long a call waits for the lines before what it asks for to be counted."""

TRIES = 3


class Known(msgspec.Struct):
    """What is known of a file's lines. `eol` is that of its beginning."""

    signature: Signature
    index: LineIndex
    eol: Eol
    stored: bool = False

    @property
    def total(self) -> int | None:
        """How many lines it has; None while they are not counted."""
        return self.index.total(self.signature.size)


class Wanted(msgspec.Struct, frozen=True):
    """Lines from the 1-based `start` on, or, if that is negative, from the end.

    `around`: so many further ones on both sides, where lines of a key may be near. `column`: characters of the line
    `start` alone, from that one on, as many as `most_bytes`.
    """

    start: int
    most_lines: int
    most_bytes: int
    around: int = 0
    column: int | None = None
    counted: bool = False  # all lines of the file are to be counted


class Passage(msgspec.Struct, frozen=True):
    """Lines of a large file. `first` is the number of the first; negative where they are counted from the end.

    The first `lead` lines are further ones, as are those after `most_lines`.
    """

    first: int
    lead: int
    lines: list[str]
    beyond: dict[int, int]
    total: int | None
    known: Known
    goes_on: bool  # after the last of the lines; of a part of a line, the line


class LargeTexts:
    """Reads passages of large files."""

    def __init__(self, services: Services) -> None:
        self._s = services
        self._known: OrderedDict[WorkspacePath, Known] = OrderedDict()
        services.caches.add("line indexes", self)
        self._kept: OrderedDict[Digest, Known] = OrderedDict()
        self._locks: dict[WorkspacePath, anyio.Lock] = {}

    def __len__(self) -> int:
        return len(self._known)

    @property
    def held_bytes(self) -> int:
        """What the indexes take in memory."""
        return sum(known.index.held_bytes for known in list(self._known.values()))

    def clear(self) -> None:
        """Forget the indexes; a call that has one goes on with it."""
        self._known = OrderedDict()

    async def passage(self, path: WorkspacePath, version: Signature | LargeContent, wanted: Wanted) -> Passage:
        """Lines of the version of a file that has this signature, or had this content.

        Raises BinaryFile, ChangedWhileRead, LinesNotCounted, ParameterInvalid and the PathError family.
        """
        if isinstance(version, LargeContent):
            return await to_thread.run_sync(self._of_kept, path, version, wanted)
        async with self._opened(path) as pieces:
            try:
                return await self._passage(path, pieces, version, wanted)
            except Shrunk:
                raise ChangedWhileRead(path, "it was cut while it was read") from None

    @asynccontextmanager
    async def _opened(self, path: WorkspacePath) -> AsyncIterator[FilePieces]:
        """The file, open; one at a time works with its index."""
        lock = self._locks.setdefault(path, anyio.Lock())
        try:
            with closing(self._s.workspace.pieces(path)) as pieces:
                async with lock:
                    yield pieces
        finally:
            if not lock.locked():
                self._locks.pop(path, None)

    async def _passage(self, path: WorkspacePath, pieces: FilePieces, version: Signature, wanted: Wanted) -> Passage:
        now = pieces.stat.signature
        if now != version and not grew(version, now):
            raise ChangedWhileRead(path, "it was replaced while it was read")
        reading = partial(self._attempt, path, pieces, version, wanted)
        try:
            with anyio.fail_after(PATIENCE_S):
                while (found := await to_thread.run_sync(reading)) is None:
                    await anyio.lowlevel.checkpoint()
        except TimeoutError:
            known = self._known.get(path)
            raise LinesNotCounted(path, wanted.start, known.index.covered if known else 0, version.size) from None
        after = pieces.stat_now().signature
        if after != version:  # what is shown must be what the version had: where it only grew, that is still there
            again = await to_thread.run_sync(reading) if grew(version, after) else None
            if again is None or (again.first, again.lines) != (found.first, found.lines):
                self._known.pop(path, None)
                raise ChangedWhileRead(path, "another program writes to it")
        if found.known.total is not None and not found.known.stored:
            await to_thread.run_sync(self._store, path, found.known)
        return found

    async def known(self, path: WorkspacePath, version: Signature) -> Known | None:
        """What is known of the lines of a version; None if it is not text, or another one is there.

        A file that grew still begins with that version.
        """
        async with self._opened(path) as pieces:
            now = pieces.stat.signature
            if now != version and not grew(version, now):
                return None
            try:
                return await to_thread.run_sync(self._brought_up, path, pieces, version)
            except (BinaryFile, Shrunk):
                return None

    async def numbers(
        self, path: WorkspacePath, version: Signature, offsets: Sequence[int], after: int, most: int
    ) -> list[tuple[int, int]]:
        """Which of these places of a version, ascending, are beyond a line, the `most` first, and in which lines.

        All its lines are counted then. Raises ChangedWhileRead, LinesNotCounted.
        """
        for _ in range(TRIES):  # a call for a later version may come between
            if await self.known(path, version) is None:
                break
            await self.count(path, version)
            async with self._opened(path) as pieces:
                known = self._known.get(path)
                if known is not None and known.signature == version:
                    scan = LineScan(pieces, known.index, version.size)
                    if scan.total is None:
                        raise LinesNotCounted(path, 1, known.index.covered, version.size)
                    return await to_thread.run_sync(partial(_numbered, scan, offsets, after, most))
        raise ChangedWhileRead(path, "another program writes to it")

    async def count(self, path: WorkspacePath, version: Signature) -> None:
        """Count the lines of a version to its end, slice by slice, so that others read between; if there is time."""
        with anyio.move_on_after(PATIENCE_S):
            while await self._count_more(path, version):
                await anyio.lowlevel.checkpoint()

    async def _count_more(self, path: WorkspacePath, version: Signature) -> bool:
        """Whether there is more."""
        async with self._opened(path) as pieces:
            known, now = self._known.get(path), pieces.stat.signature
            if known is None or known.signature != version or (now != version and not grew(version, now)):
                return False
            scan = LineScan(pieces, known.index, version.size)
            try:
                whole = await to_thread.run_sync(scan.look_through, None, COUNTED_BYTES)
            except Shrunk:
                return False
            if whole:
                await to_thread.run_sync(self._store, path, known)
            return not whole

    # --- in a thread --------------------------------------------------------------------

    def _attempt(self, path: WorkspacePath, pieces: FilePieces, version: Signature, wanted: Wanted) -> Passage | None:
        """The passage; None where more is to be looked through first."""
        return self._sought(path, pieces, self._brought_up(path, pieces, version), wanted)

    def _of_kept(self, path: WorkspacePath, content: LargeContent, wanted: Wanted) -> Passage:
        """Of a content of the journal: it is looked through to its end first, which verifies it."""
        pieces = KeptPieces(partial(self._s.journal.blocks, content), content.size)
        known = self._kept.get(content.digest)
        if known is None:
            document = sniffed(path, pieces, content.size)
            known = Known(pieces.stat.signature, LineIndex.empty(document.encoding, content.size), document.eol)
            LineScan(pieces, known.index, content.size).look_through(None, content.size)
            self._kept[content.digest] = known
            while len(self._kept) > MOST_INDEXES:
                self._kept.popitem(last=False)
        found = self._sought(path, pieces, known, wanted)
        if found is None:
            raise LinesNotCounted(path, wanted.start, known.index.covered, content.size)
        return found

    def _sought(self, path: WorkspacePath, pieces: FilePieces, known: Known, wanted: Wanted) -> Passage | None:
        scan = LineScan(pieces, known.index, known.signature.size)
        start, counted = wanted.start, wanted.counted or wanted.column is not None
        if start < 0 and scan.total is None and not counted and (found := scan.from_end(-start)):
            return self._from_end(scan, known, wanted, *found)
        if (start < 0 or counted) and not scan.look_through(None, SLICE_BYTES):
            return None
        if start < 0:
            start = max(1, (scan.total or 0) + 1 + start)
        if not scan.look_through(start, SLICE_BYTES):
            return None
        if scan.total is not None and start > scan.total:
            raise ParameterInvalid("start", f"{start} is after the last line, {scan.total}, of {path}")
        if wanted.column is not None:
            text, goes_on = scan.within_line(scan.offset_of(start), wanted.column, wanted.most_bytes)
            return Passage(start, 0, [text], {}, scan.total, known, goes_on=goes_on)
        at = scan.offset_of(start)
        rows, begin = self._rows(scan, at, 0, wanted), start
        if wanted.around and scan.near_key(at, rows.until):
            begin = max(1, start - wanted.around)
            rows = self._rows(scan, scan.offset_of(begin), start - begin, wanted, wanted.around)
        goes_on = rows.until < scan.size
        total = scan.total if goes_on else begin + len(rows.lines) - 1
        return Passage(begin, start - begin, rows.lines, rows.beyond, total, known, goes_on=goes_on)

    def _from_end(self, scan: LineScan, known: Known, wanted: Wanted, at: int, count: int) -> Passage:
        lead, rows = 0, self._rows(scan, at, 0, wanted)
        if wanted.around and scan.near_key(at, rows.until) and (more := scan.from_end(count + wanted.around)):
            lead, (at, count) = more[1] - count, more
            rows = self._rows(scan, at, lead, wanted, wanted.around)
        first, total = (-count, None) if at else (1, count)
        return Passage(first, lead, rows.lines, rows.beyond, total, known, goes_on=rows.until < scan.size)

    @staticmethod
    def _rows(scan: LineScan, at: int, lead: int, wanted: Wanted, around: int = 0) -> Rows:
        most_bytes = wanted.most_bytes + 2 * around * SHOWN_BYTES
        return scan.rows(at, lead + wanted.most_lines + around, most_bytes)

    def _brought_up(self, path: WorkspacePath, pieces: FilePieces, version: Signature) -> Known:
        """What is known of the file, as far as it still holds. Raises BinaryFile."""
        known = self._known.get(path)
        if known is None and (known := self._stored(path)) is not None:
            known = known if LineScan(pieces, known.index, known.signature.size).is_same() else None
        if known is None or known.signature != version:
            document = sniffed(path, pieces, version.size)
            known = Known(version, LineIndex.empty(document.encoding, version.size), document.eol)
        kept = self._known  # the same to the end of this: all may be forgotten meanwhile
        kept[path] = known
        kept.move_to_end(path)
        while len(kept) > MOST_INDEXES:
            kept.popitem(last=False)
        return known

    # --- beyond a restart ---------------------------------------------------------------

    def _store(self, path: WorkspacePath, known: Known) -> None:
        known.stored = True
        self._s.cache.put(_name(path), msgspec.msgpack.encode((path, known)))

    def _stored(self, path: WorkspacePath) -> Known | None:
        data = self._s.cache.get(_name(path))
        try:
            stored, known = msgspec.msgpack.decode(data or b"", type=tuple[str, Known])
        except msgspec.MsgspecError:
            return None
        return known if stored == path else None


def _numbered(scan: LineScan, offsets: Sequence[int], after: int, most: int) -> list[tuple[int, int]]:
    """Blocking. See `LargeTexts.numbers`."""
    first = bisect_right(offsets, after, key=scan.number_of) if after else 0
    return [(at, scan.number_of(offsets[at])) for at in range(first, min(first + most, len(offsets)))]


def sniffed(path: WorkspacePath, pieces: FilePieces, size: int) -> Document:
    """The beginning of a large file, by which its encoding is told. Blocking; raises BinaryFile."""
    sample = pieces.read(0, min(size, SNIFFED_BYTES))
    document = decode(sample)
    if document is not None and document.encoding not in ("utf-16-le", "utf-16-be"):
        ended = max(after_ends(sample, len(sample)), default=0)  # a character may be cut behind it
        document = decode(sample[:ended]) if ended else document
    if document is None:
        raise BinaryFile(path, "it is not text")
    return document


def _name(path: WorkspacePath) -> str:
    return "lines-" + hashlib.sha256(path.encode()).hexdigest()[:40]
