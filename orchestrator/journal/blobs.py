"""Contents by digest: zstd in the database up to 256 KiB, above that as synced files beside it."""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

import msgspec

from orchestrator.core.content import LargeContent, Splice, SplicedContent, digest_of
from orchestrator.core.errors import JournalCorrupt, OrchestratorError
from orchestrator.core.ids import Digest, parse_digest
from orchestrator.core.splices import spliced
from orchestrator.core.system_errors import system_trouble
from orchestrator.journal.state_files import publish, sync_directory
from orchestrator.ports.journal import NewContent, StagedContent

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["FOLDER_NAME", "INCOMING", "IN_DATABASE_BYTES", "LEVEL", "Blobs", "StoredBlob", "zstd"]

FOLDER_NAME = "blobs"
IN_DATABASE_BYTES = 256 * 1024
LEVEL = 1
"""Of zstd; the bytes are on the way of every write.

Source: 700 KB of Python took 1.8 ms at level 1 (28 % left) and 2.5 ms at level 3 (26 % left).
"""

INCOMING = "incoming"
BLOCK_BYTES = 1024 * 1024
_HEADER_BYTES = 18  # of a zstd frame, at most

SPLICED = b"splices\0"
"""The row of a content that is kept as splices of another one begins so; zstd's frames begin otherwise."""


SPLICES_BYTES = 64 * 1024 * 1024
"""Of the splices of one content, unpacked, at most."""


class StoredBlob(msgspec.Struct, frozen=True):
    """A row of the blobs table; data None: the bytes are in a file already."""

    digest: Digest
    size: int
    data: bytes | None


class Blobs:
    """The contents' bytes: packed for their row, or published as files that never change.

    All calls are blocking and thread-safe.
    """

    def __init__(self, state_dir: Path) -> None:
        self._root = state_dir / FOLDER_NAME
        self._numbers = itertools.count()
        self._synced: set[Path] = set()
        """Folders of contents whose own names are durable."""

    def strays(self, named: Container[Digest]) -> Iterator[Path]:
        """Files half written, and those of no content that is named; only while nothing is being prepared."""
        for file in self._root.rglob("*"):
            if file.is_file() and f"sha256:{file.parent.name}{file.name}" not in named:
                yield file

    def remove(self, digests: Iterable[Digest]) -> bool:
        """Unlink the files of contents that no row names any more, synced; False: one stays, until the next start."""
        all_gone = True
        for digest in digests:
            path = self._place(digest)
            try:
                path.unlink()
                sync_directory(path.parent)
            except FileNotFoundError:
                continue
            except OSError:
                all_gone = False
        return all_gone

    def name_of(self, digest: Digest) -> str:
        """Where the file of a content lies, relative to the state directory."""
        return str(self._place(digest).relative_to(self._root.parent))

    def prepare(self, contents: Iterable[tuple[Digest, NewContent]]) -> tuple[StoredBlob, ...]:
        """Pack them; the large ones are on disk, synced, when this returns. Raises OSError.

        700 KB: about 2 ms to pack and 1 ms to publish.
        """
        return tuple(self._prepared(digest, data) for digest, data in contents)

    def stage(self, blocks: Iterable[bytes], size: int) -> StagedContent | None:
        """Pack a content piece by piece into a synced draft; None, and no draft, if it has not so many bytes.

        Raises OSError. 100 MB: about 0.6 s, of which half is for the hash.
        """
        draft = self._draft()
        hashed, packer, taken = hashlib.sha256(), zstd.ZstdCompressor(LEVEL), 0
        packer.set_pledged_input_size(size)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(handle, "wb") as file:
                for block in blocks:
                    taken += len(block)
                    if taken > size:
                        break
                    hashed.update(block)
                    file.write(packer.compress(block))
                if taken == size:
                    file.write(packer.flush())
                    file.flush()
                    os.fsync(file.fileno())
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        if taken != size:
            draft.unlink(missing_ok=True)
            return None
        return StagedContent(Digest("sha256:" + hashed.hexdigest()), size, str(draft))

    @staticmethod
    def discard(staged: StagedContent) -> None:
        """Remove a draft, if it is still there."""
        Path(staged.draft).unlink(missing_ok=True)

    def _prepared(self, digest: Digest, data: NewContent) -> StoredBlob:
        if isinstance(data, SplicedContent):
            row = msgspec.msgpack.encode((data.base.digest, data.base.size, data.splices))
            return StoredBlob(digest, data.size, SPLICED + zstd.compress(row, LEVEL))
        if isinstance(data, StagedContent):
            self._publish(digest, data)
            return StoredBlob(digest, data.size, None)
        if len(data) <= IN_DATABASE_BYTES:
            return StoredBlob(digest, len(data), zstd.compress(data, LEVEL))
        self._publish(digest, data)
        return StoredBlob(digest, len(data), None)

    def is_there(self, blob: StoredBlob) -> bool:
        """Whether what was prepared still has its bytes: another unit may have removed the file."""
        return blob.data is not None or self._published(self._place(blob.digest), blob.size)

    def _draft(self) -> Path:
        incoming = self._root / INCOMING
        for folder in (self._root, incoming):
            folder.mkdir(mode=0o700, exist_ok=True)
        return incoming / f"{os.getpid()}.{next(self._numbers)}"

    def _publish(self, digest: Digest, data: bytes | StagedContent) -> None:
        path, draft = self._place(digest), self._draft()
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if path.parent not in self._synced:  # by this process: whoever made it may have crashed before its sync
            sync_directory(self._root)
            sync_directory(self._root.parent)
            self._synced.add(path.parent)
        if self._published(path, len(data)):
            # No row says so yet: whoever put it there may have crashed before the name was synced.
            sync_directory(path.parent)
            return
        if isinstance(data, StagedContent):
            Path(data.draft).rename(path)
            sync_directory(path.parent)
        else:
            publish(zstd.compress(data, LEVEL), draft, path)

    @staticmethod
    def _published(path: Path, size: int) -> bool:
        try:
            with path.open("rb") as file:
                return zstd.get_frame_info(file.read(_HEADER_BYTES)).decompressed_size == size
        except (FileNotFoundError, zstd.ZstdError):
            return False

    def read(self, digest: Digest, size: int, data: bytes | None) -> bytes:
        """The plain bytes, verified by their hash; never more than `size` of them are unpacked.

        Raises JournalCorrupt when they are not there or not those.
        """
        if (content := splices_of(digest, size, data)) is not None:
            return b"".join(self.blocks(content))
        return self._unpacked(digest, size, data)[0]

    def check(self, digest: Digest, size: int, data: bytes | None) -> None:
        """As `read`; also that nothing is stored behind the content, which no reader would look at."""
        content: LargeContent | None = splices_of(digest, size, data)
        if data is None and type(size) is int and size > BLOCK_BYTES:
            content = LargeContent(digest, size)
        if content is not None:
            for _ in self.blocks(content):
                pass
        elif self._unpacked(digest, size, data)[1]:
            raise JournalCorrupt(f"the content {digest} is stored with bytes behind it that are not its own")

    def blocks(self, content: LargeContent) -> Iterator[bytes]:
        """The plain bytes of a content that has a file, or is splices of one that has, piece by piece.

        Raises JournalCorrupt when they are not there or, at the end, not those.
        """
        hashed, taken = hashlib.sha256(), 0
        if isinstance(content, SplicedContent):
            blocks = spliced(self._file_blocks(content.base), content.splices)
        else:
            blocks = self._file_blocks(content)
        try:
            for block in blocks:
                hashed.update(block)
                taken += len(block)
                yield block
        except ValueError as error:
            raise _unreadable(content.digest, error) from error
        if taken != content.size or "sha256:" + hashed.hexdigest() != content.digest:
            raise JournalCorrupt(f"the content {content.digest} is not what its name says")

    def _file_blocks(self, content: LargeContent) -> Iterator[bytes]:
        """The plain bytes of a content that has a file; only that they are no more is checked."""
        digest, size = content.digest, content.size
        unpacker, taken = zstd.ZstdDecompressor(), 0
        try:
            with self._place(digest).open("rb") as file:
                while not unpacker.eof and taken <= size:
                    packed = file.read(BLOCK_BYTES) if unpacker.needs_input else b""
                    if unpacker.needs_input and not packed:
                        break
                    block = unpacker.decompress(packed, max_length=BLOCK_BYTES)
                    taken += len(block)
                    if block:
                        yield block
                more = bool(unpacker.unused_data or file.read(1)) if unpacker.eof else False
        except (OSError, zstd.ZstdError, EOFError) as error:
            raise _unreadable(digest, error) from error
        if more:
            raise JournalCorrupt(f"the content {digest} is stored with bytes behind it that are not its own")

    def _unpacked(self, digest: Digest, size: int, data: bytes | None) -> tuple[bytes, bool]:
        """The plain bytes, and whether more is stored than they need."""
        unpacker = zstd.ZstdDecompressor()
        if type(size) is not int or not isinstance(data, bytes | None):
            raise JournalCorrupt(f"the row of the content {digest} can't be read: its values are of the wrong types")
        try:
            packed = self._packed(digest, size) if data is None else data
            plain = unpacker.decompress(packed, max_length=size + 1)
        except (OSError, zstd.ZstdError, EOFError) as error:
            raise _unreadable(digest, error) from error
        if len(plain) != size or digest_of(plain) != digest:
            raise JournalCorrupt(f"the content {digest} is not what its name says")
        return plain, bool(unpacker.unused_data)

    def _packed(self, digest: Digest, size: int) -> bytes:
        with self._place(digest).open("rb") as file:
            return file.read(size + size // 128 + 1024)

    def _place(self, digest: Digest) -> Path:
        if parse_digest(digest) is None:
            raise JournalCorrupt(f"{digest!r} is no digest")
        name = digest.removeprefix("sha256:")
        return self._root / name[:2] / name[2:]


def splices_of(digest: Digest, size: int, data: bytes | None) -> SplicedContent | None:
    """The content of a row, if it is kept as splices. Raises JournalCorrupt."""
    if not isinstance(data, bytes) or not data.startswith(SPLICED):
        return None
    try:
        row = zstd.ZstdDecompressor().decompress(data.removeprefix(SPLICED), max_length=SPLICES_BYTES)
        base, length, splices = msgspec.msgpack.decode(row, type=tuple[str, int, tuple[Splice, ...]])
    except (zstd.ZstdError, EOFError, msgspec.MsgspecError) as error:
        raise _unreadable(digest, error) from error
    return SplicedContent(digest, size, LargeContent(Digest(base), length), splices)


def _unreadable(digest: Digest, error: Exception) -> OrchestratorError:
    trouble = system_trouble(error, f"the content {digest} can't be read") if isinstance(error, OSError) else None
    return trouble or JournalCorrupt(f"the content {digest} can't be read: {error}")
